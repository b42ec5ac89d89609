"""Tests of the queue of questions: cheap ones go first, heavy ones pause for them, abandoned ones are cancelled."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace

import pytest
from pandas.testing import assert_frame_equal
from streamlit.runtime.scriptrunner_utils.exceptions import StopException
from streamlit.testing.v1 import AppTest

from app import question_queue
from app.question_queue import MAX_HEAVY, MAX_LIGHT_COST, Queue, in_turn
from app.views import query_rounds
from embryo_core import query
from embryo_core.engine import device
from embryo_core.errors import ConfigError, TooCostly
from embryo_core.types import Run

CHEAP, DEAR = MAX_LIGHT_COST / 2, 20 * MAX_LIGHT_COST


class VisitorLeft(Exception):
    """Signal that the visitor has left."""


@pytest.fixture
def start() -> Iterator[Callable[[Callable[[], object]], threading.Thread]]:
    """Return a function that runs another in a thread; all threads must have ended when the test does."""
    threads = []

    def run(work: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=work, daemon=True)
        threads.append(thread)
        thread.start()
        return thread

    yield run
    for thread in threads:
        end(thread)


def end(thread: threading.Thread) -> None:
    """Wait until a thread has ended."""
    thread.join(timeout=30)
    assert not thread.is_alive()


@pytest.fixture
def ask_beside(start) -> Callable[..., threading.Thread]:
    """Return a function that asks a question in a thread and returns once it is in the queue, whose check it passes."""

    def ask(queue: Queue, cost: float, answer: Callable[[], object] = lambda: None) -> threading.Thread:
        arrived = threading.Event()

        def compute() -> None:
            with queue.turn(cost, arrived.set):
                answer()

        thread = start(compute)
        assert arrived.wait(30)
        return thread

    return ask


def test_cheap_questions_go_first(ask_beside) -> None:
    """Waiting questions are ordered by cost, and by arrival where costs are equal."""
    queue, order = Queue(), []
    costs = {"dear": DEAR, "first": CHEAP, "second": CHEAP}
    with queue.turn(0):
        threads = [ask_beside(queue, cost, partial(order.append, name)) for name, cost in costs.items()]
        assert not order
    for thread in threads:
        end(thread)
    assert order == ["first", "second", "dear"]


def test_only_next_question_is_woken(ask_beside, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that ends notifies one other, since every thread that wakes competes for the processor."""
    called = []

    class CountingCondition(threading.Condition):
        def notify_all(self) -> None:
            called.append(self)
            super().notify_all()

    monkeypatch.setattr(question_queue, "Condition", CountingCondition)
    queue = Queue()
    with queue.turn(0):
        threads = [ask_beside(queue, CHEAP) for _ in range(5)]
    for thread in threads:
        end(thread)
    assert len(called) == len(set(called)) == 5


def test_heavy_question_pauses_between_its_chunks(start) -> None:
    """A cheap question begins while a heavy one is under way, which resumes only after the cheap one has ended."""
    queue, done, checks = Queue(), [], []
    begun, waiting = threading.Event(), threading.Event()

    def wanted() -> None:
        checks.append(None)
        if begun.is_set() and len(checks) > 3:  # the heavy question has checked while it waits
            waiting.set()

    def ask() -> None:
        with queue.turn(CHEAP):
            begun.set()
            waiting.wait(30)
            done.append("cheap")

    with queue.turn(DEAR, wanted) as pause:
        pause()  # the queue is empty
        start(ask)
        begun.wait(30)
        pause()
        assert done == ["cheap"]


def test_heavy_question_waits_while_light_answer_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """It resumes DRAW_SECONDS after the light question, or at once when its own time in the queue has come."""
    queue, now, waited = Queue(), [0.0], []
    monkeypatch.setattr(question_queue, "monotonic", lambda: now[0])

    class Clock(threading.Condition):
        def wait(self, seconds: float) -> None:
            waited.append(seconds)
            now[0] += seconds

    monkeypatch.setattr(question_queue, "Condition", Clock)
    with queue.turn(DEAR) as pause:
        with queue.turn(CHEAP):
            pass
        pause()
        assert sum(waited) >= question_queue.DRAW_SECONDS
        waited.clear()
        with queue.turn(CHEAP):
            now[0] += question_queue.PATIENCE * DEAR
        pause()
    assert not waited


def test_expensive_question_is_not_postponed_for_ever(start, ask_beside, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cheap question that arrives much later is sorted behind it."""
    queue, now, done = Queue(), [0.0], []
    monkeypatch.setattr(question_queue, "monotonic", lambda: now[0])

    def ask() -> None:
        with queue.turn(DEAR) as pause:
            now[0] = question_queue.PATIENCE * DEAR + 1
            threads.append(ask_beside(queue, CHEAP, lambda: done.append("cheap")))
            pause()
            done.append("dear")

    threads: list[threading.Thread] = []
    end(start(ask))
    end(threads[0])
    assert done == ["dear", "cheap"]


def test_number_of_heavy_questions_under_way_is_limited(ask_beside) -> None:
    """Paused questions hold memory: another heavy one waits while MAX_HEAVY are under way, a light one does not."""
    queue, order = Queue(), []
    with ExitStack() as under_way:
        for i in range(MAX_HEAVY):  # each costs less than those before it, so that it begins while they pause
            pause = under_way.enter_context(queue.turn(DEAR / 2**i))
        heavy = ask_beside(queue, 1.1 * MAX_LIGHT_COST, lambda: order.append("heavy"))
        pause()
        assert not order
        end(ask_beside(queue, CHEAP, lambda: order.append("light")))
        assert order == ["light"]
    end(heavy)
    assert order == ["light", "heavy"]


def test_abandoned_question_leaves_queue(start) -> None:
    """The visitor leaves while the question waits: it ends with the error of its check, and the next has its turn."""
    queue, left = Queue(), []

    def leave() -> None:
        raise VisitorLeft

    def ask() -> None:
        try:
            with queue.turn(CHEAP, leave):
                left.append("answered")
        except VisitorLeft:
            left.append("gone")

    with queue.turn(0):
        start(ask).join(timeout=30)
    assert left == ["gone"]
    with queue.turn(DEAR):
        pass


def test_all_threads_of_abandoned_question_end() -> None:
    """After the check has failed once, no thread of the question begins another chunk."""
    queue, here = Queue(), [True]

    def wanted() -> None:
        if not here[0]:
            raise VisitorLeft

    with pytest.raises(VisitorLeft), queue.turn(DEAR, wanted) as pause:
        here[0] = False
        with pytest.raises(VisitorLeft):
            pause()
        here[0] = True
        pause()


@pytest.mark.parametrize("cores", [1, 2])
def test_abandoned_trace_ends_between_checkpoints(cores: int, tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check fails at its third call, then at most once per further thread; later the answer is complete."""
    monkeypatch.setattr(device, "parallel_passes", lambda: cores)
    before, calls = query.ask(tiny_run, "a [MASK] [MASK] ."), []

    def leave() -> None:
        calls.append(threading.current_thread())
        if len(calls) == 3:
            raise VisitorLeft

    queue = Queue()
    with pytest.raises(VisitorLeft), queue.turn(DEAR, leave) as pause, query.pausing(pause):
        query.ask(tiny_run, "a [MASK] [MASK] .")
    assert len(calls) <= 2 + cores
    assert_frame_equal(query.ask(tiny_run, "a [MASK] [MASK] .").table, before.table)


# === The budget of a hosted demo ===


def test_question_above_budget_is_refused_with_its_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error gives the cost, the budget and the command that answers the question elsewhere; nothing is computed."""
    monkeypatch.setenv("EMBRYO_QUESTION_BUDGET", "20")
    assert in_turn(19, "make app", lambda: "answer") == "answer"
    with pytest.raises(TooCostly, match="about 31 seconds of one core, and this server spends at most 20 ") as error:
        in_turn(31, "make app", lambda: pytest.fail("it was computed"))
    assert error.value.command == "make app"


def test_without_budget_every_question_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget is meant for hosted demos; on one's computer a question may cost any amount."""
    monkeypatch.delenv("EMBRYO_QUESTION_BUDGET", raising=False)
    assert in_turn(1e9, "", lambda: "answer") == "answer"


@pytest.mark.parametrize("received", ["much", "-1", "0", "nan"])
def test_invalid_budget_is_an_error(received: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget must be a number above 0; the error names the variable and its value."""
    monkeypatch.setenv("EMBRYO_QUESTION_BUDGET", received)
    with pytest.raises(ConfigError, match=f"EMBRYO_QUESTION_BUDGET is '{received}'"):
        in_turn(1, "", lambda: None)


# === On a page ===


def test_abandoned_question_is_computed_when_asked_again(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit's request to stop ends the question between two checkpoints, and no partial answer is cached."""
    text, checks = "the dropped [MASK] .", []

    def stop() -> None:
        checks.append(None)
        if len(checks) == 2:
            raise StopException

    with monkeypatch.context() as patched:
        context = SimpleNamespace(yield_check=stop)
        patched.setattr(question_queue, "get_script_run_ctx", lambda suppress_warning: context)
        with pytest.raises(StopException):
            query_rounds.in_rounds(tiny_run, text).answers_with(0)
    answers = query_rounds.in_rounds(tiny_run, text).answers_with(0)
    assert_frame_equal(answers.table, query.ask(tiny_run, text).table)


def test_page_shows_question_above_budget_as_warning(
    tiny_run: Run, open_page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command to run elsewhere is shown below the warning; the pages have no error."""
    monkeypatch.setenv("EMBRYO_QUESTION_BUDGET", "1e-9")
    app = open_page("query", tiny_run, text="the dear [MASK] .")
    assert not app.exception and not app.error and not app.metric
    (warning,) = app.warning
    assert "seconds of one core" in warning.value
    assert app.code[0].value == "python -m embryo_core query tiny --step all -- 'the dear [MASK] .'"
    app = open_page("attention", tiny_run, section="sentence", sentence="the dear cat .")  # not cached by another test
    assert not app.exception and not app.error
    assert app.code[0].value == "make app"
