"""The axis of steps that every figure shares: scale, unit, where training changed, and marks of the chosen step.

A figure holds its marks at its last step, whatever step is chosen, and the time bar moves them in the browser
(components/step_marks.js): so a figure is the same at every step, and keeps its zoom and its hidden curves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from app.charts import style
from app.charts.gaps import break_lines
from embryo_core.curves import Scale, axis_values
from embryo_core.types import Change

CHANGE_LINE = "change"
STEP_LINE = "step"  # name of the line at the chosen step
STEP_MARK = "mark of the step"  # name of any other shape that marks it; see `follow_step`


@dataclass(frozen=True)
class StepAxis:
    """How a page draws time: the scale of the axis of steps, what changed, and what a step counts."""

    scale: Scale
    changes: tuple[Change, ...] = ()  # of the run: other text, longer sequences, a falling rate
    counted_in: str = "updates"  # what a step counts (see `types.Run`)
    gaps: tuple[int, ...] = ()  # missing and faulty steps, at which curves break

    @property
    def title(self) -> str:
        """The title of the axis."""
        return "step (optimizer updates)" if self.counted_in == "updates" else f"{self.counted_in} seen"

    def values(self, steps: Iterable[int]) -> list[float]:
        """Where steps lie on the axis, as Plotly takes it (see `curves.axis_values`)."""
        return axis_values([*steps], self.scale).tolist()

    def draw(self, figure: go.Figure, steps: Sequence[int]) -> go.Figure:
        """Give a figure of these `steps`, curves drawn, the axis and the lines of a step and of changes in training."""
        self.set_range(figure, steps)
        break_lines(figure, self.values(self.gaps))
        for change in self.changes:
            if min(steps) <= change.step <= max(steps):
                self._mark(figure, change)
        (x,) = self.values([max(steps)])
        return figure.add_shape(
            {"type": "line", "name": STEP_LINE, "xref": "x", "yref": "y domain", "x0": x, "x1": x, "y0": 0, "y1": 1},
            line={"color": style.GREY, "width": 1.5, "dash": "dot"},
            layer="below",
        )

    def _mark(self, figure: go.Figure, change: Change) -> None:
        (x,) = self.values([change.step])
        figure.add_shape(
            {"type": "line", "name": CHANGE_LINE, "xref": "x", "yref": "y domain", "x0": x, "x1": x, "y0": 0, "y1": 1},
            line={"color": style.GREY, "width": 1},
            label={
                "text": style.plain(change.what),
                "textposition": "end",
                "textangle": -90,
                "xanchor": "right",  # of the turned text: it ends where the line ends
                "font": {"size": 10},
            },  # above the curves, which would cross out the words
        )

    def set_range(self, figure: go.Figure, steps: Sequence[int]) -> go.Figure:
        """Give a figure of these `steps` the axis alone."""
        low, high = min(steps), max(steps) or 1
        named = {"title": {"text": self.title}, "type": self.scale}
        if self.scale == "log":
            ticks = ([0] if low == 0 else []) + [10**power for power in range(10) if low <= 10**power <= high]
            ticktext = [style.short(tick) for tick in ticks]
            return style.set_axes(figure, "x", **named, tickvals=self.values(ticks), ticktext=ticktext)
        margin = (high - low) * 0.02
        return style.set_axes(figure, "x", **named, range=[low - margin, high + margin], tickformat="~s")


def follow_step(figure: go.Figure, steps: Sequence[int], points: Sequence[Sequence[float]]) -> go.Figure:
    """Have shapes named STEP_MARK follow the step: `points` are their [x] or [x, y] at each of the sorted `steps`.

    They are drawn at the last point.
    """
    meta = {"steps": [*map(int, steps)], "points": [[*map(float, point)] for point in points]}
    return figure.update_layout(meta=meta)
