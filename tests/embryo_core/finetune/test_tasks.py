"""Tests of reading tasks in the format of the Hub; faulty ones are refused with the reason."""

import os
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from embryo_core import corpora
from embryo_core.errors import CorpusError
from embryo_core.finetune.task_specs import TEXT_COLUMNS
from embryo_core.finetune.tasks import data_sha256, read_task
from tests.conftest import REPOSITORY
from tests.embryo_core.finetune.conftest import sentences, write_cola, write_pairs, write_split


def test_glue_task_has_its_columns_and_metrics(tmp_path: Path):
    """MNLI has two texts and three labels, and is scored on the matched validation."""
    task = read_task("mnli", write_pairs(tmp_path, labels=3, validation="validation_matched"))
    assert task.metrics == ("accuracy",) and len(task.labels) == 3
    assert len(task.train.texts) == 40 and len(task.validation.texts) == 20
    assert task.train.texts[0][0] == task.train.texts[-1][1] and task.train.gold.tolist()[:4] == [0, 1, 2, 0]


def test_parts_of_a_split_are_read_in_order(tmp_path: Path):
    """The Hub names them train-00000-of-00002.parquet and so on."""
    write_cola(tmp_path, n=10)
    (tmp_path / "train.parquet").rename(tmp_path / "train-00001-of-00002.parquet")
    texts, labels = sentences(7, seed=9)
    write_split(tmp_path, "train-00000-of-00002", sentence=texts, label=labels, idx=list(range(7)))
    assert [text for (text,) in read_task("cola", tmp_path).train.texts[:7]] == texts
    assert len(read_task("cola", tmp_path).train.texts) == 17


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("train-00000-of-00002",), "has 1 of 2 parts of train, and number 1 is missing"),
        (("train-00001-of-00002",), "has 1 of 2 parts of train, and number 0 is missing"),
        (("train", "train-00000-of-00001"), "train-00000-of-00001.parquet and train.parquet, which may hold the same"),
        (("train-00000-of-00001", "train-00000-of-00002"), "which may hold the same examples"),
        (("train", "train_part"), "train.parquet and train_part.parquet, which may hold the same"),
    ],
)
def test_incomplete_or_duplicate_parts_are_refused(tmp_path: Path, names: tuple[str, ...], message: str):
    """An interrupted download may leave either, and examples must not be read twice."""
    write_cola(tmp_path, n=10)
    (tmp_path / "train.parquet").rename(tmp_path / "read.parquet")
    for name in names:
        (tmp_path / f"{name}.parquet").write_bytes((tmp_path / "read.parquet").read_bytes())
    with pytest.raises(CorpusError, match=message):
        read_task("cola", tmp_path)


@pytest.mark.parametrize(
    ("labels", "names", "metrics"),
    [
        ([3, 7, 7, 3], ("3", "7"), ("accuracy",)),
        (["no", "yes", "maybe", "no"], ("maybe", "no", "yes"), ("accuracy",)),
        ([0.5, 2.0, 1.0, 4.0], (), ("spearman", "pearson")),
    ],
)
def test_labels_of_a_custom_task_determine_its_kind(tmp_path: Path, labels: list, names: tuple, metrics: tuple):
    """Integers and texts are classes, and fractions are a regression."""
    for split in ("train", "validation"):
        write_split(tmp_path, split, question=list("abcd"), sentence=list("efgh"), label=labels)
    task = read_task("mine", tmp_path)
    assert (task.labels, task.metrics) == (names, metrics)
    assert task.train.texts[0] == ("a", "e")
    expected = [names.index(str(label)) for label in labels] if names else labels
    assert task.validation.gold.tolist() == expected


def test_a_tenth_of_the_training_data_is_held_out(tmp_path: Path):
    """The split is disjoint and reproducible, and does not touch the validation data."""
    task = read_task("cola", write_cola(tmp_path, n=50))
    held = task.held_out()
    assert (len(held.train.gold), len(held.validation.gold)) == (45, 5)
    everything = sorted([*held.train.texts, *held.validation.texts])
    assert everything == sorted(task.train.texts)
    np.testing.assert_array_equal(held.validation.gold, task.held_out().validation.gold)


FAULTS = {
    "no label": ({"sentence": ["a", "b"]}, {}, "no column 'label'"),
    "a label is missing": ({"sentence": ["a", "b"], "label": [0, None]}, {}, "no label in row 1"),
    "a test set": ({"sentence": ["a", "b"], "label": [-1, -1]}, {}, "no label in row 0"),
    "no text": ({"text": ["a", "b"], "label": [0, 1]}, {}, "^The training data of .* have no column 'sentence'"),
    "a number as text": ({"sentence": ["a", None], "label": [0, 1]}, {}, "None as sentence in row 1"),
    "an unknown label": ({"sentence": ["a", "b"], "label": [0, 5]}, {}, "label 5 in row 1"),
    "one label only": ({"sentence": ["a", "b"], "label": [1, 1]}, {"sentence": ["a"], "label": [1]}, "one label only"),
    "validation has more": (
        {"sentence": ["a", "b"], "label": [1, 1]},
        {"sentence": ["a"], "label": [0]},
        "label 'unacceptable', which the training data lack",
    ),
    "no row": ({"sentence": [], "label": []}, {}, "^The training data of .* hold no example"),
    "one row": ({"sentence": ["a"], "label": [1]}, {}, "hold one example; give at least two"),
    "lists": ({"sentence": ["a", "b"], "label": [[0], [1]]}, {}, r"\[0\] as label in row 0; a number or a string"),
}
OWN_FAULTS = {
    "no row": ({"sentence": [], "label": []}, {}, "hold no example"),
    "lists": ({"sentence": ["a", "b"], "label": [[0], [1]]}, {}, r"\[0\] as label in row 0; a number or a string"),
    "objects": ({"sentence": ["a", "b"], "label": [{"x": 0}] * 2}, {}, "as label in row 0; a number or a string"),
    "a test set": ({"sentence": ["a", "b"], "label": [-1, -1]}, {}, "have no labels; give labelled data"),
    "hidden labels": (
        {"sentence": ["a", "b"], "label": [-1, 1]},
        {"sentence": ["a", "b"], "label": [-1, -1]},
        "validation data of .* have no label in row 0",
    ),
    "decimals": ({"sentence": ["a", "b"], "label": [Decimal("1.5"), Decimal("2.5")]}, {}, "1.5 as label in row 0"),
    "dates": ({"sentence": ["a", "b"], "label": [date(2020, 1, 1), date(2020, 1, 2)]}, {}, "label in row 0; a number"),
    "nothing to correlate": (
        {"sentence": ["a", "b"], "label": [0.5, 1.5]},
        {"sentence": ["a"], "label": [0.5]},
        "validation data of .* have one example; a correlation needs at least two",
    ),
    "one value to correlate with": (
        {"sentence": ["a", "b"], "label": [0.5, 1.5]},
        {"sentence": ["a", "b"], "label": [0.5, 0.5]},
        "validation data of .* have one label only, 0.5; a correlation needs at least two",
    ),
    "hidden values": (
        {"sentence": ["a", "b"], "label": [0.5, 1.5]},
        {"sentence": ["a", "b"], "label": [-1.0, -1.0]},
        "validation data of .* have no label in row 0; give labelled data; test sets have no labels",
    ),
    "one value": ({"sentence": ["a", "b"], "label": [2.5, 2.5]}, {}, "have one label only, 2.5; give at least two"),
    "too large": ({"sentence": ["a", "b"], "label": [1e300, 0.5]}, {}, r"labels up to 1e\+300; divide them"),
    "too alike": ({"sentence": ["a", "b"], "label": [1.7e9, 1.7e9 + 25]}, {}, "differ too little .* subtract their"),
    "two pairs": (
        {name: ["a", "b"] for name in ("sentence1", "sentence2", "premise", "hypothesis")} | {"label": [0, 1]},
        {},
        "sentence1, sentence2 as well as premise, hypothesis, and one of the two can be read",
    ),
}


@pytest.mark.parametrize(
    ("task", "train", "validation", "message"),
    [
        pytest.param(task, *fault, id=f"{task}: {name}")
        for task, faults in {"cola": FAULTS, "mine": OWN_FAULTS}.items()
        for name, fault in faults.items()
    ],
)
def test_faulty_task_is_reported(tmp_path: Path, task: str, train: dict, validation: dict, message: str):
    """CoLA is a task of GLUE; the other one is the user's own."""
    write_split(tmp_path, "train", **train)
    write_split(tmp_path, "validation", **(validation or {"sentence": ["a", "b"], "label": [0, 1]}))
    with pytest.raises(CorpusError, match=message):
        read_task(task, tmp_path)


def test_labels_may_be_minus_and_plus_one(tmp_path: Path):
    """Both splits have both labels, whereas GLUE's hidden labels are -1 everywhere."""
    for split in ("train", "validation"):
        write_split(tmp_path, split, sentence=["a", "b"], label=[-1, 1])
    task = read_task("mine", tmp_path)
    assert task.labels == ("-1", "1") and task.validation.gold.tolist() == [0, 1]


def test_order_of_text_columns_is_fixed():
    """The order does not depend on Python's hash seed: pairs come first, in the order of GLUE."""
    command = [sys.executable, "-c", "from embryo_core.finetune.task_specs import TEXT_COLUMNS; print(TEXT_COLUMNS)"]
    environments = ({**os.environ, "PYTHONHASHSEED": seed} for seed in "0123")
    printed = {
        subprocess.check_output(command, env=environment, cwd=REPOSITORY, text=True) for environment in environments
    }
    assert len(printed) == 1 and TEXT_COLUMNS[0] == ("sentence1", "sentence2") and len(TEXT_COLUMNS[-1]) == 1


def test_hash_covers_only_files_that_are_read(tmp_path: Path):
    """Without other files the hash is that of the folder; MNLI's mismatched validation does not change it."""
    folder = write_pairs(tmp_path, labels=3, validation="validation_matched")
    before = data_sha256("mnli", folder)
    assert before == corpora.open_source(folder).sha256
    write_split(folder, "validation_mismatched", premise=["a"])
    assert data_sha256("mnli", folder) == before != corpora.open_source(folder).sha256
    write_cola(folder, n=10)
    assert data_sha256("mnli", folder) != before


def test_validation_label_missing_in_training_is_reported(tmp_path: Path):
    write_split(tmp_path, "train", sentence=["a", "b"], label=["no", "yes"])
    write_split(tmp_path, "validation", sentence=["a"], label=["perhaps"])
    with pytest.raises(CorpusError, match="the label 'perhaps' in row 0; the labels in training are 'no', 'yes'"):
        read_task("mine", tmp_path)


def test_task_with_too_many_labels_is_refused(tmp_path: Path):
    """Its score could not be bootstrapped; values of a regression must be fractions."""
    write_split(tmp_path, "train", sentence=["a"] * 300, label=[*range(300)])
    write_split(tmp_path, "validation", sentence=["a"], label=[1])
    with pytest.raises(CorpusError, match="have 300 labels; the maximum is 256"):
        read_task("mine", tmp_path)


def test_nan_as_a_value_is_reported(tmp_path: Path):
    write_split(tmp_path, "train", sentence=["a", "b"], label=[0.5, float("nan")])
    write_split(tmp_path, "validation", sentence=["a"], label=[1.0])
    with pytest.raises(CorpusError, match="nan as label in row 1"):
        read_task("mine", tmp_path)


def test_missing_split_lists_the_existing_files(tmp_path: Path):
    write_split(tmp_path, "train", sentence=["a"], label=[0])
    with pytest.raises(CorpusError, match=r"no validation\.parquet; it holds train\.parquet"):
        read_task("cola", tmp_path)


def test_file_that_is_not_parquet_is_reported(tmp_path: Path):
    """The file's name ends in .parquet all the same."""
    write_cola(tmp_path)
    (tmp_path / "train.parquet").write_text("sentence,label")
    with pytest.raises(CorpusError, match=r"train\.parquet cannot be read as a parquet file"):
        read_task("cola", tmp_path)
