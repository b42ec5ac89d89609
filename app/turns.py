"""The queue of questions: one is computed at a time on all cores, cheap ones first; a visitor who leaves ends theirs.

The queue is sorted by the time of arrival plus PATIENCE seconds for each second that a question costs, so that cheap
ones go first and dear ones are not put off for ever. A heavy question pauses between two of its chunks
(embryo_core/query/chunks.py) while another is before it in the queue, and for a moment after a light one, whose page is
drawn then and asks its next question; once its own time has come, it goes on at once. A session has one question at a
time: Streamlit runs its pages in one thread, and what the visitor does next ends what is running, as does leaving.
Costs are estimated by embryo_core/query/cost.py; the environment variable EMBRYO_QUESTION_BUDGET bounds them.
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

BUDGET = "EMBRYO_QUESTION_BUDGET"  # seconds of one core; without it a question may cost anything
PATIENCE = 10  # seconds of waiting for each second of cost
LIGHT = 0.5  # a question of this cost at most, in seconds, goes on to its end once it has begun
DRAWN = 0.3  # seconds in which a page draws an answer
HEAVY = 4  # so many questions above LIGHT hold memory at a time: they have begun, and pause or compute
POLL = 0.1  # seconds between two checks of a paused question whether it may go on, and whether its visitor still waits
WAITING = 0.5  # the same of one that has not begun, of which there are many; it is called when its turn comes

Result = TypeVar("Result")


class Dropped(Exception):
    """Ends the other threads of a question that nobody waits for; its own thread has ended with Streamlit's reason."""


@dataclass(eq=False)
class _Asked:
    """One question in the queue."""

    cost: float  # seconds of one core
    due: float  # by which the queue is sorted
    wanted: Callable[[], None]  # raises once nobody waits for the answer
    called: Condition  # notified when its turn comes
    begun: bool = False
    dropped: bool = False


class Turns:
    """The queue of all questions of this process."""

    def __init__(self) -> None:
        self._asked: list[_Asked] = []
        self._lock = Lock()
        self._drawn = 0.0  # when the page of the last light question has drawn its answer, about

    @contextmanager
    def turn(self, cost: float, wanted: Callable[[], None] = lambda: None) -> Iterator[Callable[[], None]]:
        """Wait for a question's turn; what is yielded is to be called between its chunks, in any of its threads.

        `wanted` is called while the question waits and between its chunks, and ends it by raising.
        """
        asked = _Asked(cost, monotonic() + PATIENCE * cost, wanted, Condition(self._lock))
        with self._lock:
            self._asked.append(asked)
        try:
            self._wait(asked)
            yield lambda: self._wait(asked)
        finally:
            with self._lock:
                self._asked.remove(asked)
                if asked.begun and asked.cost <= LIGHT:
                    self._drawn = monotonic() + DRAWN
                if self._asked:  # the next alone is woken: each that wakes takes Python's lock from whoever computes
                    self._first().called.notify_all()

    def _wait(self, asked: _Asked) -> None:
        """Return once the question has its turn. Raises what `wanted` does; Dropped in the other threads."""
        while True:
            if asked.dropped:
                raise Dropped
            try:
                asked.wanted()
            except BaseException:
                asked.dropped = True
                raise
            with self._lock:
                if self._may_go_on(asked):
                    asked.begun = True
                    return
                asked.called.wait(POLL if asked.begun else WAITING)

    def _may_go_on(self, asked: _Asked) -> bool:
        if asked.cost <= LIGHT:
            return asked.begun or self._first() is asked
        return self._first() is asked and monotonic() >= min(self._drawn, asked.due)

    def _first(self) -> _Asked:
        """The question whose turn it is; a heavy one may begin only while fewer than HEAVY others have."""
        heavy = [asked for asked in self._asked if asked.begun and asked.cost > LIGHT]
        full = len(heavy) >= HEAVY
        may_compute = [asked for asked in self._asked if asked.begun or asked.cost <= LIGHT or not full]
        return min(may_compute, key=lambda asked: asked.due)


TURNS = Turns()


def in_turn(cost: float, command: str, compute: Callable[[], Result], spent: float = 0) -> Result:
    """Compute a question of this cost, in seconds of one core, when its turn comes.

    `spent` is what earlier parts of the same question have cost. Raises TooCostly as `check_budget` does for both
    together, and what `compute` raises. It ends with Streamlit's own exception once the visitor has left or does
    something else.
    """
    check_budget(spent + cost, command)
    context = get_script_run_ctx(suppress_warning=True)
    with TURNS.turn(cost, context.yield_check if context else lambda: None) as pause, pausing(pause):
        return compute()


def check_budget(cost: float, command: str) -> None:
    """Raises TooCostly where a question costs more than the budget, naming the `command` that answers it elsewhere."""
    if cost > (limit := budget()):
        raise TooCostly(
            f"This question would take about {cost:,.3g} seconds of one core, and this server spends at most "
            f"{limit:,.3g} on one; ask it on your own computer with this command.",
            command,
        )


def budget() -> float:
    """Seconds of one core that a question may cost. Raises ConfigError where EMBRYO_QUESTION_BUDGET is no number."""
    received = os.environ.get(BUDGET)
    if not received:
        return float("inf")
    try:
        seconds = float(received)
    except ValueError:
        seconds = 0
    if not seconds > 0:
        raise ConfigError(f"{BUDGET} is '{received}', which is not a number of seconds above 0; write for example 20.")
    return seconds
