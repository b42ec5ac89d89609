"""Files of a run read without trust: regular, inside their folder, no larger than their kind may be."""

import os
import stat
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, TypeVar

from msgspec.json import Decoder

from embryo_core.errors import (
    BrokenCheckpoint,
    BrokenExamples,
    BrokenList,
    BrokenRun,
    BrokenTokenizer,
    BrokenTrainerState,
    CorpusError,
    EmbryoError,
    ResultsError,
)
from embryo_core.runs.files import sha256
from embryo_core.runs.schema import LIMITS, OTHER_LIMIT
from embryo_core.runs.trust import shown

Content = TypeVar("Content")
REMEDIES = {  # what to do about a file that is refused, by the error that says so
    BrokenRun: "copy the run again from where it came, or remove its folder",
    BrokenTokenizer: "copy it again from where it came, or name the folder of another with --tokenizer",
    BrokenCheckpoint: "train this step again or delete its folder",
    BrokenList: "remove it, and add its runs again with: python -m embryo_core add SOURCE --name NAME",
    BrokenTrainerState: "its log and counts are left out",
    CorpusError: "delete its folder and give the same command again",
    ResultsError: "delete it and evaluate the run again with --overwrite",
    BrokenExamples: "delete it, or find others with: python -m embryo_core examples RUN",
}


# === Reading ===


def locate(path: Path, within: Path, error: type[EmbryoError], limit: int | None = None) -> tuple[Path, os.stat_result]:
    """A file's path free of links, and its state; nothing is opened, so that pipes and devices do no harm.

    Raises `error` unless it is a regular file in the folder `within`, of at most `limit` bytes (None: those that a file
    of this name may have).
    """
    limit = LIMITS.get(path.name, OTHER_LIMIT) if limit is None else limit
    try:
        actual = Path(os.path.realpath(path, strict=True))
        found = os.stat(actual)
    except (FileNotFoundError, NotADirectoryError):
        raise refusal(path, "does not exist", error) from None
    except OSError as reason:
        raise refusal(path, f"cannot be read: {reason.strerror}", error) from None
    if not actual.is_relative_to(os.path.realpath(within)):
        raise refusal(path, f"is a link that leads out of {shown(within)}", error)
    if not stat.S_ISREG(found.st_mode):
        raise refusal(path, "is not a regular file", error)
    if found.st_size > limit:
        raise refusal(path, f"has {found.st_size:,} bytes, and at most {limit:,} are read", error)
    return actual, found


def open_inside(path: Path, within: Path, error: type[EmbryoError], limit: int | None = None) -> BinaryIO:
    """A file of a run, open for reading in bytes. Raises `error` as `locate` does, and where it may not be read."""
    actual, _ = locate(path, within, error, limit)
    try:
        return open(os.open(actual, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
    except OSError as reason:
        raise refusal(path, f"cannot be read: {reason.strerror}", error) from None


def read_bytes(path: Path, within: Path, error: type[EmbryoError]) -> bytes:
    """What a file of a run holds. Raises `error` as `open_inside` does."""
    with open_inside(path, within, error) as file:
        return file.read(os.fstat(file.fileno()).st_size)


def read_json(path: Path, within: Path, kind: type[Content], error: type[EmbryoError]) -> Content:
    """The content of a JSON file, checked against its kind (see schema.py). Raises `error` for everything else."""
    return parse_json(read_bytes(path, within, error), path, kind, error)


def parse_json(content: bytes, path: Path, kind: type[Content], error: type[EmbryoError]) -> Content:
    """JSON from the file at `path`, checked against its kind; NaN and Infinity are no JSON. Raises `error`."""
    try:
        return _decoder(kind).decode(content)
    except (ValueError, RecursionError) as reason:  # msgspec's own errors and those of UTF-8 are ValueErrors
        raise refusal(path, f"is not valid: {reason}", error) from None


@lru_cache
def _decoder(kind: type[Content]) -> Decoder[Content]:
    return Decoder(kind)  # to make one takes longer than to use it


def digest(path: Path, within: Path, error: type[EmbryoError], limit: int | None = None) -> str:
    """SHA-256 of a file of a run; hashed again only when its inode, time or size is another. Raises `error`."""
    actual, found = locate(path, within, error, limit)
    try:
        return _digest(actual, found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)
    except OSError as reason:
        raise refusal(path, f"cannot be read: {reason.strerror}", error) from None


@lru_cache(maxsize=65_536)
def _digest(path: Path, *_state: int) -> str:
    return sha256(path)


# === Refusing ===


def refusal(path: Path, what: str, error: type[EmbryoError]) -> EmbryoError:
    """The error for a file or folder of a run: one sentence that names it, says what it is, and what to do."""
    return error(f"{shown(path)} {what}; {REMEDIES[error]}.")

