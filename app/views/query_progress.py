"""The Query page while checkpoints are left to be asked: drawn anew after each round, to the end or until stopped."""

from collections.abc import Callable, Iterable, Sequence

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app import widgets
from app.drawing import drawing
from app.views import query_answers
from app.views.query_answers import Answers
from app.views.query_ask import Asked
from app.views.query_rounds import Rounds, in_rounds
from embryo_core.errors import TooCostly
from embryo_core.figures.captions import query as captions

STOPPED = "query_stopped"  # session: the questions that the reader stopped
PAUSE = 0.2  # seconds from one round to the next, in which the browser draws

Found = list[Answers | None]  # a question each; None where it cannot be answered


def show(found: Found, draw: Callable[[Found], None]) -> None:
    """Call `draw` with the answers; where checkpoints are left, ask round by round and draw what is known by then."""
    goes_on = _goes_on(found)

    @st.fragment(run_every=PAUSE if goes_on else None)
    def drawn() -> None:
        along_with_page = not get_script_run_ctx().fragment_ids_this_run
        with drawing(), widgets.explaining():
            answers = found if along_with_page else _by_now(found)
            draw(answers)
            _show_progress(answers)
            if along_with_page:
                return
            if goes_on and _goes_on(answers):  # after "Go on" the page starts the timer first, which draws each round
                for one in filter(None, answers):
                    words = [(track.word, track.mask) for track in one.marked.values()]
                    one.rounds.go_on(words, one.asked.view.step)
            if _goes_on(_by_now(found)) != goes_on:
                st.rerun()

    drawn()


def asks_later(asked: Asked, together: Sequence[Asked]) -> bool:
    """Whether the rounds of the questions `together` go on: a step that this one lacks is then asked with the next."""
    if (asked.view.run.name, asked.text) in (st.session_state.get(STOPPED) or []):
        return False
    return _rounds(asked).unfinished and _affordable(map(_rounds, together))


def _by_now(found: Found) -> Found:
    """The same questions with what has been asked by now."""
    together = [one.asked for one in found if one]
    return [one and query_answers.over_steps(one.asked, one.mask, asks_later(one.asked, together)) for one in found]


def _goes_on(found: Found) -> bool:
    known = [answers for answers in found if answers]
    left = any(answers.unfinished for answers in known) and st.session_state.get(STOPPED) != _questions(found)
    return left and _affordable(answers.rounds for answers in known)


def _affordable(together: Iterable[Rounds]) -> bool:
    """Whether another round costs little enough, of each question that is not at its end."""
    try:
        for rounds in together:
            if rounds.unfinished:
                rounds.check()
    except TooCostly:
        return False
    return True


def _rounds(asked: Asked) -> Rounds:
    return in_rounds(asked.view.run, asked.text)


def _questions(found: Found) -> list[tuple[str, str]]:
    return [(answers.asked.view.run.name, answers.asked.text) for answers in found if answers]


def _show_progress(found: Found) -> None:
    """How far the questions have come, and a button to stop or to go on; nothing once all is asked."""
    unfinished = [answers for answers in found if answers and answers.unfinished]
    if not unfinished:
        return
    goes_on, questions = _goes_on(found), _questions(found)
    with st.container(horizontal=True, vertical_alignment="center", key="query_progress"):
        widgets.show_caption(captions.progress([answers.progress for answers in unfinished], goes_on), width="stretch")
        if goes_on:
            st.button("Stop", key="query_stop", on_click=st.session_state.update, args=({STOPPED: questions},))
        elif st.session_state.get(STOPPED) == questions:
            st.button("Go on", key="query_go_on", on_click=st.session_state.update, args=({STOPPED: None},))
    with widgets.explaining():
        for answers in unfinished:
            answers.rounds.check()
