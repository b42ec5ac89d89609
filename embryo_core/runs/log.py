"""What pretraining noted down, line by line: the rows of log.jsonl, and the words of frequencies.tsv by rank."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import convert
from msgspec.json import Decoder

from embryo_core.errors import BrokenRun
from embryo_core.runs.reading import read_bytes, refusal
from embryo_core.runs.schema import MB, Corpus, LogPlace, LogRow
from embryo_core.types import Run

ROW, PLACE = Decoder(LogRow), Decoder(LogPlace)
ROW_LIMIT = MB  # bytes of a row
MOST_LINES = 500_000  # of a file that is read line by line
SPLITS = ("train", "heldout")
NO_NUMBERS = ("split", "by_length", "measures")  # fields of a row that hold text, or numbers in a form of their own


def read_log(run: Run) -> list[dict[str, Any]]:
    """Rows of log.jsonl in the order of steps; `split` is "train" or "heldout". Empty where there is no log.

    A line that is no row is left out (see `damaged_lines`). Rows of a step that was trained again after a crash replace
    the earlier ones. Raises BrokenRun where the file as a whole cannot be read.
    """
    rows = [row for row in map(parse_row, read_lines(run.path / "log.jsonl")) if row is not None]
    last = {(row["split"], row["step"]): row for row in rows}
    return sorted(last.values(), key=lambda row: (row["step"], row["split"]))


def last_logged(run: Run) -> dict[str, int]:
    """The last step with a row in log.jsonl, for each `split` that has one; quicker than `read_log`.

    Raises BrokenRun where the file as a whole cannot be read.
    """
    found: dict[str, int] = {}
    for line in read_lines(run.path / "log.jsonl"):
        try:
            place = PLACE.decode(line)
        except (ValueError, RecursionError):
            continue
        found[place.split] = max(place.step, found.get(place.split, 0))
    return found


def damaged_lines(run: Run) -> int:
    """Lines of log.jsonl that are no rows: cut short by a crash, damaged, or with a number that is not finite."""
    return sum(parse_row(line) is None for line in read_lines(run.path / "log.jsonl"))


def parse_row(line: bytes) -> dict[str, Any] | None:
    """The row in a line of log.jsonl; None where it is no object with a known `split`, a `step` from 0, and numbers."""
    if len(line) > ROW_LIMIT:
        return None
    try:
        row = ROW.decode(line)
    except (ValueError, RecursionError):
        return None
    known = row.get("split") in SPLITS and type(row.get("step")) is int and row["step"] >= 0
    numbers = (value for name, value in row.items() if name not in NO_NUMBERS)
    return row if known and all(value is None or isinstance(value, int | float) for value in numbers) else None


def read_ranks(frequencies: Path) -> dict[str, int]:
    """Rank of each word of the training corpus, 1 is the most frequent, from a run's frequencies.tsv.

    Empty where pretraining left none. A line that is no word with its count keeps its rank, so that the others keep
    theirs. Raises BrokenRun where the file as a whole cannot be read.
    """
    return {word: rank for rank, word, _ in _words(frequencies)}


def read_counts(frequencies: Path) -> dict[str, int]:
    """How often each word stands in the training corpus, from the same file. Raises BrokenRun."""
    return {word: count for _, word, count in _words(frequencies)}


def counted_tokens(run: Run) -> int:
    """The tokens of the text whose words frequencies.tsv counts; 0 where the run does not tell.

    A continued run has the counts of the first one's text.
    """
    if run.origin:
        return run.origin.text_tokens
    return convert(run.corpus, Corpus).trained_on


def _words(frequencies: Path) -> Iterator[tuple[int, str, int]]:
    """Rank, word and count of every line that holds a word with its count."""
    for rank, line in enumerate(read_lines(frequencies), 1):
        word, _, count = line.partition(b"\t")
        if word and count.isdigit() and len(count) < 19:
            try:
                yield rank, word.decode(), int(count)
            except UnicodeDecodeError:
                continue


def read_lines(path: Path) -> list[bytes]:
    """Lines of a file in a run's folder, without the empty end after the last; none where the file is absent.

    Raises BrokenRun where the file as a whole cannot be read.
    """
    if not os.path.lexists(path):
        return []
    content = read_bytes(path, path.parent, BrokenRun)
    if (lines := content.count(b"\n")) > MOST_LINES:
        raise refusal(path, f"has {lines:,} lines, and at most {MOST_LINES:,} are read", BrokenRun)
    return content.removesuffix(b"\n").split(b"\n") if content else []
