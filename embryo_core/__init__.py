"""Read runs, evaluate their checkpoints and make figures; docs/python.md describes the functions for notebooks."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from embryo_core import errors
from embryo_core.errors import EmbryoError

if TYPE_CHECKING:
    from embryo_core.study import ComparedRuns, Study, add, compare, evaluate, list_runs

__all__ = [
    "ComparedRuns",
    "EmbryoError",
    "Study",
    "add",
    "compare",
    "errors",
    "evaluate",
    "list_runs",
    "open",
]

STUDY_NAMES = ("ComparedRuns", "Study", "add", "compare", "evaluate", "list_runs")


def open(run: Any) -> "Study":  # hides the builtin, so that notebooks read `embryo.open(...)`
    """Open a run by its name in the data folders, or by its path. Raises UnknownRun, BrokenRun."""
    return import_module("embryo_core.study").Study(run)


def __getattr__(name: str) -> Any:
    """Import public names on first use, so that the command line starts without importing pandas."""
    if name in STUDY_NAMES:
        return getattr(import_module("embryo_core.study"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
