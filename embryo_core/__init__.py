"""Runs in, results out; `embryo.open` gives a run as data (docs/python.md)."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embryo_core.study import Study

__all__ = ["open"]


def open(run: str | Path) -> "Study":  # named for `embryo.open(...)`
    """The run of this name under the data roots, or in the folder of this path. Raises UnknownRun, BrokenRun."""
    from embryo_core.study import Study

    return Study(run)
