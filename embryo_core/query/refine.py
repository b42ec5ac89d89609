"""A trace that grows round by round: a log-spaced subset first, then between steps whose answers differ, then the rest.

A long series takes long to ask, and what it answers changes at few of its steps. So the first picture is of FIRST
checkpoints, or of all where there are no more. Then, again and again, the middle of the widest gap between two asked
steps whose best answers differ is asked; where no such gap is left, that of the widest gap at all. After the last round
the trace is that of `trace`.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import pairwise

from embryo_core import runs
from embryo_core.curves.step_scales import log_spaced
from embryo_core.query.beam import Reply
from embryo_core.query.question import check_text
from embryo_core.query.sweep import Answered, ask_each, in_order, nothing_read
from embryo_core.query.trace import Scores, Trace, ask_together, read_replies
from embryo_core.types import Run

FIRST = 32  # checkpoints of the first picture at most
ROUND = 64  # checkpoints asked at once after the first: about a second's work for a model of the demo's size
Gap = tuple[bool, int, int, int]  # whether its ends agree, its width below 0, and the indices of its ends


class Refinement:
    """What the checkpoints of a run answer to a text, asked in rounds; every answer in its trace is exact.

    A round is of ROUND steps. With several masks it has at least as many as were asked before: each answer that leads
    at a new step is then scored at the old ones too.
    """

    def __init__(self, run: Run, text: str, k: int = 5):
        """Ask nothing yet; `k` as for `trace`. Raises QueryError, and CheckpointError where nothing can be asked."""
        self.run, self.text, self.k = run, check_text(text), k
        self._checkpoints = {found.step: found for found in runs.loadable(run)}
        if not self._checkpoints:
            runs.checkpoint(run, 0)  # raises, telling how a run gets its checkpoints
        self._thinned = runs.left_out(runs.checkpoints(run))
        self._answered: Answered[Reply] = {}
        self._broken: dict[int, str] = {}
        self._scores: Scores = {}
        self._trace: Trace | None = None

    @property
    def steps(self) -> tuple[int, ...]:
        """All steps that can be asked."""
        return tuple(self._checkpoints)

    @property
    def asked(self) -> frozenset[int]:
        """The steps that have been asked, those included that could not be read."""
        known = self._trace.steps if self._trace else ()
        return frozenset(known) | frozenset(self._broken)

    @property
    def narrowing(self) -> bool:
        """Whether steps are left between two whose answers differ."""
        return any(not agree for agree, *_ in self._gaps())

    def next_round(self) -> list[int]:
        """The steps to ask next, none once all have been asked."""
        if not self.asked:
            return log_spaced(self.steps, FIRST)
        count = ROUND if self._trace is None or self._trace.joint is None else max(ROUND, len(self.asked))
        return halved(self._readable(), self._gaps(), count)

    def ask(self, steps: Iterable[int]) -> None:
        """Ask those of its `steps` that have not been asked; while no checkpoint could be read, further rounds too.

        Raises TokenizerMismatch and QueryError.
        """
        while new := [self._checkpoints[step] for step in sorted({*steps} - self.asked)]:
            found, broken = ask_each(new, partial(ask_together, self.text), passing=bool(self.asked))
            answered = self._answered | found
            if answered:
                skipped = self._broken | broken
                named = (*self._thinned, *(skipped[step] for step in sorted(skipped)))
                replies = in_order(self.run, answered, named)
                self._trace = read_replies(self.run, self.text, replies, self.k, self._scores)
            self._answered, self._broken = answered, self._broken | broken
            steps = self.next_round()
            if not steps:
                self._answered, self._scores = {}, {}  # the logits of a long series fill much memory
            if self._trace:
                return

    @property
    def trace(self) -> Trace:
        """The trace of the steps asked so far. Raises BrokenCheckpoint where none of them could be read."""
        if self._trace is None:
            raise nothing_read(self.run, tuple(self._broken.values()))
        return self._trace

    def _readable(self) -> list[int]:
        return [step for step in self._checkpoints if step not in self._broken]

    def _gaps(self) -> list[Gap]:
        history = self._trace and (self._trace.joint or self._trace.masks[0])
        leaders = dict(zip(self._trace.steps, history.leaders, strict=True)) if history else {}
        return gaps(self._readable(), leaders)


def gaps(steps: Sequence[int], leaders: Mapping[int, object]) -> list[Gap]:
    """The gaps between asked steps, which are those that have a leader; beyond the first and the last one, too."""
    known = [i for i, step in enumerate(steps) if step in leaders]
    ends = [-1, *known, len(steps)]
    leader = [None, *(leaders[steps[i]] for i in known), None]
    agree = [one == other for one, other in pairwise(leader)]
    return [(same, low - high, low, high) for same, (low, high) in zip(agree, pairwise(ends)) if high - low > 1]


def halved(steps: Sequence[int], between: list[Gap], count: int) -> list[int]:
    """So many steps, each in the middle of the widest gap; those whose ends differ come first, with their halves."""
    heap, chosen = list(between), []
    heapify(heap)
    while heap and len(chosen) < count:
        same, _, low, high = heappop(heap)
        middle = (low + high) // 2
        chosen.append(steps[middle])
        for half in pairwise((low, middle, high)):
            if half[1] - half[0] > 1:
                heappush(heap, (same, half[0] - half[1], *half))
    return sorted(chosen)
