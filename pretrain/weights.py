"""Which tensor of a checkpoint is which variable of a Keras model: read by the export, and back into a model."""

from typing import Any, NamedTuple

import keras
import numpy as np

from embryo_core.errors import BrokenCheckpoint


class Joined(NamedTuple):
    """Variables side by side, along the last axis, in one tensor of a checkpoint (GPT-2's query, key and value)."""

    variables: tuple[Any, ...]


class Stored(NamedTuple):
    """Variables of one tensor and how they are stored: the kernel of a dense layer is transposed."""

    variables: tuple[Any, ...]
    transposed: bool = False

    def array(self) -> np.ndarray:
        """Return the tensor as it is stored, in float32."""
        arrays = [np.asarray(keras.ops.convert_to_numpy(variable), np.float32) for variable in self.variables]
        array = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=-1)
        return array.T if self.transposed else array

    def assign(self, array: np.ndarray) -> None:
        """Set the variables to a stored tensor."""
        array = (array.T if self.transposed else array).astype(np.float32)
        for variable, part in zip(self.variables, np.split(array, len(self.variables), axis=-1), strict=True):
            variable.assign(part)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the stored tensor."""
        *first, last = self.variables[0].shape
        return (*first, last * len(self.variables))[:: -1 if self.transposed else 1]


def stored(modules: dict[str, Any]) -> dict[str, Stored]:
    """Return the variables of layers and single weights (see `Family.modules`) by the names of their tensors."""
    found = {}
    for name, module in modules.items():
        if isinstance(module, keras.layers.Dense):
            found |= {f"{name}.weight": Stored((module.kernel,), True), f"{name}.bias": Stored((module.bias,))}
        elif isinstance(module, keras.layers.LayerNormalization):
            found |= {f"{name}.weight": Stored((module.gamma,)), f"{name}.bias": Stored((module.beta,))}
        elif isinstance(module, keras.layers.Embedding):
            found[f"{name}.weight"] = Stored((module.embeddings,))
        else:
            found[name] = Stored(module.variables if isinstance(module, Joined) else (module,))
    return found


def assign(modules: dict[str, Any], arrays: dict[str, np.ndarray], source: Any) -> None:
    """Set every variable of `modules` to the tensor of its name.

    Raises BrokenCheckpoint, which names `source`, where a tensor is missing, is none of the model's, or has another
    shape; nothing has changed then.
    """
    variables = stored(modules)
    missing, foreign = sorted(variables.keys() - arrays.keys()), sorted(arrays.keys() - variables.keys())
    if missing or foreign:
        raise BrokenCheckpoint(f"{source} lacks {missing} and has {foreign} besides; it holds another model.")
    for name, variable in variables.items():
        if arrays[name].shape != variable.shape:
            sizes = f"{name} is {list(arrays[name].shape)}, the settings make it {list(variable.shape)}"
            raise BrokenCheckpoint(f"{source} cannot be read with these settings: {sizes}.")
    for name, variable in variables.items():
        variable.assign(arrays[name])
