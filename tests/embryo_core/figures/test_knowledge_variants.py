"""Tests of the figure and table of variants of facts: paraphrases, negations and misleading words."""

import pytest

from embryo_core import results
from embryo_core.curves import interval
from embryo_core.errors import FigureError
from embryo_core.figures import knowledge_variants
from embryo_core.figures.axis import AxisChoice
from embryo_core.measurements import Findings, Score, VariantAnswer
from embryo_core.metrics.lama_variants import share_scores
from embryo_core.types import Fact, Run
from tests.conftest import checkpoint_at

FACT = Fact("f", "P19", "[X] was born in [Y] .", "Ada", "Rome")
ASKED = {  # by kind and variant: rank of the object at steps 0 and 16
    ("paraphrased", "[X] came from [Y] ."): (1, 1),
    ("paraphrased", "[X] is of [Y] ."): (2, 1),
    ("negated", "[X] was not born in [Y] ."): (1, 3),
    ("high", "Paris"): (5, 1),
}


@pytest.fixture
def asked_run(own_run: Run) -> Run:
    """Return a run that gets one fact right at steps 0 and 16, where its variants are asked, and none at step 8."""
    for i, step in enumerate((0, 16)):
        answers = [
            VariantAnswer("f", "P19", *key, rank=ranks[i], prediction="Rome" if ranks[i] == 1 else "Bonn")
            for key, ranks in ASKED.items()
        ]
        scores = [Score("lama_variants", 0.25, 4, group) for group in ("P19", "all")] + share_scores(answers)
        results.write(checkpoint_at(own_run, step), "lama_variants", Findings(scores=scores, variants=answers))
    results.write(checkpoint_at(own_run, 8), "lama_variants", Findings(scores=[Score("lama_variants", 0.0, 4, "all")]))
    return own_run


def test_curves_are_the_stored_shares(asked_run):
    """Shares have n and Wilson's interval; those among right facts have no point at a step without a right fact."""
    figure = knowledge_variants.variants([asked_run], AxisChoice("linear"))
    values = figure.table.set_index(["kind", "step"])["value"].to_dict()
    assert values == {
        ("right", 0): 0.25, ("right", 8): 0.0, ("right", 16): 0.25,
        ("paraphrased", 0): 0.0, ("paraphrased", 16): 1.0,
        ("negated", 0): 1.0, ("negated", 16): 0.0,
        ("high", 0): 1.0, ("high", 16): 0.0,
    }  # fmt: skip
    row = figure.table.iloc[0]
    assert [row["low"], row["high"]] == pytest.approx([float(end) for end in interval(row["value"], row["n"])])
    assert "4 (right as asked)" in figure.caption.data
    names = {trace.name for trace in figure.plot.data}
    assert {"right as asked", "most paraphrases right", "same answer when negated"} <= names
    with pytest.raises(FigureError):
        knowledge_variants.variants([asked_run], AxisChoice("linear"), relation="P20")


def test_table_of_a_fact_lists_all_its_questions(asked_run):
    """Each row has the answer at the chosen step, and at how many steps with a right fact its variant is right too."""
    rows = knowledge_variants.variants_of_fact(asked_run, FACT, 16).set_index("question")
    assert rows.loc["Ada came from … .", ["kind", "answer", "kept", "steps"]].tolist() == ["paraphrase", "Rome", 2, 2]
    assert rows.loc["Ada was not born in … .", ["kind", "answer", "kept"]].tolist() == ["negation", "Bonn", 1]
    assert rows.loc["Paris? Ada was born in … .", ["kind", "kept"]].tolist() == ["similar word", 1]
    assert len(rows) == len(ASKED) and knowledge_variants.variants_of_fact(asked_run, FACT, 8)["answer"].isna().all()
