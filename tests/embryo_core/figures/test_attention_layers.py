"""Tests of the grid of one head's maps, with layers as rows and steps as columns."""

from itertools import pairwise

import numpy as np
import pytest

from embryo_core import results
from embryo_core.errors import FigureError
from embryo_core.figures.attention_layers import (
    colour_scale,
    layers_over_steps,
    layers_table,
    plot_layers,
    steps_around,
)
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.file_layout import lay_out_file
from embryo_core.types import StepUnit

KNOWN = [0, 1, 2, 4, 8, 16, 32, 64, 100, 128]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (16, (2, 4, 8, 16, 32, 64, 128)),
        (128, (2, 4, 8, 16, 32, 64, 128)),
        (0, (0, 1, 2, 4, 8, 16, 32)),
        (100, (2, 4, 8, 16, 32, 100, 128)),
    ],
)
def test_steps_around_chosen_step_double(chosen: int, expected: tuple[int, ...]) -> None:
    """In both directions each step is at least twice the one before; only the last step may be nearer."""
    steps = steps_around(KNOWN, chosen)
    assert steps == expected
    assert all(b >= 2 * a or b == KNOWN[-1] for a, b in pairwise(steps))


def test_maps_are_placed_by_layer_and_step() -> None:
    """The first row of a map is on top, as maps are read; the table has the same weights."""
    maps = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4)
    figure = plot_layers(maps, [8, 16, 32], 16, StepUnit.UPDATES)
    heat, points = figure.data
    z = np.asarray(heat.z).reshape(2, 5, 3, 5)
    assert np.array_equal(z[0, :4, 2, :4], maps[1, 2][::-1]) and np.isnan(z[:, 4]).all()
    assert [[*where] for where in points.customdata][-1] == [2, 32]
    assert (points.x[-1], points.y[-1]) == (2, 0)
    table = layers_table(maps, 5, [8, 16, 32]).set_index(["layer", "step", "from", "to"])
    assert table.loc[(2, 16, 3, 1), "weight"] == maps[1, 1, 3, 1] and set(table["head"]) == {5}


def test_table_counts_positions_of_a_cell() -> None:
    """The columns `from` and `to` have the first of a cell's positions, as in the files of other maps."""
    table = layers_table(np.zeros((1, 1, 2, 2), np.float32), 1, [8], block=3)
    assert table[["from", "to", "positions"]].to_numpy().tolist() == [[0, 0, 3], [0, 3, 3], [3, 0, 3], [3, 3, 3]]


def test_grid_has_stored_maps_and_fixed_width(tiny_results):
    """A wide plot is scrolled, so the page shows its colour scale above it; an unknown head is an error."""
    figure = layers_over_steps([tiny_results], AxisChoice(), head=2, step=8)
    weights = results.read_attention(tiny_results, 2, 2).weights[-1]
    rows = figure.table[(figure.table["layer"] == 2) & (figure.table["step"] == 16)]
    assert rows["weight"].sum() == pytest.approx(weights.sum(), rel=1e-5) and figure.plot.layout.width
    assert "3 evaluated steps" in figure.caption.details and "share their weights" in figure.caption.details
    assert figure.plot.data[0].showscale is False and colour_scale(figure).count("<span") == 3
    with pytest.raises(FigureError, match="no head 9"):
        layers_over_steps([tiny_results], AxisChoice(), head=9, step=8)


def test_maps_are_square_on_page_and_in_files() -> None:
    """The height of a plot is proportional to its width, so that a file of half the width is half as high."""
    maps = np.zeros((2, 7, 3, 3), np.float32)
    figure = plot_layers(maps, range(7), 3, StepUnit.UPDATES)
    assert figure.layout.yaxis.scaleanchor == "x"
    files = [lay_out_file(figure, columns, "Layers", "a run").layout for columns in ("one", "two")]
    one, two = (file["height"] - file["margin"]["t"] - file["margin"]["b"] for file in files)
    assert one == pytest.approx(two * files[0]["width"] / files[1]["width"])
