"""Runs that differ in their seed alone are found, and become a mean with its range."""

from dataclasses import replace

import pandas as pd
import pytest

from embryo_core.compare import by_design, by_size, over_seeds
from embryo_core.types import Run


def test_a_seed_alone_makes_no_other_design(tiny_run: Run):
    """Any other setting does."""
    again = replace(tiny_run, name="again", path=tiny_run.path / "again", config=tiny_run.config | {"seed": 9})
    wider = replace(again, name="wider", config=again.config | {"hidden_size": 99})
    noted = replace(again, name="noted", note="other text")
    assert by_design([tiny_run, wider, again, noted]) == [(tiny_run, again), (wider,), (noted,)]


def test_the_order_of_settings_makes_no_other_design(tiny_run: Run):
    """Nor does it that a setting is written before another."""
    config = dict(reversed((tiny_run.config | {"seed": 9}).items()))
    again = replace(tiny_run, name="again", path=tiny_run.path / "again", config=config)
    assert by_design([tiny_run, again]) == [(tiny_run, again)]


def test_a_copy_is_no_seed(tiny_run: Run):
    """Of a run with the same seed: its spread would be none."""
    copy, again, other = (
        replace(tiny_run, name=name, path=tiny_run.path / name, config=tiny_run.config | config)
        for name, config in (("copy", {}), ("again", {"seed": 9}), ("other", {"seed": 9}))
    )
    assert by_design([tiny_run, copy, again, other]) == [(tiny_run, again), (copy, other)]


def test_designs_of_one_size_are_a_group(tiny_run: Run):
    """Single runs first, then choices of design with the most seeds first, then seeds of one design."""

    def other(name: str, **config: object) -> Run:
        return replace(tiny_run, name=name, path=tiny_run.path / name, config=tiny_run.config | config)

    dropout, again = other("dropout", hidden_dropout_prob=0.5), other("again", seed=9)
    wide = [other(f"wide{seed}", hidden_size=99, seed=seed) for seed in (1, 2)]
    deep, unknown = other("deep", num_hidden_layers=9), [other(f"unknown{i}", hidden_size=0) for i in (1, 2)]
    found = by_size([*wide, dropout, tiny_run, again, deep, *unknown])
    single = [[(run,)] for run in (deep, *unknown)]
    assert found == [*single, [(tiny_run, again), (dropout,)], [tuple(wide)]]


def test_seeds_become_their_mean_and_range():
    """At the steps that all of them have; cases add up."""
    tables = [
        pd.DataFrame({"curve": "noun", "step": [0, 8], "value": [0.0, 0.2], "n": 5}),
        pd.DataFrame({"curve": "noun", "step": [8, 16], "value": [0.6, 0.9], "n": 5}),
    ]
    (row,) = over_seeds(tables).to_dict("records")
    assert row == {"curve": "noun", "step": 8, "value": 0.4, "low": 0.2, "high": 0.6, "n": 10}


def test_of_three_seeds_it_is_the_mean_and_the_curves_keep_their_order():
    """No median; the first curve of a table stays the first."""
    tables = [pd.DataFrame({"curve": ["verb", "noun"], "step": 8, "value": [v, 0.1], "n": 5}) for v in (0.1, 0.1, 0.7)]
    found = over_seeds(tables)
    assert found["curve"].tolist() == ["verb", "noun"] and found["value"].tolist() == pytest.approx([0.3, 0.1])


def test_seeds_have_the_mean_of_their_baselines():
    """Each may have its own."""
    table = pd.DataFrame({"curve": "noun", "step": [8], "value": [0.2], "n": 5, "baseline": 0.3})
    assert over_seeds([table, table.assign(baseline=0.5)])["baseline"].tolist() == pytest.approx([0.4])
