"""A long series on the Query page is asked round by round, for all visitors together, until it ends or is stopped."""

from collections.abc import Callable, Iterator

import pytest
import streamlit as st
from pandas.testing import assert_frame_equal
from streamlit.testing.v1 import AppTest

from app.views import query_rounds
from app.views.query_rounds import Rounds
from embryo_core import query
from embryo_core.errors import TooCostly
from embryo_core.query import asking, cost
from embryo_core.types import Run
from tests.app.conftest import captions_of

TEXT = "the cat sat on the [MASK] ."


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of the three checkpoints two are asked at first, and one in a round. Other tests do not find what was asked."""
    monkeypatch.setattr(asking, "FIRST", 2)
    monkeypatch.setattr(asking, "ROUND", 1)
    kept = (query_rounds.in_rounds, query_rounds.by_layer.__wrapped__)
    for function in kept:
        function.clear()
    yield
    for function in kept:
        function.clear()


@pytest.fixture
def in_fragment(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Make the page believe that its fragment runs by itself, as its timer does in a browser."""

    def set_to(by_itself: bool) -> None:
        monkeypatch.setattr(query_rounds, "is_drawing", lambda: not by_itself)

    return set_to


def line_of(app: AppTest) -> list[str]:
    """Return the captions about the progress."""
    return [caption for caption in captions_of(app) if "checkpoints asked" in caption]


def test_the_first_picture_is_of_a_part(open_page, tiny_run: Run) -> None:
    """The line says how many have been asked; the chosen step is one of them, and the lens has the part alone."""
    app = open_page("query", tiny_run, text=TEXT, open="lens")
    (line,) = line_of(app)
    assert line.startswith("2 of 3 checkpoints asked; going on")
    assert "Over 2 checkpoints" in [header.value for header in app.header]
    assert any("2 checkpoints of 3, log-spaced" in caption.replace("\\", "") for caption in captions_of(app))


def test_another_step_is_asked_with_the_next_round(open_page, tiny_run: Run, in_fragment) -> None:
    """The page does not wait for it: its answers are there at once, the curves have it after the round."""
    open_page("query", tiny_run, text=TEXT)
    app = open_page("query", tiny_run, text=TEXT, step="8")
    assert line_of(app)[0].startswith("2 of 3 checkpoints asked; going on")
    assert "At step 8" in [header.value for header in app.header]
    expected = query.ask(tiny_run, TEXT, [8]).best(8)
    assert app.dataframe[0].value["token"].tolist() == [one.token for one in expected]
    in_fragment(True)
    app = open_page("query", tiny_run, text=TEXT, step="8")
    assert not line_of(app) and "Over 3 checkpoints" in [header.value for header in app.header]


def test_another_step_is_asked_at_once_where_no_round_follows(open_page, tiny_run: Run) -> None:
    """The reader stopped the question."""
    app = open_page("query", tiny_run, text=TEXT)
    app.button("query_stop").click().run()
    app.session_state["permalink"]["step"] = "8"  # as the time bar does
    app.run()
    assert not line_of(app) and "Over 3 checkpoints" in [header.value for header in app.header]


def test_another_step_is_asked_at_once_where_a_question_beside_it_ends_the_rounds(
    open_page, tiny_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One question has come to its budget: then there is no next round of the other either."""
    beside = {"compare": "text", "text2": "the dog sat on the [MASK] ."}
    check = Rounds.check

    def too_costly(rounds: Rounds) -> None:
        check(rounds)
        if rounds.question.text == beside["text2"]:
            raise TooCostly("It costs too much", "a command")

    monkeypatch.setattr(Rounds, "check", too_costly)
    open_page("query", tiny_run, text=TEXT, **beside)
    open_page("query", tiny_run, text=TEXT, step="8", **beside)
    assert query_rounds.in_rounds(tiny_run, TEXT).asked == 3


def test_the_chosen_step_is_in_the_next_round(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside those that the round would ask by itself."""
    monkeypatch.setattr(asking, "FIRST", 1)
    rounds = Rounds(tiny_run, TEXT)
    missing = {*tiny_run.planned_steps} - {*rounds.answers(0).steps}
    rounds.ask_next_round(max(missing))
    assert max(missing) in rounds.answers(0).steps


def test_a_step_that_the_lens_lacks_can_be_pinned(open_page, tiny_run: Run) -> None:
    """Its words are those of the whole lens."""
    app = open_page("query", tiny_run, text=TEXT, pin="1-8")
    assert not app.exception and not app.error
    expected = query.ask_layers(tiny_run, TEXT).best(8, layer=1)
    assert app.dataframe[-1].value["token"].tolist() == [one.token for one in expected]


def test_rounds_go_on_by_themselves_and_end(open_page, tiny_run: Run, in_fragment) -> None:
    """Drawn by itself the part asks another round; at the end the page is drawn without the line."""
    in_fragment(True)
    app = open_page("query", tiny_run, text=TEXT)
    assert not app.exception and not line_of(app)
    found = query_rounds.in_rounds(tiny_run, TEXT).answers(0)
    assert_frame_equal(found.table, query.ask(tiny_run, TEXT).table)


def test_a_reader_stops_it_and_lets_it_ask_next_round(open_page, tiny_run: Run) -> None:
    """Stopped, the line only counts; with the other button it goes on."""
    app = open_page("query", tiny_run, text=TEXT)
    app.button("query_stop").click().run()
    assert line_of(app)[0].startswith("2 of 3 checkpoints asked. ")
    app.button("query_go_on").click().run()
    assert "going on" in line_of(app)[0]


def test_the_last_round_after_a_stop_is_drawn(
    open_page, tiny_run: Run, in_fragment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The button to go on draws its part alone, whose timer is stopped: the page starts it before it asks."""
    app = open_page("query", tiny_run, text=TEXT)
    app.button("query_stop").click().run()
    by_now = query_rounds._by_now

    def click_go_on(found: query_rounds.AskedQuestions) -> query_rounds.AskedQuestions:
        st.session_state[query_rounds.STOPPED] = None
        return by_now(found)

    monkeypatch.setattr(query_rounds, "_by_now", click_go_on)
    in_fragment(True)
    app.run()
    assert not line_of(app) and "Over 3 checkpoints" in [header.value for header in app.header]


def test_rounds_go_on_for_a_word_after_the_last_checkpoint(open_page, tiny_run: Run, in_fragment) -> None:
    """All checkpoints have been asked, and then a word is tracked: it is followed round by round too."""
    query_rounds.in_rounds(tiny_run, TEXT).answers(16)
    query_rounds.in_rounds(tiny_run, TEXT).ask_next_round(16)
    assert not line_of(open_page("query", tiny_run, text=TEXT))
    app = open_page("query", tiny_run, text=TEXT, word="the")
    assert [button.label for button in app.button if button.key == "query_stop"] == ["Stop"]
    in_fragment(True)
    open_page("query", tiny_run, text=TEXT, word="the")
    assert len(query_rounds.in_rounds(tiny_run, TEXT, "the", 1).answers(16).steps) == 3


def test_a_tracked_word_ends_as_at_all_steps(tiny_run: Run) -> None:
    """Round by round."""
    rounds = Rounds(tiny_run, TEXT, "the")
    assert rounds.answers(16).steps == (0, 16) and rounds.unfinished
    rounds.ask_next_round(16)
    assert not rounds.unfinished
    assert_frame_equal(rounds.answers(16).table, query.ask(tiny_run, rounds.question).table)


def test_the_budget_counts_what_was_asked_before(open_page, tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round that would exceed it together with the others is refused, and what was asked stays drawn."""
    two, three = (cost.ask(tiny_run, TEXT, asked) for asked in (2, 3))
    monkeypatch.setenv("EMBRYO_QUESTION_BUDGET", str((two + three) / 2))
    rounds = Rounds(tiny_run, TEXT)
    rounds.answers(16)
    with pytest.raises(TooCostly):
        rounds.check()
    with pytest.raises(TooCostly):
        rounds.ask_next_round(16)
    assert rounds.asked == 2
    app = open_page("query", tiny_run, text=TEXT)
    assert app.metric and line_of(app)[0].startswith("2 of 3 checkpoints asked. ")
    assert any("seconds of one core" in warning.value for warning in app.warning)
