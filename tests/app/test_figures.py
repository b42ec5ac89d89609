"""Tests that every number that a figure draws on any page is in the table that downloads as its CSV."""

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
from app.question_queue import MAX_LIGHT_COST, Queue
from embryo_core.figures.figure import Figure
from embryo_core.figures.smoothing import WINDOW
from tests.app.conftest import Dashboard, captions_of

NO_ROWS = ("equal weight of all layers", "chance")  # reference lines, which are not measurements
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
def shown_figures(monkeypatch: pytest.MonkeyPatch) -> list[tuple[go.Figure, pd.DataFrame]]:
    """Return a list that fills with the figures that are shown, each with its table."""
    drawn_figures = []
    show_figure = figures.show

    def watch_figure(figure: Figure, *more: Any, **others: Any) -> None:
        drawn_figures.append((figure.plot, figure.table))
        expect_written_at_once(figure.chart.to_dict())
        json.dumps(figure.file_sizes)  # Streamlit writes the data of a component so
        show_figure(figure, *more, **others)

    monkeypatch.setattr(figures, "show", watch_figure)
    return drawn_figures


def numbers(values: Any) -> list[Any]:
    """Return the values of a trace or a row as plain Python values."""
    return [value.item() if hasattr(value, "item") else value for value in values]


def same(drawn: Any, stored: Any) -> bool:
    """Return whether a drawn coordinate is a stored value: equal, as a percentage, a rank in a name, or step 0."""
    if isinstance(stored, str) or isinstance(drawn, str):
        both = isinstance(stored, str) and isinstance(drawn, str)
        return both and (drawn.endswith(stored) or f" {stored}, " in drawn)  # "4= IN, preposition"
    if stored is None or isinstance(stored, bool) or pd.isna(stored) or pd.isna(drawn):
        return False
    ways = (drawn, drawn / 100, round(drawn), 0 if drawn == 0.5 else drawn)
    return any(math.isclose(way, stored, rel_tol=1e-6, abs_tol=1e-9) for way in ways)


def points(trace: go.Scatter) -> list[tuple[Any, Any]]:
    """Return the points of a trace, without the gaps between curves and without traces that only fill the legend."""
    if trace.x is None or trace.marker.opacity == 0:
        return []
    pairs = zip(numbers(trace.x), numbers(trace.y))
    return [pair for pair in pairs if not any(pd.isna(value) for value in pair)]


def cells(figure: go.Figure) -> list[tuple[Any, ...]]:
    """Return the cells of a heat map: two coordinates (layer and step, or layer and head), and the possible values.

    The value is the colour, its square on a scale of square roots, or the written number if the colour is a rank.
    """
    cell_values = []
    for grid in (trace for trace in figure.data if trace.type == "heatmap"):
        (unseen,) = (trace for trace in figure.data if trace.type == "scatter" and trace.marker.opacity == 0)
        given = (grid.x, range(len(grid.z[0]))), (grid.y, range(len(grid.z)))
        columns, lines = (numbers(axis if axis is not None else places) for axis, places in given)
        texts = [""] * len(unseen.x) if unseen.text is None or isinstance(unseen.text, str) else unseen.text  # in full
        for x, y, which, exact in zip(numbers(unseen.x), numbers(unseen.y), unseen.customdata, texts, strict=True):
            place = lines.index(y), columns.index(x)
            colour, written = float(grid.z[place[0]][place[1]]), grid.text[place[0]][place[1]]
            if not math.isnan(colour):
                cell_values.append((which[0], which[1], (colour, colour**2, as_number(written), as_number(exact))))
    return cell_values


def as_number(written: str) -> float:
    """Return the number that is written in a cell; NaN if the text is not a number."""
    try:
        return float(written.replace(",", ""))
    except ValueError:
        return math.nan


def marks(figure: go.Figure) -> list[tuple[Any, ...]]:
    """Return the marks that a figure draws, each as the values that one row of its table must hold; y may be a name."""
    shown = (trace for trace in figure.data if trace.type == "scatter" and trace.name not in NO_ROWS)
    names = dict(zip(figure.layout.yaxis.tickvals or (), figure.layout.yaxis.ticktext or ()))
    pairs = [pair for trace in shown for pair in points(trace)]
    return [(x, y if isinstance(y, str) else (y, names.get(round(y), y))) for x, y in pairs] + cells(figure)


def expect_in_table(marks: list[tuple[Any, ...]], data: pd.DataFrame) -> None:
    """Check that each mark has a row that holds all of its values; a tuple lists alternatives of one value."""
    rows = [numbers(row) for row in data.itertuples(index=False)]
    for mark in marks:
        ways = [value if isinstance(value, tuple) else (value,) for value in mark]
        is_found = any(all(any(same(way, v) for way in value for v in row) for value in ways) for row in rows)
        assert is_found, mark


def expect_written_at_once(values: dict[str, Any]) -> None:
    """Check that orjson serialises a figure's values without conversion, and writes what Python's json module does."""
    as_it_is = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    written = orjson.loads(orjson.dumps(values, option=as_it_is))
    assert written == json.loads(plotly.io.to_json(values, validate=False, engine="json"))


@pytest.mark.parametrize(("page", "query"), list(PAGES))
@pytest.mark.parametrize("smooth", ["1", "3"])
def test_every_drawn_point_has_its_row(
    page: str, query: tuple, smooth: str, dashboard_with_results, shown_figures: list
) -> None:
    """This holds for measured and for smoothed curves; table and caption name the points of the running mean."""
    app = dashboard_with_results.open(page, **dict(query), smooth=smooth)
    assert not app.exception and not app.error
    assert len(shown_figures) >= PAGES[page, query]
    assert any(marks(figure) for figure, _ in shown_figures)
    for figure, data in shown_figures:
        expect_in_table(marks(figure), data)
    smoothed = [data for _, data in shown_figures if WINDOW in data]
    assert bool(smoothed) == (smooth == "3") and all((data[WINDOW] == 3).all() for data in smoothed)
    captions = [caption for caption in captions_of(app) if "mean of 3 neighbouring points" in caption]
    assert len(captions) == len(smoothed)
    assert app.query_params.get("smooth") == (None if smooth == "1" else "3")


def test_comparison_notices_point_missing_in_table() -> None:
    """The comparison accepts step 0 drawn at 0.5 and rejects running means of three in place of measurements."""
    data = pd.DataFrame({"step": [0, 256, 512], "value": [0.0, 0.0, 0.991]})
    expect_in_table(marks(go.Figure(go.Scatter(x=[0.5, 256, 512], y=data["value"]))), data)
    with pytest.raises(AssertionError):
        expect_in_table(marks(go.Figure(go.Scatter(x=[0.5, 256, 512], y=[0.0, 0.33, 0.66]))), data)


def test_file_waits_in_the_queue_of_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file waits in the queue of questions: a CSV costs less than a light question, an animation more."""
    queue = Queue()
    monkeypatch.setattr(figures, "QUEUE", queue)
    made = [
        figures._content(File("", f"head{suffix}", lambda: queue._waiting[0].cost)) for suffix in figures.MIME_TYPES
    ]
    assert made == [figures.FILE_SECONDS[suffix] for suffix in figures.MIME_TYPES]
    assert figures.FILE_SECONDS[".csv"] < MAX_LIGHT_COST < figures.FILE_SECONDS[".gif"] and not queue._waiting


@pytest.mark.parametrize("smooth", ["1", "3"])
@pytest.mark.usefixtures("all_opened")
def test_saved_picture_states_smoothing(smooth: str, dashboard_with_results, monkeypatch: pytest.MonkeyPatch) -> None:
    """The small print has it, since the caption is not part of the picture."""
    printed = []
    monkeypatch.setattr(figures, "figure_files", lambda figure, key: printed.append(figure.small_print))
    dashboard_with_results.open("tokens", smooth=smooth)
    assert printed and any("mean of 3 neighbouring points" in words for words in printed) == (smooth == "3")


def test_file_menu_is_drawn_only_when_opened(dashboard_with_results: Dashboard, request: pytest.FixtureRequest) -> None:
    """Every figure has such a menu, and few readers open one."""
    assert not dashboard_with_results.open("tokens").get("download_button")
    request.getfixturevalue("all_opened")
    assert dashboard_with_results.open("tokens").get("download_button")
