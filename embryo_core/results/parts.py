"""Folders of results not yet compacted: each appears and goes as a whole, whenever the process is killed.

    results/<run>/parts/<metric>/step{N}/     what one metric found at one step; being there is its mark of being done
    results/<run>/parts/<metric>/step{N}.tmp  being written, or left by a writer that was killed; never read
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from embryo_core.errors import ResultsError
from embryo_core.runs import locked, replacing
from embryo_core.runs.reading import refusal
from embryo_core.types import Run

Parts = dict[tuple[str, int], Path]
STEP = re.compile(r"step(0|[1-9][0-9]{0,18})")
LAST_STEP = 2**63 - 1


def list_parts(run: Run) -> Parts:
    """Folders of the complete parts by (metric, step), sorted. Raises ResultsError where they cannot be listed.

    A link is refused: compaction removes the parts that it has merged, and another's folders are none of them.
    """
    found = {}
    for metric in _folders(run.results / "parts"):
        for path in _folders(metric):
            match = STEP.fullmatch(path.name)
            if match and int(match[1]) <= LAST_STEP:
                found[metric.name, int(match[1])] = path
    return dict(sorted(found.items()))


def _folders(path: Path) -> list[Path]:
    """The folders in a folder, none where it is absent. Raises ResultsError where it or one of them is a link."""
    try:
        inside = [path / name for name in os.listdir(path)]
    except (FileNotFoundError, NotADirectoryError):
        inside = []
    except OSError as reason:
        raise refusal(path, f"cannot be read: {reason.strerror}", ResultsError) from None
    for one in (path, *inside):
        if one.is_symlink():
            raise refusal(one, "is a link", ResultsError)
    return [one for one in inside if one.is_dir()]


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
    """One writer at a time; the others wait for their turn."""
    with locked(run.results):
        yield
