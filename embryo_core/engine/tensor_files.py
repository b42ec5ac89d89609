"""Read the tensors of a checkpoint: safetensors, or torch's pickled files, without executing their code.

A pickle is a program. torch's own reader runs a safe subset of it, in which a small file can still allocate an array of
any length, or run for hours. This reader makes no calls: it records the pickle's description of the tensors, and then
maps them from the file, as for safetensors.
"""

import mmap
import pickletools
import re
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import ZipFile, ZipInfo, is_zipfile

import torch
from torch import Tensor

from embryo_core import runs
from embryo_core.engine.tensor_names import Opcodes, pickles
from embryo_core.errors import BrokenCheckpoint, first_line
from embryo_core.runs.checkpoint_files import BYTES
from embryo_core.runs.trust import REMEDIES, refusal
from embryo_core.types import Checkpoint

WRAPPERS = ("module.", "_orig_mod.")  # prefixes of all names in a model that was saved inside a training wrapper
OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}  # suffixes of layer normalisations in old models
STORED_DTYPES = [getattr(torch, name) for name in "float64 float32 float16 bfloat16 int64 int32 uint8 bool".split()]
DTYPES = dict(zip(BYTES, STORED_DTYPES, strict=True))  # by their names in safetensors
MASK_DTYPES = (torch.uint8, torch.bool)  # dtypes of causal masks, which old files store as attn.bias

# What the pickle of a model may contain: names of globals, opcodes of constants, and classes of storages.
ALLOWED_GLOBALS = re.compile(r"torch \w+|torch\._utils _rebuild_(tensor|tensor_v2|parameter)|collections OrderedDict")
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
STORAGE_NAMES = "Double Float Half BFloat16 Long Int Byte Bool".split()
STORAGES = {f"torch {name}Storage": kind for name, kind in zip(STORAGE_NAMES, STORED_DTYPES, strict=True)}
NOT_ONLY_TENSORS = "it holds more than tensors, or is damaged"
Storages = dict[str, tuple[torch.dtype, int]]  # dtype and size of each storage, by its key
LIST_OPCODES = "EMPTY_LIST LIST EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3".split()  # opcodes that make a list or a tuple


def read_tensors(checkpoint: Checkpoint, mappings: list[mmap.mmap] | None = None) -> dict[str, Tensor]:
    """Return tensors by name, mapped from their files; old names are replaced by those of current transformers.

    A file that torch pickled before version 1.6, or on a machine of another byte order, is read into memory instead.
    Causal masks and rotation frequencies of decoders, which early versions stored, are left out: no pass reads them,
    and a mask's value is minus infinity in half precision. The mappings of the files are appended to a list `mappings`,
    for `free_pages`.

    The caller verifies the files beforehand (`runs.verify`), and checks the numbers (`check_finite`) or calls
    `read_finite`. Raises BrokenCheckpoint if a file cannot be read, or stores a weight as integers.
    """
    tensors: dict[str, Tensor] = {}
    for path, root in runs.weights_files(checkpoint):
        tensors |= read_file(path, root, mappings)
    wrapper = _wrapper(tensors)
    read = {name: tensor for name, tensor in tensors.items() if not _is_buffer(name, tensor)}
    tensors = {_name_of_today(name.removeprefix(wrapper)): tensor for name, tensor in read.items()}
    for name, tensor in tensors.items():
        if name.endswith((".weight", ".bias")) and not (tensor.is_floating_point() or tensor.dtype in MASK_DTYPES):
            dtype = str(tensor.dtype).removeprefix("torch.")
            raise broken_error(checkpoint, f"{name} is stored as {dtype}, and only floating types are weights")
    return tensors


def read_finite(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Read tensors as `read_tensors` does. Raises BrokenCheckpoint, also if a number is NaN or infinite."""
    tensors = read_tensors(checkpoint)
    for name, tensor in tensors.items():
        check_finite(checkpoint, name, tensor)
    return tensors


def read_file(path: Path, root: Path, mappings: list[mmap.mmap] | None = None) -> dict[str, Tensor]:
    """Read the tensors of one file by their stored names; its mapping goes to `mappings`. Raises BrokenCheckpoint."""
    try:
        with path.open("rb") as file:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)  # torch warns about read-only memory
            if mappings is not None:
                mappings.append(mapping)
            if runs.is_pickled(path, root):
                return _read_pickled(file, mapping)
        headers, start = runs.read_header(path, root)
        tensors = {}
        for name, header in headers.items():
            numbers = _numbers(mapping, DTYPES[header.dtype], start + header.data_offsets[0], header.nbytes)
            tensors[name] = numbers.reshape(header.shape)
        return tensors
    except BrokenCheckpoint:
        raise
    except Exception as reason:  # noqa: BLE001, a damaged file may fail anywhere
        raise refusal(path, f"cannot be read ({first_line(reason)})", BrokenCheckpoint) from None


def free_pages(mappings: Iterable[mmap.mmap]) -> None:
    """Free the memory of mapped files; pages that are used later are read again."""
    if hasattr(mmap, "MADV_DONTNEED"):  # Windows frees it without a request
        for mapping in mappings:
            mapping.madvise(mmap.MADV_DONTNEED)


def _numbers(mapping: mmap.mmap, dtype: torch.dtype, start: int, nbytes: int) -> Tensor:
    """Return the numbers in `nbytes` bytes of a mapped file from `start` on, without a copy."""
    count = nbytes // dtype.itemsize
    if not count:
        return torch.empty(0, dtype=dtype)
    return torch.frombuffer(mapping, dtype=dtype, count=count, offset=start)


def check_finite(checkpoint: Checkpoint, name: str, tensor: Tensor) -> None:
    """Raise BrokenCheckpoint if a number of this tensor is NaN or infinite."""
    if not is_finite(tensor):
        file = runs.weights_file(checkpoint).name
        raise broken_error(checkpoint, f"{file} has a number in {name} that is not finite")


def is_finite(tensor: Tensor) -> bool:
    """Return whether all numbers of a tensor are finite, by its smallest and largest, which are NaN if one is NaN."""
    return tensor.numel() == 0 or all(bound.isfinite() for bound in tensor.aminmax())


def broken_error(checkpoint: Checkpoint, problem: str) -> BrokenCheckpoint:
    """Return the error for a broken checkpoint, with its path, the problem, and a remedy."""
    return BrokenCheckpoint(f"{checkpoint.path}: {problem}; {REMEDIES[BrokenCheckpoint]}.")


def _wrapper(names: Collection[str]) -> str:
    """Return the prefix that training wrappers put before all of these names, or ""."""
    for prefix in WRAPPERS:
        if names and all(name.startswith(prefix) for name in names):
            return prefix + _wrapper([name.removeprefix(prefix) for name in names])
    return ""


def _is_buffer(name: str, tensor: Tensor) -> bool:
    """Return whether a tensor of a decoder is a buffer that follows from its configuration."""
    return name.endswith((".masked_bias", "rotary_emb.inv_freq")) or (
        tensor.ndim == 4 and name.endswith((".attn.bias", ".attention.bias"))  # [1, 1, P, P]
    )


def _name_of_today(name: str) -> str:
    """Return the current name of a tensor of an old model."""
    suffix = next((suffix for suffix in OLD_NAMES if name.endswith(suffix)), "")
    return name.removesuffix(suffix) + OLD_NAMES.get(suffix, "")


# === Pickled files ===


class _View(NamedTuple):
    """A tensor as it is pickled: part of the storage with this key."""

    storage: str
    offset: int
    size: list[int]
    stride: list[int]


def _read_pickled(file: IO[bytes], mapping: mmap.mmap) -> dict[str, Tensor]:
    """Read pickled tensors by name. Raises any error for a damaged file, and ValueError for other content."""
    storages: Storages = {}
    is_archive, order = is_zipfile(file), str(sys.byteorder)
    if is_archive:
        (content,) = (_values(opcodes, storages) for opcodes in pickles(file))
        with ZipFile(file) as archive:
            members = {member.filename.partition("/")[2]: member for member in archive.infolist()}
            locations = {key: _member_location(file, members[f"data/{key}"]) for key in storages}
            if "byteorder" in members:
                with archive.open(members["byteorder"]) as member:
                    order = member.read(len("little") + 1).decode()
    else:  # written by torch before version 1.6
        *_, content, keys = (_values(opcodes, storages) for opcodes in pickles(file))
        locations = {key: _next_location(file, storages[key][0]) for key in keys}
    sizes = {key: count * dtype.itemsize for key, (dtype, count) in storages.items()}
    if any(locations[key][1] != size for key, size in sizes.items()) or sum(sizes.values()) > len(mapping):
        raise ValueError("a tensor has another length than declared")
    numbers = {key: _numbers(mapping, dtype, locations[key][0], sizes[key]) for key, (dtype, _) in storages.items()}
    if order != sys.byteorder:
        numbers = {
            key: storage.view(torch.uint8).view(len(storage), storage.itemsize).flip(1).view(storage.dtype).view(-1)
            for key, storage in numbers.items()
        }
    elif not is_archive:
        numbers = {
            key: storage.clone() for key, storage in numbers.items()
        }  # cloned, since they may begin at an odd byte
    views = {name: view for name, view in dict(content).items() if isinstance(view, _View)}
    if not all(isinstance(name, str) for name in views):
        raise ValueError("the name of a tensor is not a string")
    tensors = {name: numbers[one.storage].as_strided(one.size, one.stride, one.offset) for name, one in views.items()}
    if sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()) > 2 * len(mapping):
        raise ValueError("its tensors are larger than the file")  # tied tensors appear twice
    return tensors


def _member_location(file: IO[bytes], member: ZipInfo) -> tuple[int, int]:
    """Return the position and number of bytes of a part of an archive."""
    file.seek(member.header_offset + 26)  # two lengths of two bytes end the header of a part
    return file.tell() + 4 + sum(memoryview(file.read(4)).cast("H")), member.file_size


def _next_location(file: IO[bytes], dtype: torch.dtype) -> tuple[int, int]:
    """Return position and number of bytes of the next storage in a legacy file, and move to its end."""
    size = int.from_bytes(file.read(8), "little") * dtype.itemsize
    start = file.tell()
    file.seek(start + size)
    return start, size


def _values(opcodes: Opcodes, storages: Storages) -> Any:
    """Return the value of a pickle, with tensors as views and tuples as lists, and record its storages.

    Raises ValueError if the pickle calls anything but the constructors of tensors, parameters and dictionaries.
    """
    stack: list[Any] = []
    marks, memo = list[int](), dict[Any, Any]()
    for opcode, argument in opcodes:
        name, operands = opcode.name, opcode.stack_before
        if name == "STOP":
            return stack[-1]
        if name == "MARK":
            marks.append(len(stack))
        elif name.endswith("PUT") or name == "MEMOIZE":
            memo[len(memo) if argument is None else argument] = stack[-1]
        elif name.endswith("GET"):
            stack.append(memo[argument])
        elif name == "GLOBAL" and not ALLOWED_GLOBALS.fullmatch(str(argument)):
            break
        elif name in CONSTANTS or (argument is not None and not operands):
            stack += [CONSTANTS.get(name, argument)] if opcode.stack_after else []
        else:
            start = marks.pop() if pickletools.markobject in operands else len(stack) - len(operands)
            members = stack[start - (name in ("APPENDS", "SETITEMS")) :]
            del stack[len(stack) - len(members) :]
            stack.append(_build_value(name, members, storages))
    raise ValueError(NOT_ONLY_TENSORS)


def _build_value(name: str, members: list[Any], storages: Storages) -> Any:
    """Return the value that an opcode makes of the members that it pops from the stack. Raises ValueError."""
    if name in LIST_OPCODES:
        return members
    target, *arguments = members or [{}]
    match name:
        case "EMPTY_DICT" | "BUILD":  # a tensor needs no attributes
            return target
        case "APPEND" | "APPENDS":
            target.extend(arguments)
            return target
        case "SETITEM" | "SETITEMS":
            target.update(zip(arguments[::2], arguments[1::2], strict=True))
            return target
        case "BINPERSID":
            _, storage_type, key, _, count, *view = target
            if storage_type not in STORAGES:
                raise ValueError(f"it has a tensor of an unsupported kind, {str(storage_type)[:40]}")
            if not any(view):  # torch before 0.4 wrote views of storages
                storages[key] = STORAGES[storage_type], count
                return key
        case "REDUCE" if target.startswith("torch._utils _rebuild_tensor") and not any(arguments[0][6:]):
            return _View(*arguments[0][:4])
        case "REDUCE" if target == "collections OrderedDict":
            return arguments[0][0] if arguments[0] else {}
        case "REDUCE" if target in ("torch._utils _rebuild_parameter", "torch Size"):
            return arguments[0][0]
    raise ValueError(NOT_ONLY_TENSORS)
