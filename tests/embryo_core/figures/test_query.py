"""Tests of the Query figures: curves of answers, stars of the lead, marked words, shared axes, and their texts."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import plotly.graph_objects as go
import pytest

from embryo_core.curves.step_scales import Scale
from embryo_core.figures import query, query_captions, style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.draft import Draft
from embryo_core.query import TOGETHER, Lead, ask, read_question
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Change, Run, StepUnit

LOG = StepAxis("log", step_unit=StepUnit.UPDATES)

STEPS = (0, 8, 16)
COLUMNS = [*query.COLUMNS]
LED_FROM_8 = Lead("<b>paris</b>", 8, 8)


def curves() -> pd.DataFrame:
    """Return three answers over three steps; the second one leads from step 8, and the third is the true object."""
    rows = [
        ("the", "", 0, 0.2, 1, True, True, False),
        ("the", "", 8, 0.1, 2, True, False, False),
        ("the", "", 16, 0.1, 2, True, False, False),
        ("<b>paris</b>", "", 0, 0.1, 2, True, False, True),
        ("<b>paris</b>", "", 8, 0.5, 1, True, True, True),
        ("<b>paris</b>", "", 16, 0.9, 1, True, True, True),
        ("lima", "true object", 0, 0.01, 11, False, False, False),
        ("lima", "true object", 8, 0.01, 700, True, False, False),
        ("lima", "true object", 16, 0.01, 650, True, False, False),
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def steps(scale: Scale = "log") -> StepAxis:
    """Return an axis of steps."""
    return StepAxis(scale, step_unit=StepUnit.UPDATES)


def shared(*tables: pd.DataFrame, scale: Scale = "log", log_probability: bool = False) -> query.SharedAxes:
    """Return the axes and colours that these tables share."""
    return query.share_axes(tables, [steps(scale)] * len(tables), log_probability)


def draw(plot: Callable[..., Draft], table: pd.DataFrame, lead: Lead = LED_FROM_8, scale: Scale = "log") -> go.Figure:
    """Return the plot of one table."""
    return plot(table, lead, shared(table, scale=scale), steps(scale)).to_plotly()


def test_final_answer_comes_first_with_its_star() -> None:
    """The marked words follow, then the other answers by their highest probability."""
    figure = draw(query.plot_probability, curves())
    assert [trace.name for trace in figure.data] == [
        "&lt;b&gt;paris&lt;/b&gt;",
        "leads for good: 8",
        "lima (true object)",
        "the",
    ]
    assert list(figure.data[0].x) == [0.5, 8, 16]
    assert list(figure.data[0].y) == [0.1, 0.5, 0.9]
    assert (figure.data[1].x[0], figure.data[1].y[0]) == (8, 0.5)


def test_lost_and_regained_lead_has_two_stars() -> None:
    """The first lead and the lead for good are marked apart if they are at different steps."""
    figure = draw(query.plot_probability, curves(), Lead("<b>paris</b>", 0, 16), "linear")
    stars = figure.data[1:3]
    assert [star.name for star in stars] == ["first leads: 0", "leads again: 16"]
    edges = {star.marker.line.color for star in stars}  # Plotly's default edge is dark, also on a dark page
    assert edges == {figure.data[0].line.color}


def test_lead_at_only_the_last_step_is_not_for_good() -> None:
    """The name of the star says so."""
    (star,) = [
        trace for trace in draw(query.plot_rank, curves(), Lead("<b>paris</b>", 16, 16)).data if "lead" in trace.name
    ]
    assert star.name == "leads only at the last step: 16"


def test_marked_words_have_distinct_lines() -> None:
    """The true object and the tracked word differ in colour from every candidate, and in look from each other."""
    figure = draw(query.plot_rank, curves())
    line = next(trace.line for trace in figure.data if trace.name == "lima (true object)")
    assert (line.color, line.dash) == query.MARKED["true object"]
    assert len({*query.MARKED.values()}) == 2
    assert not {colour for colour, _ in query.MARKED.values()} & set(query.ANSWER_COLOURS)


def test_rank_axis_has_rank_1_at_the_top() -> None:
    """The axis is logarithmic and reversed; a rank that is only a lower bound has a hollow point and "≥"."""
    figure = draw(query.plot_rank, curves())
    low, high = figure.layout.yaxis.range
    assert figure.layout.yaxis.type == "log" and low > high
    lima = next(trace for trace in figure.data if trace.name.startswith("lima"))
    assert list(lima.y) == [11, 700, 650]
    assert [point[3] for point in lima.customdata] == ["≥ 11", "700", "650"]
    assert [symbol.endswith("-open") for symbol in lima.marker.symbol] == [True, False, False]


def test_labels_of_ranks_do_not_overlap() -> None:
    """Of ten ranks, the log axis labels those that have room next to each other."""
    ticks = draw(query.plot_rank, curves().assign(rank=range(2, 11))).layout.yaxis
    assert list(ticks.tickvals) == [1, 2, 3, 4, 5, 7, 10] and list(ticks.ticktext) == "1 2 3 4 5 7 10".split()


@pytest.mark.parametrize("log_probability", [False, True])
def test_figures_side_by_side_have_the_same_axes(log_probability: bool) -> None:
    """Ranges come from all tables together, so that figures can be compared by eye."""
    lower = curves().assign(probability=1e-9, rank=20)
    lower = lower[lower["step"] > 0]
    both = shared(curves(), lower, log_probability=log_probability)
    for plot in (query.plot_probability, query.plot_rank):
        one, two = (plot(table, LED_FROM_8, both, steps()).layout for table in (curves(), lower))
        assert one.yaxis.range == two.yaxis.range
        assert one.xaxis.range == two.xaxis.range


def test_chosen_step_is_a_vertical_line() -> None:
    """It is drawn at the last step."""
    figure = draw(query.plot_rank, curves(), scale="linear")
    assert [(shape.x0, shape.x1) for shape in figure.layout.shapes] == [(STEPS[-1], STEPS[-1])]


def test_figure_has_the_changes_of_its_own_run() -> None:
    """This holds even if it shares its axes with the figure of another run."""
    own = replace(steps("linear"), changes=(Change(8, "learning rate falls"),))
    figure = query.plot_rank(curves(), LED_FROM_8, shared(curves(), curves(), scale="linear"), own).to_plotly()
    assert [shape.name for shape in figure.layout.shapes if shape.showlegend] == ["from step 8: learning rate falls"]


def test_answers_keep_their_colour_across_figures() -> None:
    """This holds even if an answer is final in only one of them."""
    other = curves().assign(final=False)
    other = pd.concat([other, other.assign(token=other["token"] + "x", final=True, probability=0.001)])
    both = shared(curves(), other)
    figures = [query.plot_rank(own, LED_FROM_8, both, steps()).to_plotly() for own in (curves(), other)]
    drawn = [{trace.name: trace.line.color for trace in figure.data if trace.line.color} for figure in figures]
    common = [name for name in drawn[0] if name in drawn[1]]
    assert common and all(drawn[0][name] == drawn[1][name] for name in common)


def test_candidates_beyond_the_palette_share_grey() -> None:
    """They also share a legend entry, which shows or hides all of them."""
    rows = [(f"w{i}", "", step, 0.5 - i / 100, i + 1, True, i == 0, i == 0) for i in range(20) for step in STEPS]
    figure = draw(query.plot_probability, pd.DataFrame(rows, columns=COLUMNS), Lead("w0", 0, 0))
    assert len(figure.data) == 22
    assert sum(trace.showlegend is not False for trace in figure.data) == len(query.ANSWER_COLOURS) + 2
    grey = [trace for trace in figure.data if trace.showlegend is False]
    assert {(trace.line.color, trace.legendgroup) for trace in grey} == {(style.GREY, query.OTHERS)}
    assert figure.data[-1].name == figure.data[-1].legendgroup == query.OTHERS
    assert (
        {trace.mode for trace in grey} == {figure.data[-1].mode} == {"lines+markers"}
    )  # lines of changes have no markers
    assert query.OTHERS not in [trace.name for trace in draw(query.plot_probability, curves()).data]


def test_single_step_has_no_star() -> None:
    """It cannot show since when an answer leads."""
    figure = draw(query.plot_probability, curves()[lambda table: table["step"] == 16], Lead("<b>paris</b>", 16, 16))
    assert not [trace.name for trace in figure.data if "leads" in trace.name]


# === Figures of answers ===


@pytest.mark.parametrize("column", ["probability", "rank"])
@pytest.mark.parametrize(("text", "mask", "end"), [("a [MASK] .", 1, ""), ("a [MASK] [MASK] .", TOGETHER, "-together")])
def test_figure_holds_the_answers(tiny_run: Run, column: str, text: str, mask: int, end: str) -> None:
    """The table has the rows that are drawn, with text and mask; smoothing adds a column and a note in the caption."""
    answers = ask(tiny_run, text)
    subject = query.Subject(answers.question.text, mask, answers.masks, number=2)
    table = query.curve_table(answers, mask, {})
    figure = query.answer_curves(
        [tiny_run], AxisChoice(smoothing=3), subject, table, answers.lead(mask), shared(table), column
    )
    assert figure.name == f"tiny-query-{column}{end}-2" and figure.runs == ("tiny",)
    assert figure.title.endswith(text + subject.which)
    assert {*query.COLUMNS, "text", "mask", "smoothed"} <= set(figure.table)
    assert set(figure.table["token"]) == set(answers.history(mask)["token"]) and len(figure.table) == len(table)
    assert "3 checkpoints" in str(figure.caption) and "mean of 3" in str(figure.caption)


def test_marked_words_carry_their_role(tiny_run: Run) -> None:
    """A word of several pieces has separate rows; a candidate is marked in the rows that it already has."""
    answers = ask(tiny_run, "a [MASK] .")
    question = read_question("a [MASK] .", load_tokenizer(tiny_run))
    final = answers.lead().token
    marked = {query.TRUE_OBJECT: final, query.TRACKED: "catsat"}
    words = {role: ask(tiny_run, question.track(word)) for role, word in marked.items()}
    table = query.curve_table(answers, 1, words)
    roles = table[table["role"] != ""].groupby("role")["token"].unique()
    assert roles[query.TRUE_OBJECT].tolist() == [final] and roles[query.TRACKED].tolist() == ["catsat"]
    assert len(table) == len(answers.history()) + 3
    assert table[table["token"] == final]["final"].all() and not table[table["token"] == "catsat"]["final"].any()


def test_word_marked_at_a_later_mask_has_its_own_rows(tiny_run: Run) -> None:
    """Its probability has the other masks in place, that of the same answer the best answer to the mask before."""
    answers = ask(tiny_run, "a [MASK] [MASK] .")
    token = answers.lead(2).token
    word_answers = ask(tiny_run, answers.question.track(token, 2))
    table = query.curve_table(answers, 2, {query.TRACKED: word_answers})
    marked = table[table["role"] == query.TRACKED]
    assert marked["probability"].tolist() == word_answers.table["probability"].tolist()
    assert set(marked["token"]) == {token} and len(table) == len(answers.history(2)) + len(marked)


# === Words of the page ===


def test_learned_examples_are_counted_with_the_first_step() -> None:
    """A single checkpoint cannot show since when examples are learned; without examples the text is empty."""
    examples = [ExampleQuestion(text="a", word="b", since=since) for since in (8, 2000, None)]
    some = query_captions.describe_examples(examples, 9, LOG)
    assert "2 of these 3 examples" in some and "step 8" in some
    alone = query_captions.describe_examples(examples[:1], 1, LOG)
    assert "1 of these 1 example at step 8" in alone
    assert "none of these 1 example" in query_captions.describe_examples(examples[2:], 9, LOG)
    assert query_captions.describe_examples([], 9, LOG) == ""


def test_title_names_the_mask_if_there_are_several() -> None:
    """A figure of several masks names one of them or all together."""
    named = [query.Subject("a", *of).which for of in ((2, 3), (TOGETHER, 3), (1, 1))]
    assert named == [" ([MASK] 2 of 3)", " (all masks together)", ""]
