"""The files of a checkpoint: config.json, and weights, which are verified before a library reads them.

The header of a file is checked too: its tensors must fill the file exactly, and must not have more numbers than the
largest model that config.json allows.
"""

import os
import zipfile
from collections.abc import Mapping
from math import prod
from pathlib import Path
from zipfile import ZIP_STORED, BadZipFile, ZipFile

from embryo_core.errors import BrokenCheckpoint
from embryo_core.runs.architecture import MAX_PARAMETERS, SLACK, Architecture, DecoderConfig
from embryo_core.runs.manifests import missing_weights_error, read_manifest
from embryo_core.runs.pointers import follow, hub_store
from embryo_core.runs.schema import HEADER_LIMIT, MB, Header, ModelClass, TensorHeader
from embryo_core.runs.trust import Content, digest, open_inside, parse_json, read_json, read_unchanged, refusal
from embryo_core.types import Checkpoint

SAFETENSORS = "model.safetensors"
PICKLED = "pytorch_model.bin"
WEIGHTS = (SAFETENSORS, PICKLED)  # names of weights in a checkpoint's folder; the first that exists is read
# bytes of an element, by type
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}
MAX_PICKLED = 16 * MB  # bytes of the pickles in a file of weights
MAX_WEIGHTS_BYTES = (
    8 + HEADER_LIMIT + max(BYTES.values()) * SLACK * MAX_PARAMETERS
)  # bytes of the largest allowed model
CACHED_TYPES = (Architecture, DecoderConfig, ModelClass)  # immutable types of a parsed config.json


# === config.json and the manifest ===


def read_config(checkpoint: Checkpoint, value_type: type[Content]) -> Content:
    """Return a checkpoint's config.json as a `value_type` (Architecture, DecoderConfig, ModelClass, or dict[str, Any]).

    Immutable types are cached until the file changes: loading a model reads it ten times. Raises BrokenCheckpoint.
    """
    path, root = checkpoint.path / "config.json", checkpoint.run.path
    if value_type in CACHED_TYPES:
        return read_unchanged(str(path), root, value_type, BrokenCheckpoint)[0]
    return read_json(path, root, value_type, BrokenCheckpoint)


def verify(checkpoint: Checkpoint) -> None:
    """Raise BrokenCheckpoint unless every file in the manifest has its sha256, and the tensors fit config.json.

    Raises MissingWeights if the weights were removed according to the manifest. Only the header of the weights is
    parsed, so that no memory is allocated for tensors that config.json does not allow.
    """
    run = checkpoint.run.path
    sizes = read_config(checkpoint, Architecture)
    manifest, _ = read_manifest(checkpoint.path, run)
    if manifest.removed:
        raise missing_weights_error(checkpoint)
    files = dict(weights_files(checkpoint))
    expected = {checkpoint.path / name: sha256 for name, sha256 in manifest.sha256.items()}
    if card := manifest.weights:
        expected |= zip(files, (card.sha256, *card.parts.values()), strict=True)
    elif (weights := next(iter(files))) not in expected:
        raise refusal(checkpoint.path / "manifest.json", f"does not name {weights.name}", BrokenCheckpoint)
    check_parts(files, sizes)  # checked before hashing, which is slow for a large sparse file
    for path, sha256_ in expected.items():
        is_weights = path in files or path.name in WEIGHTS  # weights that are not read are hashed too
        limit = max_weights_bytes(sizes) if is_weights else None
        if digest(path, files.get(path, run), BrokenCheckpoint, limit) != sha256_:
            raise refusal(path, "is not the file in the manifest (truncated or changed)", BrokenCheckpoint)


# === Weights ===


def weights_file(checkpoint: Checkpoint) -> Path:
    """Return the first of `weights_files`, which is usually the only one."""
    return weights_files(checkpoint)[0][0]


def weights_files(checkpoint: Checkpoint) -> list[tuple[Path, Path]]:
    """Return each file of a checkpoint's weights with the folder that it must be in. Raises BrokenCheckpoint."""
    if checkpoint.pointer:
        files = []
        for file in checkpoint.pointer.files:
            path, root = follow(checkpoint.run, file, checkpoint.path / "manifest.json")
            files.append((path, hub_store(path, file.repository) if file.repository else root))
        return files
    names = [name for name in WEIGHTS if os.path.lexists(checkpoint.path / name)] or [SAFETENSORS]
    return [(checkpoint.path / names[0], checkpoint.run.path)]


def max_weights_bytes(sizes: Architecture) -> int:
    """Return the largest number of bytes that the weights of a model of these sizes may have."""
    return 8 + HEADER_LIMIT + max(BYTES.values()) * sizes.max_parameters


def check_parts(files: Mapping[Path, Path], sizes: Architecture) -> None:
    """Check each file of a model's weights, and their total size. Raises BrokenCheckpoint."""
    for path, root in files.items():
        check_weights(path, root, sizes)
    if (total := sum(path.stat().st_size for path in files)) > max_weights_bytes(sizes):
        problem = f"has {total:,} bytes with the other parts, more than config.json has room for"
        raise refusal(next(iter(files)), problem, BrokenCheckpoint)


def check_weights(path: Path, root: Path, sizes: Architecture) -> dict[str, TensorHeader] | None:
    """Raise BrokenCheckpoint unless the file matches its header and has no more numbers than the sizes allow.

    Returns the header of each tensor, or None for a file that torch pickled.
    """
    if is_pickled(path, root):
        _check_pickled(path, root, sizes)
        return None
    tensors, _ = read_header(path, root)
    if (count := sum(prod(tensor.shape) for tensor in tensors.values())) > sizes.max_parameters:
        most = f"the maximum by config.json is {sizes.max_parameters:,}"
        raise refusal(path, f"has {count:,} numbers ({most})", BrokenCheckpoint)
    return tensors


def is_pickled(path: Path, root: Path) -> bool:
    """Return whether torch pickled the weights, by the file's suffix, or else by its first bytes.

    In a cache, files may be named by their hash, without a suffix. Raises BrokenCheckpoint if the file cannot be read.
    """
    if path.suffix in (".bin", ".safetensors"):
        return path.suffix == ".bin"
    with open_inside(path, root, BrokenCheckpoint, MAX_WEIGHTS_BYTES) as file:
        return file.read(9)[8:] != b"{"  # in a safetensors file, the JSON header follows its length


def read_header(path: Path, root: Path) -> tuple[dict[str, TensorHeader], int]:
    """Return the header of each tensor in a safetensors file, and where their bytes begin. Raises BrokenCheckpoint."""
    with open_inside(path, root, BrokenCheckpoint, MAX_WEIGHTS_BYTES) as file:
        length, total = int.from_bytes(file.read(8), "little"), os.fstat(file.fileno()).st_size
        if length > min(HEADER_LIMIT, total - 8):
            raise refusal(path, f"has a header of {length:,} bytes (truncated or changed)", BrokenCheckpoint)
        header = parse_json(file.read(length), path, Header, BrokenCheckpoint)
    header.pop("__metadata__", None)
    tensors = {name: parse_json(bytes(tensor), path, TensorHeader, BrokenCheckpoint) for name, tensor in header.items()}
    described = [BYTES.get(tensor.dtype, 0) * prod(tensor.shape) for tensor in tensors.values()]
    if described != [tensor.nbytes for tensor in tensors.values()] or sum(described) != total - 8 - length:
        raise refusal(path, "does not have the tensors of its header (truncated or changed)", BrokenCheckpoint)
    return tensors, 8 + length


def _check_pickled(path: Path, root: Path, sizes: Architecture) -> None:
    """Raise BrokenCheckpoint unless a file is an uncompressed archive with small pickles, or begins with a pickle.

    The list of parts at its end is limited like a header, since `ZipFile` would read one of any length. A file of torch
    before version 1.6 is not an archive; it begins with pickles. Only its first byte is checked here; the rest is
    checked while it is read (engine/tensor_files.py).
    """
    with open_inside(path, root, BrokenCheckpoint, max_weights_bytes(sizes)) as file:
        try:
            end = zipfile._EndRecData(file)  # type: ignore[attr-defined]  # private; None if the file is not an archive
            if end is None:
                file.seek(0)
                if file.read(1) != b"\x80":  # the first byte of a pickle
                    raise refusal(path, "is not a file that torch wrote (truncated or changed)", BrokenCheckpoint)
                return
            if (size := end[zipfile._ECD_SIZE]) > HEADER_LIMIT:  # type: ignore[attr-defined]
                raise ValueError(f"the list of its parts has {size:,} bytes (the maximum is {HEADER_LIMIT:,})")
            with ZipFile(file) as archive:
                parts = archive.infolist()
        except (BadZipFile, ValueError, OSError, RuntimeError) as reason:
            raise refusal(path, f"is not a valid archive: {reason}", BrokenCheckpoint) from None
    described = sum(part.file_size for part in parts if part.filename.endswith(".pkl"))
    if any(part.compress_type != ZIP_STORED for part in parts) or described > MAX_PICKLED:
        raise refusal(path, "is not an archive as torch writes it", BrokenCheckpoint)
