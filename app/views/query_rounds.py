"""Live answers on the Query page: asked in rounds that all visitors share, and drawn again after each round."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock

import pandas as pd
import streamlit as st

from app import notices
from app.caching import cached_resource
from app.drawing import drawing, is_drawing, lock_released
from app.question_queue import check_budget, in_turn
from app.views.query_ask import Request
from embryo_core import query, runs
from embryo_core.errors import BrokenCheckpoint, QueryError, TooCostly
from embryo_core.figures.query import TRACKED, TRUE_OBJECT, Subject, curve_table
from embryo_core.figures.query_captions import describe_progress
from embryo_core.query import TOGETHER, Answers, asking, cost
from embryo_core.types import Prediction, Run

STOPPED_KEY = "query_stopped"  # session: the questions that the reader stopped
PAUSE_SECONDS = 0.2  # seconds between two rounds, in which the browser draws


# === Rounds, shared by all visitors ===


class Rounds(query.Refinement):
    """One question to the checkpoints of a run, asked in rounds: a text, or a word tracked at one of its masks.

    Pages ask one round at a time; a page that waits for another page's round releases the drawing lock (drawing.py).
    """

    def __init__(self, run: Run, text: str, word: str = "", mask: int = 1):
        question = query.parse(run, text)
        super().__init__(run, question.track(word, mask) if word else question)
        self._lock = Lock()

    @property
    def unfinished(self) -> bool:
        """Return whether some checkpoints have been asked and some remain."""
        return 0 < len(self.asked) < len(self.steps)

    def answers_with(self, step: int) -> Answers:
        """Return the answers so far, including `step`: ask the first round, or `step`, if needed. Errors as `ask`."""
        if step not in self.asked:  # else a page does not wait for another one's round
            with lock_released(), self._lock:
                if not self.asked:
                    with st.spinner("Following the word …" if self.question.word else "Asking the checkpoints …"):
                        self._ask_in_turn({*self.next_round(), step})
                elif step not in self.asked:
                    self._ask_in_turn({step})
        return self.answers

    def ask_next_round(self, step: int) -> None:
        """Ask the next round, and `step` with it. Raises TooCostly if the whole question then exceeds the budget."""
        with lock_released(), self._lock:
            if steps := {*self.next_round(), step} - self.asked:
                self._ask_in_turn(steps)

    def check(self) -> None:
        """Raise TooCostly if the question would exceed the budget with the next round."""
        if steps := self.next_round():
            check_budget(self._seconds * (len(self.asked) + len(steps)), self._command)

    def _ask_in_turn(self, steps: Collection[int]) -> None:
        """Ask these checkpoints when the turn of the question comes."""
        spent = self._seconds * len(self.asked)
        in_turn(self._seconds * len(steps), self._command, partial(self.ask, steps), spent)

    @cached_property
    def _seconds(self) -> float:
        """Return the estimated cost of one checkpoint, in core-seconds."""
        return cost.ask_seconds(self.run, self.question)

    @property
    def _command(self) -> str:
        """Return the command that asks the question at a terminal."""
        word = self.question.word
        options = [f"--track={word.text}", "--mask", str(word.mask)] if word else []
        return query.command(self.run.name, self.question.text, "--step", "all", *options)


@cached_resource(runs.checkpoints_digest, 32)
def in_rounds(run: Run, text: str, word: str = "", mask: int = 1) -> Rounds:
    """Return the rounds of a question, cached for all visitors; asks nothing by itself."""
    return Rounds(run, text, word, mask)


# === Questions and what is known about them ===


@dataclass(frozen=True, eq=False, kw_only=True)
class AskedQuestion(Request):
    """A question of the page and its answers so far, at one mask or at all of them together."""

    mask: int  # counted from 1, or TOGETHER
    rounds: list[Rounds]  # of the text, then of the marked words
    answers: Answers  # to the text
    words: dict[str, Answers]  # answers for marked words, by role
    problems: list[str]  # reasons why a word cannot be marked, or a checkpoint was left out

    @property
    def unfinished(self) -> bool:
        """Return whether checkpoints remain to be asked, for the text or for a marked word."""
        return any(rounds.unfinished for rounds in self.rounds)

    @property
    def marked(self) -> dict[str, str]:
        """Return {piece: role} of the marked words that are a single piece."""
        words = {role: answers.question.tracked for role, answers in self.words.items()}
        return {word.token: role for role, word in words.items() if len(word.pieces) == 1}

    @cached_property
    def table(self) -> pd.DataFrame:
        """Return the answers over the steps in the form of figures (see `curve_table`)."""
        return curve_table(self.answers, self.mask, self.words)

    @property
    def subject(self) -> Subject:
        """Return the subject of the question's figures."""
        return Subject(self.text, self.mask, self.masks, self.number, self.answers.question.continues)

    def best(self, mask: int | None = None) -> list[Prediction]:
        """Return the best answers at the chosen step, best first, for the question's mask or another one.

        Raises BrokenCheckpoint if its checkpoint cannot be read.
        """
        step, broken = self.view.step, self.rounds[0].broken
        if step in broken:
            raise BrokenCheckpoint(broken[step])
        return self.answers.best(step, self.mask if mask is None else mask)


def ask_request(request: Request, mask: int) -> AskedQuestion:
    """Ask the first round of a question, and return all answers so far, including the true object and the tracked word.

    The chosen step is asked with them. If the text has fewer masks than `mask`, its last one is used. Raises as
    `query.ask` does.
    """
    mask = min(mask, request.masks)
    if mask == TOGETHER and request.masks == 1:
        mask = 1
    run, text, step = request.view.run, request.text, request.view.step
    rounds = [in_rounds(run, text)]
    answers = rounds[0].answers_with(step)
    words, problems = {}, list(answers.skipped)
    for role, word in {TRUE_OBJECT: request.fact.object if request.fact else "", TRACKED: request.word}.items():
        try:
            if word and mask != TOGETHER:
                of_word = in_rounds(run, text, word, mask)
                pieces = of_word.question.tracked.pieces
                if all(pieces != marked.question.tracked.pieces for marked in rounds[1:]):
                    words[role] = of_word.answers_with(step)
                    rounds.append(of_word)
        except QueryError as error:
            problems.append(str(error))
    known = request.view, text, request.word, request.fact, request.number
    return AskedQuestion(*known, mask=mask, rounds=rounds, answers=answers, words=words, problems=problems)


# === The page, round by round ===


def show_rounds(questions: list[AskedQuestion], draw: Callable[[list[AskedQuestion]], None]) -> None:
    """Call `draw` with the answers so far; while checkpoints remain, ask another round and call `draw` again."""
    goes_on = _goes_on(questions)

    @st.fragment(run_every=PAUSE_SECONDS if goes_on else None)
    def draw_round() -> None:
        along_with_page = is_drawing()
        with drawing(), notices.explaining():
            current_questions = questions if along_with_page else _current_questions(questions)
            draw(current_questions)
            _show_progress(current_questions)
            if along_with_page:
                return
            # After "Go on", st.rerun() below first starts the timer of the rounds.
            if goes_on and _goes_on(current_questions):
                for question in current_questions:
                    for rounds in question.rounds:
                        rounds.ask_next_round(question.view.step)
            if _goes_on(_current_questions(questions)) != goes_on:
                st.rerun()

    draw_round()


def _current_questions(questions: list[AskedQuestion]) -> list[AskedQuestion]:
    """Return the questions with the answers of all rounds so far."""
    return [ask_request(question, question.mask) for question in questions]


def _goes_on(questions: list[AskedQuestion]) -> bool:
    """Return whether more rounds follow: checkpoints remain, the reader has not stopped, and the budget allows it."""
    is_stopped = st.session_state.get(STOPPED_KEY) == _asked_texts(questions)
    if is_stopped or not any(question.unfinished for question in questions):
        return False
    try:
        _check_budget(questions)
    except TooCostly:
        return False
    return True


def _check_budget(questions: list[AskedQuestion]) -> None:
    """Raise TooCostly if another round of an unfinished question would exceed the budget."""
    for question in questions:
        for rounds in question.rounds:
            rounds.check()


def _asked_texts(questions: list[AskedQuestion]) -> list[tuple[str, str]]:
    """Return the name of the run and the text of each question, as STOPPED_KEY stores them."""
    return [(question.view.run.name, question.text) for question in questions]


def _show_progress(questions: list[AskedQuestion]) -> None:
    """Show the number of checkpoints asked, and a button to stop or to go on; nothing once all are asked."""
    rounds_of_texts = [question.rounds[0] for question in questions if question.unfinished]
    if not rounds_of_texts:
        return
    goes_on, texts = _goes_on(questions), _asked_texts(questions)
    asked_count = sum(len(rounds.asked) for rounds in rounds_of_texts)
    total_count = sum(len(rounds.steps) for rounds in rounds_of_texts)
    is_narrowing = any(rounds.narrowing for rounds in rounds_of_texts)
    with st.container(horizontal=True, vertical_alignment="center", key="query_progress"):
        notices.show_caption(describe_progress(asked_count, total_count, is_narrowing, goes_on), width="stretch")
        if goes_on:
            st.button("Stop", key="query_stop", on_click=st.session_state.update, args=({STOPPED_KEY: texts},))
        elif st.session_state.get(STOPPED_KEY) == texts:
            st.button("Go on", key="query_go_on", on_click=st.session_state.update, args=({STOPPED_KEY: None},))
    with notices.explaining():
        _check_budget(questions)


# === Cached answers ===


@cached_resource(runs.checkpoints_digest, 64, "Reading every layer …")
def by_layer(run: Run, text: str, mask: int, step: int | None = None) -> Answers:
    """Return the answers of every layer at `step` or, without one, at all steps (log-spaced ones of a long series)."""
    step_option = "all" if step is None else str(step)
    command = query.command(run.name, text, "--step", step_option, "--lens", "--mask", str(mask))
    steps = asking.first_steps(run) if step is None else [step]
    seconds = cost.ask_layers_seconds(run, text) * len(steps or runs.loadable_checkpoints(run))
    return in_turn(seconds, command, partial(query.ask_layers, run, text, mask, steps))
