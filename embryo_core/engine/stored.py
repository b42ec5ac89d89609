"""The tensors of a checkpoint as they are stored: safetensors, or torch's own files, of which nothing is unpickled."""

from collections.abc import Collection
from pathlib import Path
from pickle import UnpicklingError
from zipfile import BadZipFile

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from embryo_core import runs
from embryo_core.engine.pickled import load_pickled
from embryo_core.errors import BrokenCheckpoint, first_line
from embryo_core.runs.reading import refusal
from embryo_core.types import Checkpoint

WRAPPERS = ("module.", "_orig_mod.")  # before every name where a model was saved as torch had wrapped it for training
OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}  # of a layer normalisation, in models converted long ago
UNREADABLE = (
    OSError,
    SafetensorError,
    UnpicklingError,
    BadZipFile,
    RuntimeError,
    ValueError,
    EOFError,
    KeyError,
    AttributeError,
    MemoryError,
)


def read_tensors(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Tensors by name, in memory or mapped from the file; names as transformers has them today.

    The file has to be verified before (`runs.verify`), and the numbers are checked by their reader (`check_finite`).
    Raises BrokenCheckpoint where it cannot be read.
    """
    path, within = runs.weights_file(checkpoint)
    tensors = read_file(path, within)
    wrapper = _wrapper(tensors)
    return {_name_of_today(name.removeprefix(wrapper)): tensor for name, tensor in tensors.items()}


def read_file(path: Path, within: Path) -> dict[str, Tensor]:
    """Tensors of one file by the names in it, in memory or mapped. Raises BrokenCheckpoint."""
    try:
        return load_pickled(path) if runs.is_pickled(path, within) else load_file(path)
    except UNREADABLE as reason:
        pickled = isinstance(reason, UnpicklingError)  # torch then says how to run its code
        why = "it holds more than tensors, or is damaged" if pickled else first_line(reason)
        raise refusal(path, f"cannot be read ({why})", BrokenCheckpoint) from None


def check_finite(checkpoint: Checkpoint, name: str, tensor: Tensor) -> None:
    """Raise BrokenCheckpoint where a number of this tensor is NaN or infinite."""
    if not is_finite(tensor):
        file, _ = runs.weights_file(checkpoint)
        raise broken(checkpoint, f"{runs.shown(file.name)} has a number in {name} that is not finite")


def is_finite(tensor: Tensor) -> bool:
    """Whether every number of a tensor is finite; NaN is both bounds, and this is faster than isfinite of all."""
    return tensor.numel() == 0 or all(bound.isfinite() for bound in tensor.aminmax())


def broken(checkpoint: Checkpoint, what: str) -> BrokenCheckpoint:
    """The error for a checkpoint with something wrong."""
    return BrokenCheckpoint(f"{checkpoint.path}: {what}; train this step again or delete that folder.")


def _wrapper(names: Collection[str]) -> str:
    """What torch's wrappers put before each of these names."""
    for one in WRAPPERS:
        if names and all(name.startswith(one) for name in names):
            return one + _wrapper([name.removeprefix(one) for name in names])
    return ""


def _name_of_today(name: str) -> str:
    for old, new in OLD_NAMES.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name
