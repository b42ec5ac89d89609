"""The tensors of a checkpoint as parts of a network: their shapes must match config.json, and all must be used."""

from collections.abc import Sequence

import torch
from torch import Tensor

from embryo_core import runs
from embryo_core.engine.kernels import Linear, copy_float32, keep_linear, make_linear
from embryo_core.engine.network import Norm
from embryo_core.engine.tensor_files import broken, check_finite, read_tensors
from embryo_core.types import Checkpoint

MAX_LISTED_NAMES = 5  # tensors that an error names


class Stored:
    """The tensors of a checkpoint; each is taken once, with its expected shape."""

    def __init__(self, checkpoint: Checkpoint, unread: Sequence[str], epsilon: float, mapped: bool = False):
        """Read the tensors; if `mapped`, weights stay in their file.

        Tensors whose names contain one of `unread` need not be taken.
        """
        self.checkpoint = checkpoint
        self._unread, self._epsilon = unread, epsilon
        self._mapped = mapped
        self._missing: list[str] = []
        self._file = runs.weights_file(checkpoint)[0].name
        self._left = read_tensors(checkpoint)

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def has_prefix(self, prefix: str) -> bool:
        """Return whether the name of a tensor begins with this prefix."""
        return any(name.startswith(prefix) for name in self._left)

    def take(self, name: str, *shape: int) -> Tensor:
        """Return the tensor of that name, or zeros if it is missing, in which case `finish` raises.

        Raises BrokenCheckpoint if it has another shape, or a number that is not finite.
        """
        tensor = self._left.pop(name, None)
        if tensor is None:
            self._missing.append(name)
            return torch.zeros(shape)
        if tensor.shape != shape:
            problem = f"{name} has the shape {list(tensor.shape)}, by config.json {list(shape)}"
            raise broken(self.checkpoint, f"{self._file} cannot be read with its config.json ({problem})")
        check_finite(self.checkpoint, name, tensor)
        return tensor

    def linear(self, out: int, into: int, *names: str, transposed: bool = False) -> Linear:
        """Return the linear map of that name, or of several concatenated; `transposed` weights are stored [in, out]."""
        shape = (into, out) if transposed else (out, into)
        weights = [self.take(f"{name}.weight", *shape) for name in names]
        biases = [self.take(f"{name}.bias", out) for name in names]
        weight, bias = (weights[0], biases[0]) if len(names) == 1 else (torch.cat(weights), torch.cat(biases))
        return self.to_linear(weight, bias, transposed)

    def to_linear(self, weight: Tensor, bias: Tensor, transposed: bool = False, shared: bool = False) -> Linear:
        """Return the linear map of tensors that were already taken; `shared` as for `make_linear`."""
        if self._mapped:
            return keep_linear(weight, bias, transposed)
        return make_linear(weight.t() if transposed else weight, bias, shared)

    def norm(self, name: str, size: int) -> Norm:
        """Return the layer normalisation of that name."""
        gain, bias = self.take(f"{name}.weight", size), self.take(f"{name}.bias", size)
        return Norm(copy_float32(gain), copy_float32(bias), self._epsilon)

    def finish(self) -> None:
        """Raise BrokenCheckpoint if a tensor was missing or was not taken."""
        unexpected = [name for name in self._left if not any(fragment in name for fragment in self._unread)]
        if self._missing or unexpected:
            raise broken(
                self.checkpoint,
                f"{self._file} lacks {_list_names(self._missing)}; unexpected: {_list_names(unexpected)}",
            )


def _list_names(names: Sequence[str]) -> str:
    """Return the first names and the number of further ones, as text."""
    remainder = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    return f"{', '.join(names[:MAX_LISTED_NAMES])}{remainder}" if names else "nothing"
