"""Tests that each function agrees with its definition computed the long way, also at the ends and at zero."""

import math
import subprocess
import sys

import numpy as np
import pytest

from embryo_core import curves

RNG = np.random.default_rng(2020)
CURVES = [RNG.random(RNG.integers(1, 30)) for _ in range(200)]


# === Rescaling and smoothing ===


@pytest.mark.parametrize("values", CURVES[:20])
def test_rescaled_curve_ends_at_one(values):
    """Dividing by the last value keeps all ratios."""
    rescaled = curves.rescale(values, values[-1])
    assert rescaled[-1] == 1
    np.testing.assert_allclose(rescaled * values[-1], values)


def test_curve_that_ends_at_zero_rescales_to_nan():
    """A figure leaves NaN out, so no number is made up."""
    assert np.isnan(curves.rescale([0.2, 0.5, 0.0], 0.0)).all()
    assert curves.rescale([], 1.0).shape == (0,)


@pytest.mark.parametrize("window", [1, 3, 5])
def test_smoothing_averages_the_existing_neighbours(window):
    """The reference is the mean of a slice for each checkpoint; the ends have fewer neighbours."""
    for values in CURVES:
        half = window // 2
        slow = [np.mean(values[max(0, i - half) : i + half + 1]) for i in range(len(values))]
        np.testing.assert_allclose(curves.smooth(values, window), slow)


def test_smoothing_keeps_constant_and_single_values():
    """The ends of a constant curve do not change either."""
    np.testing.assert_allclose(curves.smooth([0.25] * 7), [0.25] * 7)
    assert curves.smooth([0.4]).tolist() == [0.4]


@pytest.mark.parametrize("window", [0, 2, -3])
def test_window_without_a_middle_is_refused(window):
    """A window of even length would shift the curve."""
    with pytest.raises(ValueError, match=f"Received: {window}"):
        curves.smooth([1, 2, 3], window)


# === Interval ===


def test_interval_solves_wilsons_equation():
    """Its ends are the shares p whose distance to the observed share is 1.96 standard errors of p itself."""
    for _ in range(200):
        n = int(RNG.integers(2, 5000))
        value = int(RNG.integers(1, n)) / n
        for end in curves.interval(value, n):
            assert math.isclose(abs(value - end), curves.Z * math.sqrt(end * (1 - end) / n), rel_tol=1e-9)


def test_interval_covers_the_truth_in_95_percent_of_cases():
    """The coverage is simulated and averaged over shares."""
    shares = RNG.random(20_000)
    low, high = curves.interval(RNG.binomial(80, shares) / 80, np.full(20_000, 80))
    assert 0.94 < np.mean((low <= shares) & (shares <= high)) < 0.96


def test_interval_at_0_and_1_has_a_width():
    """One end is exact, and the distance of the other reflects n."""
    low, high = curves.interval([0, 1, 0, 1], [10, 10, 1, 1])
    assert low[0] == low[2] == 0 and high[1] == high[3] == 1
    assert high[0] == pytest.approx(0.2775, abs=1e-4) and low[1] == pytest.approx(0.7225, abs=1e-4)
    assert high[2] < 0.8 and low[3] > 0.2


def test_interval_accepts_numbers_and_arrays():
    """More cases give a narrower interval, which contains the value."""
    low, high = curves.interval(0.3, 50)
    assert (float(low), float(high)) == tuple(float(end[0]) for end in curves.interval([0.3], [50]))
    narrow = curves.interval(0.3, 5000)
    assert low < narrow[0] < 0.3 < narrow[1] < high


# === Interval of a difference ===


@pytest.mark.parametrize(("first", "second", "low", "high"), [(0.9, 0.3, 0.1705, 0.8090), (1.0, 0.0, 0.6075, 1.0)])
def test_interval_of_a_difference_is_newcombes(first, second, low, high):
    """Newcombe (1998) works out method 10 for these contrasts of 10 cases each."""
    assert curves.difference_interval(first, second, 10) == pytest.approx((low, high), abs=5e-5)


def test_interval_of_a_difference_changes_sign_with_the_order():
    """The interval contains the difference and stays within -1 and 1."""
    first, second, n = RNG.random(100), RNG.random(100), RNG.integers(1, 900, 100)
    low, high = curves.difference_interval(first, second, n)
    assert (low <= first - second).all() and (first - second <= high).all()
    assert (low >= -1).all() and (high <= 1).all()
    turned = curves.difference_interval(second, first, n)
    np.testing.assert_allclose((-high, -low), turned)


# === Onset ===


def slow_from(steps, fine):
    """Return the first step from which `fine` is true to the end; None if there is none."""
    return next((step for i, step in enumerate(steps) if all(fine[i:])), None)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_onset_is_where_the_share_is_reached_and_kept(share):
    """The reference is the definition tried at every step, on raw values with Wilson's intervals."""
    for values in CURVES:
        steps = np.cumsum(RNG.integers(1, 900, len(values)))
        n = RNG.integers(5, 900, len(values))
        level, ends = share * values[-1], [curves.interval(v, k) for v, k in zip(values, n)]
        earliest = slow_from(steps, [high >= level for _, high in ends])
        first = next(step for step, v in zip(steps, values) if step >= earliest and v >= level)
        onset = curves.onset(steps, values, n, share)
        assert (onset.step, onset.earliest) == (first, earliest)
        assert onset.latest == slow_from(steps, [low >= level for low, _ in ends])
        assert onset.earliest <= onset.step and (onset.latest is None or onset.step <= onset.latest)


def test_onset_is_half_way_from_floor_to_last_value():
    """From 0.4 to 0.8 that is 0.6, not 0.4; a curve that ends at its floor has no onset."""
    steps, values, n = [0, 8, 16, 32], [0.4, 0.55, 0.65, 0.8], [10_000] * 4
    assert curves.onset(steps, values, n, floor=0.4) == curves.Onset(16, 16, 16)
    assert curves.onset(steps, values, n).step == 0
    assert curves.onset(steps, values, n, floor=0.8) is None


def test_onset_of_a_jump_is_the_step_after_it():
    """A mean over three checkpoints would move the onset to the checkpoint before the jump."""
    assert curves.onset([128, 256, 512, 1024], [0.0, 0.0, 0.991, 0.995], [400] * 4) == curves.Onset(512, 512, 512)


def test_dip_within_chance_does_not_move_the_onset():
    """With 10 cases, 0.4 may be a half by chance; with 1,000 it may not."""
    steps, values = [0, 8, 16, 32, 64], [0.0, 0.5, 0.4, 0.6, 0.9]
    assert curves.onset(steps, values, [10] * 5).step == 8
    assert curves.onset(steps, values, [1000] * 5).step == 32


def test_curve_that_ends_at_zero_has_no_onset():
    """What is absent at the end was not acquired."""
    assert curves.onset([0, 10], [0.5, 0.0], [9, 9]) is None
    assert curves.onset([], [], []) is None


def test_curve_is_held_from_its_last_crossing():
    """A crossing that does not last does not count; a curve that ends below the level is not held at all."""
    steps = [0, 4, 9, 700]
    assert curves.held_from(steps, [0.1, 0.3, 0.2, 0.4], 0.3) == 700
    assert curves.held_from(steps, [0.1, 0.3, 0.3, 0.4], 0.3) == 4
    assert curves.held_from(steps, [0.3, 0.3, 0.3, 0.4], 0.3) == 0
    assert curves.held_from(steps, [0.3, 0.3, 0.3, 0.2], 0.3) is None
    assert curves.held_from([], [], 0.3) is None
    assert curves.held_from(steps, [np.nan, np.nan, 0.3, 0.4], 0.3) == 9
    assert curves.held_from(steps, [0.3, 0.3, 0.3, np.nan], 0.3) is None


# === Peaks and layers ===


def test_peak_is_the_highest_measured_point():
    """The interval spans the steps whose difference from the peak may be chance; every point is checked in turn."""
    for values in CURVES:
        steps = np.cumsum(RNG.integers(1, 900, len(values)))
        peak = curves.peak(steps, values, np.full(len(values), 300))
        assert peak.value == max(values) and peak.step == steps[list(values).index(max(values))]
        assert peak.last == values[-1] and peak.decay >= 0
        near = [s for s, v in zip(steps, values) if curves.difference_interval(peak.value, v, 300)[0] <= 0]
        assert (peak.earliest, peak.latest) == (min(near), max(near))


def test_peak_is_compared_with_its_own_number_of_cases():
    """A peak of 0.9 may be chance beside 0.6 if it has 8 cases, but not if 0.6 has 12 cases and the peak 2,000."""
    steps, values = [0, 1, 2], [0.6, 0.9, 0.6]
    for n, earliest in (([2_000, 20, 2_000], 1), ([2_000, 8, 2_000], 0), ([12, 2_000, 2_000], 1)):
        below = curves.difference_interval(0.9, 0.6, n[1], n_second=n[0])[0]
        assert curves.peak(steps, values, n).earliest == earliest == int(below > 0)


def test_earliest_of_equal_points_is_the_peak():
    """A constant curve peaks at its first step, and its interval spans all steps."""
    assert curves.peak([0, 5, 700, 900], [0.1] * 4, [50] * 4) == curves.Peak(0, 0.1, 0.1, 0, 900)
    assert curves.peak([0, 5, 700, 900], [0.0, 0.3, 0.3, 0.3], [50] * 4).step == 5


def test_expected_layer_is_a_centre_of_gravity():
    """Only gains over the baseline count: in the first case 0.1 in the embeddings and 0.3 in layer 2."""
    assert curves.expected_layer([0.5, 0.2, 0.7], 0.4) == pytest.approx(2 * 0.3 / 0.4)
    assert curves.expected_layer([0.9, 0.9, 0.9, 0.9, 0.9], 0.3) == pytest.approx(2)
    assert curves.expected_layer([0.1, 0.5], 0.1) == 1


def test_expected_layer_needs_a_gain_over_the_baseline():
    """The result is None if no layer is above the baseline, or if the baseline is unknown."""
    assert curves.expected_layer([0.3, 0.4], 0.4) is None
    assert curves.expected_layer([0.3, 0.4], float("nan")) is None
    assert curves.expected_layer_interval([0.3, 0.4], 0.4, 100) is None


@pytest.mark.parametrize(
    "values", [[0.45, 0.6, 0.62, 0.55, 0.5], [0.3, 0.5, 0.7, 0.8, 0.8], [0.9, 0.8, 0.5, 0.45, 0.3]]
)
def test_interval_of_the_expected_layer_matches_simulated_cases(values):
    """The simulation draws each layer's cases independently and takes the middle 95 % of expected layers."""
    drawn = np.random.default_rng(0).binomial(800, values, size=(4000, 5)) / 800
    expected = np.quantile([curves.expected_layer(row, 0.25) for row in drawn], [0.025, 0.975])
    assert curves.expected_layer_interval(values, 0.25, 800) == pytest.approx(expected, abs=0.02)


def test_interval_of_the_expected_layer_stays_within_the_model():
    """With few cases or gains only in the outermost layers it ends at the embeddings or at the last layer."""
    assert curves.expected_layer_interval([0.5, 0.5, 0.5], 0.4, 3) == (0, 2)
    low, high = curves.expected_layer_interval([0.3, 0.3, 0.8], 0.4, 50)
    assert 0 < low < high == 2


# === Attention maps ===


def test_normalised_rows_sum_to_one_and_keep_their_ratios():
    """Float32 stays float32."""
    maps = RNG.random((3, 2, 5, 5)).astype(np.float32)
    normalised = curves.normalise_rows(maps)
    assert normalised.dtype == np.float32
    np.testing.assert_allclose(normalised.sum(-1), 1, rtol=5 * np.finfo(np.float32).eps)
    ratios = maps / maps[..., :1]
    np.testing.assert_allclose(normalised / normalised[..., :1], ratios, rtol=4 * np.finfo(np.float32).eps)


def test_row_of_zeros_stays_zero():
    """Nothing is divided by 0."""
    assert curves.normalise_rows([[0.0, 0.0], [1.0, 3.0]]).tolist() == [[0, 0], [0.25, 0.75]]


# === Histories ===


def slow_history(correct):
    """Apply the rule in words: strip everything before the first right answer, then look at what follows."""
    text = "".join("x" if right else "." for right in correct).lstrip(".")
    if not text:
        return "never learned"
    if "." not in text:
        return "learned"
    return "oscillating" if "x" in text.lstrip("x") else "forgotten"


def test_all_short_histories_are_classified_by_the_rule():
    """All histories of up to nine steps are compared with the rule as written in the docstring."""
    for length in range(10):
        for bits in range(2**length):
            correct = np.array([bool(bits >> i & 1) for i in range(length)], bool)
            assert curves.classify_histories([correct]).tolist() == [slow_history(correct)]


@pytest.mark.parametrize(
    ("history", "kind"),
    [
        ("......", "never learned"),
        ("...xxx", "learned"),
        (".....x", "learned"),
        ("xxxxxx", "learned"),
        (".xx...", "forgotten"),
        ("x.....", "forgotten"),
        (".x.xxx", "oscillating"),
        ("x.x.x.", "oscillating"),
    ],
)
def test_histories_are_classified_as_in_the_docs(history, kind):
    """The kinds are those that docs/metrics.md shows."""
    assert curves.classify_histories([[answer == "x" for answer in history]]).tolist() == [kind]


@pytest.mark.parametrize(
    ("values", "n", "kind"),
    [
        ([0.0] * 8, 500, "never learned"),
        ([0.0, 0.01, 0.02, 0.03, 0.02, 0.03], 100, "never learned"),  # never significantly above 2 %
        ([], 500, "never learned"),
        ([0, 0, 0.1, 0.2, 0.3, 0.4, 0.4, 0.4], 500, "learned"),
        ([0, 0.2, 0.4, 0.38, 0.41, 0.39], 500, "learned"),  # varies within its intervals
        ([0, 0.4, 0.25], 20, "learned"),  # too few facts for a significant fall
        ([0, 0.4, 0.25], 500, "declined"),
        ([0, 0.157, 0.04, 0.06, 0.09], 700, "declined"),  # rises again, but not to its peak
        ([0, 0.2, 0.4, 0.4, 0.1, 0.05], 500, "forgotten"),
        ([0, 0.4, 0.1, 0.0, 0.1, 0.4, 0.4], 500, "oscillating"),
        ([0.4, 0.4, 0, 0, 0.4, 0.4, 0, 0], 500, "oscillating"),
    ],
)
def test_relation_is_classified_by_its_falls_and_returns(values, n, kind):
    """A fall counts only if it is significant for the number of facts."""
    assert curves.classify_curve(values, [n] * len(values)) == kind


def slow_fate(values, n, least=0.02) -> str:
    """Return the kind by the rule of the docstring, comparing each pair of values."""

    def exceeds(first: float, second: float) -> bool:
        return curves.difference_interval(first, second, n)[0] > 0

    if all(curves.interval(value, n)[0] < least for value in values):
        return "never learned"
    fallen = [i for i, value in enumerate(values) if exceeds(max(values[: i + 1]), value)]
    if not fallen:
        return "learned"
    highest = max(values[: fallen[0]])
    for i in range(fallen[0] + 1, len(values)):
        if exceeds(values[i], min(values[fallen[0] : i + 1])) and not exceeds(highest, values[i]):
            return "oscillating"
    return "forgotten" if values[-1] < highest / 2 else "declined"


def test_random_relations_are_classified_by_the_rule():
    """Random walks of twenty steps cover all five kinds."""
    rng, kinds = np.random.default_rng(0), set()
    for _ in range(300):
        walk = np.clip(np.cumsum(rng.normal(0, 0.03, 20)) + 0.02, 0, 1).round(3)
        kinds.add(kind := curves.classify_curve(walk, [400] * 20))
        assert kind == slow_fate(walk.tolist(), 400)
    assert len(kinds) == 5


DEMO_FALLS = {  # precision at 1 of the demo's relations from step 10,500 on, and their numbers of facts
    "P20": ([0.009, 0.001, 0.157, 0.04, 0.047, 0.059, 0.094], 700),
    "P30": ([0.044, 0.008, 0.024, 0.02, 0.068, 0.024, 0.024], 249),
    "P407": ([0.001, 0.002, 0.165, 0.112, 0.2, 0.144, 0.133], 825),
    "P740": ([0.009, 0.004, 0.034, 0.065, 0.016, 0.019, 0.028], 682),
}


@pytest.mark.parametrize("relation", DEMO_FALLS)
def test_relation_far_below_its_peak_is_not_learned(relation):
    """The demo's relations end significantly below their highest value; they are not called never learned either."""
    values, n = DEMO_FALLS[relation]
    assert curves.difference_interval(max(values), values[-1], n)[0] > 0
    assert curves.classify_curve(values, [n] * len(values)) not in ("learned", "never learned")


def test_curves_import_nothing_heavier_than_numpy():
    code = "import sys, embryo_core.curves; print(sorted({'pandas', 'pyarrow', 'torch', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
