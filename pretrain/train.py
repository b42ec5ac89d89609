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


def train(run: Run, config: Config, data: Data, writer: Any = None, devices: Devices = ONE_DEVICE) -> None:
    """Pretrain a run (or resume it) up to `config.steps`, writing log.jsonl, checkpoints and states as it goes.

    `writer` is a TensorBoard SummaryWriter or None. A run that is killed at any time and resumed ends with the same
    weights: a state is saved every `state_every` updates, and everything after the last state is computed again. A run
    with `minutes` ends by the clock instead, and so with different weights each time.
    """
    grid, family = set(run.planned_steps), FAMILIES[config.family]
    state = latest_state(run.path)
    clock = ClockDecay(config, seconds_of(state) if state else 0.0) if config.minutes else None
    learning_rate = clock or schedule(config)
    if clock and devices.hosts > 1:
        raise ConfigError("Hosts have clocks of their own: train on several hosts with --steps, without minutes.")
    with devices.scope():
        model = build(config)
    evaluator = HeldoutEvaluator(model, list(data.heldout()), data.collator.count_key)
    progress = restore(model, state) if state else _start(model, run, config)
    first = run.first_step  # the settings count updates from this step
    log = Log(run.path / "log.jsonl", after=progress.step, writer=writer, first=first)

    def save_and_measure() -> None:
        if progress.step > first or not run.origin:  # a continued run already has its first checkpoint
            write_checkpoint(model, config, run.path, _counts(run, progress))
        _measure(_counts(run, progress), evaluator, log, devices)

    if progress.step == first:
        save_and_measure()
    means = Means(family.objectives(config))
    bar = tqdm(total=first + config.steps, initial=progress.step, unit="step", desc=run.name, dynamic_ncols=True)
    row_started, row_tokens = perf_counter(), progress.tokens or 0

    def log_updates() -> None:  # those since the last row
        nonlocal row_started, row_tokens
        row, tokens = means.take(), progress.tokens or 0
        _check_finite(row, progress.step)
        speed = (tokens - row_tokens) / (perf_counter() - row_started)
        row_started, row_tokens = perf_counter(), tokens
        extra_values = {"learning_rate": rate, "tokens_per_second": round(speed, 1), "time": round(time())}
        log.add("train", _counts(run, progress), row, **extra_values)
        bar.set_postfix(_describe(row, means.objectives[0], speed), refresh=False)

    processes = spare_cores() if on_accelerator() else 0
    for batch in prefetch(data, progress.step - first, config.steps, processes):
        if clock and clock.is_over and progress.step > first:  # at least one update
            break
        rate = float(learning_rate(progress.step - first))
        if clock:
            model.optimizer.learning_rate = rate
        weights = family.loss_weights(config, progress.step - first)
        means.add(devices.update(model, batch, weights), batch.ids.shape[1])
        progress = progress.after(batch)
        step = progress.step
        save_state_now = step % config.state_every == 0 or step in grid
        if step % config.log_every == 0 or save_state_now:
            log_updates()
        if step in grid:
            save_and_measure()
        if save_state_now:
            save_state(model, run.path, progress, seconds=clock.seconds if clock else 0.0)
            row_started = perf_counter()  # measuring and saving are no part of a row's speed
        bar.update()
    if means.sums:  # the clock ended the run between two rows
        log_updates()
    bar.close()
    if clock and progress.step - first < config.steps:  # its time is over, and this step is the last
        if progress.step not in grid:
            save_and_measure()
        save_state(model, run.path, progress, seconds=60 * config.minutes)
        _record_end(run, progress.step)


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


def _describe(row: dict[str, Any], objective: str, speed: float) -> dict[str, str]:
    """Return the loss, the accuracy of an objective and the tokens per second, for the progress bar."""
    loss, accuracy = f"{row['loss']:.3f}", f"{row[f'{objective}_accuracy']:.3f}"
    return {"loss": loss, objective: accuracy, "tokens/s": f"{speed:,.0f}"}


def _check_finite(row: dict[str, Any], step: int) -> None:
    """Raise ConfigError if training diverged, before the row is written."""
    if not isfinite(row["loss"]):
        raise ConfigError(
            f"The training loss is not finite by update {step:,}; start a run with a smaller learning_rate. What was "
            "written before is kept."
        )


def _counts(run: Run, progress: Progress) -> Progress:
    """Return the progress to write to files, without counts if the run continues from one whose counts are unknown."""
    unknown = run.origin and run.origin.step and not run.origin.tokens
    return Progress(progress.step, None, None) if unknown else progress


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


def _measure(progress: Progress, evaluator: HeldoutEvaluator, log: Log, devices: Devices) -> None:
    if not evaluator.heldout:
        return
    with devices.measuring():
        means, extra_values = heldout_entry(evaluator)
    log.add("heldout", progress, means, **extra_values)
