"""One question put to every checkpoint of a run that has weights, on all cores; what is left out is named."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache
from threading import Event
from typing import TYPE_CHECKING, Generic, TypeVar

from embryo_core import runs
from embryo_core.engine.cache import MODELS, memory_limit
from embryo_core.errors import BrokenCheckpoint, MissingWeights
from embryo_core.query.chunks import between_chunks
from embryo_core.types import Checkpoint, Run

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer

Answer = TypeVar("Answer")
Answered = dict[int, tuple["Tokenizer", Answer]]  # by step
ASIDE = 8  # questions whose threads may wait between two chunks while those of another work
POLL = 0.1  # seconds between two checks of the caller's thread whether the question still has its turn


@dataclass(frozen=True)
class Sweep(Generic[Answer]):
    """What the readable checkpoints answered, in the order of steps."""

    tokenizer: "Tokenizer"  # the run's
    steps: tuple[int, ...]
    answers: tuple[Answer, ...]  # one per step
    skipped: tuple[str, ...]  # why a checkpoint was left out, one sentence each


def sweep(
    run: Run, ask: "Callable[[Sequence[Model]], Sequence[Answer]]", steps: Iterable[int] | None = None
) -> Sweep[Answer]:
    """Call `ask` with the models of every checkpoint of a run, or of the given steps, a thread for each pass at once.

    Raises UnknownStep, what `ask_each` raises, and MissingWeights or BrokenCheckpoint where no checkpoint can be read,
    or a given one has no weights.
    """
    chosen = runs.loadable(run, steps)
    if not chosen:
        runs.checkpoint(run, 0)  # raises, telling how a run gets its checkpoints
    answered, broken = ask_each(chosen, ask)
    thinned = runs.left_out(runs.checkpoints(run)) if steps is None else []
    return in_order(run, answered, (*thinned, *(broken[step] for step in sorted(broken))))


def in_order(run: Run, answered: Answered, skipped: tuple[str, ...]) -> Sweep[Answer]:
    """What was answered, as a Sweep. Raises BrokenCheckpoint where nothing was."""
    if not answered:
        raise nothing_read(run, skipped)
    numbers = tuple(sorted(answered))
    tokenizers, answers = zip(*(answered[step] for step in numbers), strict=True)
    return Sweep(tokenizers[0], numbers, answers, skipped)


def nothing_read(run: Run, reasons: Sequence[str]) -> BrokenCheckpoint:
    """The error for a run of which no checkpoint can be read, and the last of the reasons."""
    return BrokenCheckpoint(f"No checkpoint of run '{run.name}' can be read: {reasons[-1]}")


def ask_each(
    chosen: Sequence[Checkpoint], ask: "Callable[[Sequence[Model]], Sequence[Answer]]", passing: bool = False
) -> tuple[Answered, dict[int, str]]:
    """What each of some checkpoints answers, by its step; and why others cannot be read, one sentence each.

    `ask` is given several models at once, and returns an answer for each: the fewer its calls, the less the threads
    wait for one another. At work together are as many as fill a quarter of the memory limit, or one for each thread.
    It pauses between checkpoints (see chunks.py). `passing` as for `ModelCache.get`. Raises TokenizerMismatch, and what
    `ask` raises.
    """
    from embryo_core.engine.device import CPU  # torch is imported by the first query, not by the dashboard

    threads = (MODELS.device or CPU).passes_at_once()
    room = memory_limit() // (4 * threads)
    answered: Answered = {}
    broken: dict[int, str] = {}
    ended = Event()  # by one of the threads; the others begin nothing more

    def visit(share: Sequence[Checkpoint]) -> None:
        models: list[Model] = []
        for checkpoint in share:
            if ended.is_set():
                return
            between_chunks()
            try:
                models.append(MODELS.get(checkpoint, passing))
            except (BrokenCheckpoint, MissingWeights) as error:  # the latter: removed just now
                broken[checkpoint.step] = str(error)
            if models and (checkpoint is share[-1] or sum(model.nbytes for model in models) >= room):
                for model, answer in zip(models, ask(models), strict=True):
                    answered[model.checkpoint.step] = model.tokenizer, answer
                models = []

    own, *others = [chosen[i::threads] for i in range(min(threads, len(chosen)))]
    working = [_pool(threads).submit(copy_context().run, visit, share) for share in others]
    try:
        visit(own)
        _join(working)
    finally:
        ended.set()
        wait(working)
    return answered, broken


def _join(working: Sequence[Future]) -> None:
    """Wait for the other threads, and raise what they raised, or what ends the question meanwhile."""
    while wait(working, POLL).not_done:
        between_chunks()
    for one in working:
        one.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads kept alive between sweeps: the first pass of a new thread is slower."""
    return ThreadPoolExecutor(ASIDE * threads, thread_name_prefix="sweep")
