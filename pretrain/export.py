"""Convert Keras weights to the Hugging Face layout and back: checkpoint folders for the family's from_pretrained."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
from safetensors.numpy import load_file, save

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint
from embryo_core.types import Checkpoint, Run
from pretrain.config import Config
from pretrain.families import FAMILIES
from pretrain.model import PretrainingModel
from pretrain.state import Progress

# === Tensors ===


class StoredTensor(NamedTuple):
    """The variables that form one stored tensor: concatenated along their last axis, and transposed if so marked."""

    variables: tuple[Any, ...]
    transposed: bool = False

    def array(self) -> np.ndarray:
        """Return the stored tensor, in float32."""
        arrays = [np.asarray(keras.ops.convert_to_numpy(variable), np.float32) for variable in self.variables]
        array = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=-1)
        return array.T if self.transposed else array

    def assign(self, array: np.ndarray) -> None:
        """Set the variables to a stored tensor."""
        array = (array.T if self.transposed else array).astype(np.float32)
        for variable, values in zip(self.variables, np.split(array, len(self.variables), axis=-1), strict=True):
            variable.assign(values)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the stored tensor."""
        *outer_sizes, inner_size = self.variables[0].shape
        return (*outer_sizes, inner_size * len(self.variables))[:: -1 if self.transposed else 1]


def stored_tensors(modules: dict[str, Any]) -> dict[str, StoredTensor]:
    """Return the stored tensors of layers and single weights (see `Family.modules`), by name."""
    tensors: dict[str, StoredTensor] = {}
    for name, module in modules.items():
        if isinstance(module, keras.layers.Dense):
            tensors |= {
                f"{name}.weight": StoredTensor((module.kernel,), True),
                f"{name}.bias": StoredTensor((module.bias,)),
            }
        elif isinstance(module, keras.layers.LayerNormalization):
            tensors |= {f"{name}.weight": StoredTensor((module.gamma,)), f"{name}.bias": StoredTensor((module.beta,))}
        elif isinstance(module, keras.layers.Embedding):
            tensors[f"{name}.weight"] = StoredTensor((module.embeddings,))
        else:
            tensors[name] = StoredTensor(module if isinstance(module, tuple) else (module,))
    return tensors


def assign(modules: dict[str, Any], arrays: dict[str, np.ndarray], source: Any) -> None:
    """Set all variables of `modules` to the arrays of the same names.

    Raises BrokenCheckpoint, which names `source`, before any change if a name or a shape does not match.
    """
    variables = stored_tensors(modules)
    missing, unexpected = sorted(variables.keys() - arrays.keys()), sorted(arrays.keys() - variables.keys())
    if missing or unexpected:
        raise BrokenCheckpoint(f"{source} lacks {missing} and has {unexpected} besides; it holds another model.")
    for name, variable in variables.items():
        if arrays[name].shape != variable.shape:
            mismatch = f"{name} is {list(arrays[name].shape)}, the settings make it {list(variable.shape)}"
            raise BrokenCheckpoint(f"{source} cannot be read with these settings: {mismatch}.")
    for name, variable in variables.items():
        variable.assign(arrays[name])


# === Checkpoints ===


def tensors(modules: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return every weight of a family's `modules` in float32 by its name in transformers, dense kernels transposed."""
    return {name: variable.array() for name, variable in stored_tensors(modules).items()}


def read_checkpoint(model: PretrainingModel, config: Config, checkpoint: Checkpoint) -> None:
    """Load a checkpoint's weights into the model. Raises BrokenCheckpoint, MissingWeights."""
    for inner, modules in _parts(model, config, checkpoint):
        assign(modules, load_file(inner.path / "model.safetensors"), inner.path)


def write_grown(
    run: Run,
    config: Config,
    start: Checkpoint,
    grow: Callable[[dict[str, np.ndarray], dict[str, StoredTensor]], dict[str, np.ndarray]],
) -> None:
    """Write a run's first checkpoint, grown from `start`. Raises MissingWeights, BrokenCheckpoint.

    `grow` maps the arrays of `start` to arrays for the stored tensors of the run's model, its second argument.
    """
    keras.config.set_dtype_policy("float32")
    model = FAMILIES[config.family].model(config)
    model.build()
    for inner, modules in _parts(model, config, start):
        assign(modules, grow(load_file(inner.path / "model.safetensors"), stored_tensors(modules)), inner.path)
    write_checkpoint(model, config, run.path, Progress(start.step, start.sequences, start.tokens))


def _models(model: PretrainingModel, config: Config) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return modules and config.json of the model in a checkpoint's folder, "", and of those in its inner folders."""
    family = FAMILIES[config.family]
    own = family.modules(model), family.huggingface_config(config)
    return {"": own} | family.inner_checkpoints(config, model)


def _parts(
    model: PretrainingModel, config: Config, checkpoint: Checkpoint
) -> Iterator[tuple[Checkpoint, dict[str, Any]]]:
    """Verify and yield each part of a checkpoint with its modules: the model, and inner ones such as a generator."""
    for name, (modules, _) in _models(model, config).items():
        inner_checkpoint = replace(checkpoint, path=checkpoint.path / name)
        runs.verify(inner_checkpoint)
        yield inner_checkpoint, modules


def write_checkpoint(model: PretrainingModel, config: Config, run_path: Path, progress: Progress) -> Path:
    """Write checkpoints/step{N}/ atomically; replace an older folder of that step."""
    path = run_path / "checkpoints" / f"step{progress.step}"
    with runs.replacing(path) as folder:
        for name, (modules, architecture) in _models(model, config).items():
            (folder / name).mkdir()
            _write(folder / name, modules, architecture, config.checkpoint_dtype, progress)
    return path


def _write(folder: Path, modules: dict[str, Any], architecture: dict[str, Any], dtype: str, progress: Progress) -> None:
    """Write weights, config.json and manifest.json, in which shared weights are counted once."""
    arrays = {name: np.ascontiguousarray(array.astype(dtype)) for name, array in tensors(modules).items()}
    parameters = sum(array.size for array in tensors({str(id(module)): module for module in modules.values()}).values())
    content = save(arrays, metadata={"format": "pt"})
    (folder / "model.safetensors").write_bytes(content)  # save_file raises no OSError on a full disk
    runs.write_json(folder / "config.json", architecture)
    runs.write_manifest(folder, progress.step, progress.sequences, progress.tokens, parameters=parameters)
