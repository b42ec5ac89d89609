"""Tests of the dropout layer: equal to Keras's on one device, and with a different pattern on each replica."""

import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from pretrain.layers import Dropout
from tests.pretrain.backend_results import NUMBERS, UPDATES

REPOSITORY = Path(__file__).resolve().parents[2]
ON_REPLICAS = f"""
import json
import keras
import tensorflow as tf
from pretrain.layers import Dropout

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(tf.config.list_logical_devices("CPU"))
keras.utils.set_random_seed(1)
with strategy.scope():
    layer = Dropout(0.5)

@tf.function
def update():
    return strategy.run(layer, args=(tf.ones([{NUMBERS}]),), kwargs=dict(training=True))

drawn = [strategy.experimental_local_results(update()) for _ in range({UPDATES})]
print(json.dumps([[part.numpy().tolist() for part in parts] for parts in drawn]))
"""


@pytest.mark.slow
def test_replicas_drop_different_numbers():
    """The first replica drops what one device would, the second differs, and both draw anew at each update."""
    environment = os.environ | {"KERAS_BACKEND": "tensorflow", "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", ON_REPLICAS]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = np.moveaxis(json.loads(done.stdout), 1, 0)  # [UPDATES, NUMBERS] each
    keras.utils.set_random_seed(1)
    layer = Dropout(0.5)
    alone = [np.array(layer(np.ones(NUMBERS, np.float32), training=True)) for _ in range(UPDATES)]
    np.testing.assert_array_equal(first, alone)
    patterns = np.concatenate([first, second])
    assert len(np.unique(patterns, axis=0)) == 2 * UPDATES


def test_resumed_layer_drops_same_numbers(by_torch: Path):
    """The backend is torch, with which Keras's generators without a given seed do not count their draws."""
    going_on, resumed, count = json.loads((by_torch / "dropout.json").read_text())
    assert going_on == resumed and count == UPDATES and len({tuple(draw) for draw in going_on}) == UPDATES


def test_dropout_equals_that_of_keras():
    """On one device, the same seed drops the same numbers as in Keras's layer, and scales the others equally."""
    x = np.arange(1, 101, dtype=np.float32)
    outputs = []
    for kind in (Dropout, keras.layers.Dropout):
        keras.utils.set_random_seed(7)
        layer = kind(0.2)
        outputs.append([np.array(layer(x, training=True)) for _ in range(2)])
    np.testing.assert_array_equal(*outputs)


def test_compiled_dropout_is_random_and_repeatable():
    """XLA draws with another generator; updates are independent, and the same state gives the same draw."""
    layer = Dropout(0.2)
    state = np.array(layer.seeds.state)
    update = tf.function(lambda: layer(tf.ones([100, 200]), training=True), jit_compile=True)
    first, second = update().numpy(), update().numpy()
    for drawn in (first, second):
        assert abs((drawn == 0).mean() - 0.2) < 0.015  # five standard deviations of a share of 20,000
        np.testing.assert_allclose(drawn[drawn > 0], 1.25)
    assert 0.6 < (first == second).mean() < 0.76  # independent draws agree in 0.2² + 0.8²
    layer.seeds.state.assign(state)
    np.testing.assert_array_equal(update().numpy(), first)


def test_nothing_is_dropped_outside_training():
    """The numbers are returned unchanged, and no draw is counted."""
    layer = Dropout(0.5)
    before = np.array(layer.seeds.state)
    x = np.arange(10, dtype=np.float32)
    np.testing.assert_array_equal(layer(x), x)
    np.testing.assert_array_equal(np.array(layer.seeds.state), before)
