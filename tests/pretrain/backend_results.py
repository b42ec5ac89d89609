"""Results of Muon and of dropout with the Keras backend of this process: its main program writes them to a folder.

It imports no test, so that a process whose backend is torch loads no TensorFlow.
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np

from pretrain.layers import Dropout
from pretrain.optimizer import Muon

SHAPES = {
    "encoder/wide/kernel": (4, 6),
    "encoder/tall/kernel": (6, 4),
    "encoder/square/kernel": (4, 4),
    "encoder/other/kernel": (4, 4),
    "encoder/bias": (5,),
    "head/classifier/kernel": (4, 3),
    "encoder/embeddings/word/embeddings": (7, 4),
}
RATE, DECAY, BETA_1, BETA_2, STEPS = 0.02, 0.3, 0.9, 0.98, 4
Arrays = dict[str, np.ndarray]

NUMBERS, UPDATES = 64, 3  # of each draw of dropout


def random_arrays(seed: int) -> Arrays:
    """Return a random array for each variable of Muon's test, in double precision."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) for name, shape in SHAPES.items()}


def write_muon(file: Path, dtype: str) -> None:
    """Write the weights after four updates by `Muon`, computed in this dtype with the Keras backend of this process."""
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy(dtype)
    try:
        variables = {}
        for name, array in random_arrays(0).items():
            variables[name] = keras.Variable(array, dtype=dtype, name=name.replace("/", "."))
            variables[name]._path = name
        built_optimizer = Muon(
            RATE,
            adam_beta_1=BETA_1,
            adam_beta_2=BETA_2,
            adam_weight_decay=DECAY,
            weight_decay=DECAY,
            epsilon=1e-6,
            exclude_layers=["classifier"],
        )
        built_optimizer.exclude_from_weight_decay([variables["encoder/bias"]])
        built_optimizer.build([*variables.values()])
        for step in range(1, STEPS + 1):
            gradients = [keras.ops.convert_to_tensor(array, dtype) for array in random_arrays(step).values()]
            built_optimizer.apply(gradients, [*variables.values()])
        np.savez(file, **{name: keras.ops.convert_to_numpy(variable) for name, variable in variables.items()})
    finally:
        keras.config.set_dtype_policy(policy)


def write_resumed(file: Path) -> None:
    """Write three draws of a dropout layer, those of one resumed from its state, and the count in that state."""

    def draw(layer: Dropout) -> list[list[float]]:
        ones = np.ones(NUMBERS, np.float32)
        return [keras.ops.convert_to_numpy(layer(ones, training=True)).tolist() for _ in range(UPDATES)]

    keras.utils.set_random_seed(1)
    layer = Dropout(0.5)
    draw(layer)
    state = keras.ops.convert_to_numpy(layer.seeds.state).copy()
    going_on = draw(layer)
    keras.utils.set_random_seed(1)
    again = Dropout(0.5)
    again.seeds.state.assign(state)
    file.write_text(json.dumps([going_on, draw(again), int(state[1])]))


if __name__ == "__main__":
    write_muon(Path(sys.argv[1]) / "muon.npz", "float64")
    write_resumed(Path(sys.argv[1]) / "dropout.json")
