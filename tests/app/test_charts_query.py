"""Figures of the Query page: every candidate is drawn, the final answer first and starred, tokens never as markup."""

import pandas as pd

from app.charts import query

STEPS = (0, 8, 16)


def courses() -> pd.DataFrame:
    """Three candidates over three steps; the last answer leads from step 8."""
    rows = [
        ("the", 0, 0.2, 1, True, False),
        ("the", 8, 0.1, 2, False, False),
        ("the", 16, 0.1, 2, False, False),
        ("<b>paris</b>", 0, 0.1, 2, False, True),
        ("<b>paris</b>", 8, 0.5, 1, True, True),
        ("<b>paris</b>", 16, 0.9, 1, True, True),
        ("a", 0, 0.01, None, False, False),
        ("a", 8, 0.01, 700, False, False),
        ("a", 16, 0.01, 650, False, False),
    ]
    table = pd.DataFrame(rows, columns=["token", "step", "probability", "rank", "leads", "final"])
    return table.astype({"rank": "Int64"})


def test_the_final_answer_comes_first_with_its_star() -> None:
    """Curves are the final answer, its star, then the others by their highest probability."""
    figure = query.probability(courses(), 8, 8, log=True, chosen=16)
    assert [trace.name for trace in figure.data] == [
        "&lt;b&gt;paris&lt;/b&gt;",
        "leads, for good (step 8)",
        "the",
        "a",
    ]
    assert list(figure.data[0].x) == [0.5, 8, 16]
    assert list(figure.data[0].y) == [0.1, 0.5, 0.9]
    assert (figure.data[1].x[0], figure.data[1].y[0]) == (8, 0.5)


def test_two_stars_where_the_lead_was_lost_in_between() -> None:
    """First leading and leading for good are marked apart where they are different steps."""
    figure = query.probability(courses(), 0, 16, log=False, chosen=0)
    assert [trace.name for trace in figure.data][1:3] == ["first leads (step 0)", "leads for good (step 16)"]


def test_rank_axis_has_one_at_the_top() -> None:
    """Ranks are on a reversed log axis; an unknown rank is a gap that says so when hovered."""
    figure = query.rank(courses(), 8, 8, log=True, chosen=8)
    assert (figure.layout.yaxis.type, figure.layout.yaxis.autorange) == ("log", "reversed")
    last = figure.data[-1]
    assert pd.isna(last.y[0]) and last.y[1] == 700
    assert last.customdata[0][3] == "beyond the beam"


def test_the_chosen_step_is_a_line() -> None:
    """The chosen step is one vertical line."""
    figure = query.rank(courses(), 8, 8, log=False, chosen=8)
    assert [(shape.x0, shape.x1) for shape in figure.layout.shapes] == [(8, 8)]


def test_many_candidates_share_grey_without_legend() -> None:
    """Beyond the palette, candidates are drawn in grey and left out of the legend."""
    rows = [(f"w{i}", step, 0.5 - i / 100, i + 1, i == 0, i == 0) for i in range(20) for step in STEPS]
    table = pd.DataFrame(rows, columns=["token", "step", "probability", "rank", "leads", "final"])
    figure = query.probability(table, 0, 0, log=True, chosen=16)
    assert len(figure.data) == 21
    assert sum(trace.showlegend is not False for trace in figure.data) == query.NAMED + 1
