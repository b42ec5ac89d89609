"""Checksum files are those of sha256sum, and anything else is refused."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from embryo_core.errors import CorpusError
from embryo_core.runs import checksums, read_checksums, write_checksums


def test_sha256sum_understands_what_is_written(tmp_path: Path):
    """And what sha256sum writes is read."""
    (tmp_path / "part").mkdir()
    for name in ("a.bin", "part/b.bin"):
        (tmp_path / name).write_bytes(name.encode())
    lines = {(hashlib.sha256(name.encode()).hexdigest(), name) for name in ("a.bin", "part/b.bin")}
    write_checksums(tmp_path / "sums", lines)
    subprocess.run(["sha256sum", "--check", "--strict", "sums"], cwd=tmp_path, check=True, capture_output=True)
    assert read_checksums(tmp_path / "sums", tmp_path, CorpusError) == lines
    done = subprocess.run(["sha256sum", "a.bin", "part/b.bin"], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "sums").write_bytes(done.stdout)
    assert read_checksums(tmp_path / "sums", tmp_path, CorpusError) == lines


def test_a_file_that_is_written_meanwhile_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without one nothing is listed; a writer that puts the first one there between two looks is not waited for."""
    path = tmp_path / "sums"

    def too_late(*arguments: object) -> bytes:
        write_checksums(path, [("0" * 64, "a")])
        raise CorpusError("does not exist")

    monkeypatch.setattr(checksums, "read_bytes", too_late)
    assert read_checksums(path, tmp_path, CorpusError) is None


def test_no_file_lists_nothing(tmp_path: Path):
    """None is not an empty list."""
    assert read_checksums(tmp_path / "sums", tmp_path, CorpusError) is None


@pytest.mark.parametrize("content", [b"\xff\n", b"0" * 64 + b"\n", b"0" * 64 + b"  -rf\n", b"{}"])
def test_what_is_no_list_is_refused(tmp_path: Path, content: bytes):
    """With the name of the file."""
    (tmp_path / "sums").write_bytes(content)
    with pytest.raises(CorpusError, match="sums is no list of checksums"):
        read_checksums(tmp_path / "sums", tmp_path, CorpusError)
