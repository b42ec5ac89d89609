"""Tests of the Grammar figures, with every number recomputed from planted outcomes."""

import numpy as np
import pytest

from embryo_core import results
from embryo_core.curves import interval
from embryo_core.errors import FigureError
from embryo_core.figures import grammar, grammar_pairs, style
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.curves import with_step
from embryo_core.measurements import Findings, PairScore
from embryo_core.metrics.minimal_pairs import accuracies
from embryo_core.types import MinimalPair, Run
from tests.conftest import checkpoint_at

AXIS = AxisChoice("linear", "step", 1)
STEPS = (0, 8, 16)
N = 40
RIGHT = {  # how many of N pairs are right at each step
    "zorro/agreement/early": (20, 40, 40),
    "zorro/agreement/late": (20, 20, 38),
    "zorro/npi/dips": (20, 2, 36),
    "zorro/npi/lost": (20, 38, 18),
    "other/case/one": (10, 10, 10),
}


@pytest.fixture
def run(own_run: Run) -> Run:
    """Return a run with the outcomes RIGHT; the last pair of "late" is a tie at the last step."""
    for index, step in enumerate(STEPS):
        pairs = [
            PairScore(name, i, -1.0, -1.0 - (1.0 if i < counts[index] else -0.5))
            for name, counts in RIGHT.items()
            for i in range(N)
        ]
        if step == STEPS[-1]:
            tied = pairs.index(PairScore("zorro/agreement/late", N - 1, -1.0, -0.5))
            pairs[tied] = PairScore("zorro/agreement/late", N - 1, -1.0, -1.0)
        findings = Findings(scores=list(accuracies(grammar.METRIC, pairs)), pairs=pairs)
        results.write(checkpoint_at(own_run, step), grammar.METRIC, findings)
    return own_run


def test_accuracies_cover_the_set_and_its_groups(run):
    """Groups are paradigms or phenomena, with Wilson's interval; a tie counts one half, and other sets are left out."""
    assert grammar.pair_sets(run) == ["other", "zorro"]
    table = grammar.accuracy_table(run, "zorro")
    assert set(table["group"]) == {"zorro", *(name for name in RIGHT if name.startswith("zorro"))}
    last = table[table["step"] == 16].set_index("group")
    assert last["value"]["zorro"] == pytest.approx((40 + 38.5 + 36 + 18) / (4 * N)) and last["n"]["zorro"] == 4 * N
    assert last["value"]["zorro/agreement/late"] == pytest.approx(38.5 / N)
    assert last["ties"].to_dict() == {group: int(group in ("zorro", "zorro/agreement/late")) for group in last.index}
    low, high = interval(38.5 / N, N)
    assert last.loc["zorro/agreement/late", ["low", "high"]].tolist() == pytest.approx([float(low), float(high)])
    phenomena = grammar.accuracy_table(run, "zorro", "phenomena")
    assert set(phenomena["group"]) == {"zorro", "zorro/agreement", "zorro/npi"}


def test_paradigms_are_sorted_by_onset(run):
    """The onset is on the way from chance to the last value; a paradigm that ends at chance has none and comes last."""
    table = grammar.paradigm_shapes(run, "zorro").set_index("paradigm")
    assert list(table.index) == ["early", "late", "dips", "lost"]
    assert table["onset"].fillna(-1).tolist() == [8, 16, 16, -1]
    assert table["shape"].tolist() == ["rises", "rises", "falls, rises", "rises, falls"]
    assert table["turns"]["dips"] == [0, 8, 16] and table["fallen"].tolist() == [False, False, False, True]
    assert table["end"].tolist() == ["above", "above", "above", "at"]
    assert table["ties"].tolist() == [0, 1, 0, 0]
    assert list(with_step(table.reset_index(), grammar.accuracy_table(run, "zorro"), 8, "group", "first")["now"]) == [
        1.0,
        0.5,
        2 / N,
        38 / N,
    ]


def test_headline_counts_paradigms(run):
    shapes, accuracies = grammar.paradigm_shapes(run, "zorro"), grammar.accuracy_table(run, "zorro")
    sentence = grammar.headline("zorro", shapes, accuracies, AXIS.for_run(run))
    for part in ("82.8 %", "160 pairs", "3 of 4 paradigms", "0 below", "1 falls"):
        assert part in sentence


def test_panels_are_sorted_by_onset(run):
    """The whole set comes first and has no shape; the colour of a panel is that of its shape, and chance is dashed."""
    figure = grammar.accuracy([run], AXIS, "zorro")
    titles = [annotation.text.split("<br>")[0] for annotation in figure.plot.layout.annotations]
    assert titles == ["zorro, all pairs", "early", "late", "dips", "lost"]
    colours = [
        trace.line.color for trace in figure.plot.data if trace.mode == "lines+markers" and trace.x[0] is not None
    ]
    assert colours == [style.SKY, style.BLUE, style.BLUE, style.ORANGE, style.VERMILION]
    assert {y for trace in figure.plot.data if trace.line.dash == "dash" for y in trace.y if y is not None} == {0.5}
    assert "at most 1 of 160 pairs, at step 16" in str(figure.caption) and "PLL-word-l2r" in str(figure.caption)
    assert figure.plot.layout.yaxis.range == figure.plot.layout.yaxis5.range


def test_order_of_rise_is_sorted_by_onset(run):
    """The caption names the paradigm without an onset; a set that has no onset at all is an error."""
    figure = grammar.order_of_rise([run], AXIS, "zorro")
    assert figure.table["group"].tolist() == ["early", "late", "dips", "lost"]
    assert "lost" in str(figure.caption) and "40 pairs" in str(figure.caption)
    with pytest.raises(FigureError, match="chance"):
        grammar.order_of_rise([run], AXIS, "other")


# === Pairs ===


def test_pairs_at_a_step_have_scores_sentences_and_histories(run):
    """The pair with the lowest difference comes first, and a tie does not count as right."""
    sentences = [MinimalPair("zorro/agreement/late", i, f"good {i}", f"bad {i}") for i in range(N)]
    table = grammar_pairs.pairs_at(run, "zorro/agreement/late", 16, sentences)
    assert len(table) == N and table["right"].sum() == 38
    worst = table.iloc[0]
    assert (worst["pair"], worst["difference"], worst["good"], worst["history"]) == (
        38,
        -0.5,
        "good 38",
        "never learned",
    )
    by_number = table.set_index("pair")
    assert by_number["history"][[0, 30, 39]].tolist() == ["learned", "learned", "never learned"]
    assert set(grammar_pairs.pairs_at(run, "zorro/agreement/late", 16)["good"]) == {""}
    caption = grammar_pairs.describe_pairs(run, "zorro/agreement/late", 16, table)
    assert "38 of 40 pairs" in str(caption) and "1 tie" in str(caption)


def test_pair_has_its_difference_at_every_step(run):
    """An unknown pair is an error."""
    figure = grammar_pairs.pair([run], AXIS, "zorro/agreement/late", 30)
    assert figure.table["difference"].tolist() == [-0.5, -0.5, 1.0]
    with pytest.raises(FigureError):
        grammar_pairs.pair([run], AXIS, "zorro/agreement/late", N)


def test_caption_names_the_word_that_differs_most(run):
    """The bars add up to the difference of the pair."""
    import pandas as pd

    rows = [(16, 0, "the", "the", -1.0, -1.5), (16, 1, "cat", "cats", -2.0, -6.0), (16, 2, "", "here", 0.0, -1.0)]
    table = pd.DataFrame(rows, columns=["step", "place", "good", "bad", "good_score", "bad_score"])
    figure = grammar_pairs.words(run, "zorro/agreement/late", 3, table, 16)
    assert all(part in figure.caption.summary for part in ("cat / cats", "+4.00", "+5.50"))
    assert np.sum(figure.plot.data[0].y) == pytest.approx(5.5)
    assert list(figure.plot.layout.xaxis.ticktext) == ["the", "cat / cats", "– / here"]
    with pytest.raises(FigureError):
        grammar_pairs.words(run, "zorro/agreement/late", 3, table, 8)
