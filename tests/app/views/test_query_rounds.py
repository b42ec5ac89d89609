"""Tests of rounds: the Query page asks a long series part by part, for all visitors together, until it is stopped."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
import streamlit as st
from pandas.testing import assert_frame_equal
from streamlit.testing.v1 import AppTest

from app.views import query_rounds
from app.views.query_rounds import AskedQuestion, Rounds
from embryo_core import query
from embryo_core.errors import TooCostly
from embryo_core.query import asking, cost
from embryo_core.types import Run
from tests.app.conftest import captions_of

TEXT = "the cat sat on the [MASK] ."


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ask two of the three checkpoints at first and one per round; clear the caches before and after each test."""
    monkeypatch.setattr(asking, "FIRST_ROUND_SIZE", 2)
    monkeypatch.setattr(asking, "ROUND_SIZE", 1)
    kept = (query_rounds.in_rounds, query_rounds.by_layer.__wrapped__)
    for function in kept:
        function.clear()
    yield
    for function in kept:
        function.clear()


@pytest.fixture
def in_fragment(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Return a function that makes the page's fragment run as by its timer in a browser, or with the whole page."""

    def set_to(by_itself: bool) -> None:
        monkeypatch.setattr(query_rounds, "is_drawing", lambda: not by_itself)

    return set_to


def line_of(app: AppTest) -> list[str]:
    """Return the captions about the progress of a question."""
    return [caption for caption in captions_of(app) if "checkpoints asked" in caption]


def test_first_figures_show_first_checkpoints(open_page, tiny_run: Run) -> None:
    """The line of progress counts the checkpoints asked so far, and the lens is drawn over these."""
    app = open_page("query", tiny_run, text=TEXT, open="lens")
    (line,) = line_of(app)
    assert line.startswith("2 of 3 checkpoints asked; going on")
    assert "Over 2 checkpoints" in [header.value for header in app.header]
    assert any("2 checkpoints of 3, log-spaced" in caption.replace("\\", "") for caption in captions_of(app))


def test_newly_chosen_step_is_asked_before_next_round(
    open_page, tiny_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answers are shown at once, and the curves include it; the next round does not ask it again."""
    monkeypatch.setattr(asking, "FIRST_ROUND_SIZE", 1)
    open_page("query", tiny_run, text=TEXT, step="0")
    app = open_page("query", tiny_run, text=TEXT, step="8")
    assert line_of(app)[0].startswith("2 of 3 checkpoints asked; going on")
    assert [header.value for header in app.header][:2] == ["At step 8", "Over 2 checkpoints"]
    expected = query.ask(tiny_run, TEXT, [8]).best(8)
    assert app.dataframe[0].value["token"].tolist() == [answer.token for answer in expected]


def test_step_is_asked_at_once_after_stop(open_page, tiny_run: Run) -> None:
    """No round follows, because the reader has stopped the question."""
    app = open_page("query", tiny_run, text=TEXT)
    app.button("query_stop").click().run()
    app.session_state["permalink"]["step"] = "8"  # as the time bar does
    app.run()
    assert not line_of(app) and "Over 3 checkpoints" in [header.value for header in app.header]


def test_next_round_includes_chosen_step(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chosen step need not be one that the round would otherwise ask."""
    monkeypatch.setattr(asking, "FIRST_ROUND_SIZE", 1)
    rounds = Rounds(tiny_run, TEXT)
    missing = {*tiny_run.planned_steps} - {*rounds.answers_with(0).steps}
    rounds.ask_next_round(max(missing))
    assert max(missing) in rounds.answers_with(0).steps


def test_round_does_not_delay_answers_at_an_asked_step(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another page shows them while the round is being asked."""
    rounds, seen, in_turn = Rounds(tiny_run, TEXT), [], query_rounds.in_turn
    other_page = ThreadPoolExecutor(1)
    rounds.answers_with(0)

    def show_in_turn(*asked: object) -> None:
        seen.append(other_page.submit(rounds.answers_with, 0))
        wait(seen, timeout=5)
        assert seen[0].done()
        in_turn(*asked)

    monkeypatch.setattr(query_rounds, "in_turn", show_in_turn)
    rounds.ask_next_round(0)
    assert seen[0].result().steps == (0, 16) and not rounds.unfinished


def test_pinned_step_need_not_be_in_lens_figure(open_page, tiny_run: Run) -> None:
    """The words of the pinned cell equal those of a lens over all checkpoints."""
    app = open_page("query", tiny_run, text=TEXT, pin="1-8")
    assert not app.exception and not app.error
    expected = query.ask_layers(tiny_run, TEXT).best(8, layer=1)
    assert app.dataframe[-1].value["token"].tolist() == [answer.token for answer in expected]


def test_rounds_continue_until_all_checkpoints_are_asked(open_page, tiny_run: Run, in_fragment) -> None:
    """The fragment asks another round whenever its timer draws it; at the end the line of progress is gone."""
    in_fragment(True)
    app = open_page("query", tiny_run, text=TEXT)
    assert not app.exception and not line_of(app)
    answers = query_rounds.in_rounds(tiny_run, TEXT).answers_with(0)
    assert_frame_equal(answers.table, query.ask(tiny_run, TEXT).table)


def test_question_can_be_stopped_and_resumed(open_page, tiny_run: Run) -> None:
    """The line of progress only counts while the question is stopped."""
    app = open_page("query", tiny_run, text=TEXT)
    app.button("query_stop").click().run()
    assert line_of(app)[0].startswith("2 of 3 checkpoints asked. ")
    app.button("query_go_on").click().run()
    assert "going on" in line_of(app)[0]


def test_last_round_after_resuming_is_drawn(
    open_page, tiny_run: Run, in_fragment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The button that resumes draws only the fragment, whose timer is stopped, so the page has to restart the timer."""
    app = open_page("query", tiny_run, text=TEXT)
    app.button("query_stop").click().run()
    by_now = query_rounds._current_questions

    def click_go_on(questions: list[AskedQuestion]) -> list[AskedQuestion]:
        st.session_state[query_rounds.STOPPED_KEY] = None
        return by_now(questions)

    monkeypatch.setattr(query_rounds, "_current_questions", click_go_on)
    in_fragment(True)
    app.run()
    assert not line_of(app) and "Over 3 checkpoints" in [header.value for header in app.header]


def test_word_tracked_later_is_asked_in_rounds_too(open_page, tiny_run: Run, in_fragment) -> None:
    """The word is tracked after all checkpoints have answered the text."""
    query_rounds.in_rounds(tiny_run, TEXT).answers_with(16)
    query_rounds.in_rounds(tiny_run, TEXT).ask_next_round(16)
    assert not line_of(open_page("query", tiny_run, text=TEXT))
    app = open_page("query", tiny_run, text=TEXT, word="the")
    assert [button.label for button in app.button if button.key == "query_stop"] == ["Stop"]
    in_fragment(True)
    open_page("query", tiny_run, text=TEXT, word="the")
    assert len(query_rounds.in_rounds(tiny_run, TEXT, "the", 1).answers_with(16).steps) == 3


def test_tracked_word_in_rounds_matches_full_answer(tiny_run: Run) -> None:
    """After the last round the table equals that of a question to all checkpoints at once."""
    rounds = Rounds(tiny_run, TEXT, "the")
    assert rounds.answers_with(16).steps == (0, 16) and rounds.unfinished
    rounds.ask_next_round(16)
    assert not rounds.unfinished
    assert_frame_equal(rounds.answers_with(16).table, query.ask(tiny_run, rounds.question).table)


def test_budget_of_the_lens_counts_every_step(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layers of one step are within the budget, those of all three exceed it."""
    monkeypatch.setattr(asking, "FIRST_ROUND_SIZE", 32)
    monkeypatch.setenv("EMBRYO_QUESTION_BUDGET", str(2.5 * cost.ask_layers_seconds(tiny_run, TEXT)))
    assert query_rounds.by_layer(tiny_run, TEXT, 1, 16).steps == (16,)
    with pytest.raises(TooCostly):
        query_rounds.by_layer(tiny_run, TEXT, 1)


def test_budget_includes_earlier_rounds(open_page, tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round that would exceed the budget together with earlier ones is refused; their answers stay on the page."""
    monkeypatch.setenv("EMBRYO_QUESTION_BUDGET", str(2.5 * cost.ask_seconds(tiny_run, query.parse(tiny_run, TEXT))))
    rounds = Rounds(tiny_run, TEXT)
    rounds.answers_with(16)
    with pytest.raises(TooCostly):
        rounds.check()
    with pytest.raises(TooCostly):
        rounds.ask_next_round(16)
    assert len(rounds.asked) == 2
    app = open_page("query", tiny_run, text=TEXT)
    assert app.metric and line_of(app)[0].startswith("2 of 3 checkpoints asked. ")
    assert any("seconds of one core" in warning.value for warning in app.warning)
