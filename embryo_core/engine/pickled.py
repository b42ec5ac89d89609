"""Tensors of a file that torch pickled: read with `weights_only`, and refused before where it names anything else.

What `weights_only` allows is more than tensors: a small file may ask it for an array of any length.
"""

import pickletools
from collections.abc import Iterator
from pathlib import Path
from pickle import UnpicklingError
from typing import IO
from zipfile import ZipFile, is_zipfile

import torch
from torch import Tensor

LEGACY = 5  # pickles, one after the other, at the start of what torch wrote before version 1.6
NAMED = frozenset({"GLOBAL", "INST", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4"})  # opcodes that name what is to be called
REBUILT = frozenset({"_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_parameter"})
DTYPES = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
)  # those of weight_files.BYTES


def load_pickled(path: Path) -> dict[str, Tensor]:
    """Tensors by name; no code in the file is run.

    Raises UnpicklingError for a file that holds more than tensors in plain containers, ValueError for tensors that
    weights do not have, and whatever torch raises for a damaged one.
    """
    with path.open("rb") as file:
        _check_names(file)
    found = torch.load(path, map_location="cpu", weights_only=True)
    tensors = {name: tensor for name, tensor in found.items() if isinstance(tensor, Tensor)}
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise ValueError(f"a tensor is named {name!r}, which is no text")  # noqa: TRY004, the file is wrong
        if not _is_plain(tensor):
            kind = "quantised" if tensor.is_quantized else f"{tensor.layout}, {tensor.dtype}".replace("torch.", "")
            raise ValueError(f"{name} is a tensor that is not read: {kind} on {tensor.device}")
    if sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()) > 2 * path.stat().st_size:
        # a view may repeat a few numbers; tied tensors are twice
        raise ValueError("its tensors are larger than the file")
    return tensors


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor has its numbers in memory, of a type that safetensors are read in too."""
    return (
        tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and not tensor.is_quantized
        and tensor.dtype in DTYPES
    )


def _check_names(file: IO[bytes]) -> None:
    """Raise UnpicklingError where a pickle in the file names anything but tensors, their storages and types."""
    for pickled in _pickles(file):
        for opcode, argument, _ in pickletools.genops(pickled):
            if opcode.name in NAMED and not (opcode.name == "GLOBAL" and _is_of_tensors(*argument.split(" ", 1))):
                raise UnpicklingError(f"names {argument or opcode.name}")


def _pickles(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """The file, once before each of its pickles."""
    if is_zipfile(file):
        with ZipFile(file) as archive:
            for part in archive.infolist():
                if part.filename.endswith(".pkl"):
                    with archive.open(part) as pickled:
                        yield pickled
    else:
        file.seek(0)
        for _ in range(LEGACY):
            yield file


def _is_of_tensors(module: str, name: str) -> bool:
    """Whether a name in a pickle is one that stored tensors need."""
    if module == "torch":
        return name.endswith("Storage") or name == "Size" or isinstance(vars(torch).get(name), torch.dtype)
    return (module, name) == ("collections", "OrderedDict") or (module == "torch._utils" and name in REBUILT)
