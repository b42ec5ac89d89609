"""Tests of weight files: only tensors are read from a pickle, and any other name is refused before torch reads it."""

import sys
import tracemalloc
from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import torch
from safetensors.torch import save_file

from embryo_core.engine import tensor_files, tensor_names
from embryo_core.engine.tensor_files import free_pages, read_file, read_tensors
from embryo_core.engine.tensor_names import heads_of
from embryo_core.errors import BrokenCheckpoint
from embryo_core.runs import Architecture
from embryo_core.runs.checkpoint_files import check_weights

SIZES = Architecture(
    model_type="bert",
    vocab_size=1000,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=64,
)
ZIPPED = pytest.mark.parametrize("zipped", [True, False], ids=("zip", "before torch 1.6"))


def save(content: Any, folder: Path, zipped: bool = True) -> Path:
    """Write a file of weights with any content."""
    path = folder / "pytorch_model.bin"
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    return path


class Bytes:
    """Object whose pickle allocates 1,000 bytes when it is read."""

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return bytearray, (1_000,)


class Copy:
    """Object that is pickled as a call which copies a list; with many such calls, 16 MB could take terabytes."""

    PAIRS = tuple((i, None) for i in range(10))

    def __reduce__(self) -> tuple[type, tuple[Any]]:
        return OrderedDict, (self.PAIRS,)


@ZIPPED
@pytest.mark.parametrize("dtype", tensor_files.STORED_DTYPES)
def test_tensors_of_every_stored_type_are_read(tmp_path: Path, zipped: bool, dtype: torch.dtype):
    """The tensors are in an ordered dictionary: plain, tied, a view, and a parameter."""
    numbers = torch.arange(6).reshape(2, 3).to(dtype)
    tied = {"a": numbers, "b": numbers, "c": numbers.T, "epoch": 3}
    if dtype.is_floating_point:
        tied["d"] = torch.nn.Parameter(numbers)
    tensors = read_file(save(OrderedDict(tied), tmp_path, zipped), tmp_path)
    assert tensors.keys() == tied.keys() - {"epoch"}
    assert all(torch.equal(tensors[name], tied[name]) for name in tensors)


@ZIPPED
def test_pickled_calls_are_never_made(tmp_path: Path, zipped: bool, monkeypatch):
    """Lists that torch would copy stay one list."""
    path = save({"a": torch.zeros(2), "b": [Copy() for _ in range(300)]}, tmp_path, zipped)
    assert len(torch.load(path, weights_only=True)["b"]) == 300
    monkeypatch.setattr(Copy, "__reduce__", lambda _: pytest.fail("it was called"))
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("it was read"))
    assert read_file(path, tmp_path).keys() == {"a"}


@pytest.mark.parametrize("nested", [60, 100_000])
def test_nested_pairs_are_never_hashed_as_keys(tmp_path: Path, nested: int):
    """Each pair contains the previous one twice, so torch would visit 2^60 pairs."""
    pairs = b")" + b"q\x05h\x05\x86" * nested
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x02}" + pairs + b"K\x01s." + b"\x80\x02N." * 4)
    with pytest.raises(BrokenCheckpoint, match="unhashable"):
        read_file(tmp_path / "pytorch_model.bin", tmp_path)


def test_number_of_pickle_opcodes_is_limited(tmp_path: Path, monkeypatch):
    """A large file could otherwise keep a reader busy for hours."""
    path = save({"a": torch.zeros(2)}, tmp_path)
    monkeypatch.setattr(tensor_names, "MAX_OPCODES", 20)
    with pytest.raises(BrokenCheckpoint, match="holds more than tensors"):
        read_file(path, tmp_path)


@ZIPPED
def test_pickled_allocation_is_refused(tmp_path: Path, zipped: bool):
    """Torch allows a pickle to allocate any number of bytes."""
    path = save({"a": torch.zeros(2), "b": Bytes()}, tmp_path, zipped)
    assert len(torch.load(path, weights_only=True)["b"]) == 1_000
    with pytest.raises(BrokenCheckpoint, match=r"cannot be read \(it holds more than tensors, or is damaged\)"):
        read_file(path, tmp_path)


@pytest.mark.parametrize("opcodes", [b"\x80\x04\x8c\x08builtins\x8c\x09bytearray\x93.", b"(ibuiltins\nbytearray\n."])
def test_other_opcodes_that_import_names_are_refused(tmp_path: Path, opcodes: bytes):
    """Pickle can also take names from the stack, and from the opcode of its first protocol."""
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(opcodes)
    with pytest.raises(BrokenCheckpoint, match="holds more than tensors"):
        read_file(path, tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({5: torch.zeros(2)}, "the name of a tensor is not a string"),
        ({"a": torch.zeros(2, dtype=torch.int16)}, "unsupported kind, torch ShortStorage"),
        ({"a": torch.zeros(2, dtype=torch.float8_e4m3fn)}, "holds more than tensors, or is damaged"),
        ({"a": torch.zeros(2, dtype=torch.complex64)}, "unsupported kind, torch ComplexFloatStorage"),
        ({"a": torch.zeros(2).expand(10**6, 2)}, "its tensors are larger than the file"),
        ({"a": torch.zeros(2).to_sparse()}, "holds more than tensors, or is damaged"),
        ({"a": torch.zeros(2, device="meta")}, "holds more than tensors, or is damaged"),
        (["a"], "cannot be read"),
    ],
    ids=("number as name", "int16", "float8", "complex", "repeated", "sparse", "without numbers", "list"),
)
def test_unsupported_contents_are_refused(tmp_path: Path, content: Any, message: str):
    """The error names the reason."""
    with pytest.raises(BrokenCheckpoint, match=message):
        read_file(save(content, tmp_path), tmp_path)


def test_quantised_tensor_is_refused(tmp_path: Path):
    """Its numbers would have to be scaled."""
    content = {"a": torch.quantize_per_tensor(torch.zeros(2), 0.1, 0, torch.qint8)}
    with pytest.raises(BrokenCheckpoint, match="holds more than tensors, or is damaged"):
        read_file(save(content, tmp_path), tmp_path)


def test_compressed_archive_is_refused(tmp_path: Path):
    """Compressed bytes would be read as other numbers; every file is checked before it is read."""
    numbers = torch.arange(500.0)
    path, packed = save({"a.weight": numbers}, tmp_path), tmp_path / "packed" / "pytorch_model.bin"
    packed.parent.mkdir()
    with ZipFile(path) as archive, ZipFile(packed, "w", ZIP_DEFLATED) as other:
        for part in archive.infolist():
            other.writestr(part.filename, archive.read(part))
    assert torch.equal(read_file(path, tmp_path)["a.weight"], numbers)
    check_weights(path, tmp_path, SIZES)
    with pytest.raises(BrokenCheckpoint, match="is not an archive as torch writes it"):
        check_weights(packed, packed.parent, SIZES)


def test_argument_longer_than_any_file_has_no_heads(tmp_path: Path):
    """Its length would otherwise be allocated first, which fails with no error of a file."""
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(b"\x80\x02\x8d" + (2**62).to_bytes(8, "little") + b"a")
    assert heads_of(path, tmp_path, SIZES) is None
    with pytest.raises(BrokenCheckpoint, match="but only 1 remain"):
        read_file(path, tmp_path)


def test_argument_beyond_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The pickles of an old file are as small as those in an archive."""
    path = save({"a": torch.zeros(2), "b": "text" * 1000}, tmp_path, zipped=False)
    assert read_file(path, tmp_path).keys() == {"a"}
    monkeypatch.setattr(tensor_names, "MAX_PICKLED", 2000)
    with pytest.raises(BrokenCheckpoint, match="cannot be read"):
        read_file(path, tmp_path)


def test_long_byte_order_is_not_read(tmp_path: Path):
    """Only the word "little" or "big" is a byte order; a text of gigabytes that begins so is another one."""
    path, other = save({"a": torch.ones(2)}, tmp_path), tmp_path / "other" / "pytorch_model.bin"
    other.parent.mkdir()
    with ZipFile(path) as archive, ZipFile(other, "w") as written:
        for part in archive.infolist():
            longer = sys.byteorder.encode() * 2**23 if part.filename.endswith("byteorder") else archive.read(part)
            written.writestr(part.filename, longer)
    tracemalloc.start()
    tensors = read_file(other, other.parent)
    assert not torch.equal(tensors["a"], torch.ones(2)) and tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


@pytest.mark.parametrize(("field", "value"), [("flag_bits", 1), ("extract_version", 99)])
def test_archive_for_other_programs_has_no_heads(tmp_path: Path, field: str, value: int):
    """It is encrypted, or of a later version of the format."""
    path = save({"a": torch.zeros(2)}, tmp_path)
    with ZipFile(path, "a") as archive:
        for part in archive.infolist():
            setattr(part, field, value)
        archive.writestr("archive/more", "")  # the list of parts is written again
    assert heads_of(path, tmp_path, SIZES) is None
    with pytest.raises(BrokenCheckpoint, match="cannot be read"):
        read_file(path, tmp_path)


def test_truncated_file_is_refused(tmp_path: Path):
    path = save({"a": torch.zeros(200)}, tmp_path)
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(BrokenCheckpoint, match="cannot be read"):
        read_file(path, tmp_path)


# === Mapped files ===


def read_mapped(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, torch.Tensor], list[Any]]:
    """Return the tensors of a file as those of a checkpoint, and the files that were mapped."""
    mapped: list[Any] = []
    monkeypatch.setattr(tensor_files.runs, "weights_files", lambda _: [(path, path.parent)])
    return read_tensors(SimpleNamespace(path=path.parent), mapped), mapped  # type: ignore[arg-type]


def resident() -> int:
    """Return the bytes of mapped files that this process has in memory."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssFile:")[2].split()[0]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="counts the pages of a process on Linux")
@pytest.mark.parametrize("pickled", [True, False])
def test_freed_pages_are_read_again_on_access(tmp_path: Path, pickled: bool, monkeypatch):
    """Only pages backed by the file are freed, so the numbers are the same afterwards."""
    numbers, path = torch.arange(2**23).float(), tmp_path / "model.safetensors"  # 32 MB
    if pickled:
        path = save({"a": numbers, "b": numbers + 1}, tmp_path)
    else:
        save_file({"a": numbers, "b": numbers + 1}, path)
    before = resident()
    tensors, mapped = read_mapped(path, monkeypatch)
    assert resident() - before < 2**23
    assert torch.equal(tensors["a"], numbers) and torch.equal(tensors["b"], numbers + 1)
    assert resident() - before > 2**25
    free_pages(mapped)
    assert resident() - before < 2**23
    assert torch.equal(tensors["b"], numbers + 1)


def test_foreign_byte_order_and_old_format_survive_freeing(tmp_path: Path, monkeypatch):
    """Both are read into memory, so freeing the pages of the mapping changes no number."""
    numbers = torch.arange(1000).float()
    path, other = save({"a": numbers}, tmp_path), tmp_path / "other" / "pytorch_model.bin"
    other.parent.mkdir()
    foreign = {"little": b"big", "big": b"little"}[sys.byteorder]
    with ZipFile(path) as archive, ZipFile(other, "w") as written:
        for part in archive.infolist():
            content = archive.read(part)
            if part.filename.endswith("/data/0"):
                content = numbers.numpy().byteswap().tobytes()
            written.writestr(part, foreign if part.filename.endswith("/byteorder") else content)
    old = tmp_path / "old"
    old.mkdir()
    for file in (other, save({"a": numbers}, old, zipped=False)):
        tensors, mapped = read_mapped(file, monkeypatch)
        free_pages(mapped)
        assert torch.equal(tensors["a"], numbers) and len(mapped) == 1
