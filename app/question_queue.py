"""The queue of questions: one is computed at a time, on all cores, cheap ones first, until its visitor leaves.

The queue is sorted by the time of arrival plus PATIENCE seconds for each second that a question costs, so that cheap
questions go first and expensive ones do not wait for ever. A heavy question pauses between two of its chunks
(embryo_core/query/sweep.py) while another is before it in the queue, and for DRAW_SECONDS after a light one, whose page
is then drawn and may ask its next question; a heavy question that is due does not wait for DRAW_SECONDS. A session has
one question at a time: Streamlit runs its pages in one thread, and the visitor's next action, or leaving, ends the
current question. Costs are estimated by embryo_core/query/cost.py; the environment variable EMBRYO_QUESTION_BUDGET
limits them.

This module is not named queue.py: Streamlit puts app/ first on sys.path, where it would hide the standard library's.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, Lock
from time import monotonic
from typing import TypeVar

from streamlit.runtime.scriptrunner import get_script_run_ctx

from embryo_core.errors import ConfigError, TooCostly
from embryo_core.query import pausing

BUDGET_VARIABLE = "EMBRYO_QUESTION_BUDGET"  # environment variable: core-seconds of a question; unlimited if unset
PATIENCE = 10  # seconds of waiting for each second of cost
MAX_LIGHT_COST = 0.5  # core-seconds: a question up to this cost is light, and never paused
DRAW_SECONDS = 0.3  # seconds that a page takes to draw an answer
MAX_HEAVY = 4  # heavy questions under way at once; paused ones hold memory too
POLL_SECONDS = (
    0.1  # seconds after which a paused question checks whether it may continue and its visitor is still there
)
WAITING_POLL_SECONDS = 0.5  # the same for a question that has not begun, which is also notified when its turn comes

Result = TypeVar("Result")


@dataclass(eq=False)
class _QueuedQuestion:
    """One question in the queue."""

    cost: float  # core-seconds
    due: float  # arrival + PATIENCE * cost (monotonic clock, seconds): the key by which the queue is sorted
    check: Callable[[], None]  # raises once the visitor has left or acted again
    notified: Condition  # notified when its turn comes
    begun: bool = False
    ended: BaseException | None = None  # the error that `check` raised in one of its threads


class Queue:
    """The queue of all questions of this process."""

    def __init__(self) -> None:
        self._waiting: list[_QueuedQuestion] = []
        self._lock = Lock()
        self._drawn_at = 0.0  # when the page of the last light question has probably drawn its answer

    @contextmanager
    def turn(self, cost: float, check: Callable[[], None] = lambda: None) -> Iterator[Callable[[], None]]:
        """Wait for a question's turn; yield a function that the question calls between its chunks, in any thread.

        `check` is called while the question waits and between its chunks; it ends the question by raising.
        """
        waiting = _QueuedQuestion(cost, monotonic() + PATIENCE * cost, check, Condition(self._lock))
        with self._lock:
            self._waiting.append(waiting)
        try:
            self._wait(waiting)
            yield lambda: self._wait(waiting)
        finally:
            with self._lock:
                self._waiting.remove(waiting)
                if waiting.begun and waiting.cost <= MAX_LIGHT_COST:
                    self._drawn_at = monotonic() + DRAW_SECONDS
                if self._waiting:  # wake only the next one: every thread that wakes competes for the GIL
                    self._first().notified.notify_all()

    def _wait(self, waiting: _QueuedQuestion) -> None:
        """Return once the question has its turn. Raises the error of its `check`, in all threads of the question."""
        while True:
            if waiting.ended:
                raise waiting.ended
            try:
                waiting.check()
            except BaseException as error:
                waiting.ended = error
                raise
            with self._lock:
                if self._may_go_on(waiting):
                    waiting.begun = True
                    return
                waiting.notified.wait(POLL_SECONDS if waiting.begun else WAITING_POLL_SECONDS)

    def _may_go_on(self, waiting: _QueuedQuestion) -> bool:
        """Return whether a question may compute now; a light one that has begun always may."""
        if waiting.cost <= MAX_LIGHT_COST:
            return waiting.begun or self._first() is waiting
        return self._first() is waiting and monotonic() >= min(self._drawn_at, waiting.due)

    def _first(self) -> _QueuedQuestion:
        """Return the question whose turn it is; a heavy one begins only while fewer than MAX_HEAVY have begun."""
        heavy = [question for question in self._waiting if question.begun and question.cost > MAX_LIGHT_COST]
        full = len(heavy) >= MAX_HEAVY
        may_compute = [
            question for question in self._waiting if question.begun or question.cost <= MAX_LIGHT_COST or not full
        ]
        return min(may_compute, key=lambda question: question.due)


QUEUE = Queue()


def in_turn(cost: float, command: str, compute: Callable[[], Result], spent: float = 0) -> Result:
    """Compute a question of this cost, in core-seconds, when its turn comes.

    `spent` is the cost of earlier parts of the same question. Raises TooCostly as `check_budget` does for their sum,
    the errors of `compute`, and Streamlit's own exception once the visitor has left or acted again.
    """
    check_budget(spent + cost, command)
    context = get_script_run_ctx(suppress_warning=True)
    with QUEUE.turn(cost, context.yield_check if context else lambda: None) as pause, pausing(pause):
        return compute()


def check_budget(cost: float, command: str) -> None:
    """Raise TooCostly, with the `command` that asks the question elsewhere, if it costs more than the budget."""
    if cost > (limit := budget()):
        raise TooCostly(
            f"This question would take about {cost:,.3g} seconds of one core, and this server spends at most "
            f"{limit:,.3g} on one; ask it on your own computer with this command.",
            command,
        )


def budget() -> float:
    """Return the core-seconds that a question may cost. Raises ConfigError if the variable is not a positive number."""
    received = os.environ.get(BUDGET_VARIABLE)
    if not received:
        return float("inf")
    try:
        seconds = float(received)
    except ValueError:
        seconds = 0
    if not seconds > 0:
        raise ConfigError(
            f"{BUDGET_VARIABLE} is '{received}', which is not a number of seconds above 0; write for example 20."
        )
    return seconds
