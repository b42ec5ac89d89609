"""The log: means over predictions, and rows that a resumed run does not repeat."""

import json
from pathlib import Path

import pytest

from pretrain.log import Log, Means
from pretrain.state import Progress


def rows(path: Path) -> list[tuple[str, int]]:
    """(split, step) of every line."""
    return [(row["split"], row["step"]) for row in map(json.loads, path.read_text().splitlines())]


def add(log: Log, *steps: int) -> None:
    """Return a train row for each step, and a held-out row for every second."""
    for step in steps:
        log.add("train", Progress(step, step, 10 * step), {"loss": 1 / step}, learning_rate=0.1)
        if step % 2 == 0:
            log.add("heldout", Progress(step, step, 10 * step), {"loss": 2 / step}, n_masked=5)


def test_means_are_over_all_predictions():
    """Batches count by their predictions, as if every prediction had been kept in a list."""
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


def test_an_objective_without_predictions_has_means_of_0():
    """As where no sequence of a batch had a pair."""
    means = Means(["words", "order"])
    of_batch = {"words_loss": 3.0, "words_accuracy": 0.5, "words_n": 4}
    means.add(of_batch | {"order_loss": 0.0, "order_accuracy": 0.0, "order_n": 0}, length=32)
    found = means.take()
    assert (found["loss"], found["order_loss"], found["order_accuracy"]) == (3.0, 0.0, 0.0)


def test_lengths_that_are_mixed_are_reported_apart():
    """A row over sequences of both lengths has the means of each, and over all predictions together."""
    means = Means(["words"])
    for length, loss, n in ((128, 1.0, 4), (64, 3.0, 12)):
        means.add({"words_loss": loss, "words_accuracy": 0.5, "words_n": n}, length)
    found = means.take()
    assert found["by_length"] == {
        "64": {"loss": 3.0, "words_loss": 3.0, "words_accuracy": 0.5},
        "128": {"loss": 1.0, "words_loss": 1.0, "words_accuracy": 0.5},
    }
    assert found["words_loss"] == pytest.approx(2.5)


def test_rows_after_the_step_of_a_resume_are_dropped(tmp_path: Path):
    """A run that goes on from step 4 keeps what was logged up to 4 and writes the rest again, once."""
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


def test_the_first_heldout_row_is_measured_again_until_an_update_was_made(tmp_path: Path):
    """Of a run that goes on from step 4 of another; from its first own checkpoint on the row stays."""
    path = tmp_path / "log.jsonl"
    add(Log(path, after=4, first=4), 4, 5, 6)
    Log(path, after=6, first=4)
    assert rows(path) == [("train", 4), ("heldout", 4), ("train", 5), ("train", 6), ("heldout", 6)]
    Log(path, after=4, first=4)
    assert rows(path) == [("train", 4)]


def test_a_row_holds_its_means_and_counts(tmp_path: Path):
    """Split, step, means, tokens, and whatever else is given, as one JSON object a line."""
    log = Log(tmp_path / "log.jsonl", after=0)
    log.add("heldout", Progress(8, 64, 900), {"loss": 7.5}, n_masked=33, n_sequences=16)
    expected = {"split": "heldout", "step": 8, "loss": 7.5, "tokens": 900, "n_masked": 33, "n_sequences": 16}
    assert [json.loads(line) for line in log.path.read_text().splitlines()] == [expected]


def test_tensorboard_gets_every_mean(tmp_path: Path):
    """Each mean is a scalar of its split at its step, readable with TensorBoard's own reader."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(tmp_path / "tensorboard")
    add(Log(tmp_path / "log.jsonl", after=0, writer=writer), 1, 2)
    writer.close()
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("train/loss")] == [(1, 1.0), (2, 0.5)]
    assert [(event.step, event.value) for event in events.Scalars("heldout/loss")] == [(2, 1.0)]


def test_damaged_lines_do_not_stop_a_resume(tmp_path: Path):
    """Lines that are no UTF-8, no object, or have no step are left behind; the rows around them stay as they are."""
    path = tmp_path / "log.jsonl"
    add(Log(path, after=0), 1, 2)
    first, *others = path.read_bytes().splitlines(keepends=True)
    damaged = b'\xff\n5\n{"loss": 1}\n{"step": Infinity}\n'
    path.write_bytes(first + damaged + b"".join(others) + b'{"split": "tr')
    Log(path, after=2)
    assert path.read_bytes() == first + b"".join(others)
