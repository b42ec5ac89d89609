"""The training loop, from top to bottom: prepare, build, resume, then step, log, save until the last update."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from time import perf_counter
from typing import Any

import keras
from tqdm import tqdm

from embryo_core import runs
from embryo_core.errors import ConfigError
from embryo_core.types import Run
from pretrain.config import Config
from pretrain.data import Data
from pretrain.export import write_checkpoint
from pretrain.log import Log, Means
from pretrain.masking import MaskedBatch
from pretrain.model import Albert
from pretrain.optimizer import WarmupDecay, lamb
from pretrain.state import Progress, latest_state, restore, save_state


def train(run: Run, config: Config, data: Data, writer: Any = None) -> None:
    """Pretrain (or go on with) a run up to `config.steps`, writing log.jsonl, checkpoints and states as it goes.

    `writer` is a TensorBoard SummaryWriter or None. Killed at any moment and called again, it ends with the same
    weights: a state is saved every `state_every` updates, and what was written after the last one is written again.
    """
    grid = set(run.planned_steps)
    heldout = data.heldout()
    model = build(config, data.training(0))
    progress = Progress(0, 0, 0)
    if state := latest_state(run.path):
        progress = restore(model, state)
    log = Log(run.path / "log.jsonl", after=progress.step, writer=writer)
    if progress.step == 0:
        _checkpoint(model, config, run, progress, heldout, log)

    means = Means()
    bar = tqdm(total=config.steps, initial=progress.step, unit="step", desc=run.name, dynamic_ncols=True)
    started, tokens_before = perf_counter(), progress.tokens
    for batch in _prefetched(data.training, progress.step, config.steps):
        if progress.step == config.short_steps and config.short_steps:
            model.make_train_function(force=True)  # longer sequences: a new graph, rather than one for every shape
        means.add(model.train_on_batch(batch.inputs(), batch.targets(), return_dict=True), batch)
        progress = progress.after(batch)
        step = progress.step
        save_state_now = step % config.state_every == 0 or step in grid
        if step % config.log_every == 0 or save_state_now:
            seconds = perf_counter() - started
            speed = (progress.tokens - tokens_before) / seconds
            started, tokens_before = perf_counter(), progress.tokens
            rate = float(WarmupDecay(config)(step - 1))  # of the update just made
            row = means.take()
            log.add("train", progress, row, learning_rate=rate, tokens_per_second=round(speed, 1))
            bar.set_postfix(_postfix(row, speed), refresh=False)
        if step in grid:
            _checkpoint(model, config, run, progress, heldout, log)
        if save_state_now:
            save_state(model, run.path, progress)
        bar.update()
    bar.close()


def build(config: Config, example: MaskedBatch) -> Albert:
    """A compiled model with its weights drawn from the configuration's seed, in bfloat16 where the device has it."""
    keras.utils.set_random_seed(config.seed)
    keras.config.set_dtype_policy("mixed_bfloat16" if on_accelerator() else "float32")
    model = Albert(config)
    model(example.inputs())
    model.compile(optimizer=lamb(config), jit_compile=keras.backend.backend() != "torch")
    model.optimizer.build(model.trainable_variables)
    return model


def on_accelerator() -> bool:
    """Whether the backend computes on a GPU or TPU."""
    if keras.backend.backend() == "torch":
        import torch

        return torch.cuda.is_available()
    if keras.backend.backend() == "jax":
        import jax

        return jax.default_backend() != "cpu"
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU") or tf.config.list_physical_devices("TPU"))


def measure(model: Albert, batches: list[MaskedBatch]) -> dict[str, float]:
    """Loss and accuracy of both objectives over all predictions of these batches, without training."""
    means = Means()
    for batch in batches:
        means.add(model.test_on_batch(batch.inputs(), batch.targets(), return_dict=True), batch)
    return means.take()


def _checkpoint(
    model: Albert, config: Config, run: Run, progress: Progress, heldout: list[MaskedBatch], log: Log
) -> None:
    write_checkpoint(model, config, run.path, progress.step, progress.sequences, progress.tokens)
    if heldout:
        n_masked = int(sum(batch.weights.sum() for batch in heldout))
        n_sequences = sum(len(batch.ids) for batch in heldout)
        log.add("heldout", progress, measure(model, heldout), n_masked=n_masked, n_sequences=n_sequences)


def _prefetched(batches: Callable[[int], MaskedBatch], first: int, last: int, ahead: int = 8) -> Iterator[MaskedBatch]:
    """Batches first..last-1 in order, made by two threads a few steps ahead of their use."""
    with ThreadPoolExecutor(2, thread_name_prefix="batches") as pool:
        waiting = deque(pool.submit(batches, step) for step in range(first, min(first + ahead, last)))
        for step in range(first, last):
            batch = waiting.popleft().result()
            if step + ahead < last:
                waiting.append(pool.submit(batches, step + ahead))
            yield batch


def _postfix(row: dict[str, float], speed: float) -> dict[str, str]:
    loss, accuracy = row["loss"], row["masked_lm_accuracy"]
    return {"loss": f"{loss:.3f}", "masked_acc": f"{accuracy:.3f}", "tokens/s": f"{speed:,.0f}"}


def write_card(run: Run, config: Config) -> Run:
    """Write run.json of a new run, or check that the one on disk belongs to the same settings and corpus."""
    if not (run.path / "run.json").is_file():
        if run.path.is_file() or any(path.name != "run.json.tmp" for path in run.path.glob("*")):
            raise ConfigError(f"{run.path} exists and is not a run (it has no run.json); give another --run.")
        runs.write_run(run)
        return run
    before = runs.read_run(run.path)
    wanted = asdict(config)
    differing = [name for name in wanted if before.config.get(name) != wanted[name]]
    if differing:
        name = differing[0]
        raise ConfigError(
            f"Run '{run.name}' was started with {name}={before.config.get(name)}, received {wanted[name]}; "
            f"resume it with the first command's settings, or give another --run."
        )
    if before.corpus != run.corpus or before.tokenizer_sha256 != run.tokenizer_sha256:
        raise ConfigError(
            f"Run '{run.name}' was started on another corpus or tokenizer than the one received; "
            "resume it with the first command's --corpus, or give another --run."
        )
    return before
