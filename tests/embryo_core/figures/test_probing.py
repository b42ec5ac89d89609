"""Tests of the Probing figures over all tasks, which draw the numbers of their tables."""

import shutil

import pandas as pd
import pytest

from embryo_core import runs
from embryo_core.curves.step_scales import SCALES
from embryo_core.errors import FigureError
from embryo_core.figures import probing, probing_layers, probing_scores, style
from embryo_core.figures.axis import STEP_MARK, AxisChoice, StepAxis
from embryo_core.figures.figure import Figure
from embryo_core.types import Run, StepUnit
from tests.probe_scores import LOG, STEPS, stored_scores
from tests.probed import write_probes


@pytest.fixture
def frame() -> pd.DataFrame:
    """Return the probe scores of three tasks, layers 0 to 2 and four steps."""
    return probing_scores.probe_scores(stored_scores())


@pytest.fixture
def probed_run(own_run: Run) -> Run:
    """Return a run whose layers were probed on two tasks of the metric and on a task of the user."""
    write_probes(own_run)
    return own_run


def trace_named(figure: Figure, name: str):
    """Return the trace with this name in the legend."""
    return next(trace for trace in figure.plot.data if trace.name == name)


@pytest.mark.parametrize("rescaled", [False, True])
def test_tasks_are_drawn_as_in_the_table(probed_run: Run, rescaled: bool) -> None:
    """Interval and majority baseline are rescaled with the curve; a point carries its task and step."""
    figure = probing.tasks([probed_run], AxisChoice("linear"), "best", rescaled)
    srl = figure.table[figure.table["task"] == "srl"]
    line = trace_named(figure, "semantic roles")
    assert list(line.x) == list(srl["step"]) and list(line.y) == list(srl["shown"])
    assert [[*point[:2]] for point in line.customdata] == [["srl", step] for step in srl["step"]]
    assert list(trace_named(figure, "semantic roles, 95 % band").y) == [*srl["shown_high"], *srl["shown_low"][::-1]]
    dashed = trace_named(figure, "semantic roles, baseline")
    assert set(dashed.y) == set(srl["shown_majority"])
    last = srl["value"].iloc[-1]
    assert srl["shown"].iloc[-1] == (1 if rescaled else last)
    assert list(srl["shown_high"]) == pytest.approx(list(srl["high"] / last if rescaled else srl["high"]))
    assert figure.caption.data.endswith("n = 50 to 400 targets.") and figure.headline


def test_caption_has_all_numbers_of_masked_pieces(probed_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The held-out sample may change during training."""
    log = LOG.assign(n_masked=[900, None, 1000])
    monkeypatch.setattr(probing_scores, "training_log", lambda run: log)
    assert "900 to 1,000 masked pieces" in probing.tasks([probed_run], AxisChoice("log"), "best").caption.details


def test_bands_can_be_left_out(probed_run: Run) -> None:
    """Without bands no trace is filled."""
    for make in (probing.tasks, probing.expected):
        options = {"layer": 0} if make is probing.tasks else {}
        assert any(trace.fill for trace in make([probed_run], AxisChoice("log"), **options).plot.data)
        assert not any(trace.fill for trace in make([probed_run], AxisChoice("log"), **options, bands=False).plot.data)


def test_run_without_probes_has_no_figures(tiny_run: Run) -> None:
    """The error names the run."""
    with pytest.raises(FigureError, match=tiny_run.name):
        probing.tasks([tiny_run], AxisChoice("log"), "best")
    with pytest.raises(FigureError, match=tiny_run.name):
        probing.expected([tiny_run], AxisChoice("log"))


def test_captions_describe_the_first_run_with_probes(probed_run: Run) -> None:
    """The first run given was not probed."""
    bare = runs.read_run(shutil.copytree(probed_run.path, probed_run.path.with_name("bare")))
    for shown_runs in ([probed_run], [bare, probed_run]):
        assert probing.tasks(shown_runs, AxisChoice("log"), "last").headline
        expected = probing.expected(shown_runs, AxisChoice("log"))
        assert "layers 0 (embeddings) to 2" in expected.caption.summary
        assert list(trace_named(expected, "equal weight of all layers").y) == [1, 1]
        layers = probing_layers.layers(shown_runs, AxisChoice("log"), "pos", "f1")
        assert "n = 400 targets (3,200 targets for training" in layers.caption.data


def test_captions_have_the_targets_of_one_seed(probed_run: Run) -> None:
    """All seeds of a design are tested on the same targets."""
    seed = runs.read_run(shutil.copytree(probed_run.path, probed_run.path.with_name("seed")))
    seed.config["seed"] = 99
    write_probes(seed)
    for figure, n in (
        (probing.tasks([probed_run, seed], AxisChoice("log"), "best"), "n = 50 to 400 targets"),
        (probing.expected([probed_run, seed], AxisChoice("log")), "n = 50 to 400 targets"),
        (probing_layers.layers([probed_run, seed], AxisChoice("log"), "pos", "f1"), "n = 400 targets"),
    ):
        assert "mean of 2 seeds" in str(figure.caption) and n in figure.caption.data


def test_headline_names_the_tasks_that_gain_most_and_least() -> None:
    """A single task is named alone, a task with one step not; at a single step, tasks are compared by their score."""
    axis = StepAxis("log", step_unit=StepUnit.UPDATES)
    best = pd.DataFrame({"task": ["pos", "pos", "my_task", "my_task"], "step": [0, 16] * 2, "f1": [0.5, 0.9, 0.6, 0.7]})
    headline = probing.headline(best, axis)
    assert headline.index("parts of speech (50 % to 90 %)") < headline.index("my_task (60 % to 70 %)")
    alone = probing.headline(best[best["task"] == "pos"], axis)
    assert "parts of speech (50 % to 90 %)" in alone and "least" not in alone
    once = pd.DataFrame({"task": ["once", "early"], "step": [16, 0], "f1": [0.8, 0.3]})
    assert probing.headline(pd.concat([best, once]), axis) == headline and probing.headline(once, axis) == ""
    one = probing.headline(best[best["step"] == 16], axis)
    assert one.index("parts of speech (90 %)") < one.index("my_task (70 %)") and "step 16" in one


def test_tasks_have_fixed_styles() -> None:
    """The paper's tasks keep their colour and marker whatever is drawn with them; a user's get others in any order."""
    known = probing.task_styles(["mine", "srl", "pos", "more"])
    assert known["pos"] == (style.BLUE, "circle") == probing.task_styles(["pos"])["pos"]
    assert len(set(known.values())) == 4 and known == probing.task_styles(["more", "mine", "pos", "srl"])


def test_names_of_tasks_are_escaped(frame) -> None:
    """The name of a user's task is shown letter by letter."""
    assert probing.plain("<b>x</b>") == "&lt;b&gt;x&lt;/b&gt;"
    assert probing.plain("coref") == "coreference"


def test_expected_layer_is_compared_with_equal_weights(probed_run: Run) -> None:
    """The reference line is halfway up the layers; each task has its points and their intervals."""
    figure = probing.expected([probed_run], AxisChoice("log"))
    assert list(trace_named(figure, "equal weight of all layers").y) == [1, 1]
    for task, own in figure.table.groupby("task"):
        assert list(trace_named(figure, probing.plain(task)).y) == list(own["expected"])
        assert list(trace_named(figure, f"{probing.plain(task)}, 95 % band").y) == [*own["high"], *own["low"][::-1]]


def test_ring_follows_the_step_along_the_path(frame) -> None:
    """It is drawn at the last step, and the figure's `meta` has the points of all steps for the time bar."""
    table = probing_scores.path(probing_scores.select_layer(frame, 2), "pos", "srl")
    figure = probing.plot_path(table, "pos", "srl", StepAxis("log", step_unit=StepUnit.UPDATES))
    (line,), (ring,) = figure.data, figure.layout.shapes
    assert [point[1] for point in line.customdata] == figure.layout.meta["steps"] == STEPS
    assert figure.layout.meta["points"] == [[x, y] for x, y in zip(line.x, line.y)]
    assert ring.name == STEP_MARK and (ring.xanchor, ring.yanchor) == (line.x[-1], line.y[-1])
    assert list(line.marker.colorbar.ticktext) == ["0", "1", "8", "700"]
    in_words = probing.plot_path(table, "pos", "srl", StepAxis("log", step_unit=StepUnit.WORDS)).data[0]
    assert [trace.marker.colorbar.title.text for trace in (line, in_words)] == ["step", "words"]


@pytest.mark.parametrize("scale", SCALES)
def test_one_checkpoint_is_enough_for_every_figure(frame, probed_run: Run, monkeypatch, scale) -> None:
    """In a run that has just begun, each task is one point at the place of step 0."""
    first = frame[frame["step"] == 0]
    monkeypatch.setattr(probing, "read_probe_scores", lambda run: first)
    monkeypatch.setattr(probing_scores, "read_probe_scores", lambda run: first)
    monkeypatch.setattr(probing_scores, "training_log", lambda run: LOG[:1])
    made = [
        probing.tasks([probed_run], AxisChoice(scale), "best", rescaled=True),
        probing.expected([probed_run], AxisChoice(scale)),
    ]
    for figure in made:
        curves = [trace for trace in figure.plot.data if trace.mode == "lines+markers"]
        assert len(curves) == figure.table["task"].nunique() > 0
        assert all(
            list(trace.x) == AxisChoice(scale).for_run(probed_run).values([0]) and len(trace.y) == 1 for trace in curves
        )
    path = probing.two_tasks([probed_run], AxisChoice(scale), 0, "pos", "srl")
    assert len(path.table) == len(path.plot.data[0].x) == 1
