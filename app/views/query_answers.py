"""Live answers to what is asked on the Query page, cached, and as the tables that are drawn and downloaded."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Thread

import pandas as pd
import streamlit as st

from app.caching import cached, checkpoints_state
from app.turns import TURNS, in_turn
from app.views.query_ask import Asked
from app.views.query_rounds import Rounds, in_rounds
from embryo_core import query, runs
from embryo_core.curves.step_scales import log_spaced
from embryo_core.engine.cache import MODELS
from embryo_core.errors import EmbryoError, QueryError
from embryo_core.figures.captions.query import Progress, command, which
from embryo_core.query import cost
from embryo_core.query.beam import Answer
from embryo_core.query.lens import Layers, Lens
from embryo_core.query.refine import FIRST
from embryo_core.query.trace import AnswerHistory, Trace
from embryo_core.query.track import Track
from embryo_core.types import Checkpoint, Prediction, Run

TOGETHER = "all together"  # the answer to all masks at once, instead of the number of one
TRACKED, TRUE_OBJECT = "tracked", "true object"  # roles of a marked word
LOADING = 0.1  # seconds that a checkpoint counts as in the queue while it is loaded ahead


@dataclass(frozen=True)
class Answers:
    """All that is known over the steps about one question, at one mask or at all together."""

    asked: Asked
    mask: int | str
    rounds: Rounds  # by which more steps are asked
    trace: Trace  # of the steps asked so far
    marked: dict[str, Track]  # by role
    problems: tuple[str, ...]  # why a word cannot be marked, or a checkpoint was left out
    progress: Progress

    @property
    def unfinished(self) -> bool:
        """Whether checkpoints are left to be asked, for the answers or for a marked word."""
        followed = all(len(track.steps) == len(self.trace.steps) for track in self.marked.values())
        return self.progress.asked < self.progress.total or not followed

    @property
    def history(self) -> AnswerHistory:
        """The candidates of the chosen mask, or of all together."""
        return self.trace.joint if self.mask == TOGETHER else self.trace.masks[self.mask - 1]

    @property
    def pieces(self) -> dict[str, str]:
        """Role of each marked word that is a single piece, by the piece."""
        return {track.pieces[0]: role for role, track in self.marked.items() if len(track.pieces) == 1}

    @property
    def which(self) -> str:
        """Which of several masks it is about, as titles and captions say it."""
        return which(None if self.mask == TOGETHER else self.mask, self.asked.masks)

    def file_name(self, what: str, number: int) -> str:
        """How a file of one of its figures is named; `number` tells the questions of a page apart."""
        name = f"{self.asked.view.run.name}-query-{what}"
        if self.asked.masks > 1:
            name += "-together" if self.mask == TOGETHER else f"-mask{self.mask}"
        return name + (f"-{number}" if number > 1 else "")

    def asked_of(self, numbers: pd.DataFrame) -> pd.DataFrame:
        """Numbers of one of its figures as they are saved: each row with the text, and the mask that is answered."""
        return numbers.assign(text=self.asked.text, mask=self.mask)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per answer and step: token, role, step, probability, rank, exact, leads, final.

        `role` says whether the answer is the tracked word, the true object or just a candidate (""); where a rank is
        not `exact`, the true one is at least it.
        """
        history, steps = self.history, self.trace.steps
        roles = self.pieces if self.mask != TOGETHER else {}
        rows = [
            (c.token, roles.get(c.token, ""), *point, leader == c.token, c.token == history.leaders[-1])
            for c in history.candidates
            for *point, leader in zip(steps, c.probabilities, c.ranks, c.exact, history.leaders, strict=True)
        ]
        known = {candidate.token for candidate in history.candidates}
        for role, track in self.marked.items():
            if len(track.pieces) > 1 or track.pieces[0] not in known:
                name = track.pieces[0] if len(track.pieces) == 1 else track.word
                points = zip(track.steps, track.probabilities, track.ranks, track.exact, strict=True)
                rows += [(name, role, *point, False, False) for point in points]
        return pd.DataFrame(rows, columns=["token", "role", "step", "probability", "rank", "exact", "leads", "final"])


def over_steps(asked: Asked, mask: int | str, later: bool = False) -> Answers:
    """A question over the steps asked so far, with the true object and the tracked word; at first, the first round.

    The chosen step is among them, unless it is asked `later`, with the next round. Where the question has fewer masks
    than `mask`, its last one counts. Raises as `query.trace` does.
    """
    if mask == TOGETHER:
        mask = TOGETHER if asked.masks > 1 else 1
    else:
        mask = max(1, min(mask, asked.masks))
    run, text = asked.view.run, asked.text
    rounds = in_rounds(run, text)
    found = rounds.trace(asked.view.step, later)
    words = {TRUE_OBJECT: asked.fact.object if asked.fact else "", TRACKED: asked.word}
    marked, problems = {}, list(found.skipped)
    for role, word in words.items() if mask != TOGETHER else ():
        try:
            if word:
                marked[role] = rounds.track(word, mask, asked.view.step)
        except QueryError as error:
            problems.append(str(error))
    if len(marked) == 2 and marked[TRACKED].pieces == marked[TRUE_OBJECT].pieces:
        del marked[TRACKED]
    return Answers(asked, mask, rounds, found, marked, tuple(problems), rounds.progress)


def lens_table(found: Lens) -> pd.DataFrame:
    """One row per step, layer and rank: step, layer, rank, token, probability."""
    rows = [
        (step, layer, p.rank, p.token, p.probability)
        for step, by_layer in zip(found.steps, found.cells, strict=True)
        for layer, predictions in zip(found.layers, by_layer, strict=True)
        for p in predictions
    ]
    return pd.DataFrame(rows, columns=["step", "layer", "rank", "token", "probability"])


def ranking(predictions: Sequence[Prediction]) -> pd.DataFrame:
    """Predictions as a table: rank as it is shown, token, probability."""
    rows = [(query.spell_rank(p.rank, p.exact), p.token, p.probability) for p in predictions]
    return pd.DataFrame(rows, columns=["rank", "token", "probability"])


# === Kept while the checkpoints stay as they are ===


@st.cache_resource(max_entries=16, show_spinner=False, hash_funcs={Run: checkpoints_state})
def load_ahead(run: Run) -> Thread:
    """Begin to load a run's models behind the page, once: they are there by the time that a question is written."""
    loading = Thread(target=_load, args=(run,), name="load ahead", daemon=True)
    loading.start()
    return loading


def _load(run: Run) -> None:
    try:
        checkpoints = runs.loadable(run)
        first = log_spaced([checkpoint.step for checkpoint in checkpoints], FIRST)
        checkpoints = [checkpoint for checkpoint in checkpoints if checkpoint.step in first]
        with TURNS.turn(LOADING * len(checkpoints)) as pause:
            MODELS.fill(_pausing(checkpoints, pause))
    except EmbryoError:
        pass  # the first question meets it too, and tells of it


def _pausing(checkpoints: Sequence[Checkpoint], pause: Callable[[], None]) -> Iterator[Checkpoint]:
    for checkpoint in checkpoints:
        pause()
        yield checkpoint


@cached(checkpoints_state, 256, "Asking the model; the first query also starts torch …")
def at_step(run: Run, step: int, text: str) -> Answer:
    """The best joint answers, and the best pieces for each mask, at one step. Raises as `query.answer` does."""
    at_home = command(run.name, text, "--step", str(step))
    return in_turn(cost.answer(run, text), at_home, partial(query.answer, run, text, step))


@cached(checkpoints_state, 32, "Reading every layer …")
def by_layer(run: Run, text: str, mask: int) -> Lens:
    """What every layer answers at every step, of a long series at a log-spaced part. Raises as `query.lens` does."""
    at_home = command(run.name, text, "--step", "all", "--lens", "--mask", str(mask))
    known = [checkpoint.step for checkpoint in runs.loadable(run)]
    steps = log_spaced(known, FIRST) if len(known) > FIRST else None  # all: those without weights are named then
    seconds = cost.lens(run, text, steps and len(steps))
    return in_turn(seconds, at_home, partial(query.lens, run, text, mask, steps=steps))


@cached(checkpoints_state, 64)
def layers_at(run: Run, text: str, mask: int, step: int) -> Layers:
    """What every layer answers at one step. Raises as `query.lens` does."""
    at_home = command(run.name, text, "--step", str(step), "--lens", "--mask", str(mask))
    (found,) = in_turn(cost.lens(run, text, 1), at_home, partial(query.lens, run, text, mask, steps=[step])).cells
    return found
