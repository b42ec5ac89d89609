"""Read the tensors of a checkpoint: safetensors, or torch's pickled files, of which no code is run.

A pickled file is read with `weights_only` and refused beforehand if it names anything but tensors: `weights_only` alone
would let a small file ask for an array of any length.
"""

import ctypes
import mmap
import pickletools
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import IO, Any, Protocol
from zipfile import BadZipFile, ZipFile, is_zipfile

import torch
from torch import Tensor

from embryo_core import runs
from embryo_core.engine.tensor_names import pickles
from embryo_core.errors import BrokenCheckpoint, first_line
from embryo_core.runs.trust import REMEDIES, refusal
from embryo_core.types import Checkpoint

WRAPPERS = ("module.", "_orig_mod.")  # prefixes of every name if the model was saved inside a training wrapper
OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}  # of layer normalisations, in models converted long ago
UNREADABLE = (
    OSError,
    UnpicklingError,
    BadZipFile,
    RuntimeError,
    ValueError,
    EOFError,
    LookupError,
    AttributeError,
    MemoryError,
)

NAMED = frozenset({"GLOBAL", "INST", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4"})  # opcodes that name an object
REBUILDERS = frozenset({"_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_parameter"})
MAX_COPIED = 2**21  # values that calls in a pickle copy; a tensor has eight
STORED_DTYPES = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
)
DTYPES = dict(zip(runs.BYTES, STORED_DTYPES, strict=True))  # by their names in safetensors

MASKS = (torch.uint8, torch.bool)  # of what a decoder may see, which old files store as attn.bias


class MappedFile(Protocol):
    """A mapped file, or its parts; `madvise` is missing on Windows."""

    def madvise(self, option: int, /) -> None:
        """Advise the system about its memory."""


def read_tensors(checkpoint: Checkpoint, mapped: list[MappedFile] | None = None) -> dict[str, Tensor]:
    """Read tensors by name, mapped from their files; names are those of today's transformers.

    A file that torch pickled before version 1.6, or on a machine of another byte order, is read into memory.

    Causal masks and frequencies of decoders, which early versions stored, are left out: no pass reads them, and a
    mask's value is minus infinity in half precision.

    With a list `mapped`, the mappings of the files are added to it; `let_go` frees the memory that they take.

    The caller verifies the file beforehand (`runs.verify`) and checks the numbers (`check_finite`). Raises
    BrokenCheckpoint if the file cannot be read, or stores a weight as integers.
    """
    tensors: dict[str, Tensor] = {}
    for path, within in runs.weights_files(checkpoint):
        tensors |= read_file(path, within) if mapped is None else _map_file(path, within, mapped)
    wrapper = _wrapper(tensors)
    found = {
        _name_of_today(name.removeprefix(wrapper)): tensor
        for name, tensor in tensors.items()
        if not _is_buffer(name, tensor)
    }
    for name, tensor in found.items():
        if name.endswith((".weight", ".bias")) and not (tensor.is_floating_point() or tensor.dtype in MASKS):
            kind = str(tensor.dtype).removeprefix("torch.")
            raise broken(checkpoint, f"{name} is stored as {kind}, and only floating types are weights")
    return found


def read_file(path: Path, within: Path) -> dict[str, Tensor]:
    """Read the tensors of one file by their stored names. Raises BrokenCheckpoint."""
    try:
        return load_pickled(path) if runs.is_pickled(path, within) else _map_file(path, within, [])
    except UNREADABLE as reason:
        pickled = isinstance(reason, UnpicklingError)  # torch's message would explain how to run its code
        why = "it holds more than tensors, or is damaged" if pickled else first_line(reason)
        raise refusal(path, f"cannot be read ({why})", BrokenCheckpoint) from None


def let_go(mapped: Iterable[MappedFile]) -> None:
    """Free the memory of mapped files; what is needed again is read again."""
    if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows, where the system does so by itself
        for mapping in mapped:
            mapping.madvise(mmap.MADV_DONTNEED)


def _map_file(path: Path, within: Path, mapped: list[MappedFile]) -> dict[str, Tensor]:
    """Map the tensors of a file that was verified, and add its mapping to those of others."""
    if runs.is_pickled(path, within):
        tensors = read_file(path, within)
        mapped += [_Storages([*tensors.values()])] if _can_map(path) else []
        return tensors
    named, start = runs.read_header(path, within)
    with path.open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)  # torch warns of memory that is read-only
    mapped.append(mapping)
    tensors = {}
    for name, tensor in named.items():
        kind = DTYPES[tensor.dtype]
        count, offset = tensor.nbytes // kind.itemsize, start + tensor.data_offsets[0]
        flat = (
            torch.frombuffer(mapping, dtype=kind, count=count, offset=offset) if count else torch.empty(0, dtype=kind)
        )
        tensors[name] = flat.reshape(tensor.shape)
    return tensors


def check_finite(checkpoint: Checkpoint, name: str, tensor: Tensor) -> None:
    """Raise BrokenCheckpoint if a number of this tensor is NaN or infinite."""
    if not is_finite(tensor):
        file, _ = runs.weights_file(checkpoint)
        raise broken(checkpoint, f"{file.name} has a number in {name} that is not finite")


def is_finite(tensor: Tensor) -> bool:
    """Return whether all numbers of a tensor are finite; looking at its bounds is fastest, and NaN would be one."""
    return tensor.numel() == 0 or all(bound.isfinite() for bound in tensor.aminmax())


def broken(checkpoint: Checkpoint, what: str) -> BrokenCheckpoint:
    """Return the error for a checkpoint that is broken in this way."""
    return BrokenCheckpoint(f"{checkpoint.path}: {what}; {REMEDIES[BrokenCheckpoint]}.")


def _wrapper(names: Collection[str]) -> str:
    """Return the prefix that training wrappers put before all of these names."""
    for one in WRAPPERS:
        if names and all(name.startswith(one) for name in names):
            return one + _wrapper([name.removeprefix(one) for name in names])
    return ""


def _is_buffer(name: str, tensor: Tensor) -> bool:
    """Return whether a decoder's file stores what its configuration already says."""
    return name.endswith((".masked_bias", "rotary_emb.inv_freq")) or (
        tensor.ndim == 4 and name.endswith((".attn.bias", ".attention.bias"))  # [1, 1, P, P]
    )


def _name_of_today(name: str) -> str:
    """Return the current name of a tensor of an old model."""
    for old, new in OLD_NAMES.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


# === Pickled files ===


def load_pickled(path: Path) -> dict[str, Tensor]:
    """Read pickled tensors by name, mapped where `_can_map`, without running code of the file.

    Raises UnpicklingError for anything but tensors in plain containers, ValueError for tensors that weights do not
    have, and whatever torch raises for a damaged file.
    """
    with path.open("rb") as file:
        _check_pickles(file)
    found = torch.load(path, map_location="cpu", weights_only=True, mmap=_can_map(path))
    tensors = {name: tensor for name, tensor in found.items() if isinstance(tensor, Tensor)}
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise ValueError(f"a tensor is named {name!r}, which is no text")  # noqa: TRY004, the fault is in the file
        if not _is_plain(tensor):
            kind = "quantised" if tensor.is_quantized else f"{tensor.layout}, {tensor.dtype}".replace("torch.", "")
            raise ValueError(f"{name} is a tensor of an unsupported kind: {kind} on {tensor.device}")
    if sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()) > 2 * path.stat().st_size:
        # views may repeat numbers; tied tensors appear twice
        raise ValueError("its tensors are larger than the file")
    return tensors


class _Storages:
    """The memory of tensors that torch mapped; it stays mapped as long as this object holds its storages."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        storages = [tensor.untyped_storage() for tensor in tensors]
        self._parts = {storage.data_ptr(): storage for storage in storages if storage.nbytes()}

    def madvise(self, option: int, /) -> None:
        """Advise the system about the pages with these parts; nothing was written to any of them."""
        advise = ctypes.CDLL(None).madvise
        for start, storage in self._parts.items():
            before = start % mmap.PAGESIZE
            advise(ctypes.c_void_p(start - before), ctypes.c_size_t(storage.nbytes() + before), option)


def _can_map(path: Path) -> bool:
    """Return whether torch maps a pickled file as it is: an archive, with numbers in this machine's byte order."""
    if not is_zipfile(path):
        return False
    with ZipFile(path) as archive:
        for part in archive.infolist():
            if part.filename.endswith("/byteorder"):
                with archive.open(part) as order:
                    return order.read(len("little")) == sys.byteorder.encode()
    return True


def _is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor is dense, in memory, and of a type that safetensors have too."""
    return (
        tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and not tensor.is_quantized
        and tensor.dtype in STORED_DTYPES
    )


def _check_pickles(file: IO[bytes]) -> None:
    """Raise UnpicklingError if a pickle in the file names or does more than tensors in containers need.

    That is tensors, their storages and types, and calls that copy few values: a call of a few bytes copies a list or
    dictionary, and may do so again and again. Values are followed as the lists of their members.
    """
    for pickled in pickles(file):
        stack: list[list] = []
        marks, memo, copied = list[int](), dict[Any, list](), 0
        for opcode, argument, _ in pickletools.genops(pickled):
            name, takes = opcode.name, opcode.stack_before
            if name in NAMED and not (name == "GLOBAL" and _is_of_tensors(*str(argument).split(" ", 1))):
                raise UnpicklingError(f"names {argument or name}")
            if name == "MARK":
                marks.append(len(stack))
            elif name.endswith("PUT") or name == "MEMOIZE":
                memo[len(memo) if argument is None else argument] = stack[-1]
            elif name.endswith("GET"):
                stack.append(memo[argument])
            else:
                start = marks.pop() if pickletools.markobject in takes else len(stack) - len(takes)
                start -= name in ("APPENDS", "SETITEMS")
                first, *others = members = stack[start:] or [[]]
                del stack[start:]
                if name in ("APPEND", "APPENDS", "SETITEM", "SETITEMS"):
                    first += others
                    members = first
                elif name in ("REDUCE", "NEWOBJ", "BUILD"):
                    copied += sum(map(len, [*others, *others[-1]]))
                    if copied > MAX_COPIED:
                        raise UnpicklingError(f"copies more than {MAX_COPIED:,} values")
                    members = first if name == "BUILD" else [value for member in others[-1] for value in member]
                stack += [members] if opcode.stack_after else []


def _is_of_tensors(module: str, name: str) -> bool:
    """Return whether stored tensors need this name."""
    if module == "torch":
        return name.endswith("Storage") or name == "Size" or isinstance(vars(torch).get(name), torch.dtype)
    return (module, name) == ("collections", "OrderedDict") or (module == "torch._utils" and name in REBUILDERS)
