"""Edge-probing tasks as a model reads them: each distinct sentence and span once, every target by their numbers.

A word is tokenized on its own and the pieces are joined between [CLS] and [SEP], as everywhere. Left out, and counted:
targets in sentences with more pieces than the model has positions, and targets with a span that has no piece at all.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from embryo_core.corpora import read_probing
from embryo_core.errors import CorpusError
from embryo_core.metric import Limits
from embryo_core.metrics.probing.control import control_labels
from embryo_core.types import Target

if TYPE_CHECKING:
    from embryo_core.tokenizers.tokenizer import Tokenizer

SPLITS = ("train", "dev", "test")
UNSEEN = -1  # a label of dev or test that no training target has: no probe can give it
SEED = 7


@dataclass(frozen=True, eq=False)
class Targets:
    """The n targets of one split."""

    spans: np.ndarray  # [n, 1 or 2] int64: numbers of spans
    labels: np.ndarray  # [n] int64: numbers of labels, or UNSEEN
    control: np.ndarray  # [n] int64: labels of the control task


@dataclass(frozen=True, eq=False)
class ProbingTask:
    """One task; `labels` are those of its training targets."""

    name: str
    labels: tuple[str, ...]
    train: Targets
    dev: Targets
    test: Targets

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of targets and of labels, as sources.json has them."""
        return {split: len(getattr(self, split).labels) for split in SPLITS} | {"labels": len(self.labels)}


@dataclass(frozen=True, eq=False)
class ProbingData:
    """Tasks, and the sentences and spans that they share.

    Spans are numbered at random, and training targets are in the order of these numbers. So the targets in a row are of
    sentences at random, while their features are read nearly from the first to the last.
    """

    tasks: list[ProbingTask]
    sentences: list[np.ndarray]  # ids with [CLS] and [SEP]
    sentence: np.ndarray  # [spans] the sentence of each span
    start: np.ndarray  # [spans] position of its first piece in the sentence
    end: np.ndarray  # [spans] position after its last piece
    left_out: dict[str, int]  # targets, by why


def read_tasks(
    folders: Mapping[str, Path], tokenizer: "Tokenizer", limits: Limits, limit: int | None
) -> ProbingData:
    """Read and encode tasks, the first `limit` examples of each split. Raises CorpusError."""
    encoder = _Encoder(tokenizer, limits.positions)
    drafts = [(name, *_read_task(folder, encoder, limit)) for name, folder in folders.items()]
    spans = np.array(list(encoder.spans), np.int64)  # [spans, 3]
    number = np.random.default_rng(SEED).permutation(len(spans))  # the new number of each
    spans[number] = spans.copy()
    tasks = [_task(name, targets, types, number) for name, targets, types in drafts]
    return ProbingData(tasks, encoder.sentences, *spans.T, dict(encoder.left_out))


class _Encoder:
    """Encodes each distinct sentence once, and numbers the distinct spans."""

    def __init__(self, tokenizer: "Tokenizer", positions: int):
        self.sentences: list[np.ndarray] = []
        self.spans: dict[tuple[int, int, int], int] = {}  # number by sentence, start, end
        self.left_out: Counter[str] = Counter(too_long=0, no_pieces=0)
        self._tokenizer = tokenizer
        self._positions = positions
        self._known: dict[tuple[str, ...], tuple[int, list[int]] | None] = {}

    def encode(self, words: tuple[str, ...], target: Target) -> tuple[int, ...] | None:
        """The numbers of a target's spans; None, and counted, where it is left out."""
        if words not in self._known:
            self._known[words] = self._encode_sentence(words)
        if self._known[words] is None:
            self.left_out["too_long"] += 1
            return None
        sentence, begin = self._known[words]
        spans = [(sentence, begin[first], begin[last]) for first, last in _spans(target)]
        if any(start == end for _, start, end in spans):
            self.left_out["no_pieces"] += 1
            return None
        return tuple(self.spans.setdefault(span, len(self.spans)) for span in spans)

    def _encode_sentence(self, words: tuple[str, ...]) -> tuple[int, list[int]] | None:
        """The sentence's number, and the position where each word begins (and where the last one ends)."""
        tokenizer = self._tokenizer
        encoding = tokenizer.encode_words(words)
        if len(encoding.ids) + 2 > self._positions:
            return None
        self.sentences.append(np.concatenate([[tokenizer.cls_id], encoding.ids, [tokenizer.sep_id]]))
        begin = np.searchsorted(encoding.word_of_piece, np.arange(len(words) + 1)) + 1
        return len(self.sentences) - 1, begin.tolist()


def _spans(target: Target) -> tuple[tuple[int, int], ...]:
    return (target.span1,) if target.span2 is None else (target.span1, target.span2)


def _read_task(
    folder: Path, encoder: _Encoder, limit: int | None
) -> tuple[dict[str, list[tuple[tuple[int, ...], str]]], list[list[str]]]:
    """(Numbers of spans, label) of each target by split, and their types for the control task."""
    targets, types = {}, []
    for split in SPLITS:
        rows, own = [], []
        for example in read_probing(folder, split)[:limit]:
            for target in example.targets:
                spans = encoder.encode(example.words, target)
                if spans is not None:
                    rows.append((spans, target.label))
                    own.append("\t".join(" ".join(example.words[a:b]) for a, b in _spans(target)))
        if not rows:
            raise CorpusError(
                f"{folder} has no target in its {split} split that fits the model; give other data or a higher --limit."
            )
        targets[split] = rows
        types.append(own)
    if len({len(spans) for rows in targets.values() for spans, _ in rows}) > 1:
        raise CorpusError(f"{folder} has splits with one span and splits with two; a task has either, throughout.")
    return targets, types


def _task(
    name: str, targets: dict[str, list[tuple[tuple[int, ...], str]]], types: list[list[str]], number: np.ndarray
) -> ProbingTask:
    labels = tuple(sorted({label for _, label in targets["train"]}))
    index = {label: i for i, label in enumerate(labels)}
    spans = [number[np.array([spans for spans, _ in targets[split]])] for split in SPLITS]
    true = [np.array([index.get(label, UNSEEN) for _, label in targets[split]]) for split in SPLITS]
    train, dev, test = (Targets(*parts) for parts in zip(spans, true, control_labels(types, true[0]), strict=True))
    order = np.lexsort(train.spans.T)  # by the last span
    train = Targets(train.spans[order], train.labels[order], train.control[order])
    return ProbingTask(name, labels, train, dev, test)
