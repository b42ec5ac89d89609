"""Time an ELECTRA's update on torch with our Muon and with Keras's, which updates one variable after the other.

The model is as large as the reference ELECTRA (docs/reference-runs.md) and shares no layers, so that it has 274
variables. Both train it on batches from one cycle, in turns within one run; the ratio of each round is taken, and its
median printed. The seconds of the optimizer alone are printed next to the seconds of whole updates. Usage:
python -m benchmarks.muon [ROUNDS [THREADS]]
"""

import os
import sys
from dataclasses import replace
from itertools import cycle
from statistics import median
from time import perf_counter
from typing import Any
from unittest.mock import patch

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch

from benchmarks.training import Step, batches, seconds_per_step
from pretrain.families import FAMILIES, preset
from pretrain.optimizer import Muon
from pretrain.train import build

SETTINGS: dict[str, Any] = {
    "hidden_size": 192,
    "num_hidden_layers": 8,
    "num_attention_heads": 6,
    "intermediate_size": 768,
    "vocab_size": 8000,
    "embedding_size": 128,
    "generator_size": 0.5,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "masked_share": 0.3,
    "optimizer": "muon",
    "batch_size": 32,
    "sequence_length": 64,
    "compute_dtype": "float32",
}
OPTIMIZERS = {"ours": Muon, "Keras": keras.optimizers.Muon}  # name -> optimizer
UPDATES_PER_TURN = 4  # updates in one turn


class TimedApply:
    """A replacement of an optimizer's `apply` that adds up the seconds of its calls."""

    def __init__(self, optimizer: keras.optimizers.Optimizer):
        self.seconds, self._apply = 0.0, optimizer.apply
        optimizer.apply = self

    def __call__(self, *gradients_and_variables: list) -> None:
        start = perf_counter()
        self._apply(*gradients_and_variables)
        self.seconds += perf_counter() - start


def main() -> int:
    """Print the median seconds of both and the median ratio; return 1 if ours is not faster."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    torch.set_num_threads(int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count())
    config = replace(preset("electra-small"), **SETTINGS)
    loss_weights = FAMILIES[config.family].loss_weights(config, 0)
    endless_batches = cycle(batches(config, config.batch_size, config.sequence_length))
    steps: dict[str, Step] = {}
    optimizers: dict[str, TimedApply] = {}
    for name, optimizer_class in OPTIMIZERS.items():
        with patch("pretrain.optimizer.Muon", optimizer_class):
            model = build(config)
        optimizers[name] = TimedApply(model.optimizer)
        steps[name] = lambda model=model: model.train(next(endless_batches), loss_weights)["masked_lm_loss"]
        assert np.isfinite(steps[name]()), f"{name} does not train"  # the first update compiles the functions
    update_seconds, optimizer_seconds = ({name: [] for name in OPTIMIZERS} for _ in "ab")
    for _ in range(rounds):
        for name, step in steps.items():
            optimizers[name].seconds = 0.0
            update_seconds[name].append(seconds_per_step(step, UPDATES_PER_TURN))
            optimizer_seconds[name].append(optimizers[name].seconds / UPDATES_PER_TURN)
    print(f"{torch.get_num_threads()} threads, {len(model.trainable_variables)} variables, {rounds} rounds in turns")
    for label, seconds in (("an update", update_seconds), ("the optimizer alone", optimizer_seconds)):
        ratios = sorted(theirs / ours for ours, theirs in zip(*seconds.values(), strict=True))
        medians = ", ".join(f"{name} {median(values):.2f} s" for name, values in seconds.items())
        print(f"{label}: {medians}; ratio {median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    return int(median(update_seconds["ours"]) >= median(update_seconds["Keras"]))


if __name__ == "__main__":
    sys.exit(main())
