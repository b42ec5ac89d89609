"""Tests of reading edge-probing tasks: sentences and spans are stored once, with two labels for each target."""

import json
from pathlib import Path

import numpy as np
import pytest

from embryo_core.corpora import read_probing
from embryo_core.engine.model import Model
from embryo_core.errors import CorpusError
from embryo_core.metric import Limits
from embryo_core.metrics.probing.data import SPLITS, UNSEEN, ProbingData, control_labels, read_tasks

Row = tuple[str, list[tuple]]  # text, and (label, span1) or (label, span1, span2) of each target


def write_task(folder: Path, **splits: list[Row]) -> Path:
    """Write a task in edge-probing form; splits that are not given equal the training set."""
    folder.mkdir()
    for split in SPLITS:
        lines = []
        for text, targets in splits.get(split, splits["train"]):
            spans = [{"label": label, **{f"span{i}": span for i, span in enumerate(s, 1)}} for label, *s in targets]
            lines.append(json.dumps({"text": text, "targets": spans}) + "\n")
        (folder / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def targets(data: ProbingData, task: int = 0, split: str = "train") -> list[tuple]:
    """Return ((sentence, start, end) of each span, label) for every target of a split, sorted."""
    own = getattr(data.tasks[task], split)
    names = (*data.tasks[task].labels, None)
    rows = []
    for spans, label in zip(own.spans, own.labels, strict=True):
        positions = [(int(data.sentence[s]), int(data.start[s]), int(data.end[s])) for s in spans]
        rows.append((*positions, names[label]))
    return sorted(rows)


def test_spans_are_piece_positions(trained_model: Model, tmp_path: Path):
    """A word of several pieces counts with all of them, at both ends of the sentence too; [CLS] is position 0."""
    text = "Rivers run past unforgettable towns"
    widths = [len(trained_model.tokenizer.encode_words([word]).ids) for word in text.split()]
    assert max(widths) > 2 and widths[0] > 1  # the last word but one has many pieces, the first has several
    begin = 1 + np.concatenate([[0], np.cumsum(widths)])
    folder = write_task(tmp_path / "t", train=[(text, [("A", (0, 1)), ("B", (3, 4)), ("C", (4, 5)), ("D", (0, 5))])])
    data = read_tasks({"t": folder}, trained_model.tokenizer, Limits.for_model(trained_model), None)
    assert targets(data) == sorted(
        ((0, int(begin[a]), int(begin[b])), label)
        for label, a, b in (("A", 0, 1), ("B", 3, 4), ("C", 4, 5), ("D", 0, 5))
    )
    assert len(data.sentences) == 1 and len(data.sentences[0]) == begin[-1] + 1
    assert (
        data.sentences[0][0] == trained_model.tokenizer.cls_id
        and data.sentences[0][-1] == trained_model.tokenizer.sep_id
    )


def test_shared_sentences_and_spans_are_stored_once(trained_model: Model, tmp_path: Path):
    """Two tasks on the same sentence share it and its spans; an example without targets adds nothing."""
    one = write_task(tmp_path / "a", train=[("The dog sleeps", [("NN", (1, 2)), ("VB", (2, 3))]), ("Nothing here", [])])
    two = write_task(tmp_path / "b", train=[("The dog sleeps", [("ARG0", (2, 3), (0, 2)), ("NIL", (2, 3), (1, 2))])])
    data = read_tasks({"a": one, "b": two}, trained_model.tokenizer, Limits.for_model(trained_model), None)
    assert len(data.sentences) == 1 and len(data.sentence) == 3
    assert [task.sizes for task in data.tasks] == [{"train": 2, "dev": 2, "test": 2, "labels": 2}] * 2
    assert data.tasks[1].train.spans.shape == (2, 2)
    verb, argument = next(row[:2] for row in targets(data, 1) if row[-1] == "ARG0")
    assert argument[1] == 1 and argument[2] == verb[1]  # span1 comes first, even if it follows span2 in the sentence


def test_label_missing_in_training_is_unseen(trained_model: Model, tmp_path: Path):
    """The target stays in the test set, where no probe can predict its label."""
    folder = write_task(
        tmp_path / "t", train=[("A dog", [("NN", (1, 2))])], test=[("A cat", [("NN", (1, 2)), ("DT", (0, 1))])]
    )
    (task,) = read_tasks({"t": folder}, trained_model.tokenizer, Limits.for_model(trained_model), None).tasks
    assert task.labels == ("NN",) and sorted(task.test.labels) == [UNSEEN, 0]


def test_unusable_targets_are_left_out_and_counted(trained_model: Model, tmp_path: Path):
    """Their sentence is longer than the model's positions, or one of their spans has no pieces."""
    long = " ".join(["dog"] * 500)
    rows = [(long, [("A", (0, 1)), ("B", (1, 2))]), ("The \u200b dog", [("A", (1, 2)), ("B", (1, 3)), ("A", (2, 3))])]
    folder = write_task(tmp_path / "t", train=rows, dev=rows[1:], test=rows[1:])
    data = read_tasks({"t": folder}, trained_model.tokenizer, Limits.for_model(trained_model), None)
    assert data.left_out == {"too_long": 2, "no_pieces": 3}
    assert [len(getattr(data.tasks[0], split).labels) for split in SPLITS] == [2, 2, 2]


def test_sentence_that_just_fits_is_kept(trained_model: Model, tmp_path: Path):
    """64 positions hold 62 pieces besides [CLS] and [SEP]; a sentence of 63 pieces is left out with its targets."""
    assert (trained_model.max_positions, len(trained_model.tokenizer.encode_words(["the"]).ids)) == (64, 1)
    rows = [(" ".join(["the"] * words), [("A", (0, 1))]) for words in (62, 63)]
    data = read_tasks(
        {"t": write_task(tmp_path / "t", train=rows)}, trained_model.tokenizer, Limits.for_model(trained_model), None
    )
    assert [len(ids) for ids in data.sentences] == [64]
    assert data.left_out == {"too_long": len(SPLITS), "no_pieces": 0}


def test_control_label_depends_on_the_words_of_both_spans(trained_model: Model, tmp_path: Path):
    """A pair of words has the same label in every sentence; one word of the pair does not determine it."""
    rows = [(f"{word} sees {other}", [("X", (0, 1), (2, 3))]) for word in "abcdefgh" for other in "abcdefgh"]
    rows = [(text, [(f"L{i % 5}", *spans) for _, *spans in own]) for i, (text, own) in enumerate(rows)]
    longer = [(f"{text} .", own) for text, own in rows]
    folder = write_task(tmp_path / "t", train=rows, dev=longer, test=rows[::-1])
    (task,) = read_tasks({"t": folder}, trained_model.tokenizer, Limits.for_model(trained_model), None).tasks
    assert np.array_equal(task.dev.control, task.test.control[::-1])
    assert sorted(task.train.control) == sorted(task.dev.control) and len(set(task.dev.control)) == 5
    assert (
        len({*zip(task.dev.control[:8], task.dev.control[8:16], strict=True)}) > 3
    )  # drawn for the pair, not for one word


def test_control_type_is_all_words_of_each_span(trained_model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two targets have one type if both spans have the same words; labels are drawn from the training targets."""
    words = "a b c a b".split()
    spans = [((0, 2), (2, 3)), ((3, 5), (2, 3)), ((0, 1), (1, 3)), ((0, 3), (2, 3)), ((0, 2), (4, 5)), ((1, 2), (2, 3))]
    rows = [(" ".join(words), [(f"L{i % 2}", *each) for i, each in enumerate(spans)])]
    drawn_from = []

    def numbered(types: list[list[str]], labels: np.ndarray) -> list[np.ndarray]:
        drawn_from.extend(labels.tolist())
        numbers = {own: i for i, own in enumerate({own for split in types for own in split})}
        return [np.array([numbers[own] for own in split]) for split in types]

    monkeypatch.setattr("embryo_core.metrics.probing.data.control_labels", numbered)
    folder = write_task(tmp_path / "t", train=rows, dev=[(text, own[:1]) for text, own in rows])
    (task,) = read_tasks({"t": folder}, trained_model.tokenizer, Limits.for_model(trained_model), None).tasks
    types = [[words[first:last] for first, last in each] for each in spans]
    alike = task.test.control[:, None] == task.test.control
    assert alike.tolist() == [[first == second for second in types] for first in types]
    assert drawn_from == [0, 1] * 3


def test_training_targets_are_sorted_by_last_span(trained_model: Model, tmp_path: Path):
    """Each keeps its own labels; other splits keep the order of the file, and spans are numbered at random."""
    text = "The dog saw the river and the cat"
    pairs = [((i, i + 1), (k, k + 1)) for i in range(7, -1, -1) for k in range(8)]
    rows = [(text, [(f"L{i % 5}", *pair) for i, pair in enumerate(pairs)])]
    data = read_tasks(
        {"t": write_task(tmp_path / "t", train=rows)}, trained_model.tokenizer, Limits.for_model(trained_model), None
    )
    train, test = data.tasks[0].train, data.tasks[0].test
    assert (np.diff(train.spans[:, 1]) >= 0).all() and test.labels.tolist() == [i % 5 for i in range(len(pairs))]
    of_train, of_test = (np.column_stack([own.spans, own.labels, own.control]).tolist() for own in (train, test))
    assert sorted(of_train) == sorted(of_test)
    assert (np.diff(data.start[np.sort(np.unique(test.spans))]) < 0).any()


def test_limit_takes_first_examples_of_each_task(trained_model: Model, sample: Path):
    """With a limit of two, a task has the targets of the first two examples of its development set."""
    folders = {task: sample / "probing" / task for task in ("pos", "srl")}
    data = read_tasks(folders, trained_model.tokenizer, Limits.for_model(trained_model), 2)
    examples = {task.name: read_probing(sample / "probing" / task.name, "dev")[:2] for task in data.tasks}
    expected = [sum(len(example.targets) for example in examples[task.name]) for task in data.tasks]
    assert [task.sizes["dev"] for task in data.tasks] == expected


TARGET = [("A", (0, 1))]
WRONG = {
    "nothing to train on": ({"train": [("A dog", [])], "dev": [("A dog", TARGET)]}, "no target in its train split"),
    "splits of two forms": (
        {"train": [("A dog", TARGET)], "test": [("A dog", [("A", (0, 1), (1, 2))])]},
        "have one span and others two",
    ),
}


@pytest.mark.parametrize(("splits", "message"), WRONG.values(), ids=WRONG.keys())
def test_tasks_that_cannot_be_probed_are_reported(trained_model: Model, tmp_path: Path, splits, message):
    """The error names the folder."""
    folder = write_task(tmp_path / "t", **splits)
    with pytest.raises(CorpusError, match=message) as error:
        read_tasks({"t": folder}, trained_model.tokenizer, Limits.for_model(trained_model), None)
    assert str(folder) in str(error.value)


# === Control labels ===


def test_type_has_one_control_label_in_all_splits():
    types = [["the bank", "a river", "the bank"], ["a river", "a new one"], ["the bank"]]
    train, dev, test = control_labels(types, np.array([0, 1, 2, 3]))
    assert train[0] == train[2] == test[0] and train[1] == dev[0]


def test_control_labels_follow_the_shares_in_training():
    """Among 20,000 types, a label's share is that of the training targets, and a label without any is never drawn."""
    (drawn,) = control_labels([[f"word {i}" for i in range(20_000)]], np.array([0, 0, 0, 2]))
    shares = np.bincount(drawn) / len(drawn)
    assert shares[1] == 0 and abs(shares[0] - 0.75) < 0.02


def test_control_labels_do_not_depend_on_target_order():
    """They are drawn for the types in alphabetical order, so they are the same at every evaluation."""
    labels = np.array([0, 1, 2])
    one, other = control_labels([["a", "b", "c"]], labels), control_labels([["c", "b"], ["a", "a"]], labels)
    assert [*one[0]] == [other[1][0], other[0][1], other[0][0]]
