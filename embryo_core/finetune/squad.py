"""SQuAD: questions, windows over their paragraphs, and exact match and F1 of answers."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from embryo_core.errors import CorpusError
from embryo_core.finetune.sequences import Sequences, join
from embryo_core.finetune.task_specs import SQUAD
from embryo_core.finetune.tasks import Columns, check_count, column, held_out_rows, read_split
from embryo_core.tokenizers.encodings import Pieces
from embryo_core.tokenizers.tokenizer import Tokenizer

SQUAD_COLUMNS = ("id", "context", "question", "answers")
# The defaults of run_squad_v2.py in google-research/albert.
MAX_QUESTION_PIECES = 64  # longer questions are truncated, also to half of a short window
STRIDE = 128  # pieces between the starts of two windows; in short windows, half the pieces left for the paragraph
MAX_ANSWER_PIECES = 30  # longest predicted answer
CANDIDATES = 20  # number of most likely first pieces of an answer that are tried


# === Questions ===


@dataclass(frozen=True)
class SquadQuestion:
    """A question about a paragraph, with its gold answers and the character at which each starts."""

    id: str
    context: str
    text: str
    answers: tuple[str, ...]  # empty if unanswerable (version 2.0)
    starts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class QuestionTask:
    """SQuAD as a task: training and validation questions, and metrics."""

    train: list[SquadQuestion]
    validation: list[SquadQuestion]
    name: str = SQUAD
    metrics: tuple[str, ...] = ("f1", "exact")
    remark: str = ""

    @cached_property
    def unanswerable(self) -> bool:
        """Return whether some questions have no answer, as in SQuAD 2.0."""
        return any(not question.answers for question in self.validation)

    def held_out(self) -> "QuestionTask":
        """Return the task on training data only, a tenth of which become the validation split."""
        train, validation = ([self.train[i] for i in rows] for rows in held_out_rows(len(self.train)))
        return replace(self, train=train, validation=validation)


def read_squad(folder: Path) -> QuestionTask:
    """Read SQuAD 1.1 or 2.0 from train and validation parquet files. Raises CorpusError."""
    train = _questions(f"The training data of {folder}", read_split(folder, "train"))
    validation = _questions(f"The validation data of {folder}", read_split(folder, "validation"))
    check_count(f"The training data of {folder}", len(train), "question", minimum=2)
    task = QuestionTask(train, validation)
    if task.unanswerable and all(question.answers for question in train):
        raise CorpusError(
            f"The validation data of {folder} have questions without an answer, and the training data have none; "
            "give both of one version of SQuAD."
        )
    return task


def _questions(subject: str, columns: Columns) -> list[SquadQuestion]:
    """Return the questions of a split; errors begin with `subject`. Raises CorpusError."""
    rows = zip(*(column(subject, columns, name) for name in SQUAD_COLUMNS), strict=True)
    questions = [_question(f"{subject}, row {row}", *values) for row, values in enumerate(rows)]
    check_count(subject, len(questions), "question")
    if len({question.id for question in questions}) < len(questions):
        raise CorpusError(f"{subject} have the same id twice; ids must be unique.")
    return questions


def _question(line: str, id: Any, context: Any, text: Any, answers: Any) -> SquadQuestion:
    """Check and return the question of one row; errors begin with `line`. Raises CorpusError."""
    try:
        gold_answers, answer_starts = tuple(answers["text"]), tuple(answers["answer_start"])
    except (KeyError, TypeError):
        raise CorpusError(f"{line}: answers have text and answer_start, received {str(answers)[:60]}.") from None
    are_texts = all(isinstance(value, str) for value in (id, context, text, *gold_answers))
    if not are_texts or len(gold_answers) != len(answer_starts):
        raise CorpusError(f"{line}: id, context, question and answers must be strings; each answer needs a start.")
    for gold, start in zip(gold_answers, answer_starts, strict=True):
        if context[start : start + len(gold)] != gold:
            raise CorpusError(f"{line}: the answer {gold[:40]!r} is not at character {start} of its context.")
    return SquadQuestion(id, context, text, gold_answers, answer_starts)


# === Windows over paragraphs ===


@dataclass(frozen=True, eq=False)
class Windows:
    """w windows, each a question with a part of its paragraph."""

    sequences: Sequences
    question: np.ndarray  # [w] index of the question, never decreasing
    offset: np.ndarray  # [w] number of pieces before the paragraph's part
    characters: list[np.ndarray]  # per window [pieces, 2]: start and end (exclusive) of each piece in the paragraph


def cut_windows(questions: Sequence[SquadQuestion], tokenizer: Tokenizer, length: int) -> Windows:
    """Split the paragraph of each question into overlapping windows of at most `length` pieces."""
    frame = tokenizer.frame(2)
    max_pieces = length - sum(map(len, frame.ids))
    max_question = min(MAX_QUESTION_PIECES, max_pieces // 2)
    texts = [
        encoding.ids[:max_question] for encoding in tokenizer.encode_texts([question.text for question in questions])
    ]
    contexts = list(dict.fromkeys(question.context for question in questions))
    pieces_of_context = {}
    for context, pieces in zip(contexts, tokenizer.encode_texts(contexts), strict=True):
        character_spans = [(end - len(context[start:end].lstrip()), end) for start, end in pieces.characters.tolist()]
        # a piece's characters may include a space before the word
        pieces_of_context[context] = Pieces(pieces.ids, np.array(character_spans, np.int32).reshape(-1, 2))
    texts_of_windows, owners, characters = [], [], []
    for owner, (question, text) in enumerate(zip(questions, texts, strict=True)):
        pieces = pieces_of_context[question.context]
        room = max_pieces - len(text)
        stride = min(STRIDE, max(1, room // 2))
        last_start = max(0, len(pieces.ids) - room)
        for start in [*range(0, last_start, stride), last_start]:
            texts_of_windows.append((text, pieces.ids[start : start + room]))
            owners.append(owner)
            characters.append(pieces.characters[start : start + room])
    prefix_length = sum(map(len, frame.ids[:2]))
    offset = np.array([len(text) + prefix_length for text, _ in texts_of_windows])
    return Windows(join(texts_of_windows, frame, tokenizer.pad_id), np.array(owners), offset, characters)


def gold_spans(windows: Windows, questions: Sequence[SquadQuestion]) -> np.ndarray:
    """Return the first and last piece [w, 2] int64 of the first gold answer; 0, 0 ([CLS]) in windows without it."""
    spans = np.zeros((len(windows.question), 2), np.int64)
    for window, owner in enumerate(windows.question):
        question, characters = questions[owner], windows.characters[window]
        if not question.answers or not len(characters):
            continue
        start, end = question.starts[0], question.starts[0] + len(question.answers[0])
        inside = np.flatnonzero((characters[:, 1] > start) & (characters[:, 0] < end))
        if len(inside) and characters[0, 0] <= start and characters[-1, 1] >= end:
            spans[window] = inside[[0, -1]] + windows.offset[window]
    return spans


def predicted_spans(windows: Windows, logits: np.ndarray, may_be_empty: bool) -> np.ndarray:
    """Return the characters [questions, 2] of each question's best answer by logits [w, 2, L]; [0, 0] for no answer.

    The best answer has the highest sum of the logits of its first and last piece over all windows. If answers may be
    empty, it also has to exceed the smallest sum for [CLS].
    """
    count = windows.question[-1] + 1
    answers, best, null = np.zeros((count, 2), np.int64), np.full(count, -np.inf), np.full(count, np.inf)
    for window, owner in enumerate(windows.question):
        null[owner] = min(null[owner], logits[window, :, 0].sum())
        value, first, last = _best_span(logits[window], windows.offset[window], len(windows.characters[window]))
        if value > best[owner]:
            characters = windows.characters[window]
            best[owner], answers[owner] = value, (characters[first, 0], characters[last, 1])
    if may_be_empty:
        answers[null >= best] = 0
    return answers


def _best_span(logits: np.ndarray, offset: int, pieces: int) -> tuple[float, int, int]:
    """Return the highest sum of the logits [2, L] of a first and a last piece, and both, counted from `offset`."""
    first, last = logits[:, offset : offset + pieces]
    best = (-np.inf, 0, 0)
    for i in np.argsort(-first, kind="stable")[:CANDIDATES]:
        j = i + int(np.argmax(last[i : i + MAX_ANSWER_PIECES]))
        best = max(best, (first[i] + last[j], int(i), j))
    return best


# === Exact match and F1, by the rules of SQuAD's official evaluations, one for each version ===

# The versions differ in answers without words after normalisation, such as "the": 2.0 drops such gold answers, and
# gives F1 1 if neither answer has words; 1.1 keeps them, and gives F1 0 unless a word is shared.

ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> list[str]:
    """Return the words of an answer in lower case, without ASCII punctuation or articles."""
    return ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split()


def exact_and_f1(answer: str, gold: Sequence[str], unanswerable: bool) -> tuple[float, float]:
    """Return the best exact match (0 or 1) and the best F1 over the gold answers.

    If some questions of the data are `unanswerable`, the rules of version 2.0 apply: an answer without words is right
    for a question without gold answers, or whose gold answers have no words. Otherwise the rules of version 1.1 apply,
    in which every question has a gold answer.
    """
    words, gold_answers = normalise(answer), [*map(normalise, gold)]
    if unanswerable:
        gold_answers = [answer for answer in gold_answers if answer] or [[]]
    scores = [(float(words == gold_words), _f1(words, gold_words, unanswerable)) for gold_words in gold_answers]
    return max(exact for exact, _ in scores), max(f1 for _, f1 in scores)


def _f1(words: list[str], gold: list[str], unanswerable: bool) -> float:
    """Return F1 over words, repeated ones included; if both answers have no words, 1 in version 2.0 and 0 in 1.1."""
    if not (words and gold):
        return float(unanswerable and words == gold)
    overlap = (Counter(words) & Counter(gold)).total()
    return 2 * overlap / (len(words) + len(gold))
