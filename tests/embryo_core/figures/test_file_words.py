"""Tests of files of words in cells: only columns of readable words are drawn, and the others are counted."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from embryo_core.figures import file_layout, lens
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.figure import Caption, Figure
from embryo_core.figures.file_words import legible_columns
from embryo_core.types import StepUnit
from tests.app.conftest import words_of

STEPS = tuple(range(0, 2000, 100))
ONE, TWO = (file_layout.SIZES[columns].pixels for columns in ("one", "two"))


def grid(word: str, folded: tuple[int, ...] = ()):
    """Return a lens with this word in every cell, its "#" replaced by the step; the last cell but one is pinned."""
    rows = [(step, layer, 1, word.replace("#", str(step)), 0.5) for step in STEPS for layer in (0, 1)]
    table = pd.DataFrame(rows, columns=["step", "layer", "rank", "token", "probability"])
    axis = StepAxis("log", step_unit=StepUnit.UPDATES)
    return lens.grid(table, axis, (1, STEPS[-2]), {word: "true object"}, folded).to_plotly()


def test_columns_of_unreadable_words_are_left_out() -> None:
    """Longer words and narrower files leave fewer columns; the last one always stays."""
    assert legible_columns(grid("in"), TWO) is None
    few, fewer = legible_columns(grid("university"), TWO), legible_columns(grid("university"), ONE)
    assert len(STEPS) > len(few) > len(fewer) > 1
    assert few[-1] == fewer[-1] == len(STEPS) - 1 and fewer[0] == 0


def test_folded_steps_are_left_out_first() -> None:
    """Their one column is empty, and the note in it goes with it."""
    figure = grid("university", STEPS[:5])
    assert 0 not in legible_columns(figure, ONE) and len(figure.layout.annotations) == 1
    layout = file_layout.lay_out_file(figure, "one", "Lens", "").layout
    assert [note["yref"] for note in layout["annotations"]] == ["paper"]


def test_layout_has_only_the_kept_columns() -> None:
    """Their steps are below them, outlines surround the cells that are left, and the small print gives the count."""
    figure = grid("university")
    columns = legible_columns(figure, ONE)
    layout = file_layout.lay_out_file(figure, "one", "Lens", "Run demo.").layout
    below = dict(zip(layout["xaxis"]["tickvals"], layout["xaxis"]["ticktext"]))
    assert set(below.items()) <= {(i, f"{STEPS[column]:,}") for i, column in enumerate(columns)}
    assert layout["xaxis"]["range"] == [-0.55, len(columns) - 0.45]
    assert {shape["x0"] for shape in layout["shapes"]} == {i - 0.5 for i in range(len(columns))}
    small_print = layout["annotations"][-1]["text"].replace("<br>", " ")
    assert small_print.endswith(f" {len(columns)} of the {len(STEPS)} steps on the page are drawn.")


@pytest.mark.parametrize("folded", [(), STEPS[:5]])
def test_saved_file_has_the_words_of_the_steps_below_them(tmp_path, monkeypatch, folded) -> None:
    """A file that Python saves draws the kept columns; the figure itself keeps all."""
    figure, drawn = grid("university#", folded), []
    monkeypatch.setattr(go.Figure, "write_image", lambda plot, *path, **size: drawn.append(plot))
    lens_figure = Figure("lens", "Lens", figure, pd.DataFrame(), Caption("Words."), ("demo",))
    lens_figure.save(tmp_path / "lens.svg", columns="one")
    (file,), axis = drawn, drawn[0].layout.xaxis
    named = [int(step.replace(",", "")) for step in axis.ticktext]
    assert [*file.data[0].x] == [*axis.tickvals] and np.shape(file.data[0].z) == (2, len(named))
    assert words_of(file.data[0]) == [[f"university{step}" for step in named]] * 2
    assert len(figure.data[0].x) == len(STEPS) - len(folded)


def test_figure_without_words_keeps_its_columns() -> None:
    """The colours of a heat map of numbers can be read at any width."""
    figure = grid("university").update_traces(meta=None)
    assert legible_columns(figure, ONE) is None
