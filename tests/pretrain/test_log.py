"""Tests of the log: means over predictions, and rows that a resumed run does not repeat."""

import json
from pathlib import Path

import pytest

from pretrain.log import Log, Means
from pretrain.state import Progress


def rows(path: Path) -> list[tuple[str, int]]:
    """Return (split, step) of every line."""
    return [(row["split"], row["step"]) for row in map(json.loads, path.read_text().splitlines())]


def add(log: Log, *steps: int) -> None:
    """Add a training row for each step, and a held-out row for each even step."""
    for step in steps:
        log.add("train", Progress(step, step, 10 * step), {"loss": 1 / step}, learning_rate=0.1)
        if step % 2 == 0:
            log.add("heldout", Progress(step, step, 10 * step), {"loss": 2 / step}, n_masked=5)


def test_means_are_over_all_predictions():
    """Batches are weighted by their predictions, as if the loss of every prediction were kept."""
    means, losses = Means(["words", "order"]), []
    for loss, n in ((3.0, 5), (1.0, 8), (2.0, 1)):
        of_batch = {"words_loss": loss, "words_accuracy": loss / 10, "words_n": n}
        means.add(of_batch | {"order_loss": loss / 2, "order_accuracy": 0.0, "order_n": 4}, length=32)
        losses += [loss] * n
    expected = sum(losses) / len(losses)
    assert means.take() == {
        "loss": pytest.approx(expected + 1.0),
        "words_loss": pytest.approx(expected),
        "words_accuracy": pytest.approx(expected / 10),
        "order_loss": pytest.approx(1.0),
        "order_accuracy": 0.0,
    }
    assert not means.sums


def test_objective_without_predictions_has_means_of_0():
    """This happens if no sequence of a batch has a pair."""
    means = Means(["words", "order"])
    of_batch = {"words_loss": 3.0, "words_accuracy": 0.5, "words_n": 4}
    means.add(of_batch | {"order_loss": 0.0, "order_accuracy": 0.0, "order_n": 0}, length=32)
    means_row = means.take()
    assert (means_row["loss"], means_row["order_loss"], means_row["order_accuracy"]) == (3.0, 0.0, 0.0)


def test_mixed_lengths_are_reported_separately():
    """A row over sequences of two lengths has the means of each length and those over all predictions."""
    means = Means(["words"])
    for length, loss, n in ((128, 1.0, 4), (64, 3.0, 12)):
        means.add({"words_loss": loss, "words_accuracy": 0.5, "words_n": n}, length)
    means_row = means.take()
    assert means_row["by_length"] == {
        "64": {"loss": 3.0, "words_loss": 3.0, "words_accuracy": 0.5},
        "128": {"loss": 1.0, "words_loss": 1.0, "words_accuracy": 0.5},
    }
    assert means_row["words_loss"] == pytest.approx(2.5)


def test_rows_after_resumed_step_are_dropped(tmp_path: Path):
    """A run that resumes at step 4 keeps the rows up to step 4 and writes the others again."""
    path = tmp_path / "log.jsonl"
    add(Log(path, after=0), 1, 2, 3, 4, 5, 6)
    with path.open("a") as file:
        file.write('{"split": "train", "step": 7, "lo')  # the process was killed here
    log = Log(path, after=4)
    assert rows(path) == [("train", 1), ("train", 2), ("heldout", 2), ("train", 3), ("train", 4), ("heldout", 4)]
    add(log, 5, 6)
    assert rows(path)[6:] == [("train", 5), ("train", 6), ("heldout", 6)]
    Log(path, after=0)
    assert rows(path) == []


def test_first_heldout_row_is_dropped_before_first_update(tmp_path: Path):
    """A run that starts from step 4 of another measures that step again, unless it resumes at a later one."""
    path = tmp_path / "log.jsonl"
    add(Log(path, after=4, first=4), 4, 5, 6)
    Log(path, after=6, first=4)
    assert rows(path) == [("train", 4), ("heldout", 4), ("train", 5), ("train", 6), ("heldout", 6)]
    Log(path, after=4, first=4)
    assert rows(path) == [("train", 4)]


def test_row_contains_means_and_counts(tmp_path: Path):
    """Each line is a JSON object of split, step, means, tokens and any further values."""
    log = Log(tmp_path / "log.jsonl", after=0)
    log.add("heldout", Progress(8, 64, 900), {"loss": 7.5}, n_masked=33, n_sequences=16)
    expected = {"split": "heldout", "step": 8, "loss": 7.5, "tokens": 900, "n_masked": 33, "n_sequences": 16}
    assert [json.loads(line) for line in log.path.read_text().splitlines()] == [expected]


def test_tensorboard_gets_every_mean(tmp_path: Path):
    """TensorBoard's reader finds each mean as a scalar of its split at its step."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(tmp_path / "tensorboard")
    add(Log(tmp_path / "log.jsonl", after=0, writer=writer), 1, 2)
    writer.close()
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("train/loss")] == [(1, 1.0), (2, 0.5)]
    assert [(event.step, event.value) for event in events.Scalars("heldout/loss")] == [(2, 1.0)]


def test_damaged_lines_do_not_stop_a_resume(tmp_path: Path):
    """Lines that are not UTF-8, not an object, or without a finite step are dropped; the other rows are unchanged."""
    path = tmp_path / "log.jsonl"
    add(Log(path, after=0), 1, 2)
    first, *others = path.read_bytes().splitlines(keepends=True)
    damaged = b'\xff\n5\n{"loss": 1}\n{"step": Infinity}\n'
    path.write_bytes(first + damaged + b"".join(others) + b'{"split": "tr')
    Log(path, after=2)
    assert path.read_bytes() == first + b"".join(others)
