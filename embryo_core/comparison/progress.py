"""The progress of a run at its steps: in sequences, tokens, words, training FLOPs, or as a share of the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from embryo_core import runs
from embryo_core.comparison.cost import cost_changes, training_flops
from embryo_core.curves import Floats
from embryo_core.engine.capabilities import DECODER_FAMILIES
from embryo_core.types import Checkpoint, Origin, Run

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


def _interpolate(x: ArrayLike, points: Sequence[float], values: Sequence[float]) -> Floats:
    targets = np.asarray(x, float)
    slope = (values[-1] - values[-2]) / (points[-1] - points[-2])
    return np.interp(targets, points, values) + slope * np.maximum(0, targets - points[-1])


def progress(run: Run, unit: Unit) -> StepCounts | None:
    """Return a run's progress at its checkpoints in a unit other than "step"; None if it is not recorded.

    Words are computed from tokens without special tokens, by the words per token of the training text
    (`runs.counted_words`). Raises BrokenRun.
    """
    checkpoints = runs.checkpoints(run)
    steps = sorted({checkpoint.step for checkpoint in checkpoints})
    if unit == run.step_unit:
        return _step_counts({step: float(step) for step in (0, *steps)})
    if unit == "share":
        last_step = max([*run.planned_steps, *steps], default=0)
        return _step_counts({step: step / last_step for step in (0, *steps)}) if last_step else None
    if unit == "flops":
        known_steps = sorted({run.first_step, *steps, *cost_changes(run)})
        return _step_counts({step: training_flops(run, step) for step in known_steps})
    if unit == "sequences":
        start_count = run.origin.sequences if run.origin else 0
        return _step_counts(_from_start(run, start_count, {state.step: state.sequences for state in checkpoints}))
    words_per_token, special_tokens = 1.0, 0
    if unit == "words":
        words, text_tokens = runs.counted_words(run), runs.counted_tokens(run)
        if not words or not text_tokens:
            return None
        words_per_token = words / text_tokens
        special_tokens = 1 if run.family in DECODER_FAMILIES else 3  # of a sequence: [CLS], and two [SEP] in an encoder
    start_count = (_tokens(run.origin, special_tokens) or 0) if run.origin else 0
    counts = _from_start(run, start_count, {state.step: _tokens(state, special_tokens) for state in checkpoints})
    return _step_counts({step: count if count is None else words_per_token * count for step, count in counts.items()})


def _tokens(state: Checkpoint | Origin, special_tokens: int) -> int | None:
    """Return the tokens seen without this number of special tokens in each sequence; None if a count is unknown."""
    if state.tokens is None or (special_tokens and state.tokens and not state.sequences):
        return None
    return max(0, state.tokens - special_tokens * (state.sequences or 0))


def _from_start(run: Run, start_count: int, counts: Mapping[int, int | None]) -> dict[int, float | None]:
    """Add the counts from the run's first step to the first known one, where they grow in proportion to the steps.

    `start_count` is the count at the first step of the run; for a continued run, 0 means unknown.
    """
    start = run.first_step
    first, first_count = next(((step, count) for step, count in counts.items() if count is not None), (start, 0))
    if first <= start or first_count <= start_count or (run.origin and not start_count):
        return {**counts}
    rate = (first_count - start_count) / (first - start)
    earlier_steps = [step for step in counts if start < step < first]
    return {**counts, **{step: start_count + rate * (step - start) for step in (start, *earlier_steps)}}


def _step_counts(counts: Mapping[int, float | None]) -> StepCounts | None:
    """Keep known, growing counts in the order of their steps; return None if fewer than two remain."""
    by_step: dict[int, float] = {}
    for step, count in sorted(counts.items()):
        if count is not None and (not by_step or count > max(by_step.values())):
            by_step[step] = float(count)
    return StepCounts(tuple(by_step), tuple(by_step.values())) if len(by_step) > 1 else None
