"""Tests of orders of acquisition and their agreement between runs, checked against slow and obvious counts."""

import pandas as pd
import pytest

from embryo_core.comparison import PAPER, PARTS_OF_SPEECH, RULES, acquisition, acquisitions, agreements
from embryo_core.measurements import Findings, Score
from embryo_core.types import Run
from tests.conftest import checkpoint_at, copy_run

STEPS = (0, 8, 16, 24, 32)


def store(run: Run, onsets: dict[str, int]) -> Run:
    """Store scores of categories, each of which jumps from 0 to 1 at a step of STEPS."""
    from embryo_core import results

    for step in STEPS:
        scores = [Score("mask_prediction", float(step >= since), 400, group) for group, since in onsets.items()]
        results.write(checkpoint_at(run, step), "mask_prediction", Findings(scores=scores))
    return run


@pytest.fixture
def two(tiny_run: Run, tmp_path) -> list[Run]:
    """Return one run in the paper's order and another in the reverse order."""
    since = {name: 8 if i < 4 else min(32, 8 * (i - 2)) for i, name in enumerate(PARTS_OF_SPEECH)}
    turned = {name: 40 - step for name, step in since.items()}
    return [store(copy_run(tiny_run, tmp_path / name), known) for name, known in (("a", since), ("b", turned))]


def slow_rho(first: list[float], second: list[float]) -> float:
    """Compute Pearson's correlation of mean ranks, with ranks counted one by one."""

    def ranks(values: list[float]) -> list[float]:
        return [sum((b < a) + (b == a) / 2 for b in values) for a in values]

    one, two = ranks(first), ranks(second)
    mean = sum(one) / len(one)
    covariance = sum((a - mean) * (b - mean) for a, b in zip(one, two, strict=True))
    spread = [sum((a - mean) ** 2 for a in side) ** 0.5 for side in (one, two)]
    return covariance / (spread[0] * spread[1])


def test_category_is_acquired_where_it_jumps(two: list[Run]):
    table = acquisitions([two[0]], "mask_prediction", PARTS_OF_SPEECH)
    assert dict(zip(table["group"], table["onset"]))["determiner"] == 8
    assert table["onset"].is_monotonic_increasing and set(table["run"]) == {"tiny"}


def test_agreement_is_spearmans_rho(two: list[Run]):
    """Every two runs are compared, and each run with the paper; ties are mean ranks."""
    parts = [acquisitions([run], "mask_prediction", PARTS_OF_SPEECH).assign(run=name) for run, name in zip(two, "ab")]
    table = agreements(pd.concat(parts))
    assert table[["first", "second"]].values.tolist() == [["a", "b"], ["a", PAPER], ["b", PAPER]]
    paper = {name: max(0, i - 3) for i, name in enumerate(PARTS_OF_SPEECH)}
    orders = {name: dict(zip(rows["group"], rows["onset"])) for name, rows in pd.concat(parts).groupby("run")}
    orders[PAPER] = paper
    for row in table.itertuples():
        both = [[float(orders[side][name]) for name in PARTS_OF_SPEECH] for side in (row.first, row.second)]
        assert row.rho == pytest.approx(slow_rho(*both)) and row.n == len(PARTS_OF_SPEECH)
        assert row.low - 1e-9 <= row.rho <= row.high + 1e-9  # at -1 and 1 the interval has no width
    assert table["rho"].iloc[0] == pytest.approx(-1)


def test_runs_without_scores_are_left_out(two: list[Run], tiny_run: Run):
    """Neither run has scores of this metric, so both tables are empty."""
    table = acquisitions([two[0], tiny_run], "token_reconstruction", PARTS_OF_SPEECH)
    assert table.empty and agreements(table).empty


def test_paper_rule_ranks_the_steeper_curve_first():
    """By the rule "half" both curves are tied, since they reach half of their last value at the same checkpoint."""
    curves = {"slow": [0.0, 0.0, 0.22, 0.3, 0.4], "steep": [0.0, 0.0, 0.4, 0.4, 0.4]}
    rows = [(group, *point, 4000) for group, values in curves.items() for point in zip(STEPS, values)]
    data = pd.DataFrame(rows, columns=["group", "step", "accuracy", "n"])
    assert acquisition(data)["place"].tolist() == [1, 1]
    order = acquisition(data, "paper")
    assert order["group"].tolist() == ["steep", "slow"] and order["place"].tolist() == [1, 2]
    assert order["slope"].tolist() == pytest.approx([1000 / 8, 1000 / 24])
    assert (order["slope_low"] < order["slope"]).all() and (order["slope"] < order["slope_high"]).all()


@pytest.mark.parametrize("rule", RULES)
def test_category_never_acquired_has_no_place(rule):
    """A category that ends at 0 comes last; the others have the places that they would have without it."""
    curves = {"never": [0.0, 0.0, 0.4, 0.2, 0.0], "late": [0.0, 0.0, 0.0, 0.4, 0.4], "early": [0.0, 0.4, 0.4, 0.4, 0.4]}
    rows = [(group, *point, 4000) for group, values in curves.items() for point in zip(STEPS, values)]
    order = acquisition(pd.DataFrame(rows, columns=["group", "step", "accuracy", "n"]), rule)
    assert order["group"].tolist() == ["early", "late", "never"]
    assert order["place"].tolist()[:2] == [1, 2] and order["onset"].tolist()[:2] == [8, 24]
    assert order.loc[2, ["place", "onset", "earliest", "latest"]].isna().all() and order["last"][2] == 0


def test_agreement_covers_categories_that_both_acquired():
    """Pairs of runs with fewer than four common categories have an n but no rho."""
    places = {"a": range(1, 6), "b": [1, 2, 4, 3, None], "c": [1, 2, 3, None, None]}
    rows = [(run, f"own {i}", index) for run, own_places in places.items() for i, index in enumerate(own_places)]
    table = agreements(pd.DataFrame(rows, columns=["run", "group", "place"])).set_index(["first", "second"])
    assert table["n"].to_dict() == {("a", "b"): 4, ("a", "c"): 3, ("b", "c"): 3} | {(run, PAPER): 0 for run in "abc"}
    assert table.loc[("a", "b"), "rho"] == pytest.approx(0.8) and table["rho"].isna().sum() == 5


def test_agreement_uses_places_of_any_rule(two: list[Run]):
    """Categories that jump at the same step are tied by every rule, so the rules agree equally with the paper."""
    by_rule = [agreements(acquisitions([two[0]], "mask_prediction", PARTS_OF_SPEECH, rule)) for rule in RULES]
    assert by_rule[0]["rho"].tolist() == pytest.approx(by_rule[1]["rho"].tolist())


def test_chance_rule_measures_the_rise_from_one_half():
    """A category that rises from one quarter to three quarters is acquired; one that ends at one half is not."""
    curves = {"rises": (0.25, 0.6, 0.75), "ends at chance": (0.2, 0.4, 0.5), "early": (0.5, 0.75, 0.75)}
    rows = [(group, step, value, 400) for group, own in curves.items() for step, value in zip(STEPS, own)]
    order = acquisition(pd.DataFrame(rows, columns=["group", "step", "accuracy", "n"]), "chance")
    assert order["group"].tolist() == ["early", "rises", "ends at chance"]
    assert order["onset"].fillna(-1).tolist() == [8, 16, -1]


def test_order_with_mostly_tied_places_is_not_compared():
    """If four of seven categories share a place, the order reflects the evaluated steps; three of seven may."""
    groups = [*"abcdefg"]
    orders = {"one": [1, 2, 3, 4, 5, 6, 7], "grid": [1, 2, 3, 4, 4, 4, 4], "few": [1, 2, 3, 4, 5, 5, 5]}
    table = pd.DataFrame(
        [{"run": run, "group": g, "place": p} for run, places in orders.items() for g, p in zip(groups, places)]
    )
    rho = agreements(table).set_index(["first", "second"])["rho"]
    assert pd.isna(rho["one", "grid"]) and pd.isna(rho["grid", "few"]) and rho["one", "few"] > 0.9
