"""Tests of the Probing figures of one task: its layers, their heat map, peaks, and the training of a probe."""

import numpy as np
import pandas as pd
import pytest

from embryo_core import curves
from embryo_core.comparison import StepCounts
from embryo_core.curves.step_scales import SCALES
from embryo_core.figures import cells, probing_layers, style
from embryo_core.figures.axis import STEP_MARK, AxisChoice, StepAxis
from embryo_core.types import Run, StepUnit
from tests.app.conftest import words_of
from tests.probed import write_probes

LINEAR, LOG = (StepAxis(scale, step_unit=StepUnit.UPDATES) for scale in ("linear", "log"))
STEPS = [0, 1, 8, 700, 900]
F1 = {
    ("pos", 0): [0.50, 0.50, 0.60, 0.60, 0.60],
    ("pos", 1): [0.50, 0.60, 0.80, 0.70, 0.60],
    ("pos", 2): [0.40, 0.90, 0.90, 0.30, 0.30],
    ("srl", 0): [0.30, 0.30, 0.30, 0.30, 0.30],
    ("srl", 1): [0.30, 0.32, 0.30, 0.29, 0.29],
    ("srl", 2): [0.30, 0.40, 0.50, 0.60, 0.70],
}
N = {"pos": 400, "srl": 50}


@pytest.fixture
def frame() -> pd.DataFrame:
    """Return rows as `probe_scores` does; the control's F1 is half of the task's."""
    rows = [(*key, step, N[key[0]], f1) for key, values in F1.items() for step, f1 in zip(STEPS, values)]
    frame = pd.DataFrame(rows, columns=["task", "layer", "step", "n", "f1"])
    return frame.assign(control=frame["f1"] / 2, selectivity=frame["f1"] / 2, majority=0.2)


@pytest.fixture
def probed_run(own_run: Run) -> Run:
    """Return a run whose layers were probed."""
    write_probes(own_run)
    return own_run


# === Layers ===


@pytest.mark.parametrize(("quantity", "share"), [("f1", 1), ("control", 0.5), ("selectivity", 0.5)])
def test_layers_have_their_measured_curves(frame, quantity: str, share: float) -> None:
    """Each value is within its interval."""
    data = probing_layers.layer_curves(frame, "pos", quantity)
    for layer in (0, 1, 2):
        rows = data[data["layer"] == layer]
        values = [share * value for value in F1["pos", layer]]
        assert list(rows["step"]) == STEPS and list(rows["value"]) == pytest.approx(values)
    assert (data["low"] <= data["value"]).all() and (data["value"] <= data["high"]).all()


def test_selectivity_is_less_certain_than_f1(frame) -> None:
    """Its interval combines those of two shares, the F1 of the task and of its control."""
    f1, selectivity = (probing_layers.layer_curves(frame, "pos", name) for name in ("f1", "selectivity"))
    assert (selectivity["high"] - selectivity["low"] > f1["high"] - f1["low"]).all()


def test_steps_without_a_control_are_left_out(frame) -> None:
    """Control tasks may be trained at some steps only."""
    frame.loc[frame["step"] == 8, ["control", "selectivity"]] = np.nan
    assert set(probing_layers.layer_curves(frame, "pos", "control")["step"]) == {0, 1, 700, 900}


def test_lines_are_listed_from_the_last_layer_down(probed_run: Run) -> None:
    """The chosen layer is thick, points carry layer and step, and all layers share one majority baseline."""
    figure = probing_layers.layers([probed_run], AxisChoice("linear"), "pos", "f1", 1)
    lines = [trace for trace in figure.plot.data if trace.mode == "lines+markers"]
    assert [line.name for line in lines] == ["layer 2", "layer 1", "embeddings"]
    assert lines[1].line.width > lines[0].line.width == lines[2].line.width
    rows = figure.table[figure.table["layer"] == 2]
    assert list(lines[0].y) == list(rows["value"])
    assert [[*point[:2]] for point in lines[0].customdata] == [[2, step] for step in rows["step"]]
    assert len({line.line.color for line in lines}) == 3
    (baseline,) = [trace for trace in figure.plot.data if trace.line.dash == "dash"]
    assert set(baseline.y) == set(figure.table["majority"])
    without = probing_layers.layers([probed_run], AxisChoice("linear"), "pos", "f1", 1, bands=False)
    assert len(figure.plot.data) == len(without.plot.data) + 3
    selectivity = probing_layers.layers([probed_run], AxisChoice("log"), "pos", "selectivity")
    assert not [trace for trace in selectivity.plot.data if trace.line.dash == "dash"]
    assert set(selectivity.table["score"]) == {"selectivity"}


def contrast(one: str, other: str) -> float:
    """Return the contrast of two #rrggbb colours as WCAG 2 defines it, from 1 (none) to 21."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("page", ["#ffffff", "#191816"])
@pytest.mark.parametrize("layers", [1, 5, 13])
def test_layer_colours_show_on_light_and_dark_pages(page: str, layers: int) -> None:
    """Every colour has a contrast above 2.4 : 1 with the page."""
    colours = style.layer_colours(range(layers))
    assert len(set(colours.values())) == layers
    assert min(contrast(colour, page) for colour in colours.values()) > 2.4


# === Heat map ===


def test_heat_map_has_a_row_per_layer_and_a_column_per_step(frame) -> None:
    """Cells show hundredths, the embeddings are lowest, and a click on a cell brings its layer and step."""
    data = probing_layers.layer_curves(frame, "pos", "f1")
    figure = cells.plot_layer_map(data, LOG, 1, probing_layers.score_curves("f1"))
    heat, points = figure.data
    last = len(STEPS) - 1
    assert np.array_equal(heat.z, [F1["pos", layer] for layer in (0, 1, 2)])
    assert words_of(heat)[1] == ["50", "60", "80", "70", "60"]
    assert list(figure.layout.yaxis.ticktext) == ["embeddings", "layer 1", "layer 2"]
    for x, y, (layer, step, *_) in zip(points.x, points.y, points.customdata):
        assert (x, y) == (STEPS.index(step), layer)
    column, cell = figure.layout.shapes
    assert column.name == cell.name == STEP_MARK  # drawn at the last step, and moved by the time bar
    assert (column.x0, column.x1, column.y0, column.y1) == (last - 0.5, last + 0.5, -0.5, 2.5)
    assert (cell.x0, cell.x1, cell.y0, cell.y1) == (last - 0.5, last + 0.5, 0.5, 1.5)


def test_unmeasured_cell_is_empty(frame) -> None:
    """It has neither a colour nor a number."""
    data = probing_layers.layer_curves(frame.drop(0), "pos", "f1")
    heat = cells.plot_layer_map(data, LOG, 1, probing_layers.score_curves("f1")).data[0]
    assert np.isnan(heat.z[0][0]) and heat.text[0][0] == ""


# === Peak and decay ===


def test_peaks_are_those_of_measured_curves(frame) -> None:
    """Layer 2 is best at steps 1 and 8 and then falls by 60 points; a layer that still rises peaks at its end."""
    table = probing_layers.peak_table(frame).set_index(["task", "layer"])
    assert list(table["step"]) == [8, 8, 1, 0, 1, 900]
    fallen = table.loc[("pos", 2)]
    assert fallen["f1"] == 0.9 and fallen["last"] == 0.3 and fallen["decay"] == pytest.approx(0.6)
    assert (fallen["earliest"], fallen["latest"]) == (1, 8)
    assert (fallen["low"], fallen["high"]) == pytest.approx(curves.difference_interval(0.9, 0.3, 400))
    assert table.loc[("srl", 2), "decay"] == 0


def test_peak_axis_names_its_unit(frame) -> None:
    """The unit is steps, what the run's steps count, or one that the reader chose."""
    table, progress = probing_layers.peak_table(frame), StepCounts((0, 1000), (0, 128_000))
    axes = (
        LOG,
        StepAxis("log", step_unit=StepUnit.WORDS),
        StepAxis("log", unit="tokens", progress=progress, step_unit=StepUnit.UPDATES),
    )
    titles = [probing_layers.plot_peaks(table, STEPS, axis).layout.xaxis.title.text for axis in axes]
    assert titles == ["peak at step", "peak at, in words", "peak at, in tokens"]


def test_insignificant_decays_are_hollow(frame) -> None:
    """A mark is filled only if the interval of its decay is above 0."""
    table = probing_layers.peak_table(frame)
    figure = probing_layers.plot_peaks(table, STEPS, LOG)
    pos = [trace for trace in figure.data if trace.legendgroup == "pos" and not trace.name]
    assert all(list(trace.marker.symbol) == ["circle-open", "circle", "circle"] for trace in pos)
    srl = next(trace for trace in figure.data if trace.legendgroup == "srl")
    assert list(srl.marker.symbol) == ["triangle-up-open"] * 3


def test_tasks_have_separate_heights_in_a_layers_row(frame) -> None:
    """The peak on the left and the decay on the right are at the same height, which no two tasks share."""
    figure = probing_layers.plot_peaks(probing_layers.peak_table(frame), STEPS, LINEAR)
    left, right = ([t for t in figure.data if t.xaxis == axis and not t.name] for axis in ("x", "x2"))
    for peak, decay in zip(left, right):
        assert list(peak.y) == list(decay.y) and [round(y) for y in peak.y] == [0, 1, 2]
        assert [point[1] for point in peak.customdata] == [0, 1, 2]
    assert not set(left[0].y) & set(left[1].y)
    assert list(left[0].x) == [8, 8, 1] and list(left[0].error_x.array) == [892, 0, 7]
    assert right[0].x[2] == pytest.approx(60)


@pytest.fixture
def late_peaks() -> pd.DataFrame:
    """Return peaks at steps 4,000 and 9,000."""
    rows = [("pos", 0, 4000, 0.7, 0.6), ("pos", 1, 9000, 0.8, 0.6)]
    return pd.DataFrame(rows, columns=["task", "layer", "step", "f1", "last"]).assign(
        decay=0.1, low=0.0, high=0.2, n=9, earliest=[4000, 9000], latest=[4000, 9000]
    )


def test_peaks_fill_the_panel_on_a_log_axis(late_peaks) -> None:
    """The axis runs from the first peak to the last step, with ticks between the powers of ten."""
    axis = probing_layers.plot_peaks(late_peaks, [0, 4000, 9000, 20_000], LOG).layout.xaxis
    assert np.log10(3000) < axis.range[0] < np.log10(4000) and np.log10(20_000) < axis.range[1] < np.log10(26_000)
    assert {"5,000", "10 k", "20 k"} <= set(axis.ticktext)


@pytest.mark.parametrize(
    ("unit", "whole", "tick"), [("flops", 9e18, "5 E"), ("share", 1.0, "50 %"), ("tokens", 2_560_000, "1 M")]
)
def test_peaks_have_ticks_in_every_unit(late_peaks, unit, whole, tick) -> None:
    """A log axis that covers few powers of ten has ticks in its range, in its unit."""
    progress = StepCounts((0, 20_000), (0, whole))
    step_axis = StepAxis("log", unit=unit, progress=progress, zero=whole / 1e5, step_unit=StepUnit.UPDATES)
    axis = probing_layers.plot_peaks(late_peaks, [0, 4000, 9000, 20_000], step_axis).layout.xaxis
    shown = [text for text, x in zip(axis.ticktext, axis.tickvals) if axis.range[0] < np.log10(x) < axis.range[1]]
    assert tick in shown and len(shown) >= 3


# === The training of a probe ===


def training(control: bool) -> pd.DataFrame:
    rows = [(control, iteration, 1 / (1 + iteration), iteration / 10) for iteration in range(4)]
    return pd.DataFrame(rows, columns=["control", "iteration", "train_loss", "dev_f1"])


def test_training_compares_the_probe_with_its_control() -> None:
    """F1 on development data is on the left and the loss on the right, both by iteration."""
    figure = probing_layers.plot_training(pd.concat([training(False), training(True)]))
    assert [(trace.name, trace.xaxis) for trace in figure.data] == [
        ("the task", "x"),
        ("the task", "x2"),
        ("control", "x"),
        ("control", "x2"),
    ]
    assert list(figure.data[0].y) == [0, 0.1, 0.2, 0.3] and list(figure.data[3].y) == [1, 1 / 2, 1 / 3, 1 / 4]


def test_legend_omits_a_missing_control() -> None:
    """Only what is drawn has an entry."""
    figure = probing_layers.plot_training(training(False))
    assert [trace.name for trace in figure.data if trace.showlegend] == ["the task"]


@pytest.mark.parametrize("scale", SCALES)
def test_one_checkpoint_is_enough_for_every_figure(frame, scale) -> None:
    """In a run that has just begun, each peak is at the place of step 0, and the heat map has one column."""
    first, axis = frame[frame["step"] == 0], StepAxis(scale, step_unit=StepUnit.UPDATES)
    data = probing_layers.layer_curves(first, "pos", "f1")
    peaks = probing_layers.peak_table(first)
    drawn = [t for t in probing_layers.plot_peaks(peaks, [0], axis).data if t.xaxis == "x" and t.x[0] is not None]
    assert [x for trace in drawn for x in trace.x] == axis.values([0]) * len(peaks)
    assert cells.plot_layer_map(data, axis, 0, probing_layers.score_curves("f1")).data[0].z.shape == (3, 1)
