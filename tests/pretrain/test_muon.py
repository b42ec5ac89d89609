"""Tests of Muon against its formula, one array at a time; torch, which updates them together, runs in a subprocess."""

from pathlib import Path

import numpy as np

from tests.pretrain.backend_results import BETA_1, BETA_2, DECAY, RATE, SHAPES, STEPS, Arrays, random_arrays, write_muon

BY_ADAMW = ("bias", "classifier", "embeddings")


def slow_muon() -> Arrays:
    """Return the weights after the same updates by the formula, one array at a time."""
    weights, m, v = random_arrays(0), dict.fromkeys(SHAPES, 0.0), dict.fromkeys(SHAPES, 0.0)
    for t in range(1, STEPS + 1):
        for name, g in random_arrays(t).items():
            decayed = weights[name] * (1 - RATE * DECAY * (name != "encoder/bias"))
            if any(part in name for part in BY_ADAMW):
                m[name] = BETA_1 * m[name] + (1 - BETA_1) * g
                v[name] = BETA_2 * v[name] + (1 - BETA_2) * g * g
                update = np.sqrt(1 - BETA_2**t) / (1 - BETA_1**t) * m[name] / (np.sqrt(v[name]) + 1e-6)
            else:
                m[name] = 0.95 * m[name] + g
                update = 0.2 * np.sqrt(max(g.shape)) * slow_orthogonal(g + 0.95 * m[name])
            weights[name] = decayed - RATE * update
    return weights


def slow_orthogonal(x: np.ndarray) -> np.ndarray:
    """Scale x to norm 1, then replace every singular value s by 3.4445 s - 4.775 s^3 + 2.0315 s^5, five times."""
    left, sizes, right = np.linalg.svd(x / (np.linalg.norm(x) + 1e-7), full_matrices=False)
    for _ in range(5):
        sizes = 3.4445 * sizes - 4.775 * sizes**3 + 2.0315 * sizes**5
    return left @ np.diag(sizes) @ right


def test_muon_follows_the_formula_with_tensorflow(tmp_path: Path):
    """Muon updates matrices, AdamW all other and excluded variables; weight decay skips those excluded from it."""
    write_muon(tmp_path / "weights.npz", "float32")
    compare(tmp_path / "weights.npz", 1e-5)


def test_muon_follows_the_formula_with_torch(by_torch: Path):
    """Torch updates all matrices together, and all other variables together."""
    compare(by_torch / "muon.npz", 1e-6)  # Keras keeps the learning rate in float32


def compare(file: Path, tolerance: float) -> None:
    """Check that the file has the weights of the formula; four updates move each weight by about 0.04."""
    expected = slow_muon()
    with np.load(file) as arrays_of_file:
        for name in SHAPES:
            np.testing.assert_allclose(arrays_of_file[name], expected[name], rtol=0, atol=tolerance, err_msg=name)
