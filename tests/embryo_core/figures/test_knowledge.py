"""The knowledge figures and tables hold the stored numbers; what comes from the data stays plain text."""

import pandas as pd
import pytest

from embryo_core import curves
from embryo_core.curves import HISTORIES
from embryo_core.curves.step_scales import SCALES
from embryo_core.figures import knowledge as charts
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.overlay import Line, overlay
from embryo_core.results import classify_answers
from embryo_core.types import StepUnit
from embryo_core.words import percent

STEPS = (0, 8, 16, 32)
BASELINES = pd.DataFrame(
    [("P36", "Rome", 0.3, 100), ("all", pd.NA, 0.2, 200)], columns=["group", "answer", "value", "n"]
)


def cloze_of(**histories: str) -> pd.DataFrame:
    """Facts of relation P36 with histories such as "-++-" (+ is right), a row per fact and step."""
    rows = []
    for fact, history in histories.items():
        for step, mark in zip(STEPS, history, strict=True):
            rank, prediction = (1, "Rome") if mark == "+" else (7, "<b>the</b>")
            rows.append((step, fact, "P36", f"subject of {fact}", "Rome", rank, 0.25, prediction, 0.5))
    columns = "step fact relation subject object rank probability prediction prediction_probability".split()
    return pd.DataFrame(rows, columns=columns)


@pytest.fixture
def scores() -> pd.DataFrame:
    """Precision at 1 of two relations and of all facts together, as the store returns it."""
    values = {"P36": (0.0, 0.1, 0.4, 0.5), "<i>P0</i>": (0.0, 0.0, 0.005, 0.01), "all": (0.0, 0.05, 0.2, 0.25)}
    rows = [
        ("tiny", "world_knowledge", step, None, group, value, 200 if group == "all" else 100)
        for group, series in values.items()
        for step, value in zip(STEPS, series, strict=True)
    ]
    return pd.DataFrame(rows, columns=["run", "metric", "step", "layer", "group", "value", "n"])


def test_curves_are_the_scores_with_their_intervals(scores):
    """Values are as stored; the interval is that of embryo_core.curves."""
    rows = charts.relation_curves(scores, BASELINES)
    rows = rows[rows["relation"] == "P36"]
    assert list(rows["value"]) == [0.0, 0.1, 0.4, 0.5]
    low, high = curves.interval([0.0, 0.1, 0.4, 0.5], 100)
    assert list(rows["low"]) == pytest.approx(list(low))
    assert list(rows["high"]) == pytest.approx(list(high))


@pytest.mark.parametrize("scale", SCALES)
def test_the_figure_holds_the_numbers_and_each_point_knows_its_relation_and_step(scores, scale):
    """Lines are as measured; a point carries relation, step, what hovering tells of value and interval, and n."""
    frame = charts.relation_curves(scores, BASELINES)
    figure = charts.relation_figure(frame, ["all", "P36"], StepAxis(scale, step_unit=StepUnit.UPDATES))
    lines = {line.name: line for line in figure.data if line.customdata is not None}
    assert list(lines) == ["all relations", "capital (P36)"]
    rows = frame[frame["relation"] == "P36"]
    line = lines["capital (P36)"]
    assert list(line.y) == list(rows["value"])
    assert [list(point) for point in line.customdata[:, :3]] == [
        ["P36", step, percent(value)] for step, value in zip(STEPS, rows["value"], strict=True)
    ]
    assert {point[5] for point in line.customdata} == {100}


def test_markup_in_a_relation_or_an_answer_is_shown_as_text(scores):
    """Plotly reads tags in labels, so that < is escaped in what comes from the data."""
    figure = charts.relation_figure(
        charts.relation_curves(scores, BASELINES), ["<i>P0</i>"], StepAxis("log", step_unit=StepUnit.UPDATES)
    )
    assert "&lt;i&gt;P0&lt;/i&gt;" in [line.name for line in figure.data]
    history = charts.fact_history(cloze_of(a="-+-+"))
    assert (
        charts.fact_figure(history, StepAxis("log", step_unit=StepUnit.UPDATES)).data[0].customdata[0][1]
        == "&lt;b&gt;the&lt;/b&gt;"
    )


def test_a_dashed_line_stands_at_each_baseline(scores):
    """From the first step to the last; a relation without one has no line, and the legend names them once."""
    frame = charts.relation_curves(scores, BASELINES)
    figure = charts.relation_figure(frame, ["all", "P36", "<i>P0</i>"], StepAxis("linear", step_unit=StepUnit.UPDATES))
    dashed = {line.legendgroup: line for line in figure.data if line.line.dash == "dash" and line.x[0] is not None}
    assert {name: list(line.y) for name, line in dashed.items()} == {
        "all relations": [0.2, 0.2],
        "capital (P36)": [0.3, 0.3],
    }
    assert list(dashed["capital (P36)"].x) == [0, 32]
    assert "always “Rome” is right for 30.0 % of 100 facts" in dashed["capital (P36)"].hovertemplate
    assert [line.name for line in figure.data].count(charts.BASELINE) == 1


def test_the_first_choice_is_what_was_ever_learned(scores):
    """All relations together first; one that never rises is left out, however well it is known in the paper."""
    assert charts.default_relations(charts.relation_curves(scores, BASELINES)) == ["all", "P36"]
    flat = charts.relation_curves(scores.replace("P36", "P140").assign(value=0.0), BASELINES)
    assert charts.default_relations(flat) == ["all"]


def test_the_table_of_relations_counts_facts_and_coverage(scores):
    """Each relation has its precision now and last, its coverage, and the number of facts with each history."""
    coverage = pd.DataFrame(
        {"group": ["P36", "P99", "all"], "step": 32, "value": [0.4, 0.0, 0.3], "n": [10, 5, 15]},
    )
    facts = classify_answers(cloze_of(a="--++", b="-+++", c="+-+-", d="----"))
    facts.loc[:0, "subject"] = "the city of rome"
    without = pd.DataFrame({"group": "P36", "step": STEPS, "value": (0, 0, 0.5, 0.25), "n": 3})
    frame = charts.relation_curves(scores, BASELINES)
    table = charts.with_step(charts.relation_table(frame, coverage, facts, without), frame, 16).set_index("relation")
    assert list(table.index) == ["P36", "P99"]
    row = table.loc["P36"]
    assert (row["now"], row["last"], row["coverage"], row["all"], row["asked"]) == (0.4, 0.5, 0.4, 10, 4)
    assert [row[name] for name in HISTORIES] == [2, 1, 0, 1]
    assert row["history"] == "learned"
    assert row[["answer", "baseline", "named", "without"]].tolist() == ["Rome", 0.3, 0.25, 0.25]
    assert table.loc["P99", "asked"] == 0 and pd.isna(table.loc["P99", "last"])


def test_facts_at_a_step_are_the_answers_of_that_step():
    """The list behind a point has that step's answer, rank and probabilities of every fact."""
    cloze = cloze_of(a="--++", b="-++-")
    table = charts.facts_at(cloze[cloze["step"] == 8], classify_answers(cloze)).set_index("fact")
    assert table["rank"].to_dict() == {"a": 7, "b": 1}
    assert table["prediction"].to_dict() == {"a": "<b>the</b>", "b": "Rome"}
    assert table["history"].to_dict() == {"a": "learned", "b": "forgotten"}


def test_search_takes_words_as_they_are():
    """Capitals do not matter, and signs have no special meaning."""
    cloze = cloze_of(a="--++", b="-++-")
    table = charts.facts_at(cloze[cloze["step"] == 8], classify_answers(cloze))
    assert list(charts.search(table, "SUBJECT OF a")["fact"]) == ["a"]
    assert list(charts.search(table, "<b>")["fact"]) == ["a"]
    assert charts.search(table, "(.*").empty
    assert len(charts.search(table, "  ")) == 2


def test_a_facts_history_is_table_9():
    """One row per step in order: the top answer with its probability, rank and probability of the true object."""
    history = charts.fact_history(cloze_of(b="-++-").sample(frac=1, random_state=0))
    assert list(history["step"]) == list(STEPS)
    assert list(history["rank"]) == [7, 1, 1, 7]
    assert list(history["right"]) == [False, True, True, False]
    figure = charts.fact_figure(history, StepAxis("linear", step_unit=StepUnit.UPDATES))
    assert [list(line.y) for line in figure.data] == [[0.5] * 4, [0.25] * 4]


def test_panels_stand_by_type_with_their_templates() -> None:
    """All facts first, then types, then relations by type and number; one line each, its baseline thin."""
    names = ("P20", "P36", "P19", "all", "N-1", "P999999")
    rows = [(name, step, 0.1, 50) for name in names for step in STEPS]
    table = pd.DataFrame(rows, columns=["group", "step", "value", "n"])
    frame = charts.in_panels(charts.relation_curves(table, BASELINES))
    assert frame["relation"].unique().tolist() == ["all", "N-1", "P36", "P19", "P20", "P999999"]
    drawn = charts.panels({"P36": "The capital of [X] is [Y] ."})
    figure = overlay([Line("tiny", StepAxis("log", step_unit=StepUnit.UPDATES), drawn.rows(frame))], drawn, STEPS)
    titles = [note.text for note in figure.layout.annotations]
    assert titles[:3] == ["all relations", "all N-1 relations", "P36, 1-1<br>The capital of [X] is [Y] ."]
    thin = {trace.xaxis: trace.y[0] for trace in figure.data if trace.name.endswith(", baseline")}
    assert thin == {"x": 0.2, "x3": 0.3}
