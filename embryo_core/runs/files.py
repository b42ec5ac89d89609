"""Files that are whole or absent: written under another name and renamed, and told apart by their hash."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

UNFINISHED = ".tmp"  # the end of a name: being written, or left by a writer that was killed


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A free path beside `path`; the file or folder written there takes its place when the block ends without error.

    Until then `path` stays as it was, and what a killed writer left under the other name is removed by the next. A file
    is replaced at once; a folder in the way is renamed first, so that nobody meets half of one. The other name is
    always the same: of two writers at once, one would remove what the other writes, so where there may be two, the
    caller holds a lock (`locked`).
    """
    temporary, old = path.with_name(path.name + UNFINISHED), path.with_name(path.name + ".old" + UNFINISHED)
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
    _remove(temporary)
    try:
        yield temporary
        if path.is_dir():
            _remove(old)
            os.rename(path, old)
        os.replace(temporary, path)
        _remove(old)
    except BaseException:
        _remove(temporary)
        raise


def write_json(path: Path, content: Any) -> None:
    """Write JSON so that a reader never sees half a file."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def sha256(file: Path | IO[bytes]) -> str:
    """Hexadecimal SHA-256 of a file, or of what an open one holds."""
    if isinstance(file, Path):
        with file.open("rb") as opened:
            return sha256(opened)
    return hashlib.file_digest(file, "sha256").hexdigest()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink(missing_ok=True)
