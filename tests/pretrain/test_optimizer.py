"""LAMB and its schedule against the original's formulas, written out slowly."""

from dataclasses import replace

import keras
import numpy as np
import pytest
from keras import ops

from pretrain.config import preset
from pretrain.optimizer import Lamb, WarmupDecay


def slow_lamb(weights: dict[str, np.ndarray], steps: list[dict[str, np.ndarray]], rate: float) -> dict[str, np.ndarray]:
    """The original's update, in double precision, one array at a time."""
    weights = {name: array.astype(np.float64) for name, array in weights.items()}
    m = {name: np.zeros_like(array) for name, array in weights.items()}
    v = {name: np.zeros_like(array) for name, array in weights.items()}
    for gradients in steps:
        norm = np.sqrt(sum((g.astype(np.float64) ** 2).sum() for g in gradients.values()))
        for name, gradient in gradients.items():
            g = gradient.astype(np.float64) / max(norm, 1.0)
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.999 * v[name] + 0.001 * g * g
            update = m[name] / (np.sqrt(v[name]) + 1e-6)
            ratio = 1.0
            if name == "kernel":
                update = update + 0.01 * weights[name]
                ratio = np.linalg.norm(weights[name]) / np.linalg.norm(update)
            weights[name] = weights[name] - rate * ratio * update
    return weights


def test_lamb_follows_the_original_over_several_steps():
    """Kernels are decayed and adapted, biases are not, gradients are clipped by their global norm."""
    rng = np.random.default_rng(0)
    weights = {"kernel": rng.normal(size=(4, 5)).astype(np.float32), "bias": rng.normal(size=5).astype(np.float32)}
    steps = [
        {name: rng.normal(size=array.shape).astype(np.float32) for name, array in weights.items()} for _ in "abcde"
    ]
    variables = {name: keras.Variable(array, name=name) for name, array in weights.items()}
    optimizer = Lamb(0.02)
    for gradients in steps:
        optimizer.apply(list(map(ops.convert_to_tensor, gradients.values())), list(variables.values()))
    for name, expected in slow_lamb(weights, steps, 0.02).items():
        np.testing.assert_allclose(ops.convert_to_numpy(variables[name]), expected, rtol=2e-5, atol=1e-6)


def test_the_rate_warms_up_to_its_peak_and_decays_to_zero():
    """Linear up over warmup_steps; then peak x (1 - step / steps)."""
    schedule = WarmupDecay(replace(preset("tiny"), steps=100, warmup_steps=10, learning_rate=0.5))
    found = [float(schedule(step)) for step in (0, 5, 10, 50, 100, 120)]
    assert found == pytest.approx([0.0, 0.25, 0.45, 0.25, 0.0, 0.0], abs=1e-6)
