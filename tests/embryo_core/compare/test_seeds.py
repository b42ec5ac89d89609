"""Runs that differ in their seed only are found; their curves and orders become means with standard errors."""

from dataclasses import replace
from math import sqrt
from statistics import stdev

import pandas as pd
import pytest

from embryo_core.compare import (
    acquisition,
    average_acquisitions,
    average_seeds,
    group_by_design,
    group_by_size,
    seed_agreements,
)
from embryo_core.types import Run

STEPS = (0, 8, 16, 24)


def test_a_seed_alone_makes_no_other_design(tiny_run: Run):
    """Any other setting does."""
    again = replace(tiny_run, name="again", path=tiny_run.path / "again", config=tiny_run.config | {"seed": 9})
    wider = replace(again, name="wider", config=again.config | {"hidden_size": 99})
    assert group_by_design([tiny_run, wider, again]) == [(tiny_run, again), (wider,)]


def test_notes_are_no_part_of_a_design(tiny_run: Run):
    """Runs of other sources and versions of the code are seeds of one design."""
    seeds = [
        replace(
            tiny_run, name=f"{i}", note=f"from seed_{i}", code_version=f"0.{i}", config={**tiny_run.config, "seed": i}
        )
        for i in range(5)
    ]
    assert group_by_design(seeds) == [tuple(seeds)]


def test_the_order_of_settings_makes_no_other_design(tiny_run: Run):
    """Nor does it that a setting is written before another."""
    config = dict(reversed((tiny_run.config | {"seed": 9}).items()))
    again = replace(tiny_run, name="again", path=tiny_run.path / "again", config=config)
    assert group_by_design([tiny_run, again]) == [(tiny_run, again)]


def test_a_copy_is_no_seed(tiny_run: Run):
    """Of a run with the same seed: its spread would be none."""
    copy, again, other = (
        replace(tiny_run, name=name, path=tiny_run.path / name, config=tiny_run.config | config)
        for name, config in (("copy", {}), ("again", {"seed": 9}), ("other", {"seed": 9}))
    )
    assert group_by_design([tiny_run, copy, again, other]) == [(tiny_run, again), (copy, other)]


def test_designs_of_one_size_are_a_group(tiny_run: Run):
    """Single runs first, then choices of design with the most seeds first, then seeds of one design."""

    def other(name: str, **config: object) -> Run:
        return replace(tiny_run, name=name, path=tiny_run.path / name, config=tiny_run.config | config)

    dropout, again = other("dropout", hidden_dropout_prob=0.5), other("again", seed=9)
    wide = [other(f"wide{seed}", hidden_size=99, seed=seed) for seed in (1, 2)]
    deep, unknown = other("deep", num_hidden_layers=9), [other(f"unknown{i}", hidden_size=0) for i in (1, 2)]
    found = group_by_size([*wide, dropout, tiny_run, again, deep, *unknown])
    single = [[(run,)] for run in (deep, *unknown)]
    assert found == [*single, [(tiny_run, again), (dropout,)], [tuple(wide)]]


def test_seeds_become_their_mean_with_its_standard_error():
    """At every step that one of them has; cases add up, and a single seed has no error."""
    tables = [
        pd.DataFrame({"curve": "noun", "step": [0, 8], "value": [0.0, 0.2], "n": 5}),
        pd.DataFrame({"curve": "noun", "step": [8, 16], "value": [0.6, 0.9], "n": 5}),
    ]
    found = average_seeds(tables).set_index("step")
    error = stdev([0.2, 0.6]) / sqrt(2)
    assert found.loc[8, ["value", "standard_error", "low", "high"]].tolist() == pytest.approx(
        [0.4, error, 0.4 - error, 0.4 + error]
    )
    assert found.loc[8, ["seeds", "n"]].tolist() == [2, 10]
    assert found.index.tolist() == [0, 8, 16] and found["value"].tolist() == pytest.approx([0, 0.4, 0.9])
    assert found["seeds"].tolist() == [1, 2, 1] and found.loc[[0, 16], ["standard_error", "low"]].isna().all(axis=None)


def test_of_three_seeds_it_is_the_mean_and_the_curves_keep_their_order():
    """No median; the first curve of a table stays the first."""
    tables = [pd.DataFrame({"curve": ["verb", "noun"], "step": 8, "value": [v, 0.1], "n": 5}) for v in (0.1, 0.1, 0.7)]
    found = average_seeds(tables)
    assert found["curve"].tolist() == ["verb", "noun"] and found["value"].tolist() == pytest.approx([0.3, 0.1])


def test_seeds_have_the_mean_of_their_baselines():
    """Each may have its own."""
    table = pd.DataFrame({"curve": "noun", "step": [8], "value": [0.2], "n": 5, "baseline": 0.3})
    assert average_seeds([table, table.assign(baseline=0.5)])["baseline"].tolist() == pytest.approx([0.4])


# === Orders and differences by design ===


def order(run: str, onsets: dict[str, int], rule: str = "half") -> pd.DataFrame:
    """Acquisitions of categories that jump to their last value at a step, and stay at 0 after the last one."""
    rows = [(group, step, float(step >= since), 400) for group, since in onsets.items() for step in STEPS]
    return acquisition(pd.DataFrame(rows, columns=["group", "step", "accuracy", "n"]), rule).assign(run=run)


def test_an_onset_of_seeds_is_their_mean_with_its_standard_error():
    """Cases add up, and what one seed lacks has no onset."""
    other = order("b", {"noun": 24, "verb": 8, "adverb": 99})
    table = pd.concat([order("a", {"noun": 8, "verb": 16, "adverb": 8}), other])
    found = average_acquisitions(table, {"a, b": ["a", "b"]}).set_index("group")
    assert found.loc["noun", ["onset", "earliest", "latest", "n"]].tolist() == [16, 8, 24, 800]
    assert found.loc["verb", ["onset", "earliest", "latest"]].tolist() == [12, 8, 16]
    assert found.loc["adverb", ["onset", "place"]].isna().all()


def test_the_ends_of_an_onset_are_no_nearer_than_those_of_its_seeds():
    """Seeds that agree to a step still have the mean of their own ends."""
    ends = {"earliest": 2, "latest": 20}
    table = pd.concat([order(run, {"noun": 8, "verb": 16}).assign(**ends) for run in "ab"])
    found = average_acquisitions(table.astype({"earliest": "Int64", "latest": "Int64"}), {"a, b": ["a", "b"]})
    assert found[["earliest", "latest"]].values.tolist() == [[2, 20]] * 2


def test_three_seeds_have_a_mean_and_no_median():
    """Of onsets and last values."""
    since = {"a": 8, "b": 8, "c": 24}
    table = pd.concat([order(run, {"noun": step}).assign(last=step / 24) for run, step in since.items()])
    found = average_acquisitions(table, {"all": ["a", "b", "c"]})
    assert (found["onset"][0], found["last"][0]) == (13, pytest.approx((8 + 8 + 24) / 3 / 24))
    error = stdev([8, 8, 24]) / sqrt(3)
    assert found[["earliest", "latest"]].values.tolist() == [[round(40 / 3 - error), round(40 / 3 + error)]]


def test_an_averaged_order_begins_with_the_first_place():
    """That of the mean, whatever the first seed has first; rows are numbered consecutively."""
    seeds = {"a": ("verb", "noun", "adverb"), "b": ("noun", "adverb", "verb"), "c": ("adverb", "verb", "noun")}
    table = pd.concat([order(run, dict(zip(names, STEPS[1:], strict=True))) for run, names in seeds.items()])
    found = average_acquisitions(table, {"a, b": ["a", "b"], "c": ["c"]})
    assert found["group"].tolist() == ["noun", "verb", "adverb", "adverb", "verb", "noun"]
    assert found["place"].tolist() == [1, 2, 3] * 2 and found.index.tolist() == [*range(6)]


def test_places_are_ranks_of_the_mean_place():
    """Ties of the mean are ties."""
    other = order("b", {"noun": 16, "verb": 8, "adverb": 24})
    table = pd.concat([order("a", {"noun": 8, "verb": 16, "adverb": 24}), other])
    found = average_acquisitions(table, {"a, b": ["a", "b"]}).set_index("group")
    assert found["place"].to_dict() == {"noun": 1, "verb": 1, "adverb": 3}


def test_a_design_of_one_run_stays_as_it_is():
    """Slopes included."""
    alone = order("a", {"noun": 8, "verb": 16}, "paper")
    pd.testing.assert_frame_equal(average_acquisitions(alone, {"a": ["a"]}), alone)


def test_seeds_of_a_design_agree_or_do_not():
    """Every two seeds of a design are compared, and no seed with those of another design."""
    names = ["noun", "verb", "adverb", "adjective"]
    first = order("a", dict(zip(names, (8, 16, 24, 0), strict=True)))
    turned = order("b", dict(zip(names, (16, 8, 0, 24), strict=True)))
    table = pd.concat([first, turned, first.assign(run="c"), first.assign(run="d")])
    found = seed_agreements(table, [["a", "b", "c"], ["d"]])
    assert found[["first", "second", "rho", "n"]].values.tolist() == [
        ["a", "b", pytest.approx(-1), 4],
        ["a", "c", pytest.approx(1), 4],
        ["b", "c", pytest.approx(-1), 4],
    ]
