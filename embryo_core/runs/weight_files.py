"""A checkpoint's weights as a file: where it is, how large it may be, and what its header may say before it is read."""

import os
from math import prod
from pathlib import Path
from zipfile import ZIP_STORED, BadZipFile, ZipFile, is_zipfile

from embryo_core.errors import BrokenCheckpoint
from embryo_core.runs.architecture import PARAMETERS, SLACK, Architecture
from embryo_core.runs.pointers import follow, hub_store
from embryo_core.runs.reading import open_inside, parse_json, refusal
from embryo_core.runs.schema import HEADER_LIMIT, MB, Header, Tensor
from embryo_core.types import Checkpoint

SAFETENSORS = "model.safetensors"
PICKLED = "pytorch_model.bin"
WEIGHTS = (SAFETENSORS, PICKLED)  # the names that weights have in a checkpoint's folder; the first at hand is read
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}  # of an element, by its type
ANY = 8 + HEADER_LIMIT + max(BYTES.values()) * SLACK * PARAMETERS  # bytes that weights of any model may have


def weights_file(checkpoint: Checkpoint) -> tuple[Path, Path]:
    """The file of a checkpoint's weights, and the folder that it has to be in. Raises BrokenCheckpoint."""
    if pointer := checkpoint.pointer:
        path, within = follow(checkpoint.run, pointer, checkpoint.path / "manifest.json")
        return path, hub_store(path, pointer.repository) if pointer.repository else within
    names = [name for name in WEIGHTS if os.path.lexists(checkpoint.path / name)] or [SAFETENSORS]
    return checkpoint.path / names[0], checkpoint.run.path


def most_bytes(sizes: Architecture) -> int:
    """Bytes that the weights of a model of these sizes may have."""
    return 8 + HEADER_LIMIT + max(BYTES.values()) * sizes.most_parameters


def check_weights(path: Path, within: Path, sizes: Architecture) -> None:
    """Raise BrokenCheckpoint unless the file describes itself rightly and has no more numbers than the sizes allow."""
    (_check_pickled if is_pickled(path, within) else _check_tensors)(path, within, sizes)


def is_pickled(path: Path, within: Path) -> bool:
    """Whether torch pickled the weights; told by what the file begins with where its name does not say.

    A cache may name its files by their hash. Raises BrokenCheckpoint where the file cannot be read.
    """
    if path.suffix in (".bin", ".safetensors"):
        return path.suffix == ".bin"
    with open_inside(path, within, BrokenCheckpoint, ANY) as file:
        return file.read(9)[8:] != b"{"  # in a file of safetensors the header follows its length


def tensor_shapes(path: Path, within: Path, sizes: Architecture) -> dict[str, list[int]]:
    """The shape of each tensor of a file, by its name; none of one that torch pickled. Raises BrokenCheckpoint."""
    if is_pickled(path, within):
        return {}
    tensors, _, _ = _read_header(path, within, sizes)
    return {name: tensor.shape for name, tensor in tensors.items()}


def _check_tensors(path: Path, within: Path, sizes: Architecture) -> None:
    named, length, total = _read_header(path, within, sizes)
    tensors = list(named.values())
    counts = [prod(tensor.shape) for tensor in tensors]
    described = [BYTES.get(tensor.dtype, 0) * count for tensor, count in zip(tensors, counts, strict=True)]
    if described != [tensor.nbytes for tensor in tensors] or sum(described) != total - 8 - length:
        raise refusal(path, "does not have the tensors of its header (truncated or changed)", BrokenCheckpoint)
    if sum(counts) > sizes.most_parameters:
        most = f"config.json makes it at most {sizes.most_parameters:,}"
        raise refusal(path, f"has {sum(counts):,} numbers, and {most}", BrokenCheckpoint)


def _read_header(path: Path, within: Path, sizes: Architecture) -> tuple[dict[str, Tensor], int, int]:
    """The tensors by name, the bytes of the header, and those of the file."""
    with open_inside(path, within, BrokenCheckpoint, most_bytes(sizes)) as file:
        length, total = int.from_bytes(file.read(8), "little"), os.fstat(file.fileno()).st_size
        if length > min(HEADER_LIMIT, total - 8):
            raise refusal(path, f"has a header of {length:,} bytes (truncated or changed)", BrokenCheckpoint)
        header = parse_json(file.read(length), path, Header, BrokenCheckpoint)
    header.pop("__metadata__", None)
    tensors = {name: parse_json(bytes(tensor), path, Tensor, BrokenCheckpoint) for name, tensor in header.items()}
    return tensors, length, total


def _check_pickled(path: Path, within: Path, sizes: Architecture) -> None:
    """Of torch's zip archives every part is stored as it is, and what describes the tensors is small.

    What torch wrote before version 1.6 is no archive; there its own reader, which takes tensors alone, is all there is.
    """
    with open_inside(path, within, BrokenCheckpoint, most_bytes(sizes)) as file:
        if not is_zipfile(file):
            file.seek(0)
            if file.read(1) != b"\x80":  # of a pickle
                raise refusal(path, "is no file of torch (truncated or changed)", BrokenCheckpoint)
            return
        try:
            with ZipFile(file) as archive:
                parts = archive.infolist()
        except (BadZipFile, ValueError, OSError) as reason:
            raise refusal(path, f"is not a valid archive: {reason}", BrokenCheckpoint) from None
    described = sum(part.file_size for part in parts if part.filename.endswith(".pkl"))
    if any(part.compress_type != ZIP_STORED for part in parts) or described > 16 * MB:
        raise refusal(path, "is not an archive as torch writes it", BrokenCheckpoint)
