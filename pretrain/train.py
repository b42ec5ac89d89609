"""The training loop, from top to bottom: prepare, build, resume, then step, log, save until the last update."""

from dataclasses import replace
from math import isfinite
from time import perf_counter, time
from typing import Any

import keras
from tqdm import tqdm

from embryo_core import runs
from embryo_core.errors import ConfigError
from embryo_core.types import Run
from pretrain.batches import Data, prefetch, spare_cores
from pretrain.config import Config
from pretrain.devices import ONE_DEVICE, Devices
from pretrain.export import read_checkpoint, write_checkpoint
from pretrain.families import FAMILIES
from pretrain.log import Log, Means
from pretrain.measure import HeldoutEvaluator, heldout_entry
from pretrain.model import PretrainingModel
from pretrain.optimizer import ClockDecay, optimizer, schedule
from pretrain.state import Progress, latest_state, restore, save_state, seconds_of


def train(run: Run, data: Data, writer: Any = None, devices: Devices = ONE_DEVICE) -> None:
    """Pretrain a run (or resume it) up to its configured steps, writing log.jsonl, checkpoints and states as it goes.

    `writer` is a TensorBoard SummaryWriter or None. A run that is killed at any time and resumed ends with the same
    weights: a state is saved every `state_every` updates, and everything after the last state is computed again. A run
    with `minutes` ends by the clock instead, and so with different weights each time.
    """
    config, first = data.config, run.first_step  # the settings count updates from this step
    state = latest_state(run.path)
    clock = ClockDecay(config, seconds_of(state) if state else 0.0) if config.minutes else None
    learning_rate = clock or schedule(config)
    with devices.scope():
        model = build(config)
    progress = restore(model, state) if state else _start(model, run, config)
    log = Log(run.path / "log.jsonl", after=progress.step, writer=writer, first=first)
    recorder = Recorder(model, run, data, devices, log)
    if progress.step == first:
        recorder.save_and_measure(progress)
    recorder.start_row(progress)
    bar = tqdm(total=first + config.steps, initial=progress.step, unit="step", desc=run.name, dynamic_ncols=True)
    processes = spare_cores() if on_accelerator() else 0
    for batch in prefetch(data, progress.step - first, config.steps, processes):
        updates = progress.step - first
        if clock and clock.is_over and updates:  # at least one update
            break
        rate = float(learning_rate(updates))
        if clock:
            model.optimizer.learning_rate = rate
        outcome = devices.update(model, batch, FAMILIES[config.family].loss_weights(config, updates))
        recorder.means.add(outcome, batch.ids.shape[1])
        progress = progress.after(batch)
        save_state_now = progress.step % config.state_every == 0 or progress.step in run.planned_steps
        if progress.step % config.log_every == 0 or save_state_now:
            bar.set_postfix(recorder.log_updates(progress, rate), refresh=False)
        if progress.step in run.planned_steps:
            recorder.save_and_measure(progress)
        if save_state_now:
            save_state(model, run.path, progress, seconds=clock.seconds if clock else 0.0)
            recorder.start_row(progress)  # measuring and saving are no part of a row's speed
        bar.update()
    if recorder.means.sums:  # the clock ended the run between two rows
        bar.set_postfix(recorder.log_updates(progress, rate), refresh=False)
    bar.close()
    if clock and progress.step - first < config.steps:  # its time is over, and this step is the last
        if progress.step not in run.planned_steps:
            recorder.save_and_measure(progress)
        save_state(model, run.path, progress, seconds=60 * config.minutes)
        _record_end(run, progress.step)


class Recorder:
    """Writes the checkpoints of a run, its held-out measures, and the rows of its log."""

    def __init__(self, model: PretrainingModel, run: Run, data: Data, devices: Devices, log: Log):
        self.model, self.run, self.config, self.devices, self.log = model, run, data.config, devices, log
        self.evaluator = HeldoutEvaluator(model, list(data.heldout()), data.collator.count_key)
        self.means = Means(FAMILIES[self.config.family].objectives(self.config))

    def save_and_measure(self, progress: Progress) -> None:
        """Write a checkpoint (unless a continued run copied it), and measure it on held-out text."""
        counts = self._counts(progress)
        if progress.step > self.run.first_step or not self.run.origin:
            write_checkpoint(self.model, self.config, self.run.path, counts)
        if self.evaluator.heldout:
            with self.devices.measuring():
                means, extra_values = heldout_entry(self.evaluator)
            self.log.add("heldout", counts, means, **extra_values)

    def start_row(self, progress: Progress) -> None:
        """Measure the speed of the next row from now on."""
        self._started, self._tokens = perf_counter(), progress.tokens or 0

    def log_updates(self, progress: Progress, rate: float) -> dict[str, str]:
        """Log the means of the updates since the last row; return values for the progress bar. Raises ConfigError."""
        row = self.means.take()
        _check_finite(row, progress.step)
        speed = ((progress.tokens or 0) - self._tokens) / (perf_counter() - self._started)
        self.start_row(progress)
        extra_values = {"learning_rate": rate, "tokens_per_second": round(speed, 1), "time": round(time())}
        self.log.add("train", self._counts(progress), row, **extra_values)
        objective = self.means.objectives[0]
        accuracy = f"{row[f'{objective}_accuracy']:.3f}"
        return {"loss": f"{row['loss']:.3f}", objective: accuracy, "tokens/s": f"{speed:,.0f}"}

    def _counts(self, progress: Progress) -> Progress:
        """Return the progress for files, without counts if the run continues from one whose counts are unknown."""
        origin = self.run.origin
        return Progress(progress.step, None, None) if origin and origin.step and not origin.tokens else progress


def _start(model: PretrainingModel, run: Run, config: Config) -> Progress:
    """Return the progress of a run without a state; load the checkpoint from which a continued run starts."""
    if not run.origin:
        return Progress(0, 0, 0)
    read_checkpoint(model, config, runs.checkpoint(run, run.origin.step))
    return Progress(run.origin.step, run.origin.sequences, run.origin.tokens)


def _record_end(run: Run, last_step: int) -> None:
    """Write to run.json that the clock ended a run at this step, which becomes the last of its plan."""
    planned_steps = tuple(sorted({step for step in run.planned_steps if step <= last_step} | {last_step}))
    settings = run.config | {"steps": last_step - run.first_step}
    runs.write_run(replace(run, planned_steps=planned_steps, config=settings))


def _check_finite(row: dict[str, Any], step: int) -> None:
    """Raise ConfigError if training diverged, before the row is written."""
    if not isfinite(row["loss"]):
        raise ConfigError(
            f"The training loss is not finite by update {step:,}; start a run with a smaller learning_rate. What was "
            "written before is kept."
        )


def build(config: Config) -> PretrainingModel:
    """Return a compiled model with float32 weights drawn from the configuration's seed."""
    keras.utils.set_random_seed(config.seed)
    dtype = config.compute_dtype
    if dtype == "auto":
        dtype = "bfloat16" if on_accelerator() or multiplies_in_bfloat16() else "float32"
    keras.config.set_dtype_policy("mixed_bfloat16" if dtype == "bfloat16" else "float32")
    model = FAMILIES[config.family].model(config)
    model.build()
    configured_optimizer = optimizer(config, model.trainable_variables)
    model.compile(optimizer=configured_optimizer, jit_compile=keras.backend.backend() != "torch")
    return model


def on_accelerator() -> bool:
    """Return whether the backend computes on a GPU or TPU."""
    if keras.backend.backend() == "torch":
        import torch

        return torch.cuda.is_available()
    if keras.backend.backend() == "jax":
        import jax

        return jax.default_backend() != "cpu"
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU") or tf.config.list_physical_devices("TPU"))


def multiplies_in_bfloat16() -> bool:
    """Return whether to train in bfloat16 on this CPU: only on torch, if matrix products are clearly faster.

    TensorFlow and JAX were slower in bfloat16 in all measurements (docs/benchmarks.md).
    """
    if keras.backend.backend() != "torch":
        return False
    from embryo_core.engine.device import multiplies_bfloat16

    return multiplies_bfloat16()
