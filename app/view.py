"""What a page shows: its run and the compared runs, the chosen step, and how curves over the steps are drawn."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from app import results
from embryo_core import runs
from embryo_core.comparison import Unit
from embryo_core.curves.step_scales import Scale
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.types import Checkpoint, Run
from embryo_core.words import name_step


@dataclass(frozen=True)
class View:
    """The state of a page: its run and checkpoints, the step on the time bar, and the options of curves over steps."""

    run: Run
    checkpoints: tuple[Checkpoint, ...]
    step: int
    scale: Scale
    smoothing: int = 1  # points of the running mean that is drawn next to the measured curves; 1 draws none
    compared_runs: tuple[Run, ...] = ()  # runs compared with the run of the page
    unit: Unit = "step"  # the unit of the axis of steps

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Return the steps of the run's checkpoints."""
        return tuple(checkpoint.step for checkpoint in self.checkpoints)

    @cached_property
    def loadable(self) -> tuple[int, ...]:
        """Return the steps of the checkpoints that have their weights."""
        return tuple(checkpoint.step for checkpoint in self.checkpoints if checkpoint.has_weights)

    @property
    def axis_choice(self) -> AxisChoice:
        """Return the reader's choice of how curves over the steps are drawn."""
        return AxisChoice(self.scale, self.unit, self.smoothing)

    @cached_property
    def axis(self) -> StepAxis:
        """Return the axis of steps of the page's run, which the time bar shares."""
        return self._axis_of(self.run)

    def _axis_of(self, run: Run) -> StepAxis:
        return results.step_axis(self.axis_choice, run, (self.run, *self.compared_runs))

    def name_step(self, step: int | str) -> str:
        """Name a step of the run in a sentence: "step 1,000", or "1,000 words"."""
        return name_step(step, self.run.step_unit)

    @property
    def drawn_runs(self) -> tuple[Run, ...]:
        """Return the run of the page, and the compared runs that the axis supports."""
        return (self.run, *(run for run in self.compared_runs if self.supports_axis(run)))

    def supports_axis(self, run: Run) -> bool:
        """Return whether a run records the unit of the axis; on one of steps, whether it counts those of the page."""
        return results.supports_axis(self.axis_choice, run, self.run)

    def for_run(self, run: Run) -> "View":
        """Return the view of a compared run: its checkpoints, and its step at the same point of the axis."""
        checkpoints = tuple(runs.checkpoints(run))
        steps = [checkpoint.step for checkpoint in checkpoints]
        shown = [step for step, place in zip(steps, self.bar_steps(run, steps), strict=True) if place <= self.step]
        return replace(self, run=run, checkpoints=checkpoints, step=max(shown, default=min(steps, default=0)))

    def bar_steps(self, run: Run, steps: Sequence[int]) -> list[float]:
        """Return, for each step [S] of a compared run, the step of the page's run at the same point of the axis."""
        progress, other_progress = self.axis.progress, self._axis_of(run).progress
        if progress is None or other_progress is None:
            return [*map(float, steps)]
        return progress.steps_at(other_progress.at(steps)).tolist()

    def evaluated_step(self, steps: Iterable[int]) -> int:
        """Return the step to show if only `steps` were evaluated: the last up to the chosen one, else the first."""
        return last_up_to(self.step, steps)


def last_up_to(step: int, steps: Iterable[int]) -> int:
    """Return the last of `steps` (not empty) that is not after `step`; the first if all are after it."""
    ascending = sorted(steps)
    return int(max((candidate for candidate in ascending if candidate <= step), default=ascending[0]))
