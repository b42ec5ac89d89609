"""The data of the time bar: the position of each step on the bar and on the figures, for both scales."""

from collections.abc import Collection, Sequence
from typing import Any

from embryo_core.curves.phases import Phase
from embryo_core.curves.step_scales import SCALES, Scale, axis_shares
from embryo_core.curves.turns import Stretch
from embryo_core.figures.axis import STEP_COLUMN, STEP_LINE, STEP_MARK, StepAxis
from embryo_core.types import Change, Checkpoint, StepUnit
from embryo_core.words import name_step_range

WHOLE = 100_000  # length of the bar in integer positions, which are sent in a tenth of the time of fractions


def bar_data(
    checkpoints: Sequence[Checkpoint],
    step: int,
    axis: StepAxis,
    phases: Sequence[Phase | Stretch] = (),
    stops: Collection[int] = (),
) -> dict[str, Any]:
    """Return the data of the time bar at `step`: for both scales, the position of each step on the bar and on figures.

    Positions on the bar are 0 to WHOLE. Steps without weights have a hollow mark; changes of settings and `phases` are
    marked too. Playing stops at `stops`, by default at all steps.
    """
    steps = [checkpoint.step for checkpoint in checkpoints]
    return {
        "run": checkpoints[0].run.name if checkpoints[0].run else "",
        "steps": steps,
        "stops": [stop for stop in steps if stop in stops] or steps,
        "tokens": [checkpoint.tokens for checkpoint in checkpoints],
        "hollow": [checkpoint.step for checkpoint in checkpoints if not checkpoint.has_weights],
        "step": step,
        "scale": axis.scale,
        "counted": "" if axis.step_unit == StepUnit.UPDATES else axis.step_unit,
        "changes": [_change(change, steps, axis) for change in axis.changes if steps[0] <= change.step <= steps[-1]],
        "phases": [
            _stretch(phase, steps, axis) for phase in phases if phase.start < steps[-1] and phase.end > steps[0]
        ],
        "places": {scale: _places(steps, scale) for scale in SCALES},
        "whole": WHOLE,
        "values": {scale: axis.values_on(scale, steps) for scale in SCALES},
        "line": STEP_LINE,
        "mark": STEP_MARK,
        "column": STEP_COLUMN,
    }


def _places(steps: Sequence[int], scale: Scale) -> list[int]:
    """Return the positions of ascending steps between the first (0) and the last (WHOLE)."""
    return (axis_shares(steps, scale) * WHOLE).round().astype(int).tolist()


def _change(change: Change, steps: Sequence[int], axis: StepAxis) -> dict[str, Any]:
    """Return a change of settings for the bar: its description, and its position on each scale."""
    places = {scale: _places([steps[0], change.step, steps[-1]], scale)[1] for scale in SCALES}
    return {"what": f"{axis.name_step(change.step)}: {change.what}", "places": places}


def _stretch(phase: Phase | Stretch, steps: Sequence[int], axis: StepAxis) -> dict[str, Any]:
    """Return a phase for the bar: its name and steps, and the positions of both ends on each scale."""
    ends = [min(max(step, steps[0]), steps[-1]) for step in (phase.start, phase.end)]
    places = {scale: _places([steps[0], *ends, steps[-1]], scale)[1:3] for scale in SCALES}
    label = f"{phase.name}: {name_step_range(phase.start, phase.end, axis.step_unit)}"
    return {"name": phase.name, "what": label, "start": phase.start, "end": phase.end, "places": places}
