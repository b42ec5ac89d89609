"""The axis of steps that every figure shares: scale, unit, changes in training, gaps, and the mark of the chosen step.

A figure always marks its last step. The time bar moves the mark in the browser (embryo_core/browser/step_marks.js), so
a figure is the same at every step and keeps its zoom and its hidden curves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import floor, log10
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core import runs as run_files
from embryo_core.comparison import StepCounts, Unit, progress
from embryo_core.curves.step_scales import STEP_0, Scale, axis_values
from embryo_core.errors import EmbryoError
from embryo_core.figures import style
from embryo_core.figures.downsampling import break_lines, downsample_curves
from embryo_core.types import Change, Run, StepUnit
from embryo_core.words import name_step, step_heading, two_digits

STEP_LINE = "step"  # name of the line at the chosen step
STEP_COLUMN = "column of the step"  # name of the shape around the step's column in a grid that is redrawn at each step
STEP_MARK = "mark of the step"  # name of other shapes that mark the step (see `follow_step`)
UNIT_TITLES: dict[Unit, str] = {
    "sequences": "sequences seen",
    "tokens": "tokens seen",
    "words": "words seen",
    "flops": "training FLOPs",
    "share": "share of the run",
}
MIN_TICKS, MAX_TICKS = 3, 10  # bounds on the number of ticks of a log axis
TICK_MULTIPLES = ((1,), (1, 2, 5), range(1, 10))  # multiples of powers of ten that may be ticks of a log axis
LEGEND_RANK = 2000  # rank of training changes in a legend, after curves (Plotly's default is 1000)


@dataclass(frozen=True)
class AxisChoice:
    """The axis of steps that a reader chose: scale, unit, and smoothing of curves."""

    scale: Scale = "log"
    unit: Unit = "step"
    smoothing: int = 1  # points of the running mean; 1: no smoothing

    def for_run(self, run: Run, runs: Sequence[Run] = ()) -> "StepAxis":
        """Return the step axis of a run, with its changes, gaps and progress; all `runs` have 0 at the same place."""
        axis = StepAxis(self.scale, run_files.changes(run), _gaps(run), step_unit=run.step_unit)
        if self.unit == "step":
            return axis
        all_counts = [counts for other in runs or (run,) if (counts := progress_of(other, self.unit))]
        zero = min((counts.least for counts in all_counts), default=1.0) / 2
        return replace(axis, unit=self.unit, progress=progress_of(run, self.unit), zero=zero)

    def supports(self, run: Run, first: Run) -> bool:
        """Return whether a run records the unit of the axis; on one of steps, whether it counts those of `first`."""
        return run.step_unit == first.step_unit if self.unit == "step" else progress_of(run, self.unit) is not None


def progress_of(run: Run, unit: Unit) -> StepCounts | None:
    """Return a run's progress at its checkpoints (see `comparison.progress`); None if its files cannot be read."""
    try:
        return progress(run, unit)
    except EmbryoError:
        return None


def _gaps(run: Run) -> tuple[int, ...]:
    """Return the steps at which curves break; if audit.json cannot be read, only those without a checkpoint."""
    try:
        return run_files.gaps(run)
    except EmbryoError:
        return tuple(run_files.missing_steps(run))


@dataclass(frozen=True)
class StepAxis:
    """The axis of steps of one run: positions of steps, changes in training, and gaps of curves."""

    scale: Scale
    changes: tuple[Change, ...] = ()  # in training, such as other text, longer sequences, a falling learning rate
    gaps: tuple[int, ...] = ()  # missing and faulty steps, at which curves break
    unit: Unit = "step"  # the unit of the axis; `step_unit` is what the run's steps count
    progress: StepCounts | None = None  # the run's progress in a unit other than steps
    zero: float = STEP_0  # the place of zero on a log axis
    estimated: bool = False  # whether steps are estimated between checkpoints: texts then have two significant digits
    step_unit: StepUnit = field(kw_only=True)

    @property
    def title(self) -> str:
        """Return the title of the axis."""
        return UNIT_TITLES[self.unit] if self.progress else self.title_of_steps

    @property
    def title_of_steps(self) -> str:
        """Return the title of an axis whose ticks are steps."""
        return "step (optimizer updates)" if self.step_unit == StepUnit.UPDATES else f"{self.step_unit} seen"

    def name_step(self, step: int | str) -> str:
        """Return a step in words: "step 1,000", or "1,000 words"; `step` may be a placeholder of Plotly."""
        return name_step(step, self.step_unit)

    def hover_step(self, variable: str) -> str:
        """Return a step in words for a hover template; Plotly fills in `variable`, such as "customdata[0]"."""
        return self.name_step(f"%{{{variable}:,}}")

    def describe(self, change: Change) -> str:
        """Return a change in training for a legend or a caption, in the unit of the axis."""
        return f"from {self.step_in_unit(change.step)}: {change.what}"

    @property
    def as_estimate(self) -> "StepAxis":
        """Return the axis for steps that are estimated between checkpoints: texts have two significant digits."""
        return replace(self, estimated=True)

    def _round(self, number: float) -> float:
        return two_digits(number) if self.estimated else number

    def step_in_unit(self, step: int) -> str:
        """Return a step in the unit of the axis: "step 1,000", "8.39 M tokens", or "3 % of the run"."""
        if self.progress is None:
            return self.name_step(int(self._round(step)))
        value = self._round(self.progress.at([step])[0])
        if self.unit == "share":
            return f"{100 * value:.3g} % of the run"
        return f"{style.abbreviate(value)} {self.title.removesuffix(' seen')}"

    def number(self, step: int) -> str:
        """Return a step without the word "step": "1,000", or "8.39 M tokens"."""
        return f"{int(self._round(step)):,}" if self.progress is None else self.step_in_unit(step)

    def short(self, steps: Sequence[int]) -> list[str]:
        """Return several steps in few characters, in the unit of the axis."""
        if self.progress is None:
            return style.abbreviate_all(steps)
        values = self.progress.at(steps)
        return [f"{100 * value:.3g} %" if self.unit == "share" else style.abbreviate(value) for value in values]

    def number_without_unit(self, step: int) -> str:
        """Return a step in the unit of the axis, without the unit's name: "1,000", or "8.39 M"."""
        return f"{step:,}" if self.progress is None else self.short([step])[0]

    def between(self, first: int, last: int) -> str:
        """Return a range without the word "step": "1,000 to 2,000", or "920 k tokens to 2 M tokens"."""
        low, high = self.number(first), self.number(last)
        start, _, unit = low.partition(" ")
        return f"{start if unit and high.endswith(f' {unit}') else low} to {high}"

    def step_heading(self, text: str) -> str:
        """Return the heading of a column of steps, with the axis's unit: "peak at step", or "peak at, in tokens"."""
        if self.progress is None:
            return step_heading(text, self.step_unit)
        return f"{text}, in {self.title.removesuffix(' seen')}"

    def column(self, steps: pd.Series) -> pd.Series:
        """Convert a column of steps, which may have missing values, to the unit of the axis."""
        if self.progress is None:
            return steps
        present = steps.dropna()
        return pd.Series(self.progress.at(present.to_numpy(int)), index=present.index).reindex(steps.index)

    def values(self, steps: Iterable[int]) -> list[float]:
        """Return the positions of steps on the axis, for Plotly (see `step_scales.axis_values`)."""
        return self.values_on(self.scale, [*steps])

    def values_on(self, scale: Scale, steps: Sequence[int]) -> list[float]:
        """Return the positions of steps on an axis of this scale."""
        if self.progress is None:
            return axis_values(steps, scale).tolist()
        values = self.progress.at(steps)
        return (np.where(values <= 0, self.zero, values) if scale == "log" else values).tolist()

    def draw(self, figure: go.Figure, steps: Sequence[int]) -> go.Figure:
        """Add the axis, the mark of the last step, and lines of training changes to a figure with curves at `steps`.

        Long curves are downsampled, and all break at the gaps of the run.
        """
        self.set_range(figure, steps)
        self.set_curves(figure)
        return self.mark_step(self.mark_changes(figure, steps), max(steps))

    def set_curves(self, figure: go.Figure) -> None:
        """Downsample the long curves of a figure, and break all curves at the gaps of the run."""
        downsample_curves(figure, self.scale)
        break_lines(figure, self.values(self.gaps))

    def mark_step(self, figure: go.Figure, step: int, panels: Sequence[str] = ("",)) -> go.Figure:
        """Draw the line that follows the chosen step, first at `step`.

        Small multiples have a line in each of their `panels`, which number the axes: "" is the first, "2" the second.
        """
        (x,) = self.values([step])
        line = {"color": style.GREY, "width": 1.5, "dash": "dot"}
        marks = [{"name": STEP_LINE, **_vertical_line(x, panel), "line": line, "layer": "below"} for panel in panels]
        return _add_shapes(figure, marks)

    def mark_changes(
        self,
        figure: go.Figure,
        steps: Sequence[int],
        run_name: str = "",
        opacity: float = 1.0,
        panels: Sequence[str] = ("",),
    ) -> go.Figure:
        """Draw a line at each change in training among `steps`, in all `panels`; the legend describes the changes.

        With several runs, `run_name` is the name of this run, `opacity` distinguishes its lines, and the legend has one
        entry for all its changes.
        """
        labels, marks = set(), []
        for change in self.changes:
            if not min(steps) <= change.step <= max(steps):
                continue
            (x,) = self.values([change.step])
            label = f"{run_name}: training changes" if run_name else self.describe(change)
            for panel in panels:
                line = {"color": style.with_opacity(style.GREY, opacity), "width": 1}
                entry = {"name": style.escape_text(label), "legendgroup": label, "showlegend": label not in labels}
                labels.add(label)
                marks.append({**_vertical_line(x, panel), **entry, "legendrank": LEGEND_RANK, "line": line})
        return _add_shapes(figure, marks)

    def set_range(self, figure: go.Figure, steps: Sequence[int]) -> go.Figure:
        """Set the range, title and ticks of the axis for a figure of these `steps`."""
        return self.set_ends(figure, *self.counts([min(steps), max(steps)]))

    def counts(self, steps: Sequence[int]) -> list[float]:
        """Return `steps` in the unit of the axis; 0 stays 0 on a log axis too."""
        return [*map(float, steps if self.progress is None else self.progress.at(steps))]

    def set_ends(self, figure: go.Figure, low: float, high: float, margin: float | None = None) -> go.Figure:
        """Set the range, title and ticks of the axis, for points from `low` to `high` in its unit.

        `margin` is the room on both sides, as a fraction of the range; by default Plotly chooses that of a log axis.
        """
        settings: dict[str, Any] = {"title": {"text": self.title}, "type": self.scale}
        is_share, log = self.unit == "share", self.scale == "log"
        if log or low == high:
            ticks = [low] if low == high else ([0] if low <= 0 else []) + self._ticks(low, high)
            settings["ticktext"] = [f"{100 * tick:g} %" for tick in ticks] if is_share else style.abbreviate_all(ticks)
            settings["tickvals"] = [self.zero if tick == 0 and log else tick for tick in ticks]
        else:
            settings["tickformat"] = "~%" if is_share else "~s"
            margin = 0.02 if margin is None else margin
        if margin is not None:
            left, right = (log10(end if end > 0 else self.zero) if log else end for end in (low, high))
            room = margin * (right - left or 1)
            settings["range"] = [left - room, right + room]
        return style.set_axes(figure, "x", **settings)

    def _ticks(self, low: float, high: float) -> list[float]:
        """Return the ticks of a log axis: powers of ten, with multiples if they are few, every n-th if many.

        If there are none between `low` and `high`, these are the ticks.
        """
        lowest = max(low, 2 * self.zero)
        powers = [10.0**power for power in range(floor(log10(lowest)), floor(log10(high)) + 1)]
        for multiples in TICK_MULTIPLES:
            ticks = [tick for power in powers for multiple in multiples if lowest <= (tick := multiple * power) <= high]
            if len(ticks) >= MIN_TICKS:
                break
        return ticks[:: -(-len(ticks) // MAX_TICKS)] if ticks else [lowest, high]


def _vertical_line(x: float, panel: str) -> dict[str, Any]:
    """Return Plotly's shape of a vertical line across a panel."""
    return {"type": "line", "xref": f"x{panel}", "yref": f"y{panel} domain", "x0": x, "x1": x, "y0": 0, "y1": 1}


def _add_shapes(figure: go.Figure, shapes: Sequence[dict[str, Any]]) -> go.Figure:
    """Add several shapes to a figure at once: `add_shape` copies and validates all shapes at each call."""
    if shapes:
        figure.layout.shapes = [*figure.layout.shapes, *shapes]
    return figure


def follow_step(figure: go.Figure, steps: Sequence[int], points: Sequence[Sequence[float]]) -> go.Figure:
    """Make shapes named STEP_MARK follow the chosen step; a figure function draws them at the last point.

    `points` are their places, [x] or [x, y], at each of the sorted `steps`.
    """
    meta = {"steps": [*map(int, steps)], "points": [[*map(float, point)] for point in points]}
    return figure.update_layout(meta=meta)
