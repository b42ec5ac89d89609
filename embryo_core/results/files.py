"""A table's parquet file and its checksum beside it: written together, verified before pyarrow reads a byte.

    scores.parquet          the table
    scores.parquet.sha256   its checksum, which `sha256sum --check` understands

On damaged files pyarrow may hang, or lose rows without a word. While a table is replaced or removed, the checksum file
lists what was there and what will be (for no file, the checksum of nothing). So whenever a writer is killed, one of the
two is there, and readers need not wait for writers.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from embryo_core.errors import ResultsError
from embryo_core.runs import replacing, sha256, shown
from embryo_core.runs.checksums import Checksums, read_checksums, write_checksums
from embryo_core.runs.reading import digest, locate, open_inside
from embryo_core.types import Run

LIMIT = 2**31  # bytes of a file
MAGIC = b"PAR1"  # at both ends of a parquet file
NOTHING = hashlib.sha256().hexdigest()

State = tuple[int, ...]


@dataclass(frozen=True)
class StoredFile:
    """A table's file, verified and open; equal to any other opening of it as long as nobody replaced it."""

    state: State
    opened: pa.NativeFile = field(compare=False)


# === Reading ===


def is_stored(path: Path) -> bool:
    """Whether a table is stored here; its file or its checksum may be lost."""
    return os.path.lexists(path) or os.path.lexists(_beside(path))


@contextmanager
def verified(run: Run, path: Path) -> Iterator[StoredFile | None]:
    """A table's file; None where a writer that was killed had just removed it.

    Raises FileNotFoundError where a writer replaced it meanwhile, and ResultsError or ValueError where it is not what
    was written, or no regular file of this run's results.
    """
    state = _verify(run, path)
    if state is None:
        yield None
        return
    try:
        with pa.OSFile(str(path)) as file:  # of a path, pyarrow would open footer and rows one after the other
            yield StoredFile(state, file)
    except Exception:
        if _state(os.stat(path)) == state:
            raise
        raise FileNotFoundError(path) from None  # a file that was replaced may be read with the footer of the old one
    if _state(os.stat(path)) != state:
        raise FileNotFoundError(path)


def _verify(run: Run, path: Path) -> State | None:
    """The state of a file whose checksum is right; None where there is no file, and none is listed."""
    listed = _listed(path, run.results)
    try:
        found, state = _hash(path, run.results)
        if (found, path.name) in listed:
            return state
        problem = _mismatch(run, path, state, bool(listed))
    except (ResultsError, ValueError) as error:
        problem = error
    if _listed(path, run.results) != listed:
        raise FileNotFoundError(path)
    raise problem


def _mismatch(run: Run, path: Path, state: State | None, listed: bool) -> Exception:
    if state is None:
        return ValueError("it is missing")
    if listed:
        return ValueError("it is not the file of its checksum")
    return ResultsError(
        f"{shown(path)} has no checksum beside it, as those of earlier versions; if you trust it, run in its folder: "
        f"sha256sum {path.name} > {_beside(path).name}, else delete it and run: "
        f"python -m embryo_core evaluate {run.name} --overwrite"
    )


def _hash(path: Path, within: Path) -> tuple[str, State | None]:
    """Checksum and state of a file, or of none. Raises ValueError where it does not end as parquet files do."""
    if not os.path.lexists(path):
        return NOTHING, None
    _, found = locate(path, within, ResultsError, LIMIT)
    with open_inside(path, within, ResultsError, LIMIT) as file:
        if _state(os.fstat(file.fileno())) != _state(found):
            raise FileNotFoundError(path)  # another file than the one whose size is known
        file.seek(max(0, found.st_size - len(MAGIC)))
        if file.read() != MAGIC:  # quicker than the checksum of a large file
            raise ValueError("it is no parquet file, or cut short")
    return digest(path, within, ResultsError, LIMIT), _state(found)


def _state(found: os.stat_result) -> State:
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


# === Writing ===


def seal(path: Path) -> None:
    """Write the checksum of the file at this path beside it."""
    write_checksums(_beside(path), {(sha256(path), path.name)})


@contextmanager
def replacing_table(path: Path) -> Iterator[Path]:
    """A free path; the table written there takes the place of the one at `path`, with its checksum."""
    with replacing(path) as temporary:
        yield temporary
        write_checksums(_beside(path), {*_listed(path, path.parent), (sha256(temporary), path.name)})
    seal(path)


def remove(path: Path) -> None:
    """Remove a table and its checksum, where they are."""
    if is_stored(path):
        write_checksums(_beside(path), {*_listed(path, path.parent), (NOTHING, path.name)})
        path.unlink(missing_ok=True)
        _beside(path).unlink()


def stored_checksum(path: Path, within: Path) -> str | None:
    """The checksum of the table at this path; None where there is no table, or one is just being replaced.

    Raises ResultsError where the checksum file is not one.
    """
    listed = {sha256 for sha256, _ in _listed(path, within)}
    return next(iter(listed)) if len(listed) == 1 and NOTHING not in listed else None


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _listed(path: Path, within: Path) -> Checksums:
    """What the checksum file lists; without one, nothing for a file that is there, and no file for none."""
    found = read_checksums(_beside(path), within, ResultsError)
    if found is None:
        return frozenset() if os.path.lexists(path) else frozenset({(NOTHING, path.name)})
    return found
