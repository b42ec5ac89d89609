"""What a page shows: its run and those beside it, the chosen step, and how curves over the steps are drawn."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from app import results
from embryo_core import runs
from embryo_core.compare import Unit
from embryo_core.curves.step_scales import Scale
from embryo_core.figures.axis import StepAxis
from embryo_core.types import Checkpoint, Run
from embryo_core.words import point


@dataclass(frozen=True)
class View:
    """What a page shows: one run, its steps, the one chosen on the time bar, and how curves over steps are drawn."""

    run: Run
    checkpoints: tuple[Checkpoint, ...]
    step: int
    scale: Scale
    smoothing: int = 1  # points, of which the mean is drawn beside the measured curves; 1: none
    compared_runs: tuple[Run, ...] = ()  # runs that are drawn beside the one that the page is about
    unit: Unit = "step"  # what the axis of steps counts

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The steps of the run's checkpoints."""
        return tuple(checkpoint.step for checkpoint in self.checkpoints)

    @cached_property
    def loadable(self) -> tuple[int, ...]:
        """The steps whose checkpoints have their weights."""
        return tuple(checkpoint.step for checkpoint in self.checkpoints if checkpoint.has_weights)

    @property
    def axis(self) -> StepAxis:
        """The axis of steps of every figure on the page."""
        return self.axis_of(self.run)

    def axis_of(self, run: Run) -> StepAxis:
        """The same axis with the changes and gaps of a run, and where its steps lie on it."""
        axis = StepAxis(self.scale, runs.changes(run), results.gaps(run), step_unit=run.step_unit)
        if self.unit == "step":
            return axis
        known = [found for one in (self.run, *self.compared_runs) if (found := results.progress(one, self.unit))]
        zero = min((found.least for found in known), default=1.0) / 2
        return replace(axis, unit=self.unit, progress=results.progress(run, self.unit), zero=zero)

    def point(self, step: int | str) -> str:
        """A step of the run as sentences name it: "step 1,000", or "1,000 words"."""
        return point(step, self.run.step_unit)

    @property
    def drawn(self) -> tuple[Run, ...]:
        """The run of the page and those compared with it that record what the axis counts."""
        return (self.run, *(run for run in self.compared_runs if self.supports_axis(run)))

    def supports_axis(self, run: Run) -> bool:
        """Whether a run can be drawn on the axis: its files tell what the axis counts."""
        return self.unit == "step" or results.progress(run, self.unit) is not None

    def of(self, run: Run) -> "View":
        """What the page shows of a run beside its own: its checkpoints, and where it was at the chosen step."""
        checkpoints = tuple(runs.checkpoints(run))
        steps = [checkpoint.step for checkpoint in checkpoints]
        shown = [step for step, at in zip(steps, self.at(run, steps), strict=True) if at <= self.step]
        return replace(self, run=run, checkpoints=checkpoints, step=max(shown, default=min(steps, default=0)))

    def at(self, run: Run, steps: Sequence[int]) -> list[float]:
        """For each of `steps` [S] of a run beside the page's: the page's own step at the same point of the axis."""
        own, other = self.axis.progress, self.axis_of(run).progress
        if own is None or other is None:
            return [*map(float, steps)]
        return own.steps_at(other.at(steps)).tolist()

    def evaluated(self, steps: Iterable[int]) -> int:
        """Which of the evaluated `steps`, at least one, to show: the last up to the chosen step, else the first."""
        return last_up_to(self.step, steps)


def last_up_to(step: int, steps: Iterable[int]) -> int:
    """The last of some steps, at least one, that is not after `step`; the first of them where all are."""
    known = sorted(steps)
    return int(max((one for one in known if one <= step), default=known[0]))
