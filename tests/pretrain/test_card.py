"""Tests of a run's card: which settings a resume may change."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from embryo_core import runs
from embryo_core.errors import ConfigError
from pretrain.batches import Data
from pretrain.card import new_card, write_card
from pretrain.config import Config
from pretrain.families import preset

PLAN = {"steps": 100, "warmup_steps": 10, "constant_steps": 60, "save_every": 20}


@pytest.fixture
def plan(config: Config) -> Config:
    """Return a plan of 100 updates whose learning rate decays from update 60 on."""
    return replace(config, **PLAN)


@pytest.fixture
def folder(plan: Config, data: Data, tmp_path: Path) -> Path:
    """Return the folder of a run with this plan at step 50."""
    write_card(new_card(tmp_path / "own", plan, data.corpus))
    at_step(tmp_path / "own", 50)
    return tmp_path / "own"


def at_step(folder: Path, step: int) -> None:
    """Write a state of this step, without its arrays, to a run's folder."""
    import numpy as np

    (folder / "state").mkdir(exist_ok=True)
    np.savez(folder / "state" / f"step{step}.npz", progress=np.array([step, 8 * step, 100 * step]))


def test_run_may_be_extended_before_its_rate_decays(folder: Path, plan: Config, data: Data):
    """run.json has the new steps, start of the decay and grid, and keeps the checkpoints planned up to this step."""
    longer = replace(plan, steps=300, constant_steps=200, save_every=30)
    card = write_card(new_card(folder, longer, data.corpus))
    assert card == runs.read_run(folder) and card.config == asdict(longer)
    assert card.planned_steps == (0, 1, 2, 4, 8, 16, 20, 40, *range(60, 300, 30), 300)


@pytest.mark.parametrize(
    ("step", "change", "sentence"),
    [
        (70, {"steps": 300}, "started with steps=100, received 300; it is at step 70"),
        (50, {"constant_steps": 40}, "started with constant_steps=60, received 40; it is at step 50"),
        (50, {"warmup_steps": 5, "steps": 300}, "started with warmup_steps=10, received 5; resume it"),
        (50, {"learning_rate": 1.0}, "started with learning_rate=0.006, received 1.0; resume it"),
    ],
)
def test_change_that_affects_past_updates_is_refused(
    folder: Path, plan: Config, data: Data, step: int, change: dict, sentence: str
):
    """The length of a phase is fixed once updates depend on it, other settings always; run.json is unchanged."""
    at_step(folder, step)
    before = (folder / "run.json").read_bytes()
    with pytest.raises(ConfigError, match=sentence):
        write_card(new_card(folder, replace(plan, **change), data.corpus))
    assert (folder / "run.json").read_bytes() == before


def test_growing_masked_share_fixes_steps(plan: Config, data: Data, tmp_path: Path):
    """If the masked share depends on the progress of the run, its steps may change only before the first update."""
    growing = replace(plan, masked_share_end=0.3)
    write_card(new_card(tmp_path / "own", growing, data.corpus))
    write_card(new_card(tmp_path / "own", replace(growing, steps=200), data.corpus))
    at_step(tmp_path / "own", 1)
    with pytest.raises(ConfigError, match="started with steps=200, received 300; it is at step 1"):
        write_card(new_card(tmp_path / "own", replace(growing, steps=300), data.corpus))


def test_run_of_another_family_is_refused(folder: Path, data: Data):
    """The error names both families, and run.json is unchanged."""
    before = (folder / "run.json").read_bytes()
    with pytest.raises(ConfigError, match="Run 'own' is of the family albert, received bert; resume it with"):
        write_card(new_card(folder, preset("bert-tiny"), data.corpus))
    assert (folder / "run.json").read_bytes() == before


def test_missing_setting_counts_as_default(folder: Path, plan: Config, data: Data):
    """run.json of an earlier version lacks some settings; any value but the default is refused."""
    run = runs.read_run(folder)
    older = {name: value for name, value in run.config.items() if name not in ("share", "whole_words", "tokenizer")}
    runs.write_run(replace(run, config=older))
    write_card(new_card(folder, plan, data.corpus))
    with pytest.raises(ConfigError, match="started with share=all, received none"):
        write_card(new_card(folder, replace(plan, share="none"), data.corpus))


def test_card_contains_family_note(plan: Config, data: Data, tmp_path: Path):
    """The note names the weights that layers share, because the checkpoints do not show it."""
    write_card(new_card(tmp_path / "own", replace(plan, share="ffn"), data.corpus))
    assert "share their feed-forward network alone" in runs.read_run(tmp_path / "own").note


def test_counted_words_are_kept(folder: Path, plan: Config, data: Data):
    """They are counted after run.json is written; a resumed run with another plan keeps them."""
    run = runs.record_counted_words(runs.read_run(folder), 99)
    assert write_card(new_card(folder, plan, data.corpus)) == run
    extended = write_card(new_card(folder, replace(plan, save_every=5), data.corpus))
    assert extended == runs.read_run(folder) and extended.corpus["counted_words"] == 99


def test_checkpoint_grid_may_always_change(folder: Path, plan: Config, data: Data):
    """It may change even while the rate decays; past planned steps are kept, and no earlier step is added."""
    at_step(folder, 70)
    card = write_card(new_card(folder, replace(plan, save_every=5), data.corpus))
    assert card.planned_steps == (0, 1, 2, 4, 8, 16, 20, 40, 60, 75, 80, 85, 90, 95, 100)
