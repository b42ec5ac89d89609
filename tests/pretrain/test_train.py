"""Tests of training: what a run writes and counts; a stopped or extended run ends like one planned from the start."""

import operator
import shutil
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import keras
import numpy as np
import pytest

from embryo_core import runs
from embryo_core.errors import ConfigError
from embryo_core.types import Run
from pretrain import train as training
from pretrain.batches import Data
from pretrain.card import new_card, write_card
from pretrain.config import Config
from pretrain.remeasure import settings_of
from pretrain.train import _check_finite, build, multiplies_in_bfloat16, train
from tests.pretrain.conftest import log, weights

pytestmark = pytest.mark.usefixtures("eager")  # tests/pretrain/test_killed.py trains the compiled model


def new_run(folder: Path, config: Config, data: Data) -> Run:
    """Return a run of that configuration, with its card but without checkpoints."""
    grid = config.checkpoint_steps()
    run = Run(folder.name, folder, "albert", "both", asdict(config), "0" * 64, data.corpus.fingerprint, grid, "tests")
    runs.write_run(run)
    return run


class Snapshots:
    """A replacement of SummaryWriter that copies the run after each log row, as a killed process would leave it."""

    def __init__(self, run: Path, folder: Path):
        self.run, self.folder, self.step = run, folder, 0

    def add_scalar(self, name: str, value: float, step: int) -> None:
        """Store the step of the row."""
        self.step = step

    def flush(self) -> None:
        """Copy the run after its row was written, but before the checkpoint and the state of the step."""
        shutil.copytree(self.run, self.folder / str(self.step) / "run", dirs_exist_ok=True)


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of the run at each row of its log, by step."""
    return tmp_path_factory.mktemp("snapshots")


@pytest.fixture(scope="module")
def finished_run(config: Config, data: Data, snapshots: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run of two phases that was never stopped."""
    run = new_run(tmp_path_factory.mktemp("runs") / "run", config, data)
    train(run, data, Snapshots(run.path, snapshots))
    return run


@pytest.mark.parametrize(
    ("compute_dtype", "accelerator", "processor", "policy"),
    [
        ("auto", True, False, "mixed_bfloat16"),
        ("auto", False, True, "mixed_bfloat16"),
        ("auto", False, False, "float32"),
        ("bfloat16", False, False, "mixed_bfloat16"),
        ("float32", True, True, "float32"),
    ],
)
def test_products_are_computed_in_the_configured_dtype(
    compute_dtype: str, accelerator: bool, processor: bool, policy: str, config: Config, monkeypatch: pytest.MonkeyPatch
):
    """The default is bfloat16 on an accelerator and on a processor that is faster with it, and float32 elsewhere."""
    monkeypatch.setattr("pretrain.train.on_accelerator", lambda: accelerator)
    monkeypatch.setattr("pretrain.train.multiplies_in_bfloat16", lambda: processor)
    try:
        model = build(replace(config, compute_dtype=compute_dtype))
        assert model.encoder.transformer[0].attention.query.dtype_policy.name == policy
    finally:
        keras.config.set_dtype_policy("float32")


@pytest.mark.parametrize(("backend", "used"), [("torch", True), ("tensorflow", False), ("jax", False)])
def test_processor_uses_bfloat16_only_with_torch(backend: str, used: bool, monkeypatch: pytest.MonkeyPatch):
    """The other backends are slower in bfloat16, even on a processor that multiplies it fast."""
    monkeypatch.setattr("keras.backend.backend", lambda: backend)
    monkeypatch.setattr("embryo_core.engine.device.multiplies_bfloat16", lambda: True)
    assert multiplies_in_bfloat16() is used


@pytest.mark.slow
def test_training_in_bfloat16_agrees_with_float32(finished_run: Run, config: Config, data: Data, tmp_path: Path):
    """The losses of the first update agree within bfloat16's precision, and the state is stored in float32."""
    changed = replace(config, steps=2, short_steps=1, compute_dtype="bfloat16")
    run = new_run(tmp_path / "run", changed, data)
    try:
        train(run, replace(data, config=changed))
    finally:
        keras.config.set_dtype_policy("float32")
    (first,), (expected,) = ([row for row in log(at.path) if row["split"] == "train"][:1] for at in (run, finished_run))
    precision = 2**-8  # of one rounding; a loss is a mean over many independent roundings
    assert first["masked_lm_loss"] == pytest.approx(expected["masked_lm_loss"], rel=precision)
    states = max((run.path / "state").glob("*.npz"))
    with np.load(states) as state:
        assert {state[name].dtype for name in state.files if state[name].dtype.kind == "f"} == {np.dtype(np.float32)}


def test_run_writes_its_planned_checkpoints_rows_and_states(finished_run: Run, config: Config):
    """All checkpoints are complete; the log has rows at their steps and every log_every steps; two states remain."""
    assert (
        [saved.step for saved in runs.checkpoints(finished_run)]
        == list(finished_run.planned_steps)
        == [0, 1, 2, 4, 6, 12]
    )
    for checkpoint in runs.checkpoints(finished_run):
        runs.verify(checkpoint)
    rows = runs.read_log(finished_run)
    assert [row["step"] for row in rows if row["split"] == "heldout"] == list(finished_run.planned_steps)
    assert [row["step"] for row in rows if row["split"] == "train"] == [1, 2, 3, 4, 6, 8, 9, 10, 12]
    assert {row["n_sequences"] for row in rows if row["split"] == "heldout"} == {config.heldout_sequences}
    assert {len(row["measures"]) for row in rows if row["split"] == "heldout"} == {8}
    assert [row["step"] for row in rows if "by_length" in row] == [6, 8]
    assert {path.name for path in finished_run.path.glob("state/*")} == {"step9.npz", "step12.npz"}


def test_log_counts_tokens_without_padding(finished_run: Run, config: Config, data: Data):
    """The numbers are those of the batches, and the last checkpoint has the same."""
    seen = np.cumsum([data.training(step).attention_mask.sum() for step in range(config.steps)])
    rows = [row for row in runs.read_log(finished_run) if row["split"] == "train"]
    assert [row["tokens"] for row in rows] == [seen[row["step"] - 1] for row in rows]
    last = runs.checkpoint(finished_run, config.steps)
    assert (last.tokens, last.sequences) == (seen[-1], 8 * config.steps)


@pytest.mark.parametrize("step", [pytest.param(4, marks=pytest.mark.slow), 10])
def test_run_stopped_in_either_phase_ends_the_same(
    finished_run: Run, snapshots: Path, config: Config, data: Data, step: int
):
    """The run stops between a log row and its checkpoint; weights of every step, the log and the state are equal."""
    folder = snapshots / str(step) / "run"
    assert len(weights(folder)) < len(weights(finished_run.path))
    train(runs.read_run(folder), data)
    assert weights(folder) == weights(finished_run.path)
    assert log(folder) == log(finished_run.path)
    ours, theirs = (np.load(path / "state" / f"step{config.steps}.npz") for path in (folder, finished_run.path))
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs.files) and ours.files == theirs.files


def test_extended_run_equals_one_planned_longer(config: Config, data: Data, tmp_path: Path):
    """A finished run that gets more updates has the weights and the log of a run started with that plan."""
    settings = {"short_steps": 0, "long_every": 0, "measured_sequences": 0, "heldout_sequences": 1}
    longer = replace(config, steps=3, constant_steps=2, save_every=2, **settings)
    shorter = replace(longer, steps=2, constant_steps=2)
    paths = [tmp_path / name for name in ("extended", "planned")]
    for path, plans in zip(paths, ((shorter, longer), (longer,)), strict=True):
        for plan in plans:
            train(write_card(new_card(path, plan, data.corpus)), replace(data, config=plan))
    assert weights(paths[0]) == weights(paths[1]) and len(weights(paths[0])) == 4
    assert log(paths[0]) == log(paths[1])


@pytest.mark.parametrize("loss", [np.nan, np.inf])
def test_diverged_training_is_stopped(loss: float):
    """The message names the update and suggests a smaller learning rate."""
    _check_finite({"loss": 6.9}, 50)
    with pytest.raises(ConfigError, match="not finite by update 1,050; start a run with a smaller learning_rate"):
        _check_finite({"loss": loss}, 1050)


def test_speed_is_that_of_the_updates_alone(
    config: Config, data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """An update takes a second of this clock, and measuring and saving a hundred."""
    seconds = [0]

    def taking(duration: int, function):
        def run(*arguments, **options):
            seconds[0] += duration
            return function(*arguments, **options)

        return run

    monkeypatch.setattr("pretrain.train.perf_counter", lambda: seconds[0])
    for duration, name in ((1, "Means.add"), (100, "save_state"), (100, "write_checkpoint"), (100, "heldout_entry")):
        monkeypatch.setattr(f"pretrain.train.{name}", taking(duration, operator.attrgetter(name)(training)))
    timed = replace(config, steps=6, save_every=2, state_every=3, log_every=2)
    run = new_run(tmp_path / "run", timed, data)
    train(run, replace(data, config=timed))
    rows = [{"step": 0, "tokens": 0}, *(row for row in runs.read_log(run) if row["split"] == "train")]
    for before, row in pairwise(rows):
        updates = row["step"] - before["step"]
        assert row["tokens_per_second"] == pytest.approx((row["tokens"] - before["tokens"]) / updates, abs=0.1)


# === By the clock ===


@pytest.fixture
def ticking_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the clock of a run advance by a second whenever it is read, which is twice per update."""
    seconds = iter(range(10**6))
    monkeypatch.setattr("pretrain.optimizer.perf_counter", lambda: next(seconds))


def test_timed_run_ends_by_the_clock_with_a_low_rate(config: Config, data: Data, ticking_clock: None, tmp_path: Path):
    """The step at which it ends becomes the last of its plan, and that checkpoint is measured."""
    timed = replace(config, steps=10_000, minutes=0.5, decay_minutes=0.25, save_every=0, log_every=1)
    run = new_run(tmp_path / "run", timed, data)
    train(run, replace(data, config=timed))
    rows = [row for row in log(run.path) if row["split"] == "train"]
    last = rows[-1]["step"]
    rates = {row["step"]: row["learning_rate"] / config.learning_rate for row in rows}
    assert 10 <= last <= 16 and rates[1] == pytest.approx(0.5)  # warm-up of two updates
    assert rates[4] == pytest.approx(1) and 0 < rates[last] < 0.2
    assert [rates[step] for step in range(3, last + 1)] == sorted((rates[s] for s in range(3, last + 1)), reverse=True)
    written = runs.read_run(run.path)
    assert written.planned_steps[-1] == last and written.config["steps"] == last
    assert runs.checkpoints(written)[-1].step == last and not runs.missing_steps(written)
    assert {row["step"] for row in log(run.path) if row["split"] == "heldout"} >= {0, last}


def test_last_updates_of_a_timed_run_are_logged(config: Config, data: Data, ticking_clock: None, tmp_path: Path):
    """Rows are due at powers of two, which have checkpoints; the clock ends the run between them, with a row."""
    timed = replace(config, steps=10_000, minutes=0.27, save_every=0, state_every=10_000, log_every=10_000)
    run = new_run(tmp_path / "run", timed, data)
    train(run, replace(data, config=timed))
    steps = [row["step"] for row in log(run.path) if row["split"] == "train"]
    assert steps == [1, 2, 4, runs.read_run(run.path).planned_steps[-1]] and 4 < steps[-1] < 8


def test_run_that_ends_in_its_warm_up_can_be_read(config: Config, tmp_path: Path):
    """Its card has fewer steps than its warm-up, which only a run without `minutes` refuses."""
    card = asdict(replace(config, minutes=0.5)) | {"steps": 1, "warmup_steps": 5, "short_steps": 0}
    run = Run("run", tmp_path, "albert", "both", card, "0" * 64, {}, (0, 1), "tests")
    assert (settings_of(run).steps, settings_of(run).warmup_steps) == (1, 5)
    with pytest.raises(ConfigError, match="warmup_steps 5 must be between 0 and steps 1"):
        settings_of(replace(run, config=card | {"minutes": 0.0}))


@pytest.mark.slow
def test_clock_of_a_resumed_run_continues_from_its_state(
    config: Config, data: Data, ticking_clock: None, tmp_path: Path
):
    """The seconds of both processes are added; a run whose minutes are over does not change."""
    timed = replace(config, steps=3, warmup_steps=0, short_steps=0, minutes=0.3)
    run = write_card(new_card(tmp_path / "run", timed, data.corpus))
    train(run, replace(data, config=timed))
    assert runs.checkpoints(runs.read_run(run.path))[-1].step == 3  # within its minutes
    longer = replace(timed, steps=10_000, save_every=0)
    train(write_card(new_card(run.path, longer, data.corpus)), replace(data, config=longer))
    ended = runs.read_run(run.path)
    assert 5 <= ended.planned_steps[-1] <= 9
    before = weights(run.path)
    train(ended, replace(data, config=longer))
    assert weights(run.path) == before and runs.read_run(run.path).planned_steps == ended.planned_steps
