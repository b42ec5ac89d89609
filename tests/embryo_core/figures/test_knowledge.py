"""Tests of the Knowledge figures and tables: they hold stored numbers, and text from the data is never markup."""

import pandas as pd
import pytest

from embryo_core import curves, results
from embryo_core.curves import HISTORIES
from embryo_core.errors import FigureError
from embryo_core.figures import knowledge, knowledge_facts, smoothing
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.curves import with_step
from embryo_core.measurements import ClozeAnswer, Findings, Score
from embryo_core.types import Run, StepUnit
from tests.conftest import checkpoint_at

STEPS = (0, 8, 16, 32)
AXIS = StepAxis("linear", step_unit=StepUnit.UPDATES)
BASELINES = pd.DataFrame(
    [("P36", "Rome", 0.3, 100), ("all", pd.NA, 0.2, 200)], columns=["group", "answer", "value", "n"]
)


def cloze_of(**histories: str) -> pd.DataFrame:
    """Return facts of relation P36 with histories such as "-++-" (+ is right), a row per fact and step."""
    rows = []
    for fact, history in histories.items():
        for step, mark in zip(STEPS, history, strict=True):
            rank, prediction = (1, "Rome") if mark == "+" else (7, "<b>the</b>")
            rows.append((step, fact, "P36", f"subject of {fact}", "Rome", rank, 0.25, prediction, 0.5))
    columns = "step fact relation subject object rank probability prediction prediction_probability".split()
    return pd.DataFrame(rows, columns=columns)


def facts_of(cloze: pd.DataFrame) -> pd.DataFrame:
    """Return the histories of these facts, as `results.read_histories` does."""
    right = cloze.assign(right=cloze["rank"] == 1).pivot(index="fact", columns="step", values="right")
    words = cloze.drop_duplicates("fact")[["relation", "fact", "subject", "object"]].sort_values("fact")
    return words.reset_index(drop=True).assign(history=curves.classify_histories(right), first=pd.NA)


@pytest.fixture
def scores() -> pd.DataFrame:
    """Return precision at 1 of two relations and of all facts together, as the store returns it."""
    values = {"P36": (0.0, 0.1, 0.4, 0.5), "<i>P0</i>": (0.0, 0.0, 0.005, 0.01), "all": (0.0, 0.05, 0.2, 0.25)}
    rows = [
        ("tiny", "world_knowledge", step, None, group, value, 200 if group == "all" else 100)
        for group, series in values.items()
        for step, value in zip(STEPS, series, strict=True)
    ]
    return pd.DataFrame(rows, columns=["run", "metric", "step", "layer", "group", "value", "n"])


def test_curves_are_scores_with_intervals(scores):
    """Values are as stored; the interval is that of `curves.interval` for 100 facts."""
    rows = knowledge.with_baselines(scores, BASELINES)
    rows = rows[rows["relation"] == "P36"]
    assert list(rows["value"]) == [0.0, 0.1, 0.4, 0.5]
    low, high = curves.interval([0.0, 0.1, 0.4, 0.5], 100)
    assert list(rows["low"]) == pytest.approx(list(low))
    assert list(rows["high"]) == pytest.approx(list(high))


@pytest.fixture
def asked_run(own_run: Run) -> Run:
    """Return a run that was asked three facts at its three steps; a relation and an answer are markup."""
    answers = {"P36": ("Rome", "-++"), "<i>P0</i>": ("<b>Bern</b>", "+-+"), "P19": ("Lima", "---")}
    for i, step in enumerate((0, 8, 16)):
        cloze = [
            ClozeAnswer(f"{name}/of {word}", name, f"of {word}", word, 1 + 4 * (marks[i] == "-"), 0.2, word, 0.3)
            for name, (word, marks) in answers.items()
        ]
        scores = [Score("world_knowledge", float(answer.rank == 1), 1, answer.relation) for answer in cloze]
        scores.append(Score("world_knowledge", sum(answer.rank == 1 for answer in cloze) / 3, 3, "all"))
        results.write(checkpoint_at(own_run, step), "world_knowledge", Findings(scores=scores, cloze=cloze))
    return own_run


def test_curves_and_baselines_are_those_of_the_table(tiny_results: Run):
    """Each point carries its relation, step and n, and the hover text of a baseline has its number of facts."""
    groups = knowledge.default_relations(knowledge.precision_table(tiny_results))
    figure = knowledge.precision([tiny_results], AxisChoice("log"), groups)
    curves_drawn = [trace for trace in figure.plot.data if trace.mode == "lines+markers"]
    assert [curve.customdata[0][0] for curve in curves_drawn] == groups
    for curve, relation in zip(curves_drawn, groups, strict=True):
        rows = figure.table[figure.table["relation"] == relation]
        assert list(curve.y) == list(rows["value"])
        assert [(step, f"n = {n:,} facts" in text) for (_, step, text), n in zip(curve.customdata, rows["n"])] == [
            (step, True) for step in rows["step"]
        ]
        assert curve.name == knowledge.relation_label(relation)
    dashed = next(trace for trace in figure.plot.data if trace.name == "all relations, baseline")
    everything = figure.table[figure.table["relation"] == "all"]
    assert set(dashed.y) == set(everything["baseline"]) and f"{everything['n'].iloc[0]:,} facts" in dashed.hovertemplate
    with pytest.raises(FigureError, match=tiny_results.name):
        knowledge.precision([tiny_results], AxisChoice("log"), ())


def test_markup_from_the_data_is_escaped(asked_run: Run):
    """Plotly reads tags in labels, so < is escaped in relations and answers."""
    figure = knowledge.precision([asked_run], AxisChoice("log"), ("<i>P0</i>",))
    assert "&lt;i&gt;P0&lt;/i&gt;" in [trace.name for trace in figure.plot.data]
    assert any("&lt;b&gt;Bern&lt;/b&gt;" in (trace.hovertemplate or "") for trace in figure.plot.data)
    one = knowledge_facts.fact([asked_run], AxisChoice("log"), "<i>P0</i>", "<i>P0</i>/of <b>Bern</b>")
    assert one.plot.data[0].customdata[0][1] == "&lt;b&gt;Bern&lt;/b&gt;"


def test_facts_that_name_their_object_can_be_left_out(asked_run: Run):
    """The subjects of all three facts contain the object, so nothing remains; the caption counts what is left out."""
    table = knowledge.precision_table(asked_run)
    assert knowledge.precision_table(asked_run, without_giveaways=True).empty and len(table) == 12
    assert "3 facts" in knowledge.describe_precision(asked_run, table, without_giveaways=True, types=False).details
    assert (
        "Left out" not in knowledge.describe_precision(asked_run, table, without_giveaways=False, types=False).details
    )


def test_precision_is_compared_with_the_baseline(tiny_run: Run):
    """If some subjects contain their object, these facts are counted and the others are compared again."""
    ends = {"value": [0.01, 0.3], "n": [100, 80], "baseline": [1.0, 0.1], "low": [0.0, 0.2], "high": [0.05, 0.4]}
    every, others = pd.DataFrame(ends).assign(relation="all", step=8), None
    every, others = every[:1], every[1:]
    sentence = knowledge.compare_with_baseline(every, others, tiny_run)
    for number in ("100.0 % of 100", "1.0 % at step 8", "20 facts (20 %)", "30.0 % of 80", "10.0 %"):
        assert number in sentence
    assert sentence.index("below") < sentence.index("above")
    assert "20 facts" not in knowledge.compare_with_baseline(every, every, tiny_run)


def test_headline_has_the_last_and_the_best_step(tiny_run: Run):
    """A single evaluated step is not compared with another."""
    rows = pd.DataFrame({"step": [0, 8, 16], "value": [0.0, 0.2, 0.1], "n": 1000}).assign(relation="all")
    axis = AxisChoice().for_run(tiny_run)
    headline = knowledge.headline(rows, axis)
    assert all(part in headline for part in ("10.0 % of 1,000 facts", "20.0 %", "step 8"))
    assert "20.0 % of 1,000" in knowledge.headline(rows[:2], axis)
    assert knowledge.headline(rows[:1], axis).count("step") == 1


def test_default_relations_are_those_ever_learned(scores):
    """All relations together come first; one that never rises is left out, however well the paper's model knows it."""
    assert knowledge.default_relations(knowledge.with_baselines(scores, BASELINES)) == ["all", "P36"]
    flat = knowledge.with_baselines(scores.replace("P36", "P140").assign(value=0.0), BASELINES)
    assert knowledge.default_relations(flat) == ["all"]


def test_relation_table_counts_facts_and_coverage(scores):
    """Each relation has its precision now and last, its coverage, and the number of facts with each history."""
    coverage = pd.DataFrame(
        {"group": ["P36", "P99", "all"], "step": 32, "value": [0.4, 0.0, 0.3], "n": [10, 5, 15]},
    )
    facts = facts_of(cloze_of(a="--++", b="-+++", c="+-+-", d="----"))
    facts.loc[:0, "subject"] = "the city of rome"
    without = pd.DataFrame({"relation": "P36", "step": STEPS, "value": (0, 0, 0.5, 0.25), "n": 3})
    frame = knowledge.with_baselines(scores, BASELINES)
    table = knowledge_facts.summarise_relations(frame, coverage, facts, without)
    table = with_step(table, frame, 16, "relation", "last").set_index("relation")
    assert list(table.index) == ["P36", "P99"]
    row = table.loc["P36"]
    assert (row["now"], row["last"], row["coverage"], row["all"], row["asked"]) == (0.4, 0.5, 0.4, 10, 4)
    assert [row[name] for name in HISTORIES] == [2, 1, 0, 1]
    assert row["history"] == "learned"
    assert row[["answer", "baseline", "named", "without"]].tolist() == ["Rome", 0.3, 0.25, 0.25]
    assert table.loc["P99", "asked"] == 0 and pd.isna(table.loc["P99", "last"])


def test_facts_at_a_step_have_its_answers():
    """Rank and answer are those of the chosen step, while the history covers all steps."""
    cloze = cloze_of(a="--++", b="-++-")
    table = knowledge_facts.facts_at(cloze[cloze["step"] == 8], facts_of(cloze)).set_index("fact")
    assert table["rank"].to_dict() == {"a": 7, "b": 1}
    assert table["prediction"].to_dict() == {"a": "<b>the</b>", "b": "Rome"}
    assert table["history"].to_dict() == {"a": "learned", "b": "forgotten"}


def test_fact_history_is_table_9():
    """Rows are in the order of steps; the plot has the probabilities of the top answer and of the true object."""
    history = knowledge_facts.fact_history(cloze_of(b="-++-").sample(frac=1, random_state=0))
    assert list(history["step"]) == list(STEPS)
    assert list(history["rank"]) == [7, 1, 1, 7]
    assert list(history["right"]) == [False, True, True, False]
    figure = knowledge_facts.plot_fact(history, AXIS)
    assert [list(line.y) for line in figure.data] == [[0.5] * 4, [0.25] * 4]
    assert [line.meta for line in figure.data] == [None, smoothing.SMOOTHABLE]


def test_panels_are_sorted_by_type_of_relation(asked_run: Run) -> None:
    """All facts come first, then types, then relations by type and number; each panel has a line at its baseline."""
    figure = knowledge.precision_panels([asked_run], AxisChoice("log"))
    titles = [note.text for note in figure.plot.layout.annotations]
    assert titles[:3] == ["all relations", "all 1-1 relations", "all N-1 relations"]
    assert titles[3].startswith("P36, 1-1") and titles[4].startswith("P19, N-1") and "P0" in titles[5]
    assert figure.table["relation"].unique().tolist() == ["all", "1-1", "N-1", "P36", "P19", "<i>P0</i>"]
    dashed = [trace for trace in figure.plot.data if trace.name and trace.name.endswith(", baseline")]
    assert len(dashed) == 6 and all(len(trace.x) == 3 for trace in dashed) and figure.plot.layout.width
