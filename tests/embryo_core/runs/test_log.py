"""Tests of reading the training log and word ranks line by line, where a damaged line costs only itself."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenRun
from embryo_core.runs.log import MAX_LOG_ROWS
from embryo_core.types import Run


def test_truncated_log_line_is_dropped(own_run: Run):
    """A crash while writing loses one row only."""
    rows = runs.read_log(own_run)
    with (own_run.path / "log.jsonl").open("a") as file:
        file.write('{"split": "train", "step": 20, "lo')
    assert runs.read_log(own_run) == rows and runs.damaged_lines(own_run) == 1


def test_repeated_step_replaces_its_row(own_run: Run):
    """After a resume, the later row of a step and split counts."""
    with (own_run.path / "log.jsonl").open("a") as file:
        file.write(json.dumps({"split": "train", "step": 4, "loss": 1.5}) + "\n")
    rows = [row for row in runs.read_log(own_run) if (row["split"], row["step"]) == ("train", 4)]
    assert rows == [{"split": "train", "step": 4, "loss": 1.5}]


def test_missing_log_is_empty(own_run: Run):
    (own_run.path / "log.jsonl").unlink()
    assert runs.read_log(own_run) == []


# === Damaged lines ===


@pytest.mark.parametrize(
    "line",
    [
        b"5",
        b"null",
        b"[1]",
        b'{"step": 3}',
        b'{"split": "train"}',
        b'{"split": "train", "step": "3"}',
        b'{"split": "train", "step": true}',
        b'{"split": "train", "step": -1}',
        b'{"split": "train", "step": 18446744073709551616}',
        b'{"split": ["train"], "step": 3}',
        b'{"split": "train", "step": 3, "loss": NaN}',
        b'{"split": "train", "step": 3, "loss": "low"}',
        b'{"split": "train", "step": 3, "loss": [1]}',
        b'\xff{"split": "train", "step": 3}',
        b'{"split": "tr\xffin", "step": 3}',
        b"[" * 100_000,
    ],
    ids=lambda line: ascii(line)[2:40],
)
def test_invalid_log_line_is_skipped(own_run: Run, line: bytes):
    """All rows before and after it are read, and it is counted as damaged."""
    rows = runs.read_log(own_run)
    log = own_run.path / "log.jsonl"
    first, *others = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(first + line + b"\n" + b"".join(others))
    assert runs.read_log(own_run) == rows and runs.damaged_lines(own_run) == 1


def test_row_keeps_measures_by_length(own_run: Run):
    """Nested measures by length, masking and position are kept as written."""
    row = {"split": "heldout", "step": 4, "by_length": {"64": {"loss": 1.5}}, "measures": [{"positions": [{"n": 1}]}]}
    assert runs.parse_row(json.dumps(row).encode()) == row


def test_log_that_is_a_pipe_is_not_opened(own_run: Run):
    """The run is reported as broken."""
    (own_run.path / "log.jsonl").unlink()
    os.mkfifo(own_run.path / "log.jsonl")
    with pytest.raises(BrokenRun, match=r"log\.jsonl is not a regular file"):
        runs.read_log(own_run)


def test_damaged_lines_do_not_change_word_ranks(own_run: Run):
    """A line without valid UTF-8, a word or a count gives no word, but keeps its place in the ranking."""
    (own_run.path / "frequencies.tsv").write_bytes(b"the\t9\n\xff\t8\nof\t7\n\t6\nand\nto\tfive\n,\t1\n")
    assert runs.read_ranks(own_run.path / "frequencies.tsv") == {"the": 1, "of": 3, ",": 7}


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x00" * 100])
def test_empty_or_missing_frequencies_give_no_ranks(own_run: Run, content: bytes):
    (own_run.path / "frequencies.tsv").write_bytes(content)
    assert runs.read_ranks(own_run.path / "frequencies.tsv") == {}
    (own_run.path / "frequencies.tsv").unlink()
    assert runs.read_ranks(own_run.path / "frequencies.tsv") == {}


def test_oversized_row_or_log_is_not_parsed(own_run: Run):
    """A row of very many values or a log of half a million lines could become gigabytes of objects."""
    log = own_run.path / "log.jsonl"
    row = b'{"split": "train", "step": 3, "measures": [' + b"{}," * 400_000 + b"{}]}"
    assert runs.parse_row(row) is None
    log.write_bytes(b"\n" * 500_001)
    with pytest.raises(BrokenRun, match="has 500,001 lines"):
        runs.read_log(own_run)


def test_unknown_columns_are_dropped(own_run: Run):
    """A table of 1,500 rows that all have different keys took gigabytes."""
    row = {"split": "train", "step": 3, "masked_lm_loss": 2.5, "key3": 1.0, "\x1b[2J": {"a": [1]}}
    assert runs.parse_row(json.dumps(row).encode()) == {"split": "train", "step": 3, "masked_lm_loss": 2.5}


@pytest.mark.parametrize("value", [1e16, -1e16, 1e308, 2**70])
def test_huge_numbers_are_refused(value: float):
    """The mean of 1e308 and 1e308 is infinite."""
    assert runs.parse_row(json.dumps({"split": "train", "step": 3, "tokens_per_second": value}).encode()) is None


def test_log_of_the_largest_length_is_read_whole(own_run: Run):
    """Exactly MAX_LOG_ROWS rows of a split all stay; one more row halves them."""
    for count, kept in ((MAX_LOG_ROWS, MAX_LOG_ROWS), (MAX_LOG_ROWS + 1, MAX_LOG_ROWS // 2 + 1)):
        rows = [{"split": "train", "step": step} for step in range(count)] + [{"split": "heldout", "step": 0}]
        (own_run.path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        steps = [row["step"] for row in runs.read_log(own_run) if row["split"] == "train"]
        assert (len(steps), steps[-1]) == (kept, count - 1)


def test_long_log_is_downsampled_evenly(own_run: Run):
    """A split of more rows than a screen shows is thinned and keeps its last row; short splits stay complete."""
    log = own_run.path / "log.jsonl"
    rows = [{"split": "train", "step": step} for step in range(1, 25_001)]
    heldout = [{"split": "heldout", "step": step} for step in (0, 10_000, 25_000)]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows + heldout))
    log_rows = runs.read_log(own_run)
    assert [row for row in log_rows if row["split"] == "heldout"] == heldout
    assert [row["step"] for row in log_rows if row["split"] == "train"] == list(range(1, 25_001, 3))


# === Held-out accuracy by position ===


def group(first: int, accuracy: float, n: int) -> dict[str, Any]:
    """Return the accuracy on masked tokens at 64 positions."""
    return {"first": first, "last": first + 63, "accuracy": accuracy, "n": n}


def measure(length: int, masking: str, *groups: dict[str, Any]) -> dict[str, Any]:
    """Return a measure as pretraining writes it."""
    return {"length": length, "masking": masking, "loss": 5.0, "accuracy": 0.2, "n": 9, "positions": [*groups]}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a run without a log."""
    return Run("own", tmp_path, "albert", "mlm", {}, "0" * 64, {}, (0,), "tests")


def write(run: Run, *rows: dict[str, Any]) -> None:
    """Write these rows to the log."""
    (run.path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_each_group_of_positions_gives_one_row(run: Run):
    """Rows are in the order of steps; training rows have no measures."""
    short, long = (
        measure(64, "training", group(0, 0.25, 8)),
        measure(128, "training", group(0, 0.5, 4), group(64, 0, 3)),
    )
    held = {"split": "heldout", "tokens": 5}
    write(
        run,
        held | {"step": 8, "measures": [short, long]},
        held | {"step": 2, "measures": [short]},
        {"split": "train", "step": 4, "loss": 6.0},
    )
    assert runs.read_measures(run) == [
        (2, 64, "training", 0, 63, 0.25, 8, 8),
        (8, 64, "training", 0, 63, 0.25, 8, 8),
        (8, 128, "training", 0, 63, 0.5, 4, 7),
        (8, 128, "training", 64, 127, 0.0, 3, 7),
    ]


@pytest.mark.parametrize(
    "measures",
    [
        None,
        7,
        [],
        ["text"],
        [{"length": 64, "masking": "training"}],
        [measure(64, "training", group(0, 1.5, 8))],
        [measure(64, "training", group(0, 0.5, 0))],
        [measure(64, "training\n", group(0, 0.5, 8))],
        [measure(-64, "training", group(0, 0.5, 8))],
    ],
)
def test_invalid_measures_are_skipped(run: Run, measures: Any):
    """A row without measures, or with invalid ones, does not affect the others."""
    good = {"split": "heldout", "step": 2, "measures": [measure(64, "training", group(0, 0.25, 8))]}
    write(run, {"split": "heldout", "step": 1, "measures": measures}, good)
    assert runs.read_measures(run) == [(2, 64, "training", 0, 63, 0.25, 8, 8)]


def test_missing_log_has_no_measures(run: Run):
    assert runs.read_measures(run) == []


@pytest.mark.parametrize("pack", [gzip.compress, lambda content: b"\xef\xbb\xbf" + content])
def test_compressed_log_or_byte_order_mark_is_read(own_run, pack):
    rows = runs.read_log(own_run)
    path = own_run.path / "log.jsonl"
    path.write_bytes(pack(path.read_bytes()))
    assert runs.read_log(own_run) == rows and runs.damaged_lines(own_run) == 0
