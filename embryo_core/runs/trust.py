"""Safe reading and writing of a run's folder, which may be untrusted.

Reading. A file is opened only if it is a regular file inside the folder that it belongs to, and within the size limit
for its name: a link could lead to any file of this machine, a pipe or device would block, and a sparse file would fill
the memory. JSON is checked against its type in schema.py while it is parsed. Files with a checksum are hashed first.

Writing. A command changes only files of the run itself. Through a link inside the folder it would overwrite or remove
files of another run, so every writer calls `own_folder` first. A folder is removed only if all of its files are ones
that Embryo writes (atomic_files.py).

The folders above a run (`runs/`, `results/`, `cache/`) belong to the user and may be links. The folder of a run may be
a link too, which is then another name of the run. pointers.py checks weights outside a run, checkpoint_files.py
tensors, tokenizers/checks.py tokenizers, and results/checks.py rows of tables.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from msgspec.json import Decoder

from embryo_core.errors import (
    BrokenCheckpoint,
    BrokenExamples,
    BrokenRun,
    BrokenTokenizer,
    BrokenTrainerState,
    BrokenUserList,
    CorpusError,
    EmbryoError,
    ResultsError,
)
from embryo_core.runs.atomic_files import replacing, sha256
from embryo_core.runs.schema import LIMITS, OTHER_LIMIT
from embryo_core.types import Run

JUNCTION = 0xA0000003  # st_reparse_tag of a Windows junction, which os.path.islink does not detect
# Flags of `os.open`: Windows has only O_BINARY, other systems the remaining ones.
SAFELY = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"))
CHECKSUM_LINE = re.compile(rb"([0-9a-f]{64})  ([A-Za-z0-9_][A-Za-z0-9_./-]{0,200})")
REMEDIES = {  # class of the error -> remedy for a refused file
    BrokenRun: "copy the run again from where it came, or remove its folder",
    BrokenTokenizer: "copy it again from where it came, or name the folder of another with --tokenizer",
    BrokenCheckpoint: "copy this step again from where it came, or delete its folder",
    BrokenUserList: "remove it, and add its runs again with: python -m embryo_core add SOURCE --name NAME",
    BrokenTrainerState: "what cannot be read of it is left out",
    CorpusError: "delete its folder and give the same command again",
    ResultsError: "delete it and evaluate the run again with --overwrite",
    BrokenExamples: "delete it, or find others with: python -m embryo_core examples RUN",
}

Checksums = frozenset[tuple[str, str]]  # (SHA-256, name)
State = tuple[int, ...]  # state of a file; the first number is its mtime (ns)
Content = TypeVar("Content")
Refusal = TypeVar("Refusal", bound=EmbryoError)


# === Reading ===


def locate(path: Path, root: Path, error: type[EmbryoError], limit: int | None = None) -> tuple[Path, os.stat_result]:
    """Return a file's path without links, and its `os.stat` result, without opening it: a pipe or device could block.

    Raises `error` unless it is a regular file in the folder `root`, of at most `limit` bytes (by default, the limit
    for its name).
    """
    limit = LIMITS.get(path.name, OTHER_LIMIT) if limit is None else limit
    try:
        actual = Path(os.path.realpath(path, strict=True))
        status = os.stat(actual)
    except OSError as reason:
        raise refusal(path, reason, error) from None
    if not actual.is_relative_to(os.path.realpath(root)):
        raise refusal(path, f"is a link that leads out of {root}", error)
    if not stat.S_ISREG(status.st_mode):
        raise refusal(path, "is not a regular file", error)
    if status.st_size > limit:
        raise refusal(path, f"has {status.st_size:,} bytes (the maximum is {limit:,})", error)
    return actual, status


def open_inside(path: Path, root: Path, error: type[EmbryoError], limit: int | None = None) -> BinaryIO:
    """Open a file of a run for reading bytes. Raises `error` as `locate` does, or if it may not be read."""
    actual, _ = locate(path, root, error, limit)
    try:
        return open(os.open(actual, os.O_RDONLY | SAFELY), "rb")
    except OSError as reason:
        raise refusal(path, reason, error) from None


def read_bytes(path: Path, root: Path, error: type[EmbryoError]) -> bytes:
    """Return the content of a file of a run. Raises `error` as `open_inside` does."""
    with open_inside(path, root, error) as file:
        return file.read(os.fstat(file.fileno()).st_size)


def read_json(path: Path, root: Path, value_type: type[Content], error: type[EmbryoError]) -> Content:
    """Return the content of a JSON file, checked against its type (see schema.py). Raises `error` otherwise."""
    return parse_json(read_bytes(path, root, error), path, value_type, error)


def parse_json(content: bytes, path: Path, value_type: type[Content], error: type[EmbryoError]) -> Content:
    """Parse JSON from the file at `path`, checked against its type; NaN and Infinity are not JSON. Raises `error`."""
    try:
        return _decoder(value_type).decode(content)  # type: ignore[arg-type]  # classes are hashable
    except (ValueError, RecursionError) as reason:  # errors of msgspec and of UTF-8 are ValueErrors
        raise refusal(path, f"is not valid: {reason}", error) from None


@lru_cache
def _decoder(value_type: Any) -> Decoder:
    return Decoder(value_type)  # cached, since making a decoder takes longer than using it


def read_unchanged(path: str, root: Path, value_type: Any, error: type[EmbryoError]) -> tuple[Any, State]:
    """Return the content as `read_json` does, shared until the file changes (do not modify it), and its state."""
    state = state_of(path, error)
    return _read_unchanged(path, root, value_type, error, state), state  # type: ignore[arg-type]  # classes are hashable


@lru_cache(maxsize=32_768)
def _read_unchanged(path: str, root: Path, value_type: Any, error: type[EmbryoError], _state: State) -> Any:
    return read_json(Path(path), root, value_type, error)


def state_of(path: Path | str, error: type[EmbryoError] | None = None) -> State:
    """Return a value that changes when a file is replaced or written.

    If it cannot be examined, the value is (), or `error` is raised.
    """
    try:
        return state_from(os.stat(path))
    except OSError as reason:
        if error is None:
            return ()
        raise refusal(path, reason, error) from None


def while_unchanged(
    path_of: Callable[[Run], Path], entries: int
) -> Callable[[Callable[[Run], Content]], Callable[[Run], Content]]:
    """Return a decorator for readers of a run, which caches results until the file `path_of` the run changes.

    It keeps the last `entries` results, and returns them without a copy.
    """

    def decorate(read: Callable[[Run], Content]) -> Callable[[Run], Content]:
        cached_read = lru_cache(entries)(lambda run, _state: read(run))
        return wraps(read)(lambda run: cached_read(run, state_of(path_of(run))))

    return decorate


def digest(path: Path, root: Path, error: type[EmbryoError], limit: int | None = None) -> str:
    """Return the SHA-256 of a file of a run, cached until its inode, time or size changes. Raises `error`."""
    actual, state = locate(path, root, error, limit)
    try:
        return _digest(actual, state_from(state))
    except OSError as reason:
        raise refusal(path, reason, error) from None


@lru_cache(maxsize=65_536)
def _digest(path: Path, _state: State) -> str:
    return sha256(path)


def state_from(status: os.stat_result) -> State:
    """Return the state of a file from its `os.stat` result."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_dev, status.st_ino, status.st_size


# === Checksum files: a SHA-256 and the name of a file per line, in the format of `sha256sum` ===


def write_checksums(path: Path, lines: Iterable[tuple[str, str]]) -> None:
    """Write a checksum file of (SHA-256, name). A name may have several lines while its file is being replaced."""
    with replacing(path) as temporary:
        temporary.write_text("".join(f"{sha256}  {name}\n" for sha256, name in sorted(lines)), encoding="ascii")


def read_checksums(path: Path, root: Path, error: type[EmbryoError]) -> Checksums | None:
    """Return the content of a checksum file, or None if it is missing. Raises `error` if it is not a checksum file."""
    if not os.path.lexists(path):  # a writer may create it at any time
        return None
    try:
        lines = read_bytes(path, root, error).splitlines()
    except error:
        if os.path.lexists(path):
            raise
        return None
    matches = [CHECKSUM_LINE.fullmatch(line) for line in lines]
    if not all(matches):
        raise refusal(path, "is not a list of checksums", error)
    return frozenset((match[1].decode(), match[2].decode()) for match in matches if match)


# === Writing ===


def is_link(path: Path | str) -> bool:
    """Return whether a path is a symbolic link or a Windows junction."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISLNK(status.st_mode) or getattr(status, "st_reparse_tag", 0) == JUNCTION


def own_folder(folder: Path, root: Path, error: type[EmbryoError]) -> Path:
    """Return a folder or file to be changed. Raises `error` if it, a parent in `root`, or an entry is a link."""
    for parent in reversed([parent for parent in folder.parents if parent.is_relative_to(root)]):
        if is_link(parent):
            raise _refuse_link(parent, error)
    own_entries(folder, error)
    return folder


def own_entries(folder: Path, error: type[EmbryoError]) -> list[os.DirEntry]:
    """Return the entries of a folder, empty if it is missing. Raises `error` if it, or one of them, is a link."""
    if is_link(folder):
        raise _refuse_link(folder, error)
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as reason:
        raise refusal(folder, reason, error) from None
    for entry in entries:
        if entry.is_symlink() or (os.name == "nt" and is_link(entry.path)):
            raise _refuse_link(entry.path, error)
    return entries


# === Messages ===


def refusal(path: Path | str, problem: str | OSError, error: type[Refusal]) -> Refusal:
    """Return the error for a file or folder of a run: a sentence with its path, the problem, and the remedy."""
    if isinstance(problem, OSError):
        missing = isinstance(problem, FileNotFoundError | NotADirectoryError)
        problem = "does not exist" if missing else f"cannot be read: {problem.strerror}"
    return error(f"{path} {problem}; {REMEDIES[error]}.")


def _refuse_link(path: Path | str, error: type[Refusal]) -> Refusal:
    return error(
        f"{path} is a link, and Embryo changes only files of the run itself; remove the link, or put a copy of "
        "what it leads to in its place."
    )
