"""Runs that differ in their seed alone are found, and become a mean with its range."""

from dataclasses import replace

import pandas as pd
import pytest

from embryo_core.compare import by_design, over_seeds
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
