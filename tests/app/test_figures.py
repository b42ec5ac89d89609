"""Every number that a figure draws is in the table that downloads as its CSV, on every page of the dashboard."""

import math
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest

from app import figures
from app.charts.smoothing import WINDOW
from tests.app.conftest import captions_of

NO_ROWS = ("all layers alike", "chance")  # lines that stand for no measurement
PAGES = {  # page and parameters: how many figures it has
    ("overview", ()): 3,
    ("tokens", ()): 2,
    ("tokens", (("unit", "rescaled"),)): 2,
    ("attention", ()): 1,
    ("attention", (("section", "heads"),)): 3,
    ("probing", ()): 1,
    ("probing", (("unit", "rescaled"),)): 1,
    ("probing", (("probing", "layers"),)): 3,
    ("probing", (("probing", "order"),)): 3,
    ("knowledge", ()): 2,
    ("query", (("text", "the [MASK] of the town ."),)): 3,
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[go.Figure, pd.DataFrame]]:
    """The figures that are shown from now on, each with its table."""
    found = []
    show = figures.show

    def watch(figure: go.Figure, data: pd.DataFrame, *more: Any, **others: Any) -> None:
        found.append((figure, data))
        show(figure, data, *more, **others)

    monkeypatch.setattr(figures, "show", watch)
    return found


def numbers(values: Any) -> list[Any]:
    """What a trace or a row holds, as plain Python values."""
    return [value.item() if hasattr(value, "item") else value for value in values]


def same(drawn: Any, stored: Any) -> bool:
    """Whether a drawn coordinate stands for a stored value: as it is, in hundredths, as a rank in a name, or step 0."""
    if isinstance(stored, str) or isinstance(drawn, str):
        return isinstance(stored, str) and isinstance(drawn, str) and drawn.endswith(stored)
    if stored is None or isinstance(stored, bool) or pd.isna(stored):
        return False
    ways = (drawn, drawn / 100, round(drawn), 0 if drawn == 0.5 else drawn)
    return any(math.isclose(way, stored, rel_tol=1e-6, abs_tol=1e-9) for way in ways)


def points(trace: go.Scatter) -> list[tuple[Any, Any]]:
    """The points of a trace; gaps between two curves and entries of the legend alone are none."""
    if trace.x is None or trace.marker.opacity == 0:
        return []
    pairs = zip(numbers(trace.x), numbers(trace.y))
    return [pair for pair in pairs if not any(pd.isna(value) for value in pair)]


def expect_in_table(figure: go.Figure, data: pd.DataFrame) -> int:
    """Each drawn point has a row that holds both of its coordinates; returns how many points there were."""
    rows, count = [numbers(row) for row in data.itertuples(index=False)], 0
    for trace in figure.data:
        if trace.type != "scatter" or trace.name in NO_ROWS:
            continue
        for x, y in points(trace):
            count += 1
            found = any(any(same(x, v) for v in row) and any(same(y, v) for v in row) for row in rows)
            assert found, (trace.name, x, y)
    return count


@pytest.mark.parametrize(("page", "query"), list(PAGES))
@pytest.mark.parametrize("smooth", ["1", "3"])
def test_every_drawn_point_has_its_row(
    page: str, query: tuple, smooth: str, dashboard_with_results, drawn: list
) -> None:
    """As measured and smoothed; where curves are smoothed the table says so, and says over how many points."""
    app = dashboard_with_results.open(page, **dict(query), smooth=smooth)
    assert not app.exception and not app.error
    assert len(drawn) >= PAGES[page, query]
    assert sum(expect_in_table(figure, data) for figure, data in drawn) > 0
    smoothed = [data for _, data in drawn if WINDOW in data]
    assert bool(smoothed) == (smooth == "3") and all((data[WINDOW] == 3).all() for data in smoothed)
    captions = [caption for caption in captions_of(app) if "mean of 3 neighbouring points" in caption]
    assert len(captions) == len(smoothed)
    assert app.query_params.get("smooth") == (None if smooth == "1" else "3")


def test_a_point_that_is_not_in_the_table_is_noticed() -> None:
    """The comparison itself: a mean of three in place of the measurement is found out."""
    data = pd.DataFrame({"step": [0, 256, 512], "value": [0.0, 0.0, 0.991]})
    expect_in_table(go.Figure(go.Scatter(x=[0.5, 256, 512], y=data["value"])), data)
    with pytest.raises(AssertionError):
        expect_in_table(go.Figure(go.Scatter(x=[0.5, 256, 512], y=[0.0, 0.33, 0.66])), data)
