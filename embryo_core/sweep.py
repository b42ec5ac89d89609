"""One question put to every checkpoint of a run; a checkpoint that cannot be read is left out and named."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint
from embryo_core.model_cache import MODELS
from embryo_core.types import Checkpoint, Run

if TYPE_CHECKING:
    from embryo_core.model import Model

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Sweep(Generic[Answer]):
    """What the readable checkpoints answered, in the order of steps."""

    checkpoints: tuple[Checkpoint, ...]
    answers: tuple[Answer, ...]  # one per checkpoint
    skipped: tuple[str, ...]  # why a checkpoint was left out, one sentence each

    @property
    def steps(self) -> tuple[int, ...]:
        """The step of each answer."""
        return tuple(checkpoint.step for checkpoint in self.checkpoints)


def sweep(run: Run, ask: Callable[["Model"], Answer], steps: Iterable[int] | None = None) -> Sweep[Answer]:
    """Call `ask` with the model of every checkpoint of a run, or of the given steps.

    Raises UnknownStep, TokenizerMismatch, what `ask` raises, and BrokenCheckpoint where no checkpoint can be read.
    """
    chosen = runs.checkpoints(run) if steps is None else [runs.checkpoint(run, step) for step in sorted(set(steps))]
    read, answers, skipped = [], [], []
    for checkpoint in chosen or [runs.checkpoint(run, 0)]:
        try:
            model = MODELS.get(checkpoint)
        except BrokenCheckpoint as error:
            skipped.append(str(error))
            continue
        answers.append(ask(model))
        read.append(checkpoint)
    if not read:
        raise BrokenCheckpoint(f"No checkpoint of run '{run.name}' can be read: {skipped[-1]}")
    return Sweep(tuple(read), tuple(answers), tuple(skipped))
