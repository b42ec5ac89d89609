"""Figures of the Query page: every answer is drawn, the final one first and starred, tokens never as markup."""

import pandas as pd
import pytest

from embryo_core.curves.step_scales import Scale
from embryo_core.figures import query, style
from embryo_core.figures.axis import StepAxis
from embryo_core.types import Change, StepUnit

STEPS = (0, 8, 16)
COLUMNS = ["token", "role", "step", "probability", "rank", "exact", "leads", "final"]


def curves() -> pd.DataFrame:
    """Three answers over three steps; the last one leads from step 8, and one is the true object."""
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


def axes(*tables: pd.DataFrame, scale: Scale = "log", log_probability: bool = False) -> query.Axes:
    """Axes of these tables, or of `curves`."""
    return query.shared_axes(tables or [curves()], StepAxis(scale, step_unit=StepUnit.UPDATES), log_probability)


def test_the_final_answer_comes_first_with_its_star() -> None:
    """Curves are the final answer, its star, the marked words, then the others by their highest probability."""
    figure = query.probability(curves(), 8, 8, axes())
    assert [trace.name for trace in figure.data] == [
        "&lt;b&gt;paris&lt;/b&gt;",
        "leads for good: 8",
        "lima (true object)",
        "the",
    ]
    assert list(figure.data[0].x) == [0.5, 8, 16]
    assert list(figure.data[0].y) == [0.1, 0.5, 0.9]
    assert (figure.data[1].x[0], figure.data[1].y[0]) == (8, 0.5)


def test_two_stars_where_the_lead_was_lost_in_between() -> None:
    """First leading and leading for good are marked apart where they are different steps."""
    figure = query.probability(curves(), 0, 16, axes(scale="linear"))
    stars = figure.data[1:3]
    assert [star.name for star in stars] == ["first leads: 0", "leads for good: 16"]
    edges = {star.marker.line.color for star in stars}  # Plotly's own is dark on a dark page
    assert edges == {figure.data[0].line.color}


def test_marked_words_have_lines_of_their_own() -> None:
    """The true object and the tracked word differ from every candidate, and from each other, in colour and dash."""
    figure = query.rank(curves(), 8, 8, axes())
    line = next(trace.line for trace in figure.data if trace.name == "lima (true object)")
    assert (line.color, line.dash) == query.MARKED["true object"]
    assert len({*query.MARKED.values()}) == 2
    assert not {colour for colour, _ in query.MARKED.values()} & set(query.COLOURS)


def test_rank_axis_has_one_at_the_top() -> None:
    """Ranks are on a reversed log axis; a rank that is not exact is a hollow point that says "at least"."""
    figure = query.rank(curves(), 8, 8, axes())
    low, high = figure.layout.yaxis.range
    assert figure.layout.yaxis.type == "log" and low > high
    lima = next(trace for trace in figure.data if trace.name.startswith("lima"))
    assert list(lima.y) == [11, 700, 650]
    assert [point[3] for point in lima.customdata] == ["≥ 11", "700", "650"]
    assert [symbol.endswith("-open") for symbol in lima.marker.symbol] == [True, False, False]


def test_names_of_ranks_do_not_meet() -> None:
    """Of ten ranks, those stand on the log axis that have room beside each other."""
    ticks = query.rank(curves().assign(rank=range(2, 11)), 8, 8, axes(curves().assign(rank=range(2, 11)))).layout.yaxis
    assert list(ticks.tickvals) == [1, 2, 3, 4, 5, 7, 10] and list(ticks.ticktext) == "1 2 3 4 5 7 10".split()


@pytest.mark.parametrize("log_probability", [False, True])
def test_figures_beside_each_other_have_the_same_axes(log_probability: bool) -> None:
    """Ranges come from all tables together, so that what is drawn side by side can be compared by eye."""
    lower = curves().assign(probability=1e-9, rank=20)
    shared = axes(curves(), lower, log_probability=log_probability)
    for draw in (query.probability, query.rank):
        one, two = (draw(table, 8, 8, shared).layout for table in (curves(), lower))
        assert one.yaxis.range == two.yaxis.range
        assert one.xaxis.range == two.xaxis.range


def test_the_step_is_a_line() -> None:
    """One vertical line, drawn at the last step."""
    figure = query.rank(curves(), 8, 8, axes(scale="linear"))
    assert [(shape.x0, shape.x1) for shape in figure.layout.shapes] == [(STEPS[-1], STEPS[-1])]


def test_a_figure_has_the_changes_of_its_own_run() -> None:
    """Also where it shares its axes with that of another run."""
    own = StepAxis("linear", (Change(8, "learning rate falls"),), step_unit=StepUnit.UPDATES)
    shared = query.shared_axes(
        [curves()], StepAxis("linear", (Change(4, "corpus: a.txt"),), step_unit=StepUnit.UPDATES), False
    )
    figure = query.rank(curves(), 8, 8, query.of_run(shared, own))
    assert [shape.name for shape in figure.layout.shapes if shape.showlegend] == ["from step 8: learning rate falls"]


def test_an_answer_has_one_colour_in_every_figure() -> None:
    """Also where it is not the final answer of both; the final ones come first, what is left is grey."""
    other = curves().assign(final=False)
    other = pd.concat([other, other.assign(token=other["token"] + "x", final=True, probability=0.001)])
    shared = axes(curves(), other)
    figures = [query.rank(own, 8, 8, shared) for own in (curves(), other)]
    drawn = [{trace.name: trace.line.color for trace in figure.data if trace.line.color} for figure in figures]
    common = [name for name in drawn[0] if name in drawn[1]]
    assert common and all(drawn[0][name] == drawn[1][name] for name in common)


def test_many_candidates_share_grey_and_an_entry_of_the_legend() -> None:
    """Beyond the palette, candidates are drawn in grey, and come and go together."""
    rows = [(f"w{i}", "", step, 0.5 - i / 100, i + 1, True, i == 0, i == 0) for i in range(20) for step in STEPS]
    table = pd.DataFrame(rows, columns=COLUMNS)
    figure = query.probability(table, 0, 0, axes(table))
    assert len(figure.data) == 22
    assert sum(trace.showlegend is not False for trace in figure.data) == len(query.COLOURS) + 2
    grey = [trace for trace in figure.data if trace.showlegend is False]
    assert {(trace.line.color, trace.legendgroup) for trace in grey} == {(style.GREY, query.OTHERS)}
    assert figure.data[-1].name == figure.data[-1].legendgroup == query.OTHERS
    assert {trace.mode for trace in grey} == {figure.data[-1].mode} == {"lines+markers"}  # changes have no markers
    assert query.OTHERS not in [trace.name for trace in query.probability(curves(), 8, 8, axes()).data]


def test_one_step_has_no_star() -> None:
    """It does not tell since when an answer leads."""
    one = curves()[curves()["step"] == 16]
    figure = query.probability(one, 16, 16, axes(one))
    assert not [trace.name for trace in figure.data if "leads" in trace.name]
