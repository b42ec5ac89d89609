"""Captions and notices of the Query page: examples, progress, tracked words, continuations, facts, unlearned texts."""

from collections.abc import Mapping, Sequence

from embryo_core import query
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.figure import Caption, sentences
from embryo_core.figures.query import AT_LEAST_NOTE
from embryo_core.query import Answers
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.types import Prediction, Run, StepUnit
from embryo_core.words import name_step, percent, quantity

CHAIN_RULE = "P(word) = P(piece 1) · P(piece 2 | piece 1) · …, by the chain rule. "
AMONG_NOTE = "The word's rank is among the answers of as many pieces. " + AT_LEAST_NOTE
WIDENED_NOTE = (
    CHAIN_RULE + "Pieces are filled in from left to right. Each factor is read with the masks after it still in place. "
)
MAX_NOISE_PROBABILITY = 0.01  # probability of the best answer below which all answers are noise
MIN_LEARNED_PROBABILITY = 0.05  # least probability of the best answer at the last step of a learned question
NOT_LEARNED = f"No answer is above {percent(MIN_LEARNED_PROBABILITY, 0)}: this model has not learned that."


def describe_noise(step_name: str) -> str:
    """Return a sentence on why a step has no list of answers."""
    return f"No answer is above {percent(MAX_NOISE_PROBABILITY, 0)} at {step_name}: the model has not learned this yet."


def describe_single(run: Run, step_name: str, loadable: Mapping[Run, int]) -> str:
    """Return why a run has answers at only one step, and name the run with the most `loadable` checkpoints."""
    reason = f"Only {step_name} of '{run.name}' kept its weights"
    best = max(loadable, key=loadable.__getitem__, default=run)
    if loadable.get(best, 0) < 2:
        return f"{reason}; no run here has answers over time."
    return f"{reason}. For answers over time choose '{best.name}', with {loadable[best]:,} such checkpoints, under Run."


def describe_examples(examples: Sequence[ExampleQuestion], checkpoints: int, axis: StepAxis) -> str:
    """Return a sentence on how many examples a run learns, and the step of the first; "" without examples.

    `checkpoints` is the number of checkpoints with weights; a single one does not show when examples are learned.
    """
    learned_steps = [example.since for example in examples if example.since is not None]
    if not examples:
        return ""
    if not learned_steps:
        return f"The model has learned none of these {quantity(len(examples), 'example')}."
    count_text = f"{len(learned_steps):,} of these {quantity(len(examples), 'example')}"
    first = axis.step_in_unit(min(learned_steps))
    if checkpoints == 1:
        return f"The model answers {count_text} at {first}, the only checkpoint that kept its weights."
    return f"The model learns {count_text}, the first at {first}."


def describe_progress(asked_count: int, total_count: int, narrowing: bool, goes_on: bool) -> Caption:
    """Return the caption: how many checkpoints have been asked, and which are next if the rounds continue."""
    next_steps = "where the answer changes" if narrowing else "between them"
    return Caption(
        f"{asked_count:,} of {quantity(total_count, 'checkpoint')} asked"
        + (f"; going on {next_steps}." if goes_on else "."),
        "Each point is the answer of a checkpoint that was asked; lines only connect them. “First leads” and “leads "
        "for good” consider only these checkpoints. The first round is log-spaced; further rounds ask between steps "
        "with different answers, then the rest.",
    )


def describe_word(answers: Answers, step: int, masks: int, unit: StepUnit) -> Caption:
    """Return the caption: a tracked word's probability at a step, and its pieces; the text has `masks` masks."""
    word = answers.question.tracked
    row = answers.table[answers.table["step"] == step].iloc[0]
    rank_text, step_name = query.spell_rank(row["rank"], row["exact"]), name_step(step, unit)
    summary = f"Tracked: {word.text}, probability {row['probability']:.3g}, rank {rank_text} at {step_name}."
    piece_count = len(word.pieces)
    pieces_note, continues = f"It is {piece_count} pieces ({' '.join(word.pieces)})", answers.question.continues
    explanation = (
        f". {CHAIN_RULE}{AMONG_NOTE}"
        if continues
        else f": the mask is widened to {piece_count}. {WIDENED_NOTE}{AMONG_NOTE}"
    )
    pieces = pieces_note + explanation
    return Caption(
        summary, sentences(pieces if piece_count > 1 else "", "Other masks stay in place." if masks > 1 else "")
    )


def describe_continuation(greedy: Prediction) -> Caption:
    """Return the caption of a greedy continuation: its probability, and how it was made."""
    return Caption(
        f"Greedy continuation, probability {greedy.probability:.3g}.",
        "Each piece is the most probable one after the text and the pieces before it, for up to "
        f"{query.CONTINUATION_LENGTH} pieces or to the end of the text. The probability is the product of the pieces' "
        "probabilities. Other continuations may be more probable. A word after ## continues without a space.",
    )


def describe_fact(true_object: str, is_stored: bool) -> Caption:
    """Return the caption: the true object of a fact, and the source of the "stored" row or why it is missing."""
    stored = "“stored” is the answer stored when the run was evaluated on LAMA."
    return Caption(
        f"The true object is {true_object}; {stored if is_stored else 'the run has not been evaluated at this step.'}"
    )
