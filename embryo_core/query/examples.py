"""Questions worth asking of a run: out of a list, those that it comes to answer, and one that it has not learned."""

from collections.abc import Sequence
from pathlib import Path

from embryo_core.errors import CorpusError, QueryError
from embryo_core.query.trace import leads
from embryo_core.query.track import Track, track
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.types import Run
from embryo_core.words import quantity

LEARNED = 4  # so many questions that the run answers, from an early one to a late one


def read_questions(path: Path) -> list[tuple[str, str]]:
    """Texts with one [MASK], each with its word: a tab between the two, a line for each. Raises CorpusError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path} cannot be read: {error}; give a text file of questions.") from None
    questions = [tuple(line.split("\t")) for line in lines if line.strip()]
    for question in questions:
        if len(question) != 2 or question[0].count("[MASK]") != 1:
            received = "\t".join(question)
            raise CorpusError(f"{path}: received {received!r}; write a text with one [MASK], a tab, and the word.")
    if not questions:
        raise CorpusError(f"{path} holds no question; write a text with one [MASK], a tab, and the word on each line.")
    return questions


def find_examples(run: Run, questions: Sequence[tuple[str, str]]) -> list[ExampleQuestion]:
    """The examples of a run, the earliest learned first and what it has not learned last.

    A question is learned where its word leads at the last step and not at the first; of these, LEARNED are taken that
    are spread over the order in which they were learned. Of the others, one follows whose word is most probable at the
    last step without ever having led. Words that the run's vocabulary has only in pieces are left out. Raises as
    `track` does where no checkpoint can be read, and QueryError where that leaves none.
    """
    found = [history for history in (_history(run, *question) for question in questions) if history]
    if questions and not found:
        asked = quantity(len(questions), "question")
        raise QueryError(f"Run '{run.name}' has the word of none of {asked} as one piece; give others: --questions.")
    learned = sorted((_since(history), i) for i, history in enumerate(found) if _is_learned(history))
    taken = sorted({round((len(learned) - 1) * part / (LEARNED - 1)) for part in range(LEARNED)}) if learned else []
    examples = [_example(found[learned[i][1]]) for i in taken]
    never = [history for history in found if 1 not in history.ranks]
    closest = max(never, key=lambda history: history.probabilities[-1], default=None)
    return examples + ([_example(closest)] if closest else [])


def _history(run: Run, text: str, word: str) -> Track | None:
    try:
        history = track(run, text, word)
    except QueryError:
        return None
    return history if len(history.pieces) == 1 else None


def _is_learned(history: Track) -> bool:
    return history.ranks[-1] == 1 != history.ranks[0]


def _since(history: Track) -> int:
    """The step from which the word leads for good."""
    return leads(history.steps, [rank == 1 for rank in history.ranks])[1]


def _example(history: Track) -> ExampleQuestion:
    return ExampleQuestion(history.text, history.word, _since(history) if _is_learned(history) else None)
