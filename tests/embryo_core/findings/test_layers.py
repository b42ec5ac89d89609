"""Tests of findings about layers: planted developments are recognised, and so are their opposites."""

import numpy as np
import pytest

from embryo_core import curves
from embryo_core.findings import layers
from embryo_core.findings.finding import verdict_of
from tests.embryo_core.findings.conftest import STEPS, N, evidence, risen

TASKS = tuple(layers.PROBE_NAMES)


def f1(task: str, layer: int, values: list[float]) -> tuple:
    """Return a curve of edge probing."""
    return (layers.F1_METRIC, task, layer, values)


@pytest.mark.parametrize(("syntax", "semantics", "verdict"), [(8, 8, "reproduced"), (2, 64, "contradicted")])
def test_syntax_and_semantics_are_compared_in_the_best_layer(run, syntax: int, semantics: int, verdict: str):
    """The best layer is that at the end; the other layer rises at another step and must not count."""
    at = {"pos": syntax, "constituent": syntax, "srl": semantics, "coref": semantics}
    best = [f1(task, 2, risen(step, 0.4, 0.9)) for task, step in at.items()]
    scored_evidence = evidence(run, *best, *(f1(task, 1, risen(1, 0.4, 0.6)) for task in TASKS))
    tested = layers.syntax_and_semantics_together(scored_evidence)
    assert verdict_of(tested.comparisons) == verdict and len(tested.comparisons) == 4 and not tested.statistic


@pytest.mark.parametrize(("at", "verdict"), [(1996, "reproduced"), (2001, "contradicted")])
def test_rises_within_a_factor_of_two_are_together(run, at: int, verdict: str):
    """Syntax rises after step 998 and by step 999, semantics after 1995 and by 1996, or after 2000 and by 2001."""
    steps = (0, 998, 999, 1995, 1996, 2000, 2001, 4000)
    starts = {"pos": 999, "constituent": 999, "srl": at, "coref": at}
    rows = [f1(task, 1, risen(start, 0.4, 0.9, steps)) for task, start in starts.items()]
    tested = layers.syntax_and_semantics_together(evidence(run, *rows, steps=steps))
    assert verdict_of(tested.comparisons) == verdict and len(tested.comparisons) == 4


def test_task_that_never_rises_is_only_named(run):
    """Coreference stays at its first value and is not compared."""
    scored_evidence = evidence(
        run, *(f1(task, 1, risen(8, 0.4)) for task in TASKS[:3]), f1("coref", 1, [0.8] * len(STEPS))
    )
    tested = layers.syntax_and_semantics_together(scored_evidence)
    assert len(tested.comparisons) == 2 and "coreference" in tested.statistic


def test_saturation_is_measured_at_a_quarter_of_the_run(run):
    """Of 128 steps that is step 32; its value is compared with 90 % of the way from the first value to the last."""
    for at, verdict in ((32, "reproduced"), (64, "contradicted")):
        scored_evidence = evidence(run, *(f1(task, 1, risen(at, 0.4, 0.9)) for task in layers.SYNTAX))
        tested = layers.syntax_saturates(scored_evidence)
        assert verdict_of(tested.comparisons) == verdict
        expected = (0.9 if at == 32 else 0.4) - (0.4 + 0.9 * (0.9 - 0.4))
        assert [comparison.value for comparison in tested.comparisons] == pytest.approx([expected] * 2)


def test_saturation_is_undecided_if_the_curve_moves_across_the_quarter(run):
    """Of 1,000 steps 260 was probed, but not 250; a rise or fall from 100 to 260 may be complete by 250 or not."""
    steps = np.array([10, 100, 260, 1000])
    undecided, below, above = ([0.4, 0.4, 0.9, 0.9], [0.4, 0.9, 0.5, 0.9]), [0.4, 0.4, 0.5, 0.9], [0.4, 0.9, 0.9, 0.9]
    for values, expected in (*((values, None) for values in undecided), (below, False), (above, True)):
        curve = layers.Curve(steps, np.array(values), np.full(4, 10_000))
        comparison = layers._compare_saturation("", curve)
        assert (True if comparison.low > 0 else False if comparison.high < 0 else None) is expected


@pytest.mark.parametrize("rise", [[0.4, 0.6, 0.8], [0.4, 0.8, 0.8]])
def test_saturation_needs_a_probed_step_within_a_quarter(run, monkeypatch, rise: list[float]):
    """A Trainer's checkpoint-10000, -20000 and -30000 are an example: the rise may have come before them."""
    curve = layers.Curve(np.array([10_000, 20_000, 30_000]), np.array(rise), np.full(3, 10_000))
    monkeypatch.setattr(layers, "best_layer", lambda _, task: curve if task == "pos" else None)
    tested = layers.syntax_saturates(evidence(run, f1("pos", 1, risen(8))))
    assert not tested.comparisons and tested.statistic == "Not probed within a quarter of the run: parts of speech."


def test_step_at_a_quarter_is_within_the_quarter(run, monkeypatch):
    """The first probed step is 10,000 of 40,000."""
    curve = layers.Curve(np.array([10_000, 20_000, 40_000]), np.array([0.4, 0.8, 0.8]), np.full(3, 10_000))
    monkeypatch.setattr(layers, "best_layer", lambda _, task: curve if task == "pos" else None)
    (comparison,) = layers.syntax_saturates(evidence(run, f1("pos", 1, risen(8)))).comparisons
    assert comparison.value == pytest.approx(0.4 - (0.4 + 0.9 * 0.4))


def test_syntax_without_a_rise_is_only_named(run):
    tested = layers.syntax_saturates(evidence(run, *(f1(task, 1, [0.4] * len(STEPS)) for task in layers.SYNTAX)))
    assert not tested.comparisons and tested.statistic == "No significant rise: parts of speech, constituents."


def test_interval_of_saturation_combines_those_of_its_shares():
    """By Zou and Donner's rule the distances to the ends of the three intervals are added in quadrature."""
    n, early, first, last = 200, 0.03, 0.01, 0.99
    ends = {share: [float(end) for end in curves.interval(share, n)] for share in (early, first, last)}
    values = np.array([first] + [early] * 6 + [last] * 2)
    comparison = layers._compare_saturation("", layers.Curve(np.array(STEPS), values, np.full(len(STEPS), n)))
    value = early - 0.1 * first - 0.9 * last
    below = [early - ends[early][0], 0.1 * (ends[first][1] - first), 0.9 * (ends[last][1] - last)]
    above = [ends[early][1] - early, 0.1 * (first - ends[first][0]), 0.9 * (last - ends[last][0])]
    assert comparison.low == pytest.approx(value - sum(end**2 for end in below) ** 0.5)
    assert comparison.high == pytest.approx(value + sum(end**2 for end in above) ** 0.5)


def test_interval_of_saturation_covers_the_true_value():
    """More than 90 % of the intervals of 400 samples of three shares do; 95 % are expected."""
    rng, truth, n = np.random.default_rng(7), np.array([0.4, 0.80, 0.85]), 500
    value = truth[1] - 0.1 * truth[0] - 0.9 * truth[2]
    covered = 0
    for _ in range(400):
        first, early, last = rng.binomial(n, truth) / n
        values = [first] + [early] * 6 + [last] * 2
        comparison = layers._compare_saturation(
            "", layers.Curve(np.array(STEPS), np.array(values), np.full(len(STEPS), n))
        )
        covered += comparison.low <= value <= comparison.high
    assert 0.90 < covered / 400 < 0.99


@pytest.mark.parametrize("reversed_", [False, True])
def test_upper_layers_rise_later_and_fall_back(run, reversed_: bool):
    """The last of three layers rises after the first and decays; with the layers exchanged this is contradicted."""
    falling = [*risen(32, 0.4, 0.9)[:-1], 0.7]
    low, high = (falling, risen(4, 0.4)) if reversed_ else (risen(4, 0.4), falling)
    high = [*high[:-1], 0.9] if reversed_ else high
    scored_evidence = evidence(
        run, *(f1(task, layer, low if layer == 1 else high) for task in TASKS for layer in (1, 2, 3))
    )
    tested = layers.upper_layers(scored_evidence)
    assert len(tested.comparisons) == 8
    assert verdict_of(tested.comparisons) == ("contradicted" if reversed_ else "reproduced")


def test_semantic_roles_decay_in_each_layer_but_the_embeddings(run):
    """Layers 1 and 2 are compared; a rise to the last step contradicts the finding."""
    decaying, rising = [*risen(8, 0.5)[:-1], 0.6], [*risen(8, 0.5)[:-1], 0.9]
    for values, verdict in ((decaying, "reproduced"), (rising, "contradicted")):
        tested = layers.semantic_roles_decay(evidence(run, *(f1("srl", layer, values) for layer in (0, 1, 2))))
        assert [comparison.what for comparison in tested.comparisons] == ["layer 1", "layer 2"]
        assert verdict_of(tested.comparisons) == verdict


def test_diagonals_are_compared_between_halves_of_the_layers(run):
    """Layers 3 and 4 are compared with 1 and 2; the gain of a layer's strongest head counts, not its weight."""
    for upper, lower, verdict in ((2, 32, "reproduced"), (32, 2, "contradicted")):
        weak = [(layers.SAME_METRIC, "1", layer, [0.3] * len(STEPS)) for layer in (1, 2, 3, 4)]
        strong = [
            (layers.SAME_METRIC, "2", layer, risen(upper if layer > 2 else lower, 0.3, 0.4)) for layer in (1, 2, 3, 4)
        ]
        tested = layers.diagonals_from_above(evidence(run, *weak, *strong))
        assert verdict_of(tested.comparisons) == verdict and len(tested.comparisons) == 4
        assert "1, 2, 3, 4" in tested.statistic and tested.comparisons[0].n == N


def test_middle_layer_is_in_neither_half(run):
    """The third of three layers is compared with the first."""
    rows = [(layers.SAME_METRIC, "1", layer, risen(step, 0.3, 0.4)) for layer, step in ((1, 64), (2, 1), (3, 8))]
    (comparison,) = layers.diagonals_from_above(evidence(run, *rows)).comparisons
    assert comparison.what == "layer 3 before layer 1"
    assert comparison.value == STEPS.index(64) - STEPS.index(8)


def test_head_without_a_diagonal_comes_after_the_last_step(run):
    """Such a head is one checkpoint later than one that shows the diagonal at the last step."""
    rows = [(layers.SAME_METRIC, "1", 1, risen(8, 0.3, 0.34)), (layers.SAME_METRIC, "1", 2, risen(128, 0.3, 0.4))]
    (comparison,) = layers.diagonals_from_above(evidence(run, *rows)).comparisons
    assert comparison.value == 1 and comparison.unit == "checkpoints"


@pytest.mark.parametrize(("gain", "found"), [(0.0499, "none"), (0.0501, "1, 2")])
def test_diagonal_is_a_gain_of_5_percent(run, gain: float, found: str):
    """Without a diagonal there is no comparison."""
    rows = [(layers.SAME_METRIC, "1", layer, risen(8, 0.1, 0.1 + gain)) for layer in (1, 2)]
    tested = layers.diagonals_from_above(evidence(run, *rows))
    assert len(tested.comparisons) == (found != "none") and f"at the end: {found}." in tested.statistic
