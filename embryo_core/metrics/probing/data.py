"""Edge-probing tasks encoded for a model: each distinct sentence and span once; targets refer to spans by number.

Each word is tokenized separately and the pieces are joined between [CLS] and [SEP]. Two kinds of targets are left out
and counted: those in sentences that are too long for the model, and those with a span without pieces.

Each task has a control task (Hewitt and Liang, 2019, https://arxiv.org/abs/1909.03368): each type of target (the words
of its spans) gets a random label. A probe can predict it only by memorizing the types, so its score shows how much a
probe can learn without any structure in the states.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from embryo_core.corpora import read_probing
from embryo_core.errors import CorpusError
from embryo_core.metric import Limits
from embryo_core.types import Target

if TYPE_CHECKING:
    from embryo_core.tokenizers.tokenizer import Tokenizer

SPLITS = ("train", "dev", "test")
UNSEEN = -1  # a label of dev or test that is not in training, which no probe can predict
SPAN_SEED = 7  # seed of the numbering of spans
CONTROL_SEED = 20  # seed of the control labels

Row = tuple[tuple[int, ...], str]  # a target: the numbers of its spans, and its label


@dataclass(frozen=True, eq=False)
class Targets:
    """The n targets of one split."""

    spans: np.ndarray  # [n, 1 or 2] int64: numbers of spans
    labels: np.ndarray  # [n] int64: numbers of labels, or UNSEEN
    control: np.ndarray  # [n] int64: labels of the control task


@dataclass(frozen=True, eq=False)
class ProbingTask:
    """One encoded task; `labels` are the distinct labels of its training targets."""

    name: str
    labels: tuple[str, ...]
    train: Targets
    dev: Targets
    test: Targets

    @property
    def sizes(self) -> dict[str, int]:
        """Return the number of targets of each split and the number of labels, as in sources.json."""
        return {split: len(getattr(self, split).labels) for split in SPLITS} | {"labels": len(self.labels)}


@dataclass(frozen=True, eq=False)
class ProbingData:
    """Tasks, and the sentences and spans that they share.

    Spans are numbered at random, and training targets are sorted by these numbers. So neighbouring targets come from
    random sentences, while their features are read almost sequentially.
    """

    tasks: list[ProbingTask]
    sentences: list[np.ndarray]  # ids with [CLS] and [SEP]
    sentence: np.ndarray  # [spans] index of each span's sentence
    start: np.ndarray  # [spans] position of its first piece in the sentence
    end: np.ndarray  # [spans] position after its last piece
    left_out: dict[str, int]  # reason -> number of targets


def read_tasks(folders: Mapping[str, Path], tokenizer: "Tokenizer", limits: Limits, limit: int | None) -> ProbingData:
    """Read and encode the task in each folder, or the first `limit` examples of each split. Raises CorpusError."""
    encoder = _Encoder(tokenizer, limits.positions)
    drafts = [(name, *_read_task(folder, encoder, limit)) for name, folder in folders.items()]
    spans = np.array(list(encoder.spans), np.int64)  # [spans, 3]
    number = np.random.default_rng(SPAN_SEED).permutation(len(spans))  # old number -> new number
    spans[number] = spans.copy()
    tasks = [_task(name, rows, types, number) for name, rows, types in drafts]
    sentence, start, end = spans.T
    return ProbingData(tasks, encoder.sentences, sentence, start, end, dict(encoder.left_out))


def control_labels(types: Sequence[Sequence[str]], labels: np.ndarray) -> list[np.ndarray]:
    """Return the control labels of the targets of each split, given the targets' types.

    A type's label is drawn once from the training `labels` [n]; it is the same in every split and at every step.
    """
    distinct = sorted({word_type for split in types for word_type in split})
    drawn = np.random.default_rng(CONTROL_SEED).choice(labels, len(distinct))
    label = dict(zip(distinct, drawn, strict=True))
    return [np.array([label[word_type] for word_type in split], labels.dtype) for split in types]


class _Encoder:
    """Encoder of tasks: each distinct sentence is encoded once, and distinct spans are numbered."""

    def __init__(self, tokenizer: "Tokenizer", positions: int):
        self.sentences: list[np.ndarray] = []
        self.spans: dict[tuple[int, int, int], int] = {}  # (sentence, start, end) -> number
        self.left_out: Counter[str] = Counter(too_long=0, no_pieces=0)
        self._tokenizer = tokenizer
        self._positions = positions
        self._known: dict[tuple[str, ...], tuple[int, list[int]] | None] = {}

    def encode(self, words: tuple[str, ...], target: Target) -> tuple[int, ...] | None:
        """Return the numbers of a target's spans; count the target and return None if it is left out."""
        if words not in self._known:
            self._known[words] = self._encode_sentence(words)
        encoded = self._known[words]
        if encoded is None:
            self.left_out["too_long"] += 1
            return None
        sentence, begin = encoded
        spans = [(sentence, begin[first], begin[last]) for first, last in _spans(target)]
        if any(start == end for _, start, end in spans):
            self.left_out["no_pieces"] += 1
            return None
        return tuple(self.spans.setdefault(span, len(self.spans)) for span in spans)

    def _encode_sentence(self, words: tuple[str, ...]) -> tuple[int, list[int]] | None:
        """Return the sentence's number, and where each word begins and the last one ends; None if it is too long."""
        tokenizer = self._tokenizer
        encoding = tokenizer.encode_words(words)
        ids = tokenizer.surround(encoding.ids)
        if len(ids) > self._positions:
            return None
        self.sentences.append(ids)
        begin = np.searchsorted(encoding.word_of_piece, np.arange(len(words) + 1)) + len(tokenizer.begin)
        return len(self.sentences) - 1, begin.tolist()


def _spans(target: Target) -> tuple[tuple[int, int], ...]:
    return (target.span1,) if target.span2 is None else (target.span1, target.span2)


def _read_task(folder: Path, encoder: _Encoder, limit: int | None) -> tuple[dict[str, list[Row]], list[list[str]]]:
    """Return the targets of each split, and their types in the same order. Raises CorpusError."""
    rows: dict[str, list[Row]] = {split: [] for split in SPLITS}
    types: list[list[str]] = [[] for _ in SPLITS]
    for (split, targets), own_types in zip(rows.items(), types, strict=True):
        for example in read_probing(folder, split)[:limit]:
            for target in example.targets:
                spans = encoder.encode(example.words, target)
                if spans is not None:
                    targets.append((spans, target.label))
                    own_types.append("\t".join(" ".join(example.words[a:b]) for a, b in _spans(target)))
        if not targets:
            raise CorpusError(
                f"{folder} has no target in its {split} split that fits the model; give other data or a higher --limit."
            )
    if len({len(spans) for targets in rows.values() for spans, _ in targets}) > 1:
        raise CorpusError(
            f"Some targets of {folder} have one span and others two; all targets of a task must have the same number."
        )
    return rows, types


def _task(name: str, rows: dict[str, list[Row]], types: list[list[str]], number: np.ndarray) -> ProbingTask:
    """Return a task with renumbered spans, numbered labels and control labels; `number` maps old to new numbers."""
    labels = tuple(sorted({label for _, label in rows["train"]}))
    index = {label: i for i, label in enumerate(labels)}
    spans = [number[np.array([spans for spans, _ in targets])] for targets in rows.values()]
    true = [np.array([index.get(label, UNSEEN) for _, label in targets]) for targets in rows.values()]
    train, dev, test = (Targets(*parts) for parts in zip(spans, true, control_labels(types, true[0]), strict=True))
    order = np.lexsort(train.spans.T)  # sorted by the last span
    train = Targets(train.spans[order], train.labels[order], train.control[order])
    return ProbingTask(name, labels, train, dev, test)
