"""The card of a run: what a resume may change, and what it may not."""

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
    """100 updates whose rate decays from the 60th on."""
    return replace(config, **PLAN)


@pytest.fixture
def folder(plan: Config, data: Data, tmp_path: Path) -> Path:
    """Return the folder of a run with that plan, at step 50."""
    write_card(new_card(tmp_path / "own", plan, data.corpus))
    at_step(tmp_path / "own", 50)
    return tmp_path / "own"


def at_step(folder: Path, step: int) -> None:
    """Put a state of that step into a run's folder, its arrays left out."""
    import numpy as np

    (folder / "state").mkdir(exist_ok=True)
    np.savez(folder / "state" / f"step{step}.npz", progress=np.array([step, 8 * step, 100 * step]))


def test_a_run_may_be_extended_before_its_rate_decays(folder: Path, plan: Config, data: Data):
    """Other steps, another start of the decay, another grid: run.json has the new plan, and the steps saved before."""
    longer = replace(plan, steps=300, constant_steps=200, save_every=30)
    found = write_card(new_card(folder, longer, data.corpus))
    assert found == runs.read_run(folder) and found.config == asdict(longer)
    assert found.planned_steps == (0, 1, 2, 4, 8, 16, 20, 40, *range(60, 300, 30), 300)


@pytest.mark.parametrize(
    ("step", "change", "sentence"),
    [
        (70, {"steps": 300}, "started with steps=100, received 300; it is at step 70"),
        (50, {"constant_steps": 40}, "started with constant_steps=60, received 40; it is at step 50"),
        (50, {"warmup_steps": 5, "steps": 300}, "started with warmup_steps=10, received 5; resume it"),
        (50, {"learning_rate": 1.0}, "started with learning_rate=0.006, received 1.0; resume it"),
    ],
)
def test_what_was_already_trained_is_not_planned_anew(
    folder: Path, plan: Config, data: Data, step: int, change: dict, sentence: str
):
    """Once updates depend on the plan, and for every other setting, a change is refused and run.json stays."""
    at_step(folder, step)
    before = (folder / "run.json").read_bytes()
    with pytest.raises(ConfigError, match=sentence):
        write_card(new_card(folder, replace(plan, **change), data.corpus))
    assert (folder / "run.json").read_bytes() == before


def test_masks_that_follow_the_plan_fix_it(plan: Config, data: Data, tmp_path: Path):
    """Where the share masked depends on how far the run is, its length can change before the first update only."""
    growing = replace(plan, masked_share_end=0.3)
    write_card(new_card(tmp_path / "own", growing, data.corpus))
    write_card(new_card(tmp_path / "own", replace(growing, steps=200), data.corpus))
    at_step(tmp_path / "own", 1)
    with pytest.raises(ConfigError, match="started with steps=200, received 300; it is at step 1"):
        write_card(new_card(tmp_path / "own", replace(growing, steps=300), data.corpus))


def test_a_run_of_another_family_is_refused(folder: Path, data: Data):
    """One sentence names both families, and run.json stays."""
    before = (folder / "run.json").read_bytes()
    with pytest.raises(ConfigError, match="Run 'own' is of the family albert, received bert; resume it with"):
        write_card(new_card(folder, preset("bert-tiny"), data.corpus))
    assert (folder / "run.json").read_bytes() == before


def test_a_run_of_an_earlier_version_goes_on(folder: Path, plan: Config, data: Data):
    """A setting that run.json does not have yet was at its default; with another value it is refused."""
    run = runs.read_run(folder)
    older = {name: value for name, value in run.config.items() if name not in ("share", "whole_words", "tokenizer")}
    runs.write_run(replace(run, config=older))
    write_card(new_card(folder, plan, data.corpus))
    with pytest.raises(ConfigError, match="started with share=all, received none"):
        write_card(new_card(folder, replace(plan, share="none"), data.corpus))


def test_a_note_of_the_family_is_in_the_card(plan: Config, data: Data, tmp_path: Path):
    """What the checkpoints do not say themselves."""
    write_card(new_card(tmp_path / "own", replace(plan, share="ffn"), data.corpus))
    assert "share their feed-forward network alone" in runs.read_run(tmp_path / "own").note


def test_the_grid_of_checkpoints_may_always_change(folder: Path, plan: Config, data: Data):
    """Even where the rate decays; steps passed before keep their place in the plan, and no earlier one is added."""
    at_step(folder, 70)
    found = write_card(new_card(folder, replace(plan, save_every=5), data.corpus))
    assert found.planned_steps == (0, 1, 2, 4, 8, 16, 20, 40, 60, 75, 80, 85, 90, 95, 100)
