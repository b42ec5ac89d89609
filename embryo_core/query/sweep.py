"""Ask many checkpoints on all cores; a question can be paused or ended between two chunks of its work."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from embryo_core import runs
from embryo_core.engine.cache import MODELS, memory_limit
from embryo_core.errors import BrokenCheckpoint, MissingWeights
from embryo_core.types import Checkpoint, Run

if TYPE_CHECKING:
    from embryo_core.engine.model import Model

Answer = TypeVar("Answer")
OPERATIONS = 7.5e9  # floating-point operations per chunk: about an eighth of a second on one core
WAITING_QUESTIONS = 8  # questions whose threads may be paused while the threads of another question work
POLL_SECONDS = 0.1  # seconds between the calling thread's calls of `between_chunks` while it waits for other threads

_pause: ContextVar[Callable[[], None]] = ContextVar("pause", default=lambda: None)


# === Chunks ===


@contextmanager
def pausing(pause: Callable[[], None]) -> Iterator[None]:
    """Call `pause` before each chunk of questions asked in this context, in all of their threads."""
    token = _pause.set(pause)
    try:
        yield
    finally:
        _pause.reset(token)


def between_chunks() -> None:
    """Call the function given to `pausing`, which may block, or end the question with an exception."""
    _pause.get()()


# === Checkpoints ===


def sweep_run(
    run: Run, ask: "Callable[[Sequence[Model]], Sequence[Answer]]", steps: Iterable[int] | None = None
) -> tuple[dict[int, Answer], tuple[str, ...]]:
    """Ask every checkpoint of a run, or those of given steps; return the answers by step, and reasons for omissions.

    Raises UnknownStep, MissingWeights; CheckpointError if none has weights, BrokenCheckpoint if none can be read.
    """
    answers, failures = sweep(runs.loadable_checkpoints(run, steps), ask)
    without_weights = runs.explain_missing_weights(runs.checkpoints(run)) if steps is None else []
    skipped = (*without_weights, *(failures[step] for step in sorted(failures)))
    if not answers:
        raise unreadable_error(run, skipped)
    return dict(sorted(answers.items())), skipped


def unreadable_error(run: Run, reasons: Sequence[str]) -> BrokenCheckpoint:
    """Return the error for a run without a readable checkpoint, with the last reason."""
    if len(reasons) == 1:
        return BrokenCheckpoint(reasons[0])
    return BrokenCheckpoint(f"No checkpoint of run '{run.name}' can be read: {reasons[-1]}")


def sweep(
    checkpoints: Sequence[Checkpoint], ask: "Callable[[Sequence[Model]], Sequence[Answer]]", transient: bool = False
) -> tuple[dict[int, Answer], dict[int, str]]:
    """Ask checkpoints; return the answers by step, and by step the reasons why checkpoints cannot be read.

    `ask` gets several models at once and returns an answer for each: with fewer calls, threads wait less for one
    another. The models of a call fill about a quarter of the memory limit, divided among the threads. The sweep can be
    paused between checkpoints (`pausing`). `transient` as for `ModelCache.get`. Raises TokenizerMismatch, and the
    errors of `ask`.
    """
    from embryo_core.engine.device import CPU  # imports torch, with the first query

    thread_count = (MODELS.device or CPU).parallel_passes()
    answers: dict[int, Answer] = {}
    failures: dict[int, str] = {}
    stop = Event()  # set when the calling thread fails or is done; other threads then start no more work

    def answer(models: "Sequence[Model]") -> None:
        try:
            answers.update(zip((model.checkpoint.step for model in models), ask(models), strict=True))
        except BrokenCheckpoint as error:
            if len(models) == 1:
                failures[models[0].checkpoint.step] = str(error)
                return
            for model in models:  # other checkpoints can answer
                answer([model])

    def visit(own_share: Sequence[Checkpoint]) -> None:
        for models in _load_groups(own_share, memory_limit() // (4 * thread_count), transient, failures, stop):
            answer(models)

    own_share, *other_shares = [checkpoints[i::thread_count] for i in range(min(thread_count, len(checkpoints)))]
    futures = [_pool(thread_count).submit(copy_context().run, visit, other_share) for other_share in other_shares]
    try:
        visit(own_share)
        _join(futures)
    finally:
        stop.set()
        wait(futures)
    return answers, failures


def _load_groups(
    checkpoints: Sequence[Checkpoint], max_bytes: int, transient: bool, failures: dict[int, str], stop: Event
) -> "Iterator[list[Model]]":
    """Yield models in groups that fill `max_bytes`, until `stop` is set; add unreadable checkpoints to `failures`."""
    models: list[Model] = []
    for checkpoint in checkpoints:
        if stop.is_set():
            return
        between_chunks()
        try:
            models.append(MODELS.get(checkpoint, transient))
        except (BrokenCheckpoint, MissingWeights) as error:  # MissingWeights: they were removed in the meantime
            failures[checkpoint.step] = str(error)
        if models and (checkpoint is checkpoints[-1] or sum(model.nbytes for model in models) >= max_bytes):
            yield models
            models = []


def _join(futures: Sequence[Future]) -> None:
    """Wait for the other threads; raise their errors, or the error with which `pausing` ends the question."""
    while wait(futures, POLL_SECONDS).not_done:
        between_chunks()
    for future in futures:
        future.result()


@cache
def _pool(thread_count: int) -> ThreadPoolExecutor:
    """Return a pool that stays alive between sweeps, since the first pass of a new thread is slower."""
    return ThreadPoolExecutor(WAITING_QUESTIONS * thread_count, thread_name_prefix="sweep")
