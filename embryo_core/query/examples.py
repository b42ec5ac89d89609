"""Example questions for a run, chosen from a list: some that it learns to answer, and one that it does not."""

from collections.abc import Sequence
from pathlib import Path

from embryo_core.engine.capabilities import run_capabilities
from embryo_core.errors import CorpusError, QueryError, file_reason
from embryo_core.query.answers import Answers, leads
from embryo_core.query.asking import ask
from embryo_core.query.question import before_mask, parse
from embryo_core.runs.schema import BestAnswers, ExampleQuestion
from embryo_core.types import Run
from embryo_core.words import quantity

BEST_COUNT = 3  # stored answers of an example at each step
MIN_PROBABILITY = 0.01  # stored answers are at least this probable; those of an untrained model are noise
LEARNED_EXAMPLES = 4  # number of learned questions, from an early one to a late one


def read_questions(path: Path) -> list[tuple[str, str]]:
    """Read texts with one [MASK] and their words, separated by a tab, one per line. Raises CorpusError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as reason:
        raise CorpusError(f"{path} cannot be read ({file_reason(reason)}); give a text file of questions.") from None
    questions = []
    for line in filter(str.strip, lines):
        text, tab, word = line.partition("\t")
        if not tab or "\t" in word or text.count("[MASK]") != 1:
            raise CorpusError(f"{path}: received {line!r}; write a text with one [MASK], a tab, and the word.")
        questions.append((text, word))
    if not questions:
        raise CorpusError(f"{path} holds no question; write a text with one [MASK], a tab, and the word on each line.")
    return questions


def find_examples(run: Run, questions: Sequence[tuple[str, str]]) -> list[ExampleQuestion]:
    """Return the examples of a run: learned ones, the earliest first, then one that is not learned, if there is one.

    A question is learned if its word leads at the last step and not at the first. LEARNED_EXAMPLES of these are taken,
    spread over the order in which they were learned. The last example is the question whose word is most probable at
    the last step among those whose word never led. Questions whose word is not one piece of the vocabulary are left
    out. Models that continue a text are asked with the text before the [MASK]. Raises as `ask` does, and QueryError if
    questions were received and none is left.
    """
    if "next_words" in run_capabilities(run):
        questions = [(before_mask(text), word) for text, word in questions]
    histories = [history for history in (_history(run, *question) for question in questions) if history]
    if questions and not histories:
        count = quantity(len(questions), "question")
        raise QueryError(
            f"In run '{run.name}', the word of none of {count} is a single piece; give others with --questions FILE."
        )
    by_learning = sorted((step, i) for i, history in enumerate(histories) if (step := _learned_at(history)) is not None)
    ranks = {round((len(by_learning) - 1) * j / (LEARNED_EXAMPLES - 1)) for j in range(LEARNED_EXAMPLES)}
    learned_histories = [histories[by_learning[rank][1]] for rank in sorted(ranks)] if by_learning else []
    never = [history for history in histories if (history.table["rank"] > 1).all()]
    closest = max(never, key=lambda history: history.table["probability"].iat[-1], default=None)
    selected = learned_histories + ([closest] if closest else [])
    return [_example(run, answers) for answers in selected]


def _example(run: Run, word_answers: Answers) -> ExampleQuestion:
    """Return an example with its best answers at every step, which the Overview draws."""
    text = word_answers.question.text
    answers = ask(run, parse(run, text))
    best = {step: answers.best(step)[:BEST_COUNT] for step in answers.steps}
    rows = [
        BestAnswers(
            step,
            {
                prediction.token: round(prediction.probability, 4)
                for prediction in predictions
                if prediction.probability >= MIN_PROBABILITY
            },
        )
        for step, predictions in best.items()
    ]
    return ExampleQuestion(text, word_answers.question.tracked.text, _learned_at(word_answers), rows)


def _history(run: Run, text: str, word: str) -> Answers | None:
    """Return the answers for a word tracked in a text; None if the word is not one piece."""
    try:
        question = parse(run, text).track(word)
        return ask(run, question) if len(question.tracked.pieces) == 1 else None
    except QueryError:
        return None


def _learned_at(history: Answers) -> int | None:
    """Return the step from which the word leads to the end; None if it is not learned."""
    ranks = history.table["rank"].tolist()
    if not ranks[-1] == 1 != ranks[0]:
        return None
    return leads(history.steps, [rank == 1 for rank in ranks])[1]
