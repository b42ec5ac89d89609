"""Tests of the Geometry figures: stored scores, and similarities equal to the CKA of the states themselves."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embryo_core import results, runs
from embryo_core.curves import geometry as formulas
from embryo_core.curves.turns import Stretch
from embryo_core.errors import FigureError
from embryo_core.figures import geometry, similarity
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.measurements import Findings, Score, StateProducts
from embryo_core.types import Run, StepUnit
from tests.conftest import checkpoint_at
from tests.embryo_core.metrics.test_geometry import plain_cka

STEPS, WORDS, LAYERS = (0, 8, 16), 40, 2
LINEAR = AxisChoice("linear")


def states(seed: int) -> np.ndarray:
    """Return states [steps, layers, words, dimensions] that change from step to step."""
    random = np.random.default_rng(seed)
    return random.normal(size=(len(STEPS), LAYERS, WORDS, 12)).cumsum(axis=0) + 3


def store(
    run: Run, own: np.ndarray, words: range = range(WORDS), sha256: str = "a", steps: tuple[int, ...] = STEPS
) -> Run:
    """Write the products of these states, and an effective rank, at every step; return the run."""
    summary = {"note": "40 words", "compared": [[0, word] for word in words]}
    for step, layers in zip(steps, own, strict=True):
        grams = [(layer, formulas.gram(one[[*words]])) for layer, one in enumerate(layers)]
        findings = Findings(
            scores=[Score("geometry_rank_me", 10.0 + step * (16 - step), WORDS, layer=layer) for layer, _ in grams],
            grams=[StateProducts(layer, len(words), formulas.pack(one)) for layer, one in grams],
        )
        results.write(
            checkpoint_at(run, step), "geometry", findings, {"data": "t", "sha256": sha256, "limit": None}, summary
        )
    return run


@pytest.fixture
def other_run(own_run: Run) -> Run:
    """Return a copy of the run under another name."""
    return runs.read_run(Path(shutil.copytree(own_run.path, own_run.path.with_name("other"))))


def test_measures_are_found_without_computing_them(own_run, monkeypatch):
    """Similarities are computed from products of states, and are found if these are stored."""
    monkeypatch.setattr(formulas, "cka_interval", None)
    assert geometry.measured(own_run) == []
    store(own_run, states(0))
    assert geometry.measured(own_run) == ["rank_me", "cka_step"]


def test_similarity_to_a_step_is_the_cka_of_states(own_run):
    """The reference is the last step, or the last one up to the chosen step; values in float16 are exact to 2e-4."""
    own = states(0)
    store(own_run, own)
    for chosen, place in ((None, 2), (8, 1), (15, 1), (0, 0)):
        table = similarity.to_step(own_run, chosen)
        assert list(table["step"]) == [*STEPS] * LAYERS and set(table["n"]) == {WORDS}
        for row in table.itertuples():
            expected = plain_cka(own[STEPS.index(row.step), row.layer], own[place, row.layer])
            assert row.value == pytest.approx(expected, abs=2e-4)
            assert row.low <= row.value + 1e-9 and row.value <= row.high + 2e-4


def test_cka_intervals_are_those_of_a_jackknife():
    """Each word is left out in turn, and the CKA of the others is computed anew from their states."""
    first, second = states(0)[0]
    without = [plain_cka(np.delete(first, i, axis=0), np.delete(second, i, axis=0)) for i in range(WORDS)]
    error = ((WORDS - 1) / WORDS * sum((value - np.mean(without)) ** 2 for value in without)) ** 0.5
    actual = formulas.cka_interval(formulas.gram(first)[None], formulas.gram(second))
    middle = plain_cka(first, second)
    assert [float(part[0]) for part in actual] == pytest.approx(
        [middle, middle - 1.96 * error, middle + 1.96 * error], abs=1e-4
    )


def test_two_runs_are_compared_on_common_words(own_run, other_run):
    """One run could not read five words; the products are centred anew over the others."""
    ours, theirs = states(0), states(1)
    store(own_run, ours)
    store(other_run, theirs, words=range(5, WORDS))
    table = similarity.to_run(own_run, other_run)
    assert set(table["n"]) == {WORDS - 5}
    for row in table.itertuples():
        step = STEPS.index(row.step)
        expected = plain_cka(ours[step, row.layer, 5:], theirs[step, row.layer, 5:])
        assert row.value == pytest.approx(expected, abs=1e-3)
    figure = similarity.between([own_run, other_run], LINEAR, "other")
    assert "other" in figure.title and len(figure.table) == len(STEPS) * LAYERS


def test_runs_are_compared_at_nearest_steps(own_run, other_run):
    """Two steps are paired if they are near and each other's nearest; the caption names pairs of different steps."""
    ours, theirs = states(0), states(1)
    store(own_run, ours)
    store(other_run, theirs, steps=(0, 9, 30))
    table = similarity.to_run(own_run, other_run)
    assert table[["step", "other_step"]].to_numpy().tolist() == [[0, 0], [8, 9]] * LAYERS
    assert table["value"].iloc[1] == pytest.approx(plain_cka(ours[1, 0], theirs[1, 0]), abs=1e-3)
    assert "9 instead of 8" in similarity.between([own_run, other_run], LINEAR, "other").caption.details
    assert similarity.nearest_steps([7, 8], [8, 9]) == {8: 8} and similarity.nearest_steps([], [1]) == {}
    with pytest.raises(FigureError, match="'other' in words"):
        similarity.to_run(own_run, replace(other_run, step_unit=StepUnit.WORDS))


def test_runs_with_different_words_are_not_compared(own_run, other_run):
    """The other run has not been measured, shares too few words, or was measured on another treebank."""
    store(own_run, states(0))
    with pytest.raises(FigureError, match="has not been measured"):
        similarity.to_run(own_run, other_run)
    store(other_run, states(1), words=range(30, WORDS))
    with pytest.raises(FigureError, match="different words"):
        similarity.to_run(own_run, other_run)
    results.note_dataset(
        other_run, "geometry", {"sha256": "b"}, {"compared": [[0, i] for i in range(WORDS)]}, overwrite=True
    )
    with pytest.raises(FigureError, match="different words"):
        similarity.to_run(own_run, other_run)


def test_caption_has_the_n_and_the_step_of_each_run(own_run, other_run):
    """Seeds of a design have the same words; a run without the chosen step is compared with an earlier one."""
    store(own_run, states(0))
    store(other_run, states(1)[:2], steps=(0, 16))
    seeds = [own_run, replace(other_run, config=other_run.config | {"seed": 99})]
    assert f"n = {WORDS}." in geometry.layers(seeds, LINEAR, "rank_me").caption.data
    details = geometry.layers(seeds, LINEAR, "cka_step", to=8).caption.details
    assert "other with step 0." in details
    assert "with step" not in geometry.layers(seeds, LINEAR, "cka_step", to=0).caption.details
    assert "with step" not in geometry.layers(seeds, LINEAR, "cka_step").caption.details
    counts_tokens = replace(other_run, step_unit=StepUnit.TOKENS)
    assert "other with 16 tokens." in similarity.describe_steps([own_run, counts_tokens], 0)


def test_curves_and_heat_maps_hold_stored_scores(own_run):
    """The headline names the turn at step 8, unless only one step was evaluated; an unmeasured quantity is an error."""
    store(own_run, states(0))
    figure = geometry.layers([own_run], LINEAR, "rank_me", bold=1)
    assert figure.table["value"].tolist() == [10.0, 74.0, 10.0] * LAYERS
    assert "10 at step 0, grows to 74 by step 8 and falls to 10 by step 16" in figure.headline
    assert geometry.rank_stretches(own_run) == [Stretch("grows", 0, 8), Stretch("compresses", 8, 16)]
    drawn = geometry.heat_map([own_run], LINEAR, "rank_me", layer=1).plot.data[0]
    assert np.array_equal(drawn.z, [[10, 74, 10]] * LAYERS)
    to_first = geometry.heat_map([own_run], LINEAR, "cka_step", layer=1, to=0)
    for chosen, own_step in ((0, 0), (7, 0), (9, 8), (99, 16)):
        assert f"step {own_step}," in geometry.heat_map([own_run], LINEAR, "cka_step", layer=1, to=chosen).title
    assert "step 0" in to_first.title and to_first.plot.data[0].z[0][0] == pytest.approx(1, abs=2e-4)
    with pytest.raises(FigureError, match="no alpha"):
        geometry.heat_map([own_run], LINEAR, "alpha", layer=1)
    assert "only evaluated" in geometry.headline(figure.table.iloc[:1], StepAxis("log", step_unit=StepUnit.UPDATES))
