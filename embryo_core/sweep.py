"""One question put to every checkpoint of a run, on all cores; one that cannot be read is left out and named."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Generic, TypeVar

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint
from embryo_core.model_cache import MODELS
from embryo_core.types import Checkpoint, Run

if TYPE_CHECKING:
    from embryo_core.model import Model
    from embryo_core.tokenizer import Tokenizer

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Sweep(Generic[Answer]):
    """What the readable checkpoints answered, in the order of steps."""

    tokenizer: "Tokenizer"  # the run's
    steps: tuple[int, ...]
    answers: tuple[Answer, ...]  # one per step
    skipped: tuple[str, ...]  # why a checkpoint was left out, one sentence each


def sweep(run: Run, ask: Callable[["Model"], Answer], steps: Iterable[int] | None = None) -> Sweep[Answer]:
    """Call `ask` with the model of every checkpoint of a run, or of the given steps, in as many threads as cores.

    Raises UnknownStep, TokenizerMismatch, what `ask` raises, and BrokenCheckpoint where no checkpoint can be read.
    """
    chosen = runs.checkpoints(run) if steps is None else [runs.checkpoint(run, step) for step in sorted(set(steps))]
    if not chosen:
        runs.checkpoint(run, 0)  # raises, telling how a run gets its checkpoints
    from embryo_core.model import CORES  # torch is imported by the first query, not by the dashboard

    def visit(checkpoint: Checkpoint) -> "tuple[Tokenizer, int, Answer] | BrokenCheckpoint":
        try:
            model = MODELS.get(checkpoint)
        except BrokenCheckpoint as error:
            return error
        return model.tokenizer, checkpoint.step, ask(model)

    shares = [range(i, len(chosen), CORES) for i in range(min(CORES, len(chosen)))]
    found = [None] * len(chosen)
    for share, replies in zip(shares, _threads(CORES).map(lambda share: [visit(chosen[i]) for i in share], shares)):
        found[share.start :: CORES] = replies
    skipped = tuple(str(error) for error in found if isinstance(error, BrokenCheckpoint))
    answered = [one for one in found if not isinstance(one, BrokenCheckpoint)]
    if not answered:
        raise BrokenCheckpoint(f"No checkpoint of run '{run.name}' can be read: {skipped[-1]}")
    tokenizers, numbers, answers = zip(*answered, strict=True)
    return Sweep(tokenizers[0], numbers, answers, skipped)


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    """Threads that stay: one's first pass takes milliseconds longer than its second."""
    return ThreadPoolExecutor(count, thread_name_prefix="sweep")
