"""Tests of seeds: runs of one design are grouped, and their curves and orders become means with standard errors."""

from dataclasses import replace
from math import sqrt
from statistics import stdev

import pandas as pd
import pytest

from embryo_core.comparison import (
    acquisition,
    average_acquisitions,
    average_seeds,
    group_by_design,
    group_by_size,
    seed_agreements,
)
from embryo_core.types import Run

STEPS = (0, 8, 16, 24)


def test_runs_that_differ_in_the_seed_share_a_design(tiny_run: Run):
    """A run with another hidden size has another design."""
    again = replace(tiny_run, name="again", path=tiny_run.path / "again", config=tiny_run.config | {"seed": 9})
    wider = replace(again, name="wider", config=again.config | {"hidden_size": 99})
    assert group_by_design([tiny_run, wider, again]) == [(tiny_run, again), (wider,)]


def test_notes_and_code_version_do_not_separate_designs(tiny_run: Run):
    seeds = [
        replace(
            tiny_run, name=f"{i}", note=f"from seed_{i}", code_version=f"0.{i}", config={**tiny_run.config, "seed": i}
        )
        for i in range(5)
    ]
    seeds[4] = replace(seeds[4], corpus=tiny_run.corpus | {"counted_words": 9})  # earlier versions do not record them
    assert group_by_design(seeds) == [tuple(seeds)]


def test_order_of_settings_does_not_separate_designs(tiny_run: Run):
    config = dict(reversed((tiny_run.config | {"seed": 9}).items()))
    again = replace(tiny_run, name="again", path=tiny_run.path / "again", config=config)
    assert group_by_design([tiny_run, again]) == [(tiny_run, again)]


def test_copies_with_the_same_seed_are_not_grouped(tiny_run: Run):
    """Averaging them would show no spread; second copies form a second group."""
    copy, again, other = (
        replace(tiny_run, name=name, path=tiny_run.path / name, config=tiny_run.config | config)
        for name, config in (("copy", {}), ("again", {"seed": 9}), ("other", {"seed": 9}))
    )
    assert group_by_design([tiny_run, copy, again, other]) == [(tiny_run, again), (copy, other)]


def test_designs_of_one_size_form_a_group(tiny_run: Run):
    """Single runs come first, then groups of several designs with the most seeds first, then seeds of one design."""

    def other(name: str, **config: object) -> Run:
        return replace(tiny_run, name=name, path=tiny_run.path / name, config=tiny_run.config | config)

    dropout, again = other("dropout", hidden_dropout_prob=0.5), other("again", seed=9)
    wide = [other(f"wide{seed}", hidden_size=99, seed=seed) for seed in (1, 2)]
    deep, unknown = other("deep", num_hidden_layers=9), [other(f"unknown{i}", hidden_size=0) for i in (1, 2)]
    groups = group_by_size([*wide, dropout, tiny_run, again, deep, *unknown])
    single = [[(run,)] for run in (deep, *unknown)]
    assert groups == [*single, [(tiny_run, again), (dropout,)], [tuple(wide)]]


def test_seeds_are_averaged_with_a_standard_error():
    """Every step that any seed has is kept; n is summed, and a single seed has no error."""
    tables = [
        pd.DataFrame({"curve": "noun", "step": [0, 8], "value": [0.0, 0.2], "n": 5}),
        pd.DataFrame({"curve": "noun", "step": [8, 16], "value": [0.6, 0.9], "n": 5}),
    ]
    average = average_seeds(tables).set_index("step")
    error = stdev([0.2, 0.6]) / sqrt(2)
    assert average.loc[8, ["value", "standard_error", "low", "high"]].tolist() == pytest.approx(
        [0.4, error, 0.4 - error, 0.4 + error]
    )
    assert average.loc[8, ["seeds", "n"]].tolist() == [2, 10]
    assert average.index.tolist() == [0, 8, 16] and average["value"].tolist() == pytest.approx([0, 0.4, 0.9])
    assert average["seeds"].tolist() == [1, 2, 1] and average.loc[[0, 16], ["standard_error", "low"]].isna().all(
        axis=None
    )


def test_averaging_seeds_keeps_the_order_of_curves():
    """The values are means, as the median for verbs would be 0.1; the curves are not sorted by name."""
    tables = [pd.DataFrame({"curve": ["verb", "noun"], "step": 8, "value": [v, 0.1], "n": 5}) for v in (0.1, 0.1, 0.7)]
    average = average_seeds(tables)
    assert average["curve"].tolist() == ["verb", "noun"] and average["value"].tolist() == pytest.approx([0.3, 0.1])


def test_baselines_of_seeds_are_averaged():
    table = pd.DataFrame({"curve": "noun", "step": [8], "value": [0.2], "n": 5, "baseline": 0.3})
    assert average_seeds([table, table.assign(baseline=0.5)])["baseline"].tolist() == pytest.approx([0.4])


# === Orders and differences by design ===


def order(run: str, onsets: dict[str, int], rule: str = "half") -> pd.DataFrame:
    """Return acquisitions of categories that jump from 0 to 1 at a step; those after the last step stay at 0."""
    rows = [(group, step, float(step >= since), 400) for group, since in onsets.items() for step in STEPS]
    return acquisition(pd.DataFrame(rows, columns=["group", "step", "accuracy", "n"]), rule).assign(run=run)


def test_onsets_of_seeds_are_averaged_with_a_standard_error():
    """The cases are summed, and a category that one seed lacks has no onset."""
    other = order("b", {"noun": 24, "verb": 8, "adverb": 99})
    table = pd.concat([order("a", {"noun": 8, "verb": 16, "adverb": 8}), other])
    average = average_acquisitions(table, {"a, b": ["a", "b"]}).set_index("group")
    assert average.loc["noun", ["onset", "earliest", "latest", "n"]].tolist() == [16, 8, 24, 800]
    assert average.loc["verb", ["onset", "earliest", "latest"]].tolist() == [12, 8, 16]
    assert average.loc["adverb", ["onset", "place"]].isna().all()


def test_mean_onset_keeps_the_interval_of_its_seeds():
    """The seeds have the same onset, so the standard error is 0, but the ends remain the means of their ends."""
    ends = {"earliest": 2, "latest": 20}
    table = pd.concat([order(run, {"noun": 8, "verb": 16}).assign(**ends) for run in "ab"])
    average = average_acquisitions(table.astype({"earliest": "Int64", "latest": "Int64"}), {"a, b": ["a", "b"]})
    assert average[["earliest", "latest"]].values.tolist() == [[2, 20]] * 2


def test_mean_bar_begins_at_the_mean_of_its_seeds():
    """The bars begin at 2 and 8, and the standard error of the onset is 8."""
    onsets = (("a", 8, 2), ("b", 24, 8))
    table = pd.concat([order(run, {"noun": step}).assign(before=before) for run, step, before in onsets])
    average = average_acquisitions(table, {"a, b": ["a", "b"]}).iloc[0]
    assert average[["before", "onset", "latest"]].tolist() == [5, 16, 24]


def test_interval_that_is_open_in_one_seed_is_open():
    """The onset keeps its mean and its start; a slope that one of the seeds lacks is missing too."""
    steep = {"slope": 2.0, "slope_low": 1.0, "slope_high": 3.0}
    table = pd.concat([order(run, {"noun": since}).assign(**steep) for run, since in (("a", 8), ("b", 16))])
    table.loc[table["run"] == "b", ["latest", *steep]] = None
    average = average_acquisitions(table, {"a, b": ["a", "b"]}).iloc[0]
    assert average[["onset", "earliest", "place"]].tolist() == [12, 8, 1]
    assert average[["latest", *steep]].isna().all()


def test_onsets_and_last_values_are_averaged_by_the_mean():
    """The median of the three onsets would be 8."""
    since = {"a": 8, "b": 8, "c": 24}
    table = pd.concat([order(run, {"noun": step}).assign(last=step / 24) for run, step in since.items()])
    average = average_acquisitions(table, {"all": ["a", "b", "c"]})
    assert (average["onset"][0], average["last"][0]) == (13, pytest.approx((8 + 8 + 24) / 3 / 24))
    error = stdev([8, 8, 24]) / sqrt(3)
    assert average[["earliest", "latest"]].values.tolist() == [[round(40 / 3 - error), round(40 / 3 + error)]]


def test_averaged_order_is_sorted_by_place():
    """The order of the first seed does not matter, and the rows are numbered consecutively."""
    seeds = {"a": ("verb", "noun", "adverb"), "b": ("noun", "adverb", "verb"), "c": ("adverb", "verb", "noun")}
    table = pd.concat([order(run, dict(zip(names, STEPS[1:], strict=True))) for run, names in seeds.items()])
    average = average_acquisitions(table, {"a, b": ["a", "b"], "c": ["c"]})
    assert average["group"].tolist() == ["noun", "verb", "adverb", "adverb", "verb", "noun"]
    assert average["place"].tolist() == [1, 2, 3] * 2 and average.index.tolist() == [*range(6)]


def test_places_are_ranks_of_the_mean_place():
    """Categories with equal means share a place."""
    other = order("b", {"noun": 16, "verb": 8, "adverb": 24})
    table = pd.concat([order("a", {"noun": 8, "verb": 16, "adverb": 24}), other])
    average = average_acquisitions(table, {"a, b": ["a", "b"]}).set_index("group")
    assert average["place"].to_dict() == {"noun": 1, "verb": 1, "adverb": 3}


def test_design_of_one_run_is_unchanged():
    """Its slopes are kept too."""
    alone = order("a", {"noun": 8, "verb": 16}, "paper")
    pd.testing.assert_frame_equal(average_acquisitions(alone, {"a": ["a"]}), alone)


def test_agreement_is_computed_within_designs():
    """Every two seeds of a design are compared, but no seeds of different designs."""
    names = ["noun", "verb", "adverb", "adjective"]
    first = order("a", dict(zip(names, (8, 16, 24, 0), strict=True)))
    turned = order("b", dict(zip(names, (16, 8, 0, 24), strict=True)))
    table = pd.concat([first, turned, first.assign(run="c"), first.assign(run="d")])
    average = seed_agreements(table, [["a", "b", "c"], ["d"]])
    assert average[["first", "second", "rho", "n"]].values.tolist() == [
        ["a", "b", pytest.approx(-1), 4],
        ["a", "c", pytest.approx(1), 4],
        ["b", "c", pytest.approx(-1), 4],
    ]
