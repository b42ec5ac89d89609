"""Every number that a figure draws is in the table that downloads as its CSV, on every page of the dashboard."""

import json
import math
from typing import Any

import orjson
import pandas as pd
import plotly.graph_objects as go
import plotly.io
import pytest

from app import figures
from app.figures import File
from app.question_queue import LIGHT, Queue
from embryo_core.figures.figure import Figure
from embryo_core.figures.smoothing import WINDOW
from tests.app.conftest import Dashboard, captions_of

NO_ROWS = ("equal weight of all layers", "chance")  # lines that stand for no measurement
PAGES = {  # page and parameters: how many figures it has
    ("overview", ()): 2,
    ("overview", (("open", "computed,length,ngrams,objective"),)): 5,
    ("tokens", ()): 2,
    ("tokens", (("unit", "rescaled"),)): 2,
    ("attention", ()): 1,
    ("attention", (("section", "heads"),)): 3,
    ("probing", ()): 1,
    ("probing", (("unit", "rescaled"),)): 1,
    ("probing", (("probing", "layers"), ("open", "probe"))): 3,
    ("probing", (("probing", "order"),)): 3,
    ("knowledge", ()): 2,
    ("knowledge", (("panels", "on"),)): 2,
    ("finetuning", (("open", "tuning"),)): 2,
    ("query", (("text", "the [MASK] of the town ."), ("open", "lens"))): 2,
    ("query", (("text", "the [MASK] of the town ."), ("curves", "rank"), ("open", "lens"))): 2,
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[go.Figure, pd.DataFrame]]:
    """Return the figures that are shown from now on, each with its table."""
    found = []
    show_figure = figures.show

    def watch_figure(figure: Figure, *more: Any, **others: Any) -> None:
        found.append((figure.plot, figure.table))
        expect_written_at_once(figure.drawn.to_dict())
        json.dumps(figure.file_sizes)  # as Streamlit writes what a component gets
        show_figure(figure, *more, **others)

    monkeypatch.setattr(figures, "show", watch_figure)
    return found


def numbers(values: Any) -> list[Any]:
    """Return what a trace or a row holds, as plain Python values."""
    return [value.item() if hasattr(value, "item") else value for value in values]


def same(drawn: Any, stored: Any) -> bool:
    """Return whether a drawn coordinate is a stored value: as it is, in hundredths, as a rank in a name, or step 0."""
    if isinstance(stored, str) or isinstance(drawn, str):
        both = isinstance(stored, str) and isinstance(drawn, str)
        return both and (drawn.endswith(stored) or f" {stored}, " in drawn)  # "4= IN, preposition"
    if stored is None or isinstance(stored, bool) or pd.isna(stored) or pd.isna(drawn):
        return False
    ways = (drawn, drawn / 100, round(drawn), 0 if drawn == 0.5 else drawn)
    return any(math.isclose(way, stored, rel_tol=1e-6, abs_tol=1e-9) for way in ways)


def points(trace: go.Scatter) -> list[tuple[Any, Any]]:
    """Return the points of a trace; gaps between two curves and entries of the legend alone are none."""
    if trace.x is None or trace.marker.opacity == 0:
        return []
    pairs = zip(numbers(trace.x), numbers(trace.y))
    return [pair for pair in pairs if not any(pd.isna(value) for value in pair)]


def cells(figure: go.Figure) -> list[tuple[Any, ...]]:
    """Return the cells of a heat map: two numbers that say which (layer and step, or layer and head), and its value.

    The value is the colour, its square on a scale of square roots, or what is written where the colour is an order.
    """
    found = []
    for grid in (trace for trace in figure.data if trace.type == "heatmap"):
        (unseen,) = (trace for trace in figure.data if trace.type == "scatter" and trace.marker.opacity == 0)
        given = (grid.x, range(len(grid.z[0]))), (grid.y, range(len(grid.z)))
        columns, lines = (numbers(axis if axis is not None else places) for axis, places in given)
        texts = [""] * len(unseen.x) if unseen.text is None or isinstance(unseen.text, str) else unseen.text  # in full
        for x, y, which, exact in zip(numbers(unseen.x), numbers(unseen.y), unseen.customdata, texts, strict=True):
            place = lines.index(y), columns.index(x)
            colour, written = float(grid.z[place[0]][place[1]]), grid.text[place[0]][place[1]]
            if not math.isnan(colour):
                found.append((which[0], which[1], (colour, colour**2, as_number(written), as_number(exact))))
    return found


def as_number(written: str) -> float:
    """Return a number as it is written in a cell; NaN where it is none."""
    try:
        return float(written.replace(",", ""))
    except ValueError:
        return math.nan


def marks(figure: go.Figure) -> list[tuple[Any, ...]]:
    """All that a figure draws of its table, each as values that one row has to hold; a row's name is its y."""
    shown = (trace for trace in figure.data if trace.type == "scatter" and trace.name not in NO_ROWS)
    names = dict(zip(figure.layout.yaxis.tickvals or (), figure.layout.yaxis.ticktext or ()))
    pairs = [pair for trace in shown for pair in points(trace)]
    return [(x, y if isinstance(y, str) else (y, names.get(round(y), y))) for x, y in pairs] + cells(figure)


def expect_in_table(marks: list[tuple[Any, ...]], data: pd.DataFrame) -> None:
    """Each mark has a row that holds all of its values; of a value that is a tuple, one."""
    rows = [numbers(row) for row in data.itertuples(index=False)]
    for mark in marks:
        ways = [value if isinstance(value, tuple) else (value,) for value in mark]
        found = any(all(any(same(way, v) for way in value for v in row) for value in ways) for row in rows)
        assert found, mark


def expect_written_at_once(values: dict[str, Any]) -> None:
    """Expect that orjson takes the values of a figure as they are, and writes what Python's own module does."""
    as_it_is = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    written = orjson.loads(orjson.dumps(values, option=as_it_is))
    assert written == json.loads(plotly.io.to_json(values, validate=False, engine="json"))


@pytest.mark.parametrize(("page", "query"), list(PAGES))
@pytest.mark.parametrize("smooth", ["1", "3"])
def test_every_drawn_point_has_its_row(
    page: str, query: tuple, smooth: str, dashboard_with_results, drawn: list
) -> None:
    """As measured and smoothed; where curves are smoothed the table says so, and says over how many points."""
    app = dashboard_with_results.open(page, **dict(query), smooth=smooth)
    assert not app.exception and not app.error
    assert len(drawn) >= PAGES[page, query]
    assert any(marks(figure) for figure, _ in drawn)
    for figure, data in drawn:
        expect_in_table(marks(figure), data)
    smoothed = [data for _, data in drawn if WINDOW in data]
    assert bool(smoothed) == (smooth == "3") and all((data[WINDOW] == 3).all() for data in smoothed)
    captions = [caption for caption in captions_of(app) if "mean of 3 neighbouring points" in caption]
    assert len(captions) == len(smoothed)
    assert app.query_params.get("smooth") == (None if smooth == "1" else "3")


def test_a_point_that_is_not_in_the_table_is_noticed() -> None:
    """The comparison itself: a mean of three in place of the measurement is found out."""
    data = pd.DataFrame({"step": [0, 256, 512], "value": [0.0, 0.0, 0.991]})
    expect_in_table(marks(go.Figure(go.Scatter(x=[0.5, 256, 512], y=data["value"]))), data)
    with pytest.raises(AssertionError):
        expect_in_table(marks(go.Figure(go.Scatter(x=[0.5, 256, 512], y=[0.0, 0.33, 0.66]))), data)


def test_a_file_is_made_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits in the queue of the questions; an animation lets light ones go first."""
    queue = Queue()
    monkeypatch.setattr(figures, "QUEUE", queue)
    made = [figures._content(File("", f"head{suffix}", lambda: queue._waiting[0].cost)) for suffix in figures.TYPES]
    assert made == [figures.SECONDS[suffix] for suffix in figures.TYPES]
    assert figures.SECONDS[".csv"] < LIGHT < figures.SECONDS[".gif"] and not queue._waiting


@pytest.mark.parametrize("smooth", ["1", "3"])
@pytest.mark.usefixtures("all_opened")
def test_a_saved_picture_says_how_its_curves_are_smoothed(
    smooth: str, dashboard_with_results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its small print, since the caption stays on the page."""
    printed = []
    monkeypatch.setattr(figures, "figure_files", lambda figure, key: printed.append(figure.small_print))
    dashboard_with_results.open("tokens", smooth=smooth)
    assert printed and any("mean of 3 neighbouring points" in words for words in printed) == (smooth == "3")


def test_a_menu_of_files_is_drawn_when_it_is_opened(
    dashboard_with_results: Dashboard, request: pytest.FixtureRequest
) -> None:
    """A page has one for each figure, and few readers open any."""
    assert not dashboard_with_results.open("tokens").get("download_button")
    request.getfixturevalue("all_opened")
    assert dashboard_with_results.open("tokens").get("download_button")
