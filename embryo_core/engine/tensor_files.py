"""Read the tensors of a checkpoint: safetensors, or torch's pickled files, of which no code is run.

A pickle is a program. torch's own reader runs a safe part of the language, by which a small file can still ask for an
array of any length, or for hours. Here no call is made at all: what a pickle says of its tensors is noted, and they are
then mapped from the file as those of safetensors are.
"""

import mmap
import pickletools
import re
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import ZIP_STORED, ZipFile, ZipInfo, is_zipfile

import torch
from torch import Tensor

from embryo_core import runs
from embryo_core.engine.tensor_names import Opcodes, pickles
from embryo_core.errors import BrokenCheckpoint, first_line
from embryo_core.runs.checkpoint_files import BYTES
from embryo_core.runs.trust import REMEDIES, refusal
from embryo_core.types import Checkpoint

WRAPPERS = ("module.", "_orig_mod.")  # prefixes of every name if the model was saved inside a training wrapper
OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}  # of layer normalisations, in models converted long ago
STORED_DTYPES = [getattr(torch, name) for name in "float64 float32 float16 bfloat16 int64 int32 uint8 bool".split()]
DTYPES = dict(zip(BYTES, STORED_DTYPES, strict=True))  # by their names in safetensors
MASKS = (torch.uint8, torch.bool)  # of what a decoder may see, which old files store as attn.bias

NAMED = re.compile(r"torch \w+|torch\._utils _rebuild_(tensor|tensor_v2|parameter)|collections OrderedDict")
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
STORAGE_NAMES = "Double Float Half BFloat16 Long Int Byte Bool".split()
STORAGES = {f"torch {name}Storage": kind for name, kind in zip(STORAGE_NAMES, STORED_DTYPES, strict=True)}
MORE = "it holds more than tensors, or is damaged"
Storages = dict[str, tuple[torch.dtype, int]]  # type and number of the numbers that tensors share, by key
LISTS = "EMPTY_LIST LIST EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3".split()


def read_tensors(checkpoint: Checkpoint, mapped: list[mmap.mmap] | None = None) -> dict[str, Tensor]:
    """Read tensors by name, mapped from their files; names are those of today's transformers.

    A file that torch pickled before version 1.6, or on a machine of another byte order, is read into memory.

    Causal masks and frequencies of decoders, which early versions stored, are left out: no pass reads them, and a
    mask's value is minus infinity in half precision.

    With a list `mapped`, the mappings of the files are added to it; `let_go` frees the memory that they take.

    The caller verifies the file beforehand (`runs.verify`) and checks the numbers (`check_finite`, `read_finite`).
    Raises BrokenCheckpoint if the file cannot be read, or stores a weight as integers.
    """
    tensors: dict[str, Tensor] = {}
    for path, within in runs.weights_files(checkpoint):
        tensors |= read_file(path, within, mapped)
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


def read_finite(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Read tensors as `read_tensors` does. Raises BrokenCheckpoint, also if a number is NaN or infinite."""
    tensors = read_tensors(checkpoint)
    for name, tensor in tensors.items():
        check_finite(checkpoint, name, tensor)
    return tensors


def read_file(path: Path, within: Path, mapped: list[mmap.mmap] | None = None) -> dict[str, Tensor]:
    """Read the tensors of one file by their stored names; its mapping is added to `mapped`. Raises BrokenCheckpoint."""
    try:
        with path.open("rb") as file:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)  # torch warns of memory that is read-only
            if mapped is not None:
                mapped.append(mapping)
            if runs.is_pickled(path, within):
                return _read_pickled(file, mapping)
        named, start = runs.read_header(path, within)
        return {
            name: _numbers(mapping, DTYPES[one.dtype], start + one.data_offsets[0], one.nbytes).reshape(one.shape)
            for name, one in named.items()
        }
    except BrokenCheckpoint:
        raise
    except Exception as reason:  # noqa: BLE001, a damaged file may fail anywhere
        raise refusal(path, f"cannot be read ({first_line(reason)})", BrokenCheckpoint) from None


def let_go(mapped: Iterable[mmap.mmap]) -> None:
    """Free the memory of mapped files; what is needed again is read again."""
    if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows, where the system does so by itself
        for mapping in mapped:
            mapping.madvise(mmap.MADV_DONTNEED)


def _numbers(mapping: mmap.mmap, kind: torch.dtype, start: int, nbytes: int) -> Tensor:
    """Return the numbers in these bytes of a file, mapped."""
    count = nbytes // kind.itemsize
    if not count:
        return torch.empty(0, dtype=kind)
    return torch.frombuffer(mapping, dtype=kind, count=count, offset=start)


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
    old = next((old for old in OLD_NAMES if name.endswith(old)), "")
    return name.removesuffix(old) + OLD_NAMES.get(old, "")


# === Pickled files ===


class _View(NamedTuple):
    """A tensor as it is pickled: part of the storage with this key."""

    storage: str
    offset: int
    size: list[int]
    stride: list[int]


def _read_pickled(file: IO[bytes], mapping: mmap.mmap) -> dict[str, Tensor]:
    """Read pickled tensors by name. Raises whatever a damaged file leads to, and ValueError for other content."""
    storages: Storages = {}
    archived, order = is_zipfile(file), str(sys.byteorder)
    if archived:
        (content,) = (_values(opcodes, storages) for opcodes in pickles(file))
        with ZipFile(file) as archive:
            parts = {part.filename.partition("/")[2]: part for part in archive.infolist()}
            places = {key: _place(file, parts[f"data/{key}"]) for key in storages}
            order = archive.read(parts["byteorder"]).decode() if "byteorder" in parts else order
    else:  # written by torch before version 1.6
        *_, content, keys = (_values(opcodes, storages) for opcodes in pickles(file))
        places = {key: _next_place(file, storages[key][0]) for key in keys}
    sizes = {key: count * dtype.itemsize for key, (dtype, count) in storages.items()}
    if any(places[key][1] != size for key, size in sizes.items()) or sum(sizes.values()) > len(mapping):
        raise ValueError("its numbers are not as many as they are said to be")
    numbers = {key: _numbers(mapping, dtype, places[key][0], sizes[key]) for key, (dtype, _) in storages.items()}
    if order != sys.byteorder:
        numbers = {key: _swapped(one) for key, one in numbers.items()}
    elif not archived:
        numbers = {key: one.clone() for key, one in numbers.items()}  # they may begin at an odd byte
    views = {name: view for name, view in dict(content).items() if isinstance(view, _View)}
    if not all(isinstance(name, str) for name in views):
        raise ValueError("the name of a tensor is no text")
    tensors = {name: numbers[one.storage].as_strided(one.size, one.stride, one.offset) for name, one in views.items()}
    if sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()) > 2 * len(mapping):
        raise ValueError("its tensors are larger than the file")  # tied tensors appear twice
    return tensors


def _swapped(numbers: Tensor) -> Tensor:
    """Return numbers [n] with the bytes of each in the opposite order."""
    return numbers.view(torch.uint8).view(len(numbers), numbers.itemsize).flip(1).view(numbers.dtype).view(-1)


def _place(file: IO[bytes], part: ZipInfo) -> tuple[int, int]:
    """Return where the bytes of a part of an archive begin, and how many they are. Raises ValueError."""
    if part.compress_type != ZIP_STORED:
        raise ValueError("its numbers are compressed, which torch never does")
    file.seek(part.header_offset + 26)  # two lengths of two bytes end the header of a part
    return file.tell() + 4 + sum(memoryview(file.read(4)).cast("H")), part.file_size


def _next_place(file: IO[bytes], dtype: torch.dtype) -> tuple[int, int]:
    """Return the same of the next storage in a file without parts, and move to its end."""
    size = int.from_bytes(file.read(8), "little") * dtype.itemsize
    start = file.tell()
    file.seek(start + size)
    return start, size


def _values(opcodes: Opcodes, storages: Storages) -> Any:
    """Return what a pickle holds: views of `storages`, which are added, and tuples as lists. Raises ValueError."""
    stack: list[Any] = []
    marks, memo = list[int](), dict[Any, Any]()
    for opcode, argument in opcodes:
        name, takes = opcode.name, opcode.stack_before
        if name == "STOP":
            return stack[-1]
        if name == "MARK":
            marks.append(len(stack))
        elif name.endswith("PUT") or name == "MEMOIZE":
            memo[len(memo) if argument is None else argument] = stack[-1]
        elif name.endswith("GET"):
            stack.append(memo[argument])
        elif name == "GLOBAL" and not NAMED.fullmatch(str(argument)):
            break
        elif name in CONSTANTS or (argument is not None and not takes):
            stack += [CONSTANTS.get(name, argument)] if opcode.stack_after else []
        else:
            start = marks.pop() if pickletools.markobject in takes else len(stack) - len(takes)
            members = stack[start - (name in ("APPENDS", "SETITEMS")) :]
            del stack[len(stack) - len(members) :]
            stack.append(_made(name, members, storages))
    raise ValueError(MORE)


def _made(name: str, members: list[Any], storages: Storages) -> Any:
    """Return what an opcode makes of members of the stack; nothing is copied but what they themselves hold."""
    if name in LISTS:
        return members
    first, *others = members or [{}]
    match name:
        case "EMPTY_DICT" | "BUILD":  # a tensor needs no attributes
            return first
        case "APPEND" | "APPENDS":
            first.extend(others)
            return first
        case "SETITEM" | "SETITEMS":
            first.update(zip(others[::2], others[1::2], strict=True))
            return first
        case "BINPERSID":
            _, kind, key, _, count, *view = first
            if kind not in STORAGES:
                raise ValueError(f"it has a tensor of an unsupported kind, {str(kind)[:40]}")
            if not any(view):  # torch wrote views of storages before version 0.4
                storages[key] = STORAGES[kind], count
                return key
        case "REDUCE" if first.startswith("torch._utils _rebuild_tensor") and not any(others[0][6:]):
            return _View(*others[0][:4])
        case "REDUCE" if first == "collections OrderedDict":
            return others[0][0] if others[0] else {}
        case "REDUCE" if first in ("torch._utils _rebuild_parameter", "torch Size"):
            return others[0][0]
    raise ValueError(MORE)
