"""Tests of panels in files and on phones: rows that fit the width, headings, and the numbers of shared axes."""

import pandas as pd
import pytest
from plotly.subplots import make_subplots

from embryo_core.figures import file_panels, style
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.curve_plot import plot_curves
from embryo_core.figures.lines import Curves, Line
from embryo_core.types import StepUnit

NARROW, WIDE = 372, 772  # pixels


def layout_of(rows: int, columns: int, **more) -> dict:
    """Return the layout of a figure with rows x columns panels, with titles of panels and axes."""
    count = rows * columns
    titles = [f"[X] was given this long name in [Y] , number {i} ." for i in range(count)]
    figure = make_subplots(rows, columns, subplot_titles=titles, **more)
    for i in range(count):
        figure.add_scatter(x=[0, 1], y=[0, 1], row=i // columns + 1, col=i % columns + 1)
    figure.update_xaxes(title_text="iteration of the probe's optimizer", row=rows, col=1)
    figure.update_yaxes(title_text="F1", row=1, col=1)
    return figure.layout.to_plotly_json()


def boxes(layout: dict) -> list[tuple[float, float, float, float]]:
    """Return left, right, bottom and top of each panel, in shares of the plot."""
    return [(*x["domain"], *y["domain"]) for x, y in file_panels.panels(layout)]


@pytest.mark.parametrize(("width", "across"), [(NARROW, 1), (WIDE, 2)])
def test_rows_of_panels_fit_the_width(width: int, across: int) -> None:
    """A wide file has two panels in a row and a narrow one has one; none overlaps, and each keeps its height."""
    layout = layout_of(1, 2)
    height = file_panels.fit_panels(layout, width, 300)
    panels = boxes(layout)
    assert len({left for left, *_ in panels}) == across
    assert all((top - bottom) * height == pytest.approx(300) for *_, bottom, top in panels)
    assert all(0 <= left < right <= 1 + 1e-9 and 0 <= bottom < top <= 1 for left, right, bottom, top in panels)
    (_, right, bottom, _), (left, *_, top) = panels
    assert right < left if across == 2 else top < bottom


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_headings_move_with_their_panels(width: int) -> None:
    """A heading is centred above its panel, in lines no wider than the panel."""
    layout = layout_of(3, 4)
    file_panels.fit_panels(layout, width, 900)
    for (left, right, _, top), note in zip(boxes(layout), layout["annotations"], strict=True):
        assert (note["x"], note["y"]) == (pytest.approx((left + right) / 2), top)
        room = (right - left) * width
        assert (
            max(map(len, note["text"].split("<br>"))) * file_panels.LETTER * file_panels.HEADING_SIZE / style.FONT_SIZE
            <= room
        )
        assert note["text"].replace("<br>", " ").startswith("[X] was given this long name in [Y]")


def test_shared_axes_keep_their_numbers_outside() -> None:
    """Numbers are below the lowest panel of each column and left of the first, with one axis title."""
    layout = layout_of(2, 4, shared_xaxes="all", shared_yaxes="all")
    file_panels.fit_panels(layout, WIDE, 600)
    panels = file_panels.panels(layout)
    assert [x["showticklabels"] for x, _ in panels] == [False] * 5 + [True] * 3
    assert [y["showticklabels"] for _, y in panels] == [True, False, False] * 2 + [True, False]
    titled = [i for i, (x, _) in enumerate(panels) if x.get("title", {}).get("text")]
    assert titled == [6]


def test_tick_labels_that_would_touch_are_left_out() -> None:
    """A narrow file has fewer labels, each at its own tick; a wide one keeps all."""
    ticks = {"tickvals": list(range(20)), "ticktext": [f"{i},000" for i in range(20)]}
    narrow, wide = ({"xaxis": {"domain": [0, 1], **ticks}} for _ in range(2))
    file_panels.fit_panels(narrow, NARROW, 300)
    file_panels.fit_panels(wide, 2000, 300)
    assert wide["xaxis"]["ticktext"] == ticks["ticktext"]
    kept = narrow["xaxis"]
    assert 1 < len(kept["ticktext"]) < 10
    assert kept["ticktext"] == [f"{i},000" for i in kept["tickvals"]]


def test_phone_has_two_panels_in_a_row():
    """The figure grows with its rows; of five panels, the lowest of each column has numbers."""
    rows = pd.DataFrame({"by": list("abcde") * 2, "step": [0] * 5 + [10] * 5, "value": 0.5, "n": 9})
    curves = Curves(by="by", y_title="", panels_per_row=4, width=1280)
    line = Line("a run", StepAxis("linear", step_unit=StepUnit.UPDATES), curves.rows(rows), rows)
    figure = plot_curves([line], curves)
    page = figure.layout.height
    for path, value in figure.layout.meta["phone"].items():
        figure.update_layout({path.replace(".", "_"): value})
    panels = file_panels.panels(figure.layout.to_plotly_json())
    assert {tuple(round(end, 2) for end in x["domain"]) for x, _ in panels} == {(0, 0.42), (0.58, 1)}
    assert [bool(x["showticklabels"]) for x, _ in panels] == [False] * 3 + [True] * 2
    assert 1.3 * page < figure.layout.height < 2 * page
    assert [note.y for note in figure.layout.annotations] == [y["domain"][1] for _, y in panels]
