"""Questions take turns: cheap ones first, a heavy one pauses for them, and abandoned ones are cancelled."""

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from pandas.testing import assert_frame_equal
from streamlit.runtime.scriptrunner_utils.exceptions import StopException
from streamlit.testing.v1 import AppTest

from app import question_queue
from app.question_queue import LIGHT, MAX_HEAVY, Queue, in_turn
from app.views import query_rounds
from embryo_core import query
from embryo_core.engine import device
from embryo_core.errors import ConfigError, TooCostly
from embryo_core.types import Run

CHEAP, DEAR = LIGHT / 2, 20 * LIGHT


class Gone(Exception):
    """The visitor has left."""


@pytest.fixture
def start() -> Iterator[Callable[[Callable[[], object]], threading.Thread]]:
    """Run functions in threads, all of which have ended when the test does."""
    threads = []

    def run(work: Callable[[], object]) -> threading.Thread:
        threads.append(threading.Thread(target=work, daemon=True))
        threads[-1].start()
        return threads[-1]

    yield run
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()


def asked(queue: Queue, count: int) -> None:
    """Wait until so many questions are in the queue."""
    while len(queue._waiting) < count:
        threading.Event().wait(0.001)


def another(queue: Queue, cost: float, place: float, begun: bool = False) -> question_queue._Waiting:
    """Make a question of another visitor, without a thread."""
    return question_queue._Waiting(cost, place, lambda: None, threading.Condition(queue._lock), begun)


def test_cheap_questions_go_first(start) -> None:
    """Of those that wait, the order is by cost, and by arrival where costs are alike."""
    queue, order = Queue(), []

    def ask(name: str, cost: float) -> None:
        with queue.turn(cost):
            order.append(name)

    with queue.turn(0):
        for place, (name, cost) in enumerate({"dear": DEAR, "first": CHEAP, "second": CHEAP}.items(), start=2):
            start(lambda name=name, cost=cost: ask(name, cost))
            asked(queue, place)
        assert not order
    while len(order) < 3:
        threading.Event().wait(0.001)
    assert order == ["first", "second", "dear"]


def test_only_the_next_question_is_woken(start, monkeypatch: pytest.MonkeyPatch) -> None:
    """When one ends, one is called; the others sleep on."""
    called = []

    class Heard(threading.Condition):
        def notify_all(self) -> None:
            called.append(self)
            super().notify_all()

    monkeypatch.setattr(question_queue, "Condition", Heard)
    queue = Queue()

    def ask() -> None:
        with queue.turn(CHEAP):
            pass

    with queue.turn(0):
        for count in range(2, 7):
            thread = start(ask)
            asked(queue, count)
    thread.join(30)
    assert len(called) == len(set(called)) == 5


def test_a_heavy_question_pauses_between_its_chunks(start) -> None:
    """A cheap question begins while a heavy one is at work, which goes on only when that is done."""
    queue, done, checks = Queue(), [], []
    begun, waiting = threading.Event(), threading.Event()

    def wanted() -> None:
        checks.append(None)
        if begun.is_set() and len(checks) > 3:  # it has checked while it waits
            waiting.set()

    def ask() -> None:
        with queue.turn(CHEAP):
            begun.set()
            waiting.wait(30)
            done.append("cheap")

    with queue.turn(DEAR, wanted) as pause:
        pause()  # nobody else is there
        start(ask)
        begun.wait(30)
        pause()
        assert done == ["cheap"]


def test_a_heavy_question_waits_while_a_light_one_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on a moment after a light one, or at once when its own place has come."""
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
        assert sum(waited) >= question_queue.DRAW_TIME
        now[0] += question_queue.PATIENCE * DEAR
        waited.clear()
        queue._drawn_at = now[0] + question_queue.DRAW_TIME
        pause()
    assert not waited


def test_a_dear_question_is_not_put_off_for_ever(start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cheap question that comes much later is behind it."""
    queue, now, done = Queue(), [0.0], []
    monkeypatch.setattr(question_queue, "monotonic", lambda: now[0])

    def ask() -> None:
        with queue.turn(DEAR) as pause:
            now[0] = question_queue.PATIENCE * DEAR + 1
            queue._waiting.append(another(queue, CHEAP, now[0] + question_queue.PATIENCE * CHEAP))
            pause()
            queue._waiting.pop()
            done.append("dear")

    start(ask).join(timeout=30)
    assert done == ["dear"]


def test_few_heavy_questions_hold_memory_at_a_time(start) -> None:
    """Heavy questions that have begun are let go on before others begin; a light one is never kept waiting by them."""
    queue, order = Queue(), []
    begun = [another(queue, DEAR, 1e12, begun=True) for _ in range(MAX_HEAVY - 1)]
    queue._waiting += begun

    def ask(cost: float) -> None:
        with queue.turn(cost):
            order.append(cost)

    with queue.turn(DEAR) as pause:
        start(lambda: ask(DEAR / 2))
        asked(queue, MAX_HEAVY + 1)
        pause()
        assert not order
        start(lambda: ask(CHEAP)).join(30)
        assert order == [CHEAP]
    queue._waiting = [other for other in queue._waiting if other not in begun]


def test_a_question_that_nobody_waits_for_is_dropped_in_the_queue(start) -> None:
    """The visitor leaves while it waits: it ends with Streamlit's reason, and the next has its turn."""
    queue, left = Queue(), []

    def leave() -> None:
        raise Gone

    def ask() -> None:
        try:
            with queue.turn(CHEAP, leave):
                left.append("answered")
        except Gone:
            left.append("gone")

    with queue.turn(0):
        start(ask).join(timeout=30)
    assert left == ["gone"]
    with queue.turn(DEAR):
        pass


def test_the_other_threads_of_a_dropped_question_end_too() -> None:
    """Once it was dropped in one thread, no thread of it begins another piece."""
    queue, here = Queue(), [True]

    def wanted() -> None:
        if not here[0]:
            raise Gone

    with pytest.raises(Gone), queue.turn(DEAR, wanted) as pause:
        here[0] = False
        with pytest.raises(Gone):
            pause()
        here[0] = True
        pause()


@pytest.mark.parametrize("cores", [1, 2])
def test_a_trace_ends_between_two_checkpoints(cores: int, tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The visitor leaves while a trace is at work: it goes no further, and none of its threads is left behind."""
    monkeypatch.setattr(device, "parallel_passes", lambda: cores)
    before, calls = query.ask(tiny_run, "a [MASK] [MASK] ."), []

    def leave() -> None:
        calls.append(threading.current_thread())
        if len(calls) == 3:
            raise Gone

    queue = Queue()
    with pytest.raises(Gone), queue.turn(DEAR, leave) as pause, query.pausing(pause):
        query.ask(tiny_run, "a [MASK] [MASK] .")
    assert len(calls) <= 2 + cores
    assert_frame_equal(query.ask(tiny_run, "a [MASK] [MASK] .").table, before.table)


# === The budget of a hosted demo ===


def test_a_question_above_the_budget_is_refused_with_its_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence has the cost, the budget and the command that answers it at home; nothing is computed."""
    monkeypatch.setenv("EMBRYO_QUESTION_BUDGET", "20")
    assert in_turn(19, "make app", lambda: "answer") == "answer"
    with pytest.raises(TooCostly, match="about 31 seconds of one core, and this server spends at most 20 ") as error:
        in_turn(31, "make app", lambda: pytest.fail("it was computed"))
    assert error.value.command == "make app"


def test_without_a_budget_everything_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """At home a question may cost anything."""
    monkeypatch.delenv("EMBRYO_QUESTION_BUDGET", raising=False)
    assert in_turn(1e9, "", lambda: "answer") == "answer"


@pytest.mark.parametrize("received", ["much", "-1", "0", "nan"])
def test_a_budget_that_is_no_number_is_an_error(received: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence names the variable and what it holds."""
    monkeypatch.setenv("EMBRYO_QUESTION_BUDGET", received)
    with pytest.raises(ConfigError, match=f"EMBRYO_QUESTION_BUDGET is '{received}'"):
        in_turn(1, "", lambda: None)


# === On a page ===


def test_a_dropped_answer_is_computed_when_it_is_asked_again(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit's own request to stop ends the question between two checkpoints, and nothing of it is kept."""
    text, checks = "the dropped [MASK] .", []

    def stop() -> None:
        checks.append(None)
        if len(checks) == 2:
            raise StopException

    with monkeypatch.context() as patched:
        context = SimpleNamespace(yield_check=stop)
        patched.setattr(question_queue, "get_script_run_ctx", lambda suppress_warning: context)
        with pytest.raises(StopException):
            query_rounds.in_rounds(tiny_run, text).answers(0)
    found = query_rounds.in_rounds(tiny_run, text).answers(0)
    assert_frame_equal(found.table, query.ask(tiny_run, text).table)


def test_a_question_above_the_budget_is_one_sentence_on_its_page(
    tiny_run: Run, open_page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below it is the command; the page goes on without answers."""
    monkeypatch.setenv("EMBRYO_QUESTION_BUDGET", "1e-9")
    app = open_page("query", tiny_run, text="the dear [MASK] .")
    assert not app.exception and not app.error and not app.metric
    (warning,) = app.warning
    assert "seconds of one core" in warning.value
    assert app.code[0].value == "python -m embryo_core query tiny --step all -- 'the dear [MASK] .'"
    app = open_page("attention", tiny_run, section="sentence", sentence="the dear cat .")  # which no other test keeps
    assert not app.exception and not app.error
    assert app.code[0].value == "make app"
