"""The progress of a run at a step: in sequences, tokens, words, training FLOPs, or as a share of the run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from embryo_core import runs
from embryo_core.compare.cost import cost_changes, training_flops
from embryo_core.curves import Floats
from embryo_core.types import Run

Unit = Literal["step", "sequences", "tokens", "words", "flops", "share"]
UNITS: tuple[Unit, ...] = ("step", "sequences", "tokens", "words", "flops", "share")


@dataclass(frozen=True)
class StepCounts:
    """Counts at two or more steps of a run, both ascending; values between steps are interpolated linearly."""

    steps: tuple[int, ...]
    counts: tuple[float, ...]

    @property
    def least(self) -> float:
        """Return the smallest count above 0."""
        return min(count for count in self.counts if count > 0)

    def at(self, steps: Sequence[int] | NDArray[np.integer]) -> Floats:
        """Return the counts [S] at `steps` [S]; beyond the last known step they are extrapolated at the last rate."""
        return _interpolate(steps, self.steps, self.counts)

    def steps_at(self, counts: Sequence[float] | Floats) -> Floats:
        """Return the fractional steps [S] at which the run reached `counts` [S]."""
        return _interpolate(counts, self.counts, self.steps)


def _interpolate(x: ArrayLike, known: Sequence[float], values: Sequence[float]) -> Floats:
    at = np.asarray(x, float)
    slope = (values[-1] - values[-2]) / (known[-1] - known[-2])
    return np.interp(at, known, values) + slope * np.maximum(0, at - known[-1])


def progress(run: Run, unit: Unit) -> StepCounts | None:
    """Return a run's progress at its checkpoints in a unit other than "step"; None if it is not recorded.

    Words are tokens times the words per token of the training text, as counted in frequencies.tsv. Raises BrokenRun.
    """
    checkpoints = runs.checkpoints(run)
    steps = sorted({checkpoint.step for checkpoint in checkpoints})
    if unit == run.step_unit:
        return _known({step: float(step) for step in steps})
    if unit == "share":
        last = max([*run.planned_steps, *steps], default=0)
        return _known({step: step / last for step in (0, *steps)}) if last else None
    if unit == "flops":
        return _known({step: training_flops(run, step) for step in sorted({*steps, *cost_changes(run)})})
    if unit == "sequences":
        return _known({checkpoint.step: checkpoint.sequences for checkpoint in checkpoints})
    rate = 1.0
    if unit == "words":
        words, tokens = sum(runs.read_counts(run.frequencies).values()), runs.counted_tokens(run)
        if not words or not tokens:
            return None
        rate = words / tokens
    return _known({one.step: one.tokens if one.tokens is None else rate * one.tokens for one in checkpoints})


def _known(counts: dict[int, float | None]) -> StepCounts | None:
    """Return the counts that are known and grow, from 0 at step 0 if there is only one; None if none is known."""
    known: dict[int, float] = {}
    for step, count in counts.items():
        if count is not None and (not known or count > max(known.values())):
            known[step] = float(count)
    if len(known) == 1 and min(*known, *known.values()) > 0:
        known = {0: 0.0, **known}
    return StepCounts(tuple(known), tuple(known.values())) if len(known) > 1 else None
