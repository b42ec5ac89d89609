"""Live answers on the Query page: asked in rounds that all visitors share, and drawn again after each round."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from math import isfinite
from threading import Lock

import pandas as pd
import streamlit as st

from app import widgets
from app.caching import cached_resource
from app.drawing import drawing, is_drawing, lock_released
from app.question_queue import budget, check_budget, in_turn
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


class Rounds:
    """One question to the checkpoints of a run, asked in rounds: a text, or a word tracked at one of its masks.

    Pages ask one round at a time; a page that waits for another page's round releases the drawing lock (drawing.py).
    """

    def __init__(self, run: Run, text: str, word: str = "", mask: int = 1):
        question = query.parse(run, text)
        self.question = question.track(word, mask) if word else question
        self._run = run
        self._refinement = query.Refinement(run, self.question)
        self._lock = Lock()

    @property
    def asked(self) -> int:
        """Return the number of checkpoints asked so far."""
        return len(self._refinement.asked)

    @property
    def total(self) -> int:
        """Return the number of checkpoints that can be asked."""
        return len(self._refinement.steps)

    @property
    def narrowing(self) -> bool:
        """Return whether unasked checkpoints remain between two whose best answers differ."""
        return self._refinement.narrowing

    @property
    def unfinished(self) -> bool:
        """Return whether some checkpoints have been asked and some remain."""
        return 0 < self.asked < self.total

    @property
    def broken(self) -> dict[int, str]:
        """Return the reasons why asked checkpoints could not be read, by step."""
        return self._refinement.broken

    def answers(self, step: int) -> Answers:
        """Return the answers so far, including `step`: ask the first round, or `step`, if needed. Errors as `ask`."""
        if step not in self._refinement.asked:  # else a page does not wait for another one's round
            with lock_released(), self._lock:
                if not self.asked:
                    with st.spinner("Following the word …" if self.question.word else "Asking the checkpoints …"):
                        self._ask({*self._refinement.next_round(), step})
                elif step not in self._refinement.asked:
                    self._ask({step})
        return self._refinement.answers

    def ask_next_round(self, step: int) -> None:
        """Ask the next round, and `step` with it. Raises TooCostly if the whole question then exceeds the budget."""
        with lock_released(), self._lock:
            if steps := {*self._refinement.next_round(), step} - self._refinement.asked:
                self._ask(steps)

    def check(self) -> None:
        """Raise TooCostly if the question would exceed the budget with the next round."""
        if isfinite(budget()) and (steps := self._refinement.next_round()):
            check_budget(cost.ask_seconds(self._run, self.question, self.asked + len(steps)), self._command)

    def _ask(self, steps: Collection[int]) -> None:
        """Ask these checkpoints when the turn of the question comes."""
        asked_before, asked_after = self.asked, self.asked + len(steps)
        spent_seconds = cost.ask_seconds(self._run, self.question, asked_before) if asked_before else 0.0
        seconds = cost.ask_seconds(self._run, self.question, asked_after) - spent_seconds
        in_turn(seconds, self._command, partial(self._refinement.ask, steps), spent_seconds)

    @property
    def _command(self) -> str:
        """Return the command that asks the question at a terminal."""
        word = self.question.word
        options = [f"--track={word.text}", "--mask", str(word.mask)] if word else []
        return query.command(self._run.name, self.question.text, "--step", "all", *options)


@cached_resource(runs.checkpoints_digest, 32)
def in_rounds(run: Run, text: str, word: str = "", mask: int = 1) -> Rounds:
    """Return the rounds of a question, cached for all visitors; asks nothing by itself."""
    return Rounds(run, text, word, mask)


# === Questions and what is known about them ===


@dataclass(frozen=True, eq=False)
class AskedQuestion:
    """A question of the page and its answers so far, at one mask or at all of them together."""

    request: Request
    mask: int  # counted from 1, or TOGETHER
    rounds: Rounds  # of the text
    answers: Answers
    words: dict[str, tuple[Rounds, Answers]]  # rounds and answers of marked words, by role
    problems: tuple[str, ...]  # reasons why a word cannot be marked, or a checkpoint was left out

    @property
    def all_rounds(self) -> list[Rounds]:
        """Return the rounds of the text and of the marked words."""
        return [self.rounds, *(rounds for rounds, _ in self.words.values())]

    @property
    def unfinished(self) -> bool:
        """Return whether checkpoints remain to be asked, for the text or for a marked word."""
        return any(rounds.unfinished for rounds in self.all_rounds)

    @property
    def marked(self) -> dict[str, str]:
        """Return {piece: role} of the marked words that are a single piece."""
        words = {role: answers_to_word.question.tracked for role, (_, answers_to_word) in self.words.items()}
        return {word.token: role for role, word in words.items() if len(word.pieces) == 1}

    @cached_property
    def table(self) -> pd.DataFrame:
        """Return the answers over the steps in the form of figures (see `curve_table`)."""
        return curve_table(
            self.answers, self.mask, {role: answers_to_word for role, (_, answers_to_word) in self.words.items()}
        )

    def subject(self, number: int) -> Subject:
        """Return the subject of the question's figures; `number` distinguishes the questions of a page."""
        return Subject(self.request.text, self.mask, self.request.masks, number, self.answers.question.continues)

    def best(self, mask: int | None = None) -> list[Prediction]:
        """Return the best answers at the chosen step, best first, for the question's mask or another one.

        Raises BrokenCheckpoint if its checkpoint cannot be read.
        """
        step = self.request.view.step
        if step in self.rounds.broken:
            raise BrokenCheckpoint(self.rounds.broken[step])
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
    rounds = in_rounds(run, text)
    answers = rounds.answers(step)
    words, problems = {}, list(answers.skipped)
    for role, word in {TRUE_OBJECT: request.fact.object if request.fact else "", TRACKED: request.word}.items():
        try:
            if word and mask != TOGETHER:
                of_word = in_rounds(run, text, word, mask)
                words[role] = of_word, of_word.answers(step)
        except QueryError as error:
            problems.append(str(error))
    if len({answers_to_word.question.tracked.pieces for _, answers_to_word in words.values()}) < len(words):
        del words[TRACKED]
    return AskedQuestion(request, mask, rounds, answers, words, tuple(problems))


# === The page, round by round ===

AskedQuestions = list[AskedQuestion | None]  # in the order of the page; None for a question that cannot be answered


def show_rounds(questions: AskedQuestions, draw: Callable[[AskedQuestions], None]) -> None:
    """Call `draw` with the answers so far; while checkpoints remain, ask another round and call `draw` again."""
    goes_on = _goes_on(questions)

    @st.fragment(run_every=PAUSE_SECONDS if goes_on else None)
    def draw_round() -> None:
        along_with_page = is_drawing()
        with drawing(), widgets.explaining():
            current_questions = questions if along_with_page else _current_questions(questions)
            draw(current_questions)
            _show_progress(current_questions)
            if along_with_page:
                return
            # After "Go on", st.rerun() below first starts the timer of the rounds.
            if goes_on and _goes_on(current_questions):
                for question in filter(None, current_questions):
                    for rounds in question.all_rounds:
                        rounds.ask_next_round(question.request.view.step)
            if _goes_on(_current_questions(questions)) != goes_on:
                st.rerun()

    draw_round()


def _current_questions(questions: AskedQuestions) -> AskedQuestions:
    """Return the questions with the answers of all rounds so far."""
    return [question and ask_request(question.request, question.mask) for question in questions]


def _goes_on(questions: AskedQuestions) -> bool:
    """Return whether more rounds follow: checkpoints remain, the reader has not stopped, and the budget allows it."""
    answered_questions = [question for question in questions if question]
    has_unfinished = any(question.unfinished for question in answered_questions) and st.session_state.get(
        STOPPED_KEY
    ) != _asked_texts(questions)
    return has_unfinished and _is_affordable(
        rounds for question in answered_questions for rounds in question.all_rounds
    )


def _is_affordable(together: Iterable[Rounds]) -> bool:
    """Return whether another round of every unfinished question fits the budget."""
    try:
        for rounds in together:
            if rounds.unfinished:
                rounds.check()
    except TooCostly:
        return False
    return True


def _asked_texts(questions: AskedQuestions) -> list[tuple[str, str]]:
    """Return the name of the run and the text of each question, as STOPPED_KEY stores them."""
    return [(question.request.view.run.name, question.request.text) for question in questions if question]


def _show_progress(questions: AskedQuestions) -> None:
    """Show the number of checkpoints asked, and a button to stop or to go on; nothing once all are asked."""
    unfinished_questions = [question for question in questions if question and question.unfinished]
    if not unfinished_questions:
        return
    goes_on, texts = _goes_on(questions), _asked_texts(questions)
    asked_count = sum(question.rounds.asked for question in unfinished_questions)
    total_count = sum(question.rounds.total for question in unfinished_questions)
    is_narrowing = any(question.rounds.narrowing for question in unfinished_questions)
    with st.container(horizontal=True, vertical_alignment="center", key="query_progress"):
        widgets.show_caption(describe_progress(asked_count, total_count, is_narrowing, goes_on), width="stretch")
        if goes_on:
            st.button("Stop", key="query_stop", on_click=st.session_state.update, args=({STOPPED_KEY: texts},))
        elif st.session_state.get(STOPPED_KEY) == texts:
            st.button("Go on", key="query_go_on", on_click=st.session_state.update, args=({STOPPED_KEY: None},))
    with widgets.explaining():
        for question in unfinished_questions:
            for rounds in question.all_rounds:
                if rounds.unfinished:
                    rounds.check()


# === Cached answers ===


@cached_resource(runs.checkpoints_digest, 64, "Reading every layer …")
def by_layer(run: Run, text: str, mask: int, step: int | None = None) -> Answers:
    """Return the answers of every layer at `step` or, without one, at all steps (log-spaced ones of a long series)."""
    step_option = "all" if step is None else str(step)
    command = query.command(run.name, text, "--step", step_option, "--lens", "--mask", str(mask))
    steps = asking.first_steps(run) if step is None else [step]
    seconds = cost.ask_layers_seconds(run, text, len(steps) if steps else None)
    return in_turn(seconds, command, partial(query.ask_layers, run, text, mask, steps))
