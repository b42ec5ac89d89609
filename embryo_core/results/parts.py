"""Folders of results not yet compacted: each appears and goes as a whole, whenever the process is killed.

    results/<run>/parts/<metric>/step{N}/     what one metric found at one step; being there is its mark of being done
    results/<run>/parts/<metric>/step{N}.tmp  being written, or left by a writer that was killed; never read
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from embryo_core.runs import replacing
from embryo_core.types import Run

Parts = dict[tuple[str, int], Path]


def list_parts(run: Run) -> Parts:
    """Folders of the complete parts by (metric, step), sorted."""
    found = {}
    for path in (run.results / "parts").glob("*/step*"):
        step = path.name.removeprefix("step")
        if step.isdecimal():
            found[path.parent.name, int(step)] = path
    return dict(sorted(found.items()))


@contextmanager
def new_part(run: Run, metric: str, step: int) -> Iterator[Path]:
    """An empty folder to write to, which becomes the part of this metric and step when the block ends without error."""
    with replacing(run.results / "parts" / metric / f"step{step}") as temporary:
        temporary.mkdir()
        yield temporary


def remove_part(part: Path) -> None:
    """Remove a part at once: renamed first, so that nobody meets half of it."""
    going = part.with_name(part.name + ".old.tmp")
    shutil.rmtree(going, ignore_errors=True)
    os.rename(part, going)
    shutil.rmtree(going)


def remove_leftovers(run: Run) -> None:
    """Remove the folder of parts and what killed writers left in it; for a writer that has removed all parts."""
    shutil.rmtree(run.results / "parts", ignore_errors=True)


@contextmanager
def lock(run: Run) -> Iterator[None]:
    """One writer at a time; the lock on the results folder goes with the process that holds it, however it ends."""
    run.results.mkdir(parents=True, exist_ok=True)
    folder = os.open(run.results, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
