"""Runs that differ in their seed only are found, and their curves, orders and differences become means with ranges."""

from dataclasses import replace

import pandas as pd
import pytest

from embryo_core.compare import (
    acquisition,
    average_acquisitions,
    average_differences,
    average_seeds,
    group_by_design,
    group_by_size,
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


def test_seeds_become_their_mean_and_range():
    """At the steps that all of them have; cases add up."""
    tables = [
        pd.DataFrame({"curve": "noun", "step": [0, 8], "value": [0.0, 0.2], "n": 5}),
        pd.DataFrame({"curve": "noun", "step": [8, 16], "value": [0.6, 0.9], "n": 5}),
    ]
    (row,) = average_seeds(tables).to_dict("records")
    assert row == {"curve": "noun", "step": 8, "value": 0.4, "low": 0.2, "high": 0.6, "n": 10}


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


def test_an_onset_of_seeds_is_their_mean_with_its_range():
    """Cases add up, and what one seed lacks has no onset."""
    other = order("b", {"noun": 24, "verb": 8, "adverb": 99})
    table = pd.concat([order("a", {"noun": 8, "verb": 16, "adverb": 8}), other])
    found = average_acquisitions(table, {"a, b": ["a", "b"]}).set_index("group")
    assert found.loc["noun", ["onset", "earliest", "latest", "n"]].tolist() == [16, 8, 24, 800]
    assert found.loc["verb", ["onset", "earliest", "latest"]].tolist() == [12, 8, 16]
    assert found.loc["adverb", ["onset", "place"]].isna().all()


def test_three_seeds_have_a_mean_and_no_median():
    """Of onsets and slopes, of the last values and of differences; the least steps and cases of all pairs."""
    since = {"a": 8, "b": 8, "c": 24}
    table = pd.concat([order(run, {"noun": step}).assign(last=step / 24) for run, step in since.items()])
    found = average_acquisitions(table, {"all": ["a", "b", "c"]})
    assert (found["onset"][0], found["last"][0]) == (13, pytest.approx((8 + 8 + 24) / 3 / 24))
    columns = "measure step_first step_second first second difference low high n_first n_second".split()
    rows = [("a", 8, 16, 0.2, 0.2, 0.0, -1, 1, 9, 8), ("a", 16, 8, 0.2, 0.2, 0.0, -1, 1, 7, 6)]
    rows += [("a", 24, 24, 0.2, 0.8, 0.6, -1, 1, 8, 7)]
    (row,) = average_differences([pd.DataFrame([one], columns=columns) for one in rows]).to_dict("records")
    assert [row[name] for name in columns[3:6]] == pytest.approx([0.2, 0.4, 0.2])
    assert [row[name] for name in (*columns[1:3], *columns[-2:])] == [8, 8, 7, 6]


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


def test_differences_of_designs_are_means_over_pairs():
    """From the lowest to the highest; what one pair lacks is missing."""

    def pair(second: float, other: float | None) -> pd.DataFrame:
        columns = "measure step_first step_second first second difference low high n_first n_second".split()
        rows = [("a", 8, 8, 0.1, second, second - 0.1, 0.0, 1.0, 50, 50)]
        rows += [("b", *[None] * 9) if other is None else ("b", 8, 8, 0.1, other, other - 0.1, 0.0, 1.0, 50, 50)]
        return pd.DataFrame(rows, columns=columns)

    found = average_differences([pair(0.2, 0.3), pair(0.4, None)]).set_index("measure")
    assert found.loc["a", ["difference", "low", "high"]].tolist() == pytest.approx([0.2, 0.1, 0.3])
    assert found.loc["a", "n_first"] == 50 and pd.isna(found.loc["b", "difference"])
