"""Read runs, evaluate their checkpoints, make figures; `embryo.open` gives a run as data (docs/python.md)."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embryo_core.study import Study

__all__ = ["open"]


def open(run: str | Path) -> "Study":  # named for `embryo.open(...)`
    """Open a run by its name in the data folders, or by its path. Raises UnknownRun, BrokenRun."""
    from embryo_core.study import Study

    return Study(run)
