"""Questions to all checkpoints of a run, asked in rounds: what has been asked so far, shared by all visitors."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from math import isfinite
from threading import Lock

import streamlit as st

from app.caching import checkpoints_state
from app.drawing import aside
from app.turns import budget, check_budget, in_turn
from embryo_core import query
from embryo_core.curves.step_scales import log_spaced
from embryo_core.figures.captions.query import Progress, command
from embryo_core.query import Refinement, cost
from embryo_core.query.refine import FIRST, ROUND, gaps, halved
from embryo_core.query.trace import Trace
from embryo_core.query.track import Track, joined
from embryo_core.types import Run

Word = tuple[str, int]  # a tracked word, and the number of its mask


class Rounds:
    """One text put to the checkpoints of a run, and the words that are tracked in it.

    One round is asked at a time, whoever's page asks it. A page waits aside for its turn (see drawing.py, turns.py).
    """

    def __init__(self, run: Run, text: str):
        self._run, self._text = run, text
        self._refinement: Refinement | None = None
        self._tracks: dict[Word, Track] = {}
        self._lock = Lock()

    @property
    def progress(self) -> Progress:
        """How far the question has come."""
        found = self._refinement
        return Progress(len(found.asked), len(found.steps), found.narrowing)

    @property
    def unfinished(self) -> bool:
        """Whether some checkpoints have been asked, and others are left."""
        found = self._refinement
        return found is not None and 0 < len(found.asked) < len(found.steps)

    def trace(self, step: int, later: bool = False) -> Trace:
        """The trace so far, this step included; what it lacks is asked. Raises as `query.trace` does.

        A step that is asked `later`, with the next round, may be missing; the page does not wait for it.
        """
        if later:
            return self._refinement.trace
        with aside(), self._lock:
            if self._refinement is None:
                self._refinement = Refinement(self._run, self._text)
            found = self._refinement
            if not found.asked:
                with st.spinner("Asking the checkpoints …"):
                    self._ask({*found.next_round(), step})
            elif step not in found.asked:
                self._ask([step])
            return found.trace

    def track(self, word: str, mask: int, step: int) -> Track:
        """The word at a part of the trace's steps, this one included. Raises as `query.track` does."""
        with aside(), self._lock:
            known = self._tracks.get((word, mask))
            wanted = {step} & {*self._refinement.trace.steps} - {*(known.steps if known else ())}
            if known is None:
                with st.spinner("Following the word …"):
                    self._follow((word, mask), sorted(wanted | {*self._unfollowed((word, mask), FIRST)}))
            elif wanted:
                self._follow((word, mask), sorted(wanted))
            return self._tracks[word, mask]

    def go_on(self, words: Iterable[Word], step: int) -> None:
        """Ask another round, this step included, of these words too.

        Raises TooCostly once the whole question costs too much.
        """
        with aside(), self._lock:
            found = self._refinement
            if steps := {*found.next_round(), step} - found.asked:
                self._ask(steps)
            for word in words:
                if steps := self._unfollowed(word, ROUND):
                    self._follow(word, steps)

    def check(self) -> None:
        """Raises TooCostly where the next round would make the question cost too much."""
        if isfinite(budget()) and (steps := self._refinement.next_round()):
            check_budget(cost.trace(self._run, self._text, len(self._refinement.asked) + len(steps)), self._at_home())

    def _ask(self, steps: Collection[int]) -> None:
        """Ask more checkpoints when their turn comes."""
        before = len(self._refinement.asked)
        spent = cost.trace(self._run, self._text, before)
        seconds = cost.trace(self._run, self._text, before + len(steps)) - spent
        in_turn(seconds, self._at_home(), partial(self._refinement.ask, steps), spent)

    def _unfollowed(self, word: Word, count: int) -> Sequence[int]:
        """Steps of the trace at which a word is asked next."""
        steps, known = self._refinement.trace.steps, self._tracks.get(word)
        if known is None:
            return log_spaced(steps, count)
        return halved(steps, gaps(steps, dict.fromkeys(known.steps, True)), count)

    def _follow(self, word: Word, steps: Sequence[int]) -> None:
        """Ask a word at more steps when their turn comes."""
        known = self._tracks.get(word)
        spent = cost.track(self._run, self._text, *word, asked=len(known.steps)) if known else 0
        at_home = self._at_home(f"--track={word[0]}", "--mask", str(word[1]))
        seconds = cost.track(self._run, self._text, *word, asked=len(steps))
        found = in_turn(seconds, at_home, partial(query.track, self._run, self._text, *word, steps), spent)
        self._tracks[word] = joined([known, found]) if known else found

    def _at_home(self, *options: str) -> str:
        return command(self._run.name, self._text, "--step", "all", *options)


@st.cache_resource(max_entries=16, show_spinner=False, hash_funcs={Run: checkpoints_state})
def in_rounds(run: Run, text: str) -> Rounds:
    """The rounds of a text, kept while the checkpoints stay as they are; nothing is asked yet."""
    return Rounds(run, text)
