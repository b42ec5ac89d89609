"""Tests of the optimizers and their schedule against slow implementations of the formulas."""

from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from pretrain.batches import Data
from pretrain.config import Config
from pretrain.families import preset
from pretrain.model import PretrainingModel, targets
from pretrain.optimizer import WarmupDecay, optimizer
from tests.rounding import EPSILON, bound

Arrays = dict[str, np.ndarray]
SHAPES = {
    "encoder/kernel": (4, 5),
    "encoder/bias": (5,),
    "encoder/layer_norm/gamma": (5,),
    "encoder/embeddings/position/embeddings": (6, 4),
}


@pytest.fixture
def weights() -> Arrays:
    """Return a kernel, a bias, a layer norm's weight and position embeddings, about a hundred times their gradients."""
    rng = np.random.default_rng(0)
    return {name: 100 * rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}


@pytest.fixture
def gradients(weights: Arrays) -> list[Arrays]:
    """Return the gradients of five steps, whose norm is above 1."""
    rng = np.random.default_rng(1)
    return [{name: rng.normal(size=array.shape).astype(np.float32) for name, array in weights.items()} for _ in "abcde"]


def train(settings: dict, weights: Arrays, gradients: list[Arrays]) -> Arrays:
    """Return the weights after a configured optimizer has applied these gradients at a constant rate of 0.02."""
    variables = {}
    for name, array in weights.items():
        variables[name] = keras.Variable(array, name=name.replace("/", "."))
        variables[name]._path = name
    plan = {"steps": 1000, "warmup_steps": 0, "constant_steps": 1000, "learning_rate": 0.02}
    built_optimizer = optimizer(replace(preset("tiny"), **plan | settings), list(variables.values()))
    for step in gradients:
        built_optimizer.apply([ops.convert_to_tensor(step[name]) for name in variables], list(variables.values()))
    return {name: np.array(ops.convert_to_numpy(variable)) for name, variable in variables.items()}


def clip(gradients: Arrays, limit: float) -> Arrays:
    """Return the gradients in double precision, scaled down if their common norm is above the limit."""
    norm = np.sqrt(sum((g.astype(np.float64) ** 2).sum() for g in gradients.values()))
    return {name: g.astype(np.float64) * min(1.0, limit / norm) for name, g in gradients.items()}


def tolerance(weights: Arrays, expected: Arrays) -> float:
    """Return the tolerance for five updates in float32, each of which rounds a weight once and moves it by a sum.

    Clipping sums the squares of all gradients, and LAMB's ratio those of a variable and of its update; ten more
    operations compute moments, root, quotient and decay.
    """
    sizes = [array.size for array in weights.values()]
    moved = np.concatenate([(expected[name] - array).ravel() for name, array in weights.items()])
    largest = max(float(np.abs(array).max()) for array in weights.values())
    return 5 * EPSILON / 2 * largest + bound(sum(sizes) + 2 * max(sizes) + 10, moved)


def is_decayed(name: str, decay_positions: bool) -> bool:
    """Return whether a variable decays: kernels do, biases and layer norms never, position embeddings if set."""
    return name == "encoder/kernel" or (decay_positions and "position" in name)


def slow_lamb(
    weights: Arrays, gradients: list[Arrays], decay: float, beta_2: float, positions: bool, adapt: bool = True
) -> Arrays:
    """Return the weights after LAMB as in the original, in double precision; without `adapt`, after BERT's AdamW."""
    weights = {name: array.astype(np.float64) for name, array in weights.items()}
    m, v = ({name: np.zeros_like(array) for name, array in weights.items()} for _ in "mv")
    for step in gradients:
        for name, g in clip(step, 1.0).items():
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = beta_2 * v[name] + (1 - beta_2) * g * g
            update = m[name] / (np.sqrt(v[name]) + 1e-6)
            ratio = 1.0
            if name not in ("encoder/bias", "encoder/layer_norm/gamma"):
                update = update + decay * is_decayed(name, positions) * weights[name]
                ratio = np.linalg.norm(weights[name]) / np.linalg.norm(update) if adapt else 1.0
            weights[name] = weights[name] - 0.02 * ratio * update
    return weights


def slow_adamw(weights: Arrays, gradients: list[Arrays], decay: float, positions: bool) -> Arrays:
    """Return the weights by AdamW (Loshchilov and Hutter, 2019), with Adam as at the end of its paper's Section 2."""
    weights = {name: array.astype(np.float64) for name, array in weights.items()}
    m, v = ({name: np.zeros_like(array) for name, array in weights.items()} for _ in "mv")
    for t, step in enumerate(gradients, start=1):
        for name, g in clip(step, 1.0).items():
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.999 * v[name] + 0.001 * g * g
            update = np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m[name] / (np.sqrt(v[name]) + 1e-6)
            weights[name] = weights[name] - 0.02 * (update + decay * is_decayed(name, positions) * weights[name])
    return weights


@pytest.mark.parametrize(("decay", "beta_2", "positions"), [(0.01, 0.999, True), (0.3, 0.98, False)])
def test_lamb_follows_the_original(weights, gradients, decay: float, beta_2: float, positions: bool):
    """Only kernels decay and are adapted, without a limit to the ratio; gradients are clipped by their common norm."""
    settings = {"weight_decay": decay, "beta_2": beta_2, "decay_positions": positions}
    expected = slow_lamb(weights, gradients, decay, beta_2, positions)
    for name, array in train(settings, weights, gradients).items():
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=tolerance(weights, expected))


def test_lamb_does_not_decay_weights_without_gradients(weights, gradients):
    """Otherwise a head whose loss starts later in training would decay to zero before."""
    without = [{name: 0 * array for name, array in step.items()} for step in gradients]
    for name, array in train({}, weights, without).items():
        np.testing.assert_array_equal(array, weights[name])


@pytest.mark.parametrize(("decay", "positions"), [(0.01, True), (0.3, False)])
def test_adamw_of_bert_has_no_bias_correction(weights, gradients, decay: float, positions: bool):
    """As in the original, both moments are used as they are, and biases and layer norms do not decay."""
    settings = {"optimizer": "adamw_bert", "weight_decay": decay, "decay_positions": positions}
    expected = slow_lamb(weights, gradients, decay, 0.999, positions, adapt=False)
    for name, array in train(settings, weights, gradients).items():
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=tolerance(weights, expected))


@pytest.mark.parametrize("positions", [True, False])
def test_adamw_decays_all_but_biases_and_layer_norms(weights, gradients, positions: bool):
    """The reference is the update of the paper with gradient clipping; position embeddings decay only if set."""
    settings = {"optimizer": "adamw", "weight_decay": 0.3, "decay_positions": positions}
    expected = slow_adamw(weights, gradients, 0.3, positions)
    for name, array in train(settings, weights, gradients).items():
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=tolerance(weights, expected))


def test_muon_updates_have_similar_singular_values(weights, gradients):
    """A kernel's update has them near 0.2 x the root of its longer side; AdamW updates all other variables."""
    settings = {"optimizer": "muon", "weight_decay": 0.0}
    actual, by_adamw = (train(settings | other, weights, gradients[:1]) for other in ({}, {"optimizer": "adamw"}))
    change = (weights["encoder/kernel"] - actual["encoder/kernel"]) / 0.02
    sizes = np.linalg.svd(change, compute_uv=False) / (0.2 * np.sqrt(5))
    assert ((sizes > 0.5) & (sizes < 1.5)).all()
    for name in SHAPES:
        if name != "encoder/kernel":
            np.testing.assert_array_equal(actual[name], by_adamw[name])


def test_muon_leaves_the_last_layer_of_a_head_to_adamw(weights, gradients):
    """The outputs of this layer are classes, each with its own direction."""
    name, kernel = "head/classifier/kernel", "encoder/kernel"
    own, steps = {name: weights[kernel]}, [{name: step[kernel]} for step in gradients]
    by_muon, by_adamw = (train({"optimizer": kind, "weight_decay": 0.0}, own, steps) for kind in ("muon", "adamw"))
    np.testing.assert_allclose(by_muon[name], by_adamw[name], rtol=0, atol=tolerance(own, by_adamw))


def test_muon_orthogonalizes_in_the_dtype_of_the_model(weights, gradients):
    """In bfloat16, a kernel's update differs from float32 by rounding, less than 10 %; all other updates are equal."""
    exact = train({"optimizer": "muon"}, weights, gradients[:1])
    try:
        keras.config.set_dtype_policy("mixed_bfloat16")
        rounded = train({"optimizer": "muon"}, weights, gradients[:1])
    finally:
        keras.config.set_dtype_policy("float32")
    for name in SHAPES:
        if name == "encoder/kernel":
            off = np.linalg.norm(exact[name] - rounded[name]) / np.linalg.norm(exact[name] - weights[name])
            assert 0 < off < 0.1
        else:
            np.testing.assert_array_equal(exact[name], rounded[name])


# === Clipping ===


def test_gradients_are_clipped_exactly_to_the_limit(config: Config, data: Data, model: PretrainingModel):
    """TensorFlow's gradients must be dense: in sparse ones, rows looked up twice would count twice in the norm."""
    batch = data.training(config.short_steps)
    batch_targets = targets(batch, {"masked_lm": 1.0, "sentence_order": 1.0})
    with tf.GradientTape() as tape:
        loss = model.compute_loss(y=batch_targets, y_pred=model(batch.inputs(), training=True))
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    assert all(isinstance(gradient, tf.Tensor) for gradient in gradients)
    before = [np.zeros(variable.shape, np.float32) for variable in model.trainable_variables]
    copies = [keras.Variable(array) for array in before]
    limit = 0.5 * float(np.sqrt(sum(float(tf.reduce_sum(tf.square(gradient))) for gradient in gradients)))
    keras.optimizers.SGD(1.0, global_clipnorm=limit).apply(gradients, copies)
    moved = np.sqrt(sum(float(ops.sum(ops.square(variable))) for variable in copies))
    sizes = [array.size for array in before]
    assert moved == pytest.approx(limit, rel=bound(max(sizes) + len(sizes), np.ones(1)))


# === Schedule ===


EXACT = {"rel": 0, "abs": 8 * EPSILON}  # a rate, at most 0.5, is the result of fewer than ten operations


def rates(steps: tuple[int, ...], **settings) -> list[float]:
    """Return the rates of these updates, by default with a warm-up of 10 updates to 0.5 and 100 updates in all."""
    plan = {"peak": 0.5, "power": 1.0, "warmup_steps": 10, "constant_steps": 0, "steps": 100}
    schedule = WarmupDecay(**plan | settings)
    return [float(schedule(step)) for step in steps]


def test_rate_warms_up_to_its_peak_and_decays_to_zero():
    """The rate is a tenth of the peak at first and the peak at the tenth update, then peak x (1 - step / steps)."""
    assert rates((0, 4, 9, 10, 50, 100, 120)) == pytest.approx([0.05, 0.25, 0.5, 0.45, 0.25, 0.0, 0.0], **EXACT)


def test_rate_stays_at_its_peak_until_constant_steps():
    """If constant_steps is the last step, the rate never decays."""
    assert rates((9, 10, 60, 80, 100), constant_steps=60) == pytest.approx([0.5, 0.5, 0.5, 0.25, 0.0], **EXACT)
    assert rates((50, 99), constant_steps=100) == pytest.approx([0.5, 0.5])


def test_rate_decays_with_the_configured_power():
    """With power 2, the rate is a quarter of its peak after half of the steps."""
    assert rates((50,), power=2.0) == pytest.approx([0.125])
    built_optimizer = optimizer(
        replace(preset("tiny"), decay_power=2.0, learning_rate=0.5), [keras.Variable(np.zeros(3))]
    )
    built_optimizer.iterations.assign(20)
    assert float(built_optimizer.learning_rate) == pytest.approx(0.125)
