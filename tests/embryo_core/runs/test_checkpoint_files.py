"""Tests that a checkpoint is refused if its files do not match its manifest or its config.json."""

import json
import os
import struct

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint
from embryo_core.runs import checkpoint_files, trust
from embryo_core.types import Run


def test_truncated_weights_are_detected(own_run: Run):
    """verify compares every file with the sha256 in the manifest."""
    checkpoint = runs.checkpoint(own_run, 8)
    runs.verify(checkpoint)
    weights = checkpoint.path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(BrokenCheckpoint, match="truncated or changed"):
        runs.verify(checkpoint)


def test_missing_weights_are_detected(own_run: Run):
    """The message advises to copy the step again."""
    checkpoint = runs.checkpoint(own_run, 8)
    (checkpoint.path / "model.safetensors").unlink()
    with pytest.raises(BrokenCheckpoint, match="does not exist; copy this step again"):
        runs.verify(checkpoint)


@pytest.mark.parametrize(
    "sizes",
    [
        {"num_hidden_layers": 10**9},
        {"num_hidden_layers": 0},
        {"hidden_size": 33},
        {"num_hidden_groups": 3},
        {"vocab_size": -1},
        {"vocab_size": "700"},
        {"vocab_size": 2**22, "embedding_size": 2**12},
        {"layer_norm_eps": 0},
        {"model_type": None},
    ],
    ids=lambda sizes: ascii(sizes)[:40],
)
def test_invalid_sizes_in_config_are_refused(own_run: Run, sizes: dict):
    """Sizes are bounded before a model is built: a billion layers would keep every core busy forever."""
    checkpoint = runs.checkpoint(own_run, 8)
    config = checkpoint.path / "config.json"
    runs.write_json(config, json.loads(config.read_text()) | sizes)
    for read in (lambda target: runs.read_config(target, runs.Architecture), runs.verify):
        with pytest.raises(BrokenCheckpoint, match=r"config\.json is not valid"):
            read(checkpoint)


def test_sparse_file_is_not_hashed(own_run: Run, monkeypatch):
    """A file of 20 GB, mostly holes, is longer than the tensors in its header and is refused unread."""
    checkpoint = runs.checkpoint(own_run, 8)
    monkeypatch.setattr(checkpoint_files, "digest", lambda *_: pytest.fail("hashed"))
    os.truncate(checkpoint.path / "model.safetensors", 20 * 10**9)
    with pytest.raises(BrokenCheckpoint, match="does not have the tensors of its header"):
        runs.verify(checkpoint)


def test_file_extended_by_holes_is_not_hashed(own_run: Run, monkeypatch):
    """The header gives the length of the file."""
    checkpoint = runs.checkpoint(own_run, 8)
    weights = checkpoint.path / "model.safetensors"
    os.truncate(weights, weights.stat().st_size + 2**20)
    monkeypatch.setattr(checkpoint_files, "digest", lambda *_: pytest.fail("hashed"))
    with pytest.raises(BrokenCheckpoint, match="truncated or changed"):
        runs.verify(checkpoint)


def test_file_is_hashed_once_until_changed(own_run: Run, monkeypatch):
    """The hash is cached by inode, time and size; a changed file is read again and refused."""
    checkpoint = runs.checkpoint(own_run, 8)
    hashed = []
    monkeypatch.setattr(trust, "sha256", lambda path: hashed.append(path.name) or runs.sha256(path))
    for _ in range(3):
        runs.verify(checkpoint)
    assert sorted(hashed) == ["config.json", "model.safetensors"]
    weights = checkpoint.path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    with pytest.raises(BrokenCheckpoint, match="truncated or changed"):
        runs.verify(checkpoint)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            {"a": {"dtype": "F32", "shape": [1, 2**50], "data_offsets": [0, 2**52]}},
            "does not have the tensors of its header",
        ),
        ({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, "is not valid"),
        ({"a": {"dtype": "F8", "shape": [4], "data_offsets": [0, 4]}}, "does not have the tensors of its header"),
        ({"a": {"dtype": "F16", "shape": [2**18], "data_offsets": [0, 2**19]}}, "the maximum by config.json"),
        ({}, "does not have the tensors of its header"),
    ],
    ids=("larger than the file", "negative", "of unknown type", "more than config.json", "none"),
)
def test_tensor_header_is_checked_before_allocation(own_run: Run, header: dict, message: str):
    """Even with a correct hash, the header must describe every byte and no more tensors than config.json allows."""
    checkpoint = runs.checkpoint(own_run, 8)
    text = json.dumps(header).encode()
    weights = len(text).to_bytes(8, "little") + text + bytes(2**19 if "config" in message else 4)
    (checkpoint.path / "model.safetensors").write_bytes(weights)
    runs.write_manifest(checkpoint.path, 8, 0, 0)
    with pytest.raises(BrokenCheckpoint, match=message):
        runs.verify(checkpoint)


def archive_of(parts: int, disks: int = 1, version: int = 20) -> bytes:
    """Return an archive with only a list of parts, in the format for large archives."""
    names = [f"{i:x}".encode() for i in range(parts)]
    listed = b"".join(
        struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, version, *[0] * 8, len(name), *[0] * 6) + name for name in names
    )
    end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, parts, parts, len(listed), 0)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, len(listed), disks)
    return listed + end + locator + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, *[2**16 - 1] * 2, *[2**32 - 1] * 2, 0)


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (archive_of(2_000), r"the list of its parts has 9\d,"),
        (archive_of(1, disks=5), "multiple disks"),
        (archive_of(1, version=99), "zip file version"),
    ],
    ids=("many parts", "several disks", "later version"),
)
def test_archives_that_torch_never_writes_are_refused(own_run: Run, archive: bytes, message: str, monkeypatch):
    """Ten million parts would take a minute and 6 GB; the library's own errors are no errors of a checkpoint."""
    monkeypatch.setattr(checkpoint_files, "HEADER_LIMIT", 2**16)
    checkpoint = runs.checkpoint(own_run, 8)
    (checkpoint.path / "model.safetensors").unlink()
    (checkpoint.path / "pytorch_model.bin").write_bytes(archive)
    runs.write_manifest(checkpoint.path, 8, 0, 0)
    with pytest.raises(BrokenCheckpoint, match=f"is not a valid archive: .*{message}"):
        runs.verify(checkpoint)


def test_weights_missing_from_manifest_are_refused(own_run: Run):
    """A file without a hash is not loaded."""
    checkpoint = runs.checkpoint(own_run, 8)
    manifest = json.loads((checkpoint.path / "manifest.json").read_text())
    del manifest["sha256"]["model.safetensors"]
    runs.write_json(checkpoint.path / "manifest.json", manifest)
    with pytest.raises(BrokenCheckpoint, match=r"does not name model\.safetensors"):
        runs.verify(checkpoint)


def test_config_is_parsed_once_until_changed(own_run: Run, monkeypatch: pytest.MonkeyPatch):
    """A dict, which a caller may change, is parsed each time; a deleted config.json is noticed at once."""
    checkpoint, parsed = runs.checkpoint(own_run, 8), []
    parse = trust.parse_json
    monkeypatch.setattr(trust, "parse_json", lambda *what: parsed.append(what) or parse(*what))
    first, second = (runs.read_config(checkpoint, runs.Architecture) for _ in range(2))
    assert first is second and len(parsed) == 1
    assert runs.read_config(checkpoint, dict) is not runs.read_config(checkpoint, dict) and len(parsed) == 3
    path = checkpoint.path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"vocab_size": 12345}))
    assert runs.read_config(checkpoint, runs.Architecture).vocab_size == 12345
    path.unlink()
    with pytest.raises(BrokenCheckpoint, match=r"config\.json does not exist"):
        runs.read_config(checkpoint, runs.Architecture)
