"""Questions as a model reads them: windows over long paragraphs, the span to learn in each, and the answer read off."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embryo_core.finetune.questions import Question
from embryo_core.finetune.sequences import Sequences, join
from embryo_core.tokenizers.tokenizer import Pieces, Tokenizer

# The defaults of run_squad_v2.py in google-research/albert.
QUESTION = 64  # pieces that are read of a question; at most half of those that there is room for
STRIDE = 128  # pieces from one window to the next; half the room where windows are shorter
LONGEST = 30  # pieces of an answer
CANDIDATES = 20  # first pieces that are tried


@dataclass(frozen=True, eq=False)
class Windows:
    """w windows, each a pair of question and part of the paragraph, and where each comes from."""

    sequences: Sequences
    question: np.ndarray  # [w] index of the question, never decreasing
    offset: np.ndarray  # [w] pieces before the paragraph's part
    characters: list[np.ndarray]  # of each window: first and last + 1 character of each piece of the part, [pieces, 2]


def cut_windows(questions: Sequence[Question], tokenizer: Tokenizer, length: int) -> Windows:
    """All windows over the paragraph of each question; neighbours overlap."""
    frame = tokenizer.frame(2)
    free = length - sum(map(len, frame.ids))
    most = min(QUESTION, free // 2)
    texts = [one.ids[:most] for one in tokenizer.encode_texts([question.text for question in questions])]
    contexts = list(dict.fromkeys(question.context for question in questions))
    encoded = {
        context: Pieces(pieces.ids, _trimmed(context, pieces.characters))
        for context, pieces in zip(contexts, tokenizer.encode_texts(contexts), strict=True)
    }
    parts, owners, characters = [], [], []
    for owner, (question, text) in enumerate(zip(questions, texts, strict=True)):
        pieces = encoded[question.context]
        room = free - len(text)
        stride = min(STRIDE, max(1, room // 2))
        last = max(0, len(pieces.ids) - room)
        for start in [*range(0, last, stride), last]:
            parts.append((text, pieces.ids[start : start + room]))
            owners.append(owner)
            characters.append(pieces.characters[start : start + room])
    before = sum(map(len, frame.ids[:2]))
    offset = np.array([len(text) + before for text, _ in parts])
    return Windows(join(parts, frame, tokenizer.pad_id), np.array(owners), offset, characters)


def _trimmed(context: str, characters: np.ndarray) -> np.ndarray:
    """Characters of pieces without the blanks before a word."""
    trimmed = characters.copy()
    for piece, (start, end) in enumerate(characters):
        text = context[start:end]
        trimmed[piece, 0] = end - len(text.lstrip())
    return trimmed


def spans(windows: Windows, questions: Sequence[Question]) -> np.ndarray:
    """First and last piece [w, 2] int64 of the first gold answer in each window; 0, [CLS], where it is not in it."""
    found = np.zeros((len(windows.question), 2), np.int64)
    for window, owner in enumerate(windows.question):
        question, characters = questions[owner], windows.characters[window]
        if not question.answers or not len(characters):
            continue
        start, end = question.starts[0], question.starts[0] + len(question.answers[0])
        inside = np.flatnonzero((characters[:, 1] > start) & (characters[:, 0] < end))
        if len(inside) and characters[0, 0] <= start and characters[-1, 1] >= end:
            found[window] = inside[[0, -1]] + windows.offset[window]
    return found


def read_spans(windows: Windows, logits: np.ndarray, may_be_empty: bool) -> np.ndarray:
    """The characters [questions, 2] of each question's best answer by logits [w, 2, L]; [0, 0] is no answer.

    The best answer has the highest sum of the logits of its first and last piece over all windows. Where answers may be
    empty, it has to be above the least sum for [CLS].
    """
    count = windows.question[-1] + 1
    answers, best, null = np.zeros((count, 2), np.int64), np.full(count, -np.inf), np.full(count, np.inf)
    for window, owner in enumerate(windows.question):
        null[owner] = min(null[owner], logits[window, :, 0].sum())
        value, first, last = _best(logits[window], windows.offset[window], len(windows.characters[window]))
        if value > best[owner]:
            characters = windows.characters[window]
            best[owner], answers[owner] = value, (characters[first, 0], characters[last, 1])
    if may_be_empty:
        answers[null >= best] = 0
    return answers


def _best(logits: np.ndarray, offset: int, pieces: int) -> tuple[float, int, int]:
    """The highest sum of logits [2, L] of a first and a last piece of the part, and these pieces."""
    first, last = logits[:, offset : offset + pieces]
    best = (-np.inf, 0, 0)
    for i in np.argsort(-first, kind="stable")[:CANDIDATES]:
        j = i + int(np.argmax(last[i : i + LONGEST]))
        best = max(best, (first[i] + last[j], int(i), j))
    return best
