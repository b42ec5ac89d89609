"""What the captions of the Query page say: how several masks and long words are answered, and the same as commands."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from embryo_core import query
from embryo_core.figures.markdown import literal
from embryo_core.query.track import Track
from embryo_core.types import StepUnit
from embryo_core.words import point, quantity

AT_LEAST = f"≥: at least this rank, since a beam of {query.BEAM_WIDTH} can miss a more probable answer."
JOINTLY = (
    "Several masks are answered jointly, from left to right. The probability of an answer is the product of the "
    "probabilities of its words. Each is read with the words before it filled in and the later masks still in place "
    f"(beam of {query.BEAM_WIDTH}). The list for one mask has that mask's factor alone. It is read with the best "
    "answer to the masks before it filled in. " + AT_LEAST
)
WIDENED = (
    "P(word) = P(piece 1) · P(piece 2 | piece 1) · …, by the chain rule. Pieces are filled in from left to right. Each "
    "factor is read with the masks after it still in place. The word's rank is among the answers of as many pieces. "
    + AT_LEAST
)
LENS = (
    "The word that each layer would put in the place of this [MASK] at each step. The model's own masked-word head, "
    "which was trained on the last layer alone, is applied to every hidden state (layer 0: the embeddings). Other "
    "masks stay in place. Colour: the word's probability, on a square-root scale. Dotted: the chosen step. Click a "
    "cell to pin its ten best words."
)
ALONE = (
    "To see another run's answers, open “A fact, a word to track, a comparison” and choose it under “Compare with”."
)
OUTLINED = {"true object": "orange: the true object", "tracked": "pink: the tracked word"}  # as in charts/query.py
GREY = "Grey: all but the first six; point at a line to read its answer."


@dataclass(frozen=True)
class Progress:
    """How far a question has come."""

    asked: int  # checkpoints
    total: int
    narrowing: bool  # whether steps are left between two whose answers differ


def progress(found: Sequence[Progress], goes_on: bool) -> str:
    """How far the questions of a page have come together, and where they go on."""
    asked, total = sum(one.asked for one in found), sum(one.total for one in found)
    where = "where the answer changes" if any(one.narrowing for one in found) else "between them"
    head = f"{asked:,} of {quantity(total, 'checkpoint')} asked" + (f"; going on {where}." if goes_on else ".")
    return head + (
        " Every point is the answer of an asked checkpoint, and lines only join them. “First leads” and "
        "“leads for good” count the asked checkpoints alone. The first are log-spaced; then those are asked that "
        "lie between two with different answers, then the others."
    )


def question(run: str, text: str) -> str:
    """A run and the text that it is asked, on one line."""
    return f"**{literal(run)}**: {literal(' '.join(text.split()))}"


def which(mask: int | None, masks: int) -> str:
    """Which of so many masks a figure is about, None being all together; nothing where there is one."""
    if masks == 1:
        return ""
    return " (all masks together)" if mask is None else f" ([MASK] {mask} of {masks})"


def tracked(track: Track, step: int, masks: int, unit: StepUnit) -> str:
    """The tracked word: its pieces, and how probable it is at a step, in a text of so many masks."""
    i = track.steps.index(step)
    rank = query.spell_rank(track.ranks[i], track.exact[i])
    now = f"probability {track.probabilities[i]:.3g}, rank {rank} at {point(step, unit)}"
    words = f"Tracked: **{literal(track.word)}**, {now}."
    count = len(track.pieces)
    if count > 1:
        pieces = " ".join(map(literal, track.pieces))
        words += f" It is {count} pieces ({pieces}): the mask is widened to {count}. {WIDENED}"
    return words + (" The other masks stay in place." if masks > 1 else "")


def fact(true_object: str, evaluated: bool) -> str:
    """The true object, and where the stored row comes from, or why there is none."""
    stored = "“stored” is the answer stored when the run was evaluated on LAMA."
    missing = "the run has not been evaluated at this step."
    return f"The true object is **{literal(true_object)}**; {stored if evaluated else missing}"


def probability(run: str, steps: int, which: str = "") -> str:
    """The caption of the probabilities at so many steps, `which` being the mask (see there)."""
    return (
        f"Probability at {quantity(steps, 'checkpoint')} of run '{literal(run)}', one text{which}. Drawn are all "
        f"answers that were ever on top, the five best at the last step, and the marked words. {GREY}"
    )


def rank(together: bool, steps: int, which: str = "") -> str:
    """The caption of the ranks at so many steps, of the answers to all masks `together` or to one."""
    among = f"all joint answers (hollow points, {AT_LEAST})" if together else "all pieces of the vocabulary"
    return f"Rank among {among} at {quantity(steps, 'checkpoint')}{which}; 1 is the top answer. {GREY}"


def lens(run: str, steps: int, total: int, roles: list[str], first: bool, folded: int, which: str = "") -> str:
    """The caption of a lens; the `first` on a page says what a lens is, each what it outlines and has `folded`."""
    outlines = [f"Outlined in {OUTLINED[role]}." for role in roles]
    part = f" of {total:,}, log-spaced; any other can be pinned by its step" if steps < total else ""
    empty = [f"The empty first column stands for {folded:,} of them; a switch above shows these."] if folded else []
    of = f"Run '{literal(run)}', {quantity(steps, 'checkpoint')}{part}, one text{which}."
    return " ".join([LENS if first else "As above.", *outlines, of, *empty])


def commands(run: str, step: int, text: str, word: str, mask: int | None) -> list[str]:
    """One question at a terminal: at the step, at all, the tracked word, the lens; mask None is all masks together."""
    which = ["--mask", str(mask)] if mask not in (1, None) else []
    found = [["--step", str(step)], ["--step", "all"]]
    if mask is not None:
        found += [["--step", "all", f"--track={word}", *which]] if word else []
        found += [["--step", "all", "--lens", *which]]
    return [command(run, text, *options) for options in found]


def command(run: str, text: str, *options: str) -> str:
    """The command that asks a run this text."""
    return shlex.join(["python", "-m", "embryo_core", "query", run, *options, "--", text.strip()])
