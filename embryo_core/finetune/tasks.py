"""Tasks of one or two texts, read from a folder of parquet files in the layout of the Hugging Face Hub."""

import hashlib
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from embryo_core import corpora
from embryo_core.curves.reached import MAX_LABELS
from embryo_core.errors import CorpusError
from embryo_core.finetune.task_specs import GLUE, TEXT_COLUMNS, TaskSpec, validation_split
from embryo_core.results import read_foreign

Columns = dict[str, list[Any]]
HELD_OUT_DIVISOR = 10  # one training example in ten is held out to choose a learning rate
SPLIT_SEED = 5  # seed of the split into training and held-out examples
MAX_VALUE = 1e30  # largest absolute value: fits into float32, and its square into float64
MIN_ROUNDING_RATIO = 1000  # rounding to float32 may change values by at most a thousandth of their standard deviation


@dataclass(frozen=True, eq=False)
class Split:
    """n examples: one or two texts each, and gold answers [n], either label indices (int64) or values (float64)."""

    texts: list[tuple[str, ...]]
    gold: np.ndarray

    def part(self, rows: np.ndarray) -> "Split":
        """Return the examples of these rows."""
        return Split([self.texts[i] for i in rows], self.gold[rows])


@dataclass(frozen=True, eq=False)
class TextTask:
    """A task over one or two texts with its data, a regression if it has no labels."""

    name: str
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    train: Split
    validation: Split
    remark: str = ""  # a note on labels that are easily misunderstood

    def held_out(self) -> "TextTask":
        """Return the task without its validation data: a random tenth of the training data takes their place."""
        train, validation = held_out_rows(len(self.train.gold))
        return replace(self, train=self.train.part(train), validation=self.train.part(validation))


def held_out_rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Split n training rows at random into rows to train on and a tenth, at least one, to hold out."""
    order = np.random.default_rng(SPLIT_SEED).permutation(n)
    size = max(1, n // HELD_OUT_DIVISOR)
    return order[size:], order[:size]


def read_task(name: str, folder: Path) -> TextTask:
    """Read a task of GLUE, or a user's own task under any other name, from the parquet files in its folder.

    A user's task has the text columns of one of GLUE's tasks, and a column "label": integers or texts (classes), or
    floats (a regression). Raises CorpusError, which describes the fault in the data.
    """
    train = read_split(folder, "train")
    validation = read_split(folder, validation_split(name))
    spec = GLUE.get(name) or _own_spec(folder, train)
    splits = (
        _split(f"The training data of {folder}", train, spec),
        _split(f"The validation data of {folder}", validation, spec),
    )
    check_count(f"The training data of {folder}", len(splits[0].gold), "example", minimum=2)
    if spec.labels:
        _check_labels(folder, spec, *splits)
        return TextTask(name, spec.labels, spec.metrics, *splits)
    _check_values(folder, splits[0].gold, splits[1].gold)
    remark = (
        f"The labels of '{name}' are fractions that are all whole numbers, so it is scored as a regression; store them "
        "as integers to have classes."
    )
    is_whole = name not in GLUE and not (splits[0].gold % 1).any()
    return TextTask(name, spec.labels, spec.metrics, *splits, remark if is_whole else "")


def read_split(folder: Path, split: str) -> Columns:
    """Read the columns of a split: train.parquet, or its parts train-00000-of-00002.parquet, ... Raises CorpusError."""
    return read_foreign(_files(folder, split))


def data_sha256(name: str, folder: Path) -> str:
    """Return the SHA-256 of the files of a task; other files in its folder do not change it.

    It equals the hash of the folder (`corpora.open_source`) if there are no other files. Raises CorpusError.
    """
    files = sorted(file for split in ("train", validation_split(name)) for file in _files(folder, split))
    checksums = "".join(f"{corpora.open_source(file).sha256}  {file.name}\n" for file in files)
    return hashlib.sha256(checksums.encode()).hexdigest()


def _files(folder: Path, split: str) -> list[Path]:
    """List the files of a split: one, or all numbered parts. Raises CorpusError for missing parts, and for two sets."""
    pattern = re.compile(rf"({split}(?:_part)?)(?:-(\d{{1,9}})-of-(\d{{1,9}}))?\.parquet")
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    # (name, number of parts or None for a single file) -> files by number
    files_of_layouts: dict[tuple[str, int | None], dict[int, Path]] = {}
    for match in filter(None, map(pattern.fullmatch, names)):
        name, number, total = match.groups()
        files_of_layouts.setdefault((name, int(total) if total else None), {})[int(number or 0)] = folder / match[0]
    if not files_of_layouts:
        raise CorpusError(
            f"{folder} has no {split}.parquet; it holds {', '.join(names[:8]) or 'no file'}. Put that split there."
        )
    if len(files_of_layouts) > 1:
        first, second, *_ = (min(files_by_number.values()).name for files_by_number in files_of_layouts.values())
        raise CorpusError(
            f"{folder} has {first} and {second}, which may hold the same examples; leave one of them there."
        )
    ((_, total), files_by_number), *_ = files_of_layouts.items()
    if missing := [number for number in range(total or 0) if number not in files_by_number]:
        raise CorpusError(
            f"{folder} has {len(files_by_number)} of {total} parts of {split}, and number {missing[0]} is missing; "
            "add the others."
        )
    return [files_by_number[number] for number in sorted(files_by_number)]


# === One split ===


def _split(subject: str, columns: Columns, spec: TaskSpec) -> Split:
    """Check and return the examples of a split; errors begin with `subject`. Raises CorpusError."""
    texts = [column(subject, columns, name) for name in spec.texts]
    gold = column(subject, columns, "label")
    check_count(subject, len(gold), "example")
    for name, values in zip(spec.texts, texts, strict=True):
        if (row := next((i for i, text in enumerate(values) if not isinstance(text, str)), None)) is not None:
            raise CorpusError(f"{subject} have {values[row]!r} as {name} in row {row}; a string is expected.")
    return Split(
        list(zip(*texts, strict=True)), _indices(subject, gold, spec) if spec.labels else _values(subject, gold)
    )


def column(subject: str, columns: Columns, name: str) -> list[Any]:
    """Return a column; errors begin with `subject`, the name of the data. Raises CorpusError."""
    if name not in columns:
        raise CorpusError(f"{subject} have no column '{name}', only {', '.join(columns) or 'none'}; add it.")
    return columns[name]


def check_count(subject: str, count: int, unit: str, minimum: int = 1) -> None:
    """Raise CorpusError if the data have fewer than `minimum` (1 or 2) of `unit`, such as "example"."""
    if not count:
        raise CorpusError(f"{subject} hold no {unit}; give files with rows.")
    if count < minimum:
        raise CorpusError(f"{subject} hold one {unit}; give at least two.")


def _indices(subject: str, labels: list[Any], spec: TaskSpec) -> np.ndarray:
    """Return the label indices [n] of a classification's labels. Raises CorpusError for missing and unknown labels."""
    index = {key: i for i, key in enumerate(spec.keys or range(len(spec.labels)))}
    is_test_set = all(label == -1 for label in labels)  # GLUE's test sets
    for row, label in enumerate(labels):
        _check_hashable(subject, row, label)
        if is_test_set or (label in (None, -1) and label not in index):
            raise CorpusError(f"{subject} have no label in row {row}; give labelled data; test sets have no labels.")
        if label not in index:
            known_labels = ", ".join(map(repr, index))
            raise CorpusError(
                f"{subject} have the label {label!r} in row {row}; the labels in training are {known_labels}."
            )
    return np.array([index[label] for label in labels], np.int64)


def _check_hashable(subject: str, row: int, label: Any) -> None:
    if not isinstance(label, int | float | str | None):
        raise CorpusError(f"{subject} have {str(label)[:60]} as label in row {row}; a number or a string is expected.")


def _values(subject: str, values: list[Any]) -> np.ndarray:
    """Return a regression's labels [n] float64. Raises CorpusError unless they can be stored as float32."""
    for row, value in enumerate(values):
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise CorpusError(f"{subject} have {value!r} as label in row {row}; a number is expected.")
    if values and all(value == -1 for value in values):  # GLUE's test sets
        raise CorpusError(f"{subject} have no label in row 0; give labelled data; test sets have no labels.")
    labels = np.array(values, np.float64)
    if np.abs(labels).max(initial=0) > MAX_VALUE:
        largest = np.abs(labels).max()
        raise CorpusError(f"{subject} have labels up to {largest:g}; divide them, {MAX_VALUE:g} is the most.")
    if labels.std() and np.abs(labels - labels.astype(np.float32)).max() > labels.std() / MIN_ROUNDING_RATIO:
        raise CorpusError(
            f"{subject} have labels from {labels.min():.12g} to {labels.max():.12g}, which differ too little for their "
            "size to be stored in float32; subtract their mean."
        )
    return labels


def _check_labels(folder: Path, spec: TaskSpec, train: Split, validation: Split) -> None:
    """Raise CorpusError if the training data have only one label, or lack a label of the validation data."""
    train_labels = set(train.gold.tolist())
    if missing_labels := sorted(set(validation.gold.tolist()) - train_labels):
        raise CorpusError(
            f"The validation data of {folder} have the label '{spec.labels[missing_labels[0]]}', which the training "
            "data lack; give both the same labels."
        )
    if len(train_labels) < 2:
        raise CorpusError(f"The training data of {folder} have one label only; give at least two.")


def _check_values(folder: Path, train: np.ndarray, validation: np.ndarray) -> None:
    """Raise CorpusError if the training data have only one value, or the validation data too few for a correlation."""
    if (train == train[0]).all():
        raise CorpusError(f"The training data of {folder} have one label only, {train[0]:g}; give at least two.")
    if len(validation) < 2:
        raise CorpusError(f"The validation data of {folder} have one example; a correlation needs at least two.")
    if (validation == validation[0]).all():
        content = f"one label only, {validation[0]:g}"
        raise CorpusError(f"The validation data of {folder} have {content}; a correlation needs at least two.")


# === Users' own tasks ===


def text_columns(folder: Path, columns: Columns) -> tuple[str, ...]:
    """Return the names of the text columns of a user's task. Raises CorpusError if none fit, or if two choices fit."""
    candidates = [names for names in TEXT_COLUMNS if all(name in columns for name in names)]
    if not candidates:
        options = "; ".join(", ".join(names) for names in TEXT_COLUMNS)
        raise CorpusError(
            f"{folder} has the columns {', '.join(columns)}, and no texts among them; name them as one of: {options}."
        )
    best, *alternatives = candidates
    if alternatives and len(alternatives[0]) == len(best):
        choices = " as well as ".join(", ".join(names) for names in (best, alternatives[0]))
        raise CorpusError(f"{folder} has the columns {choices}, and one of the two can be read; remove the other.")
    return best


def _own_spec(folder: Path, train: Columns) -> TaskSpec:
    """Derive the specification of a user's task from its training data: a regression if labels are floats."""
    texts = text_columns(folder, train)
    subject = f"The training data of {folder}"
    labels = column(subject, train, "label")
    check_count(subject, len(labels), "example")
    for row, label in enumerate(labels):
        _check_hashable(subject, row, label)
    values = {value for value in labels if value is not None}
    if any(isinstance(value, float) for value in values):
        return TaskSpec(texts, ("spearman", "pearson"), labels=())
    if values <= {-1}:
        raise CorpusError(f"{subject} have no labels; give labelled data; test sets have no labels.")
    if len(values) > MAX_LABELS:
        raise CorpusError(f"{subject} have {len(values):,} labels; the maximum is {MAX_LABELS}.")
    keys = tuple(sorted(values, key=lambda value: (isinstance(value, str), value)))
    return TaskSpec(texts, ("accuracy",), tuple(map(str, keys)), keys)
