"""What captions say of runs beside each other: which they are, on how many cases, and which are missing."""

from collections.abc import Mapping, Sequence

import pandas as pd

from embryo_core.compare import Unit
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.markdown import literal
from embryo_core.types import Run
from embryo_core.words import span

COUNTED: dict[Unit, str] = {
    "sequences": "how many sequences it had seen",
    "tokens": "how many tokens it had seen",
    "words": "how many words it had seen",
    "flops": "the FLOPs of its training",
    "share": "its planned length",
}


def named(seeds: Sequence[Run]) -> str:
    """A run by its name, or several seeds of one design by all of theirs."""
    names = [run.name for run in seeds]
    return names[0] if len(names) == 1 else f"{', '.join(names)} (mean of {len(names)} seeds)"


def own(run: Run) -> str:
    """Whose numbers a caption has that was written for one run."""
    return f" Numbers up to here are those of {literal(run.name)}."


def runs(lines: Sequence[tuple[str, pd.Series]], seeds: bool, baselines: bool) -> str:
    """The runs of a figure, each with its n, the cases behind its points.

    Whether any is a mean over `seeds`, and whether there are `baselines`.
    """
    listed = "; ".join(f"{literal(name)}{_cases(n)}" for name, n in lines)
    mean = " Of several seeds: the mean, and a band from the least to the greatest." if seeds else ""
    thin = " Dashed: the baseline, one line where all runs have the same, else one as light as each run."
    thin = thin if baselines else ""
    if len(lines) == 1 and not seeds:
        return f" Run: {listed}.{thin}"
    return (
        f" Runs, each with its symbol and lightness: {listed}.{mean} Where there are many lines, each category has a "
        f"panel with a vertical axis of its own.{thin} Point at a curve to read all runs there."
    )


def _cases(n: pd.Series) -> str:
    known = n.dropna().astype(int)
    return "" if known.empty else f" (n = {span(known)})"


def changes(axes: Mapping[str, StepAxis]) -> str:
    """What the vertical lines of each run, given with its axis, stand for."""
    listed = [f"{name} {', '.join(map(axis.describe, axis.changes))}" for name, axis in axes.items() if axis.changes]
    return f" Vertical lines: {literal('; '.join(listed))}."


def missing(run: Run) -> str:
    """That a figure leaves out a run, which lacks its measures."""
    return f"Run '{run.name}' has not been measured for this figure."


def left_out(run: Run, unit: Unit) -> str:
    """That a page leaves out a run, which does not tell what the axis counts."""
    return f"Run '{run.name}' does not record {COUNTED[unit]}; it is left out."
