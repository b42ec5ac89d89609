"""The log of pretraining: rows of log.jsonl, held-out accuracy by position, and word counts of frequencies.tsv."""

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from itertools import compress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Required, TypedDict, TypeVar

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.json import Decoder
from msgspec.structs import astuple

from embryo_core.errors import BrokenRun, EmbryoError
from embryo_core.runs.atomic_files import replacing
from embryo_core.runs.schema import LIMITS, MB, OTHER_LIMIT, CorpusCard
from embryo_core.runs.trust import read_bytes, refusal
from embryo_core.runs.value_types import Count, Label, Nested2, Nested5, Number, Whole, resolve
from embryo_core.types import Run


class LogPlace(Struct, frozen=True):
    """The split and step of a line in the log; its numbers are ignored."""

    split: Literal["train", "heldout"]
    step: Count


OBJECTIVES = ("masked_lm", "sentence_order", "next_sentence", "replaced_token", "next_token")
NUMBER_FIELDS = "loss learning_rate gradient_norm tokens tokens_per_second time".split()
NUMBER_FIELDS += "n_masked n_predicted n_sequences n_tokens".split()
NUMBER_FIELDS += [f"{name}_{kind}" for name in OBJECTIVES for kind in ("loss", "accuracy", "n", "baseline")]
LogRow = TypedDict(  # type: ignore[misc]  # a line of the log; other columns are ignored
    "LogRow",
    {
        "split": Required[Literal["train", "heldout"]],
        "step": Required[Count],
        "by_length": Nested2,  # numbers of sequences of each length
        "measures": Nested5,  # see LoggedMeasure
    }
    | dict.fromkeys(NUMBER_FIELDS, Whole | Number | None),
    total=False,
)

HELDOUT_MARK = b'"heldout"'
GZIP = b"\x1f\x8b"  # first bytes of a gzip file
ROW_DECODER: Decoder[dict[str, Any]] = Decoder(LogRow)
PLACE_DECODER = Decoder(LogPlace)
MAX_ROW_BYTES = MB
MAX_LOG_LINES = 500_000  # lines of a file that is read line by line
MAX_LOG_ROWS = 10_000  # rows of a split that are read; a screen is only 2,000 pixels wide
Line = TypeVar("Line")


def read_log(run: Run) -> list[dict[str, Any]]:
    """Return the rows of log.jsonl in the order of steps (see `LogRow`). Raises BrokenRun.

    A line that is not a row is left out (see `damaged_lines`). Rows of a step that was trained again after a crash
    replace the earlier ones. Of more than `MAX_LOG_ROWS` lines of a split, evenly spaced ones including the last are
    read.
    """
    lines = read_lines(run.path / "log.jsonl")
    if len(lines) > MAX_LOG_ROWS:
        heldout = [HELDOUT_MARK in line for line in lines]
        lines = [line for split in (False, True) for line in spread([*compress(lines, (h == split for h in heldout))])]
    rows = [row for row in map(parse_row, lines) if row is not None]
    last = {(row["split"], row["step"]): row for row in rows}
    return sorted(last.values(), key=lambda row: (row["step"], row["split"]))


def spread(lines: list[Line]) -> list[Line]:
    """Return at most `MAX_LOG_ROWS` evenly spaced lines, or rows, including the last."""
    stride = max(1, -(-len(lines) // MAX_LOG_ROWS))  # rounded up
    return lines[::-stride][::-1]


def last_logged(run: Run) -> dict[str, int]:
    """Return the last step of each split in log.jsonl; faster than `read_log`. Raises BrokenRun."""
    last_steps: dict[str, int] = {}
    for line in read_lines(run.path / "log.jsonl"):
        try:
            position = PLACE_DECODER.decode(line)
        except (ValueError, RecursionError):
            continue
        last_steps[position.split] = max(position.step, last_steps.get(position.split, 0))
    return last_steps


def damaged_lines(run: Run) -> int:
    """Return the number of lines that are not rows: truncated, damaged, or with a number that is not finite."""
    return sum(parse_row(line) is None for line in read_lines(run.path / "log.jsonl"))


def parse_row(line: bytes) -> dict[str, Any] | None:
    """Return the row in a line of log.jsonl (see `LogRow`); None if it is not a row."""
    try:
        return ROW_DECODER.decode(line) if len(line) <= MAX_ROW_BYTES else None
    except (ValueError, RecursionError):
        return None


def read_ranks(frequencies: Path) -> dict[str, int]:
    """Return the rank of each word in frequencies.tsv, from 1; damaged lines count. Raises BrokenRun."""
    return {word: rank for rank, word, _ in _words(frequencies)}


def read_counts(frequencies: Path) -> dict[str, int]:
    """Return the count of each word in the training corpus, from frequencies.tsv. Raises BrokenRun."""
    return {word: count for _, word, count in _words(frequencies)}


def has_counts(frequencies: Path) -> bool:
    """Return whether frequencies.tsv has the count of any word. Raises BrokenRun."""
    return next(_words(frequencies), None) is not None


def counted_tokens(run: Run) -> int:
    """Return the tokens of the text behind frequencies.tsv, which is the first run's text; 0 if unknown."""
    if run.origin:
        return run.origin.text_tokens
    return convert(run.corpus, CorpusCard).trained_on


def counted_words(run: Run) -> int:
    """Return the words of the text behind frequencies.tsv; only those in the file if run.json has no larger number.

    Raises BrokenRun.
    """
    return max(convert(run.corpus, CorpusCard).counted_words, sum(read_counts(run.frequencies).values()))


def _words(frequencies: Path) -> Iterator[tuple[int, str, int]]:
    """Yield rank, word and count of every line with a word and its count, which is above 0."""
    for rank, line in enumerate(read_lines(frequencies), 1):
        word, _, count = line.partition(b"\t")
        if word and count.isdigit() and len(count) < 19 and int(count):
            try:
                yield rank, word.decode(), int(count)
            except UnicodeDecodeError:
                continue


def read_lines(path: Path) -> list[bytes]:
    """Return the lines of a file in a run's folder, or none if it is absent. Raises BrokenRun if it cannot be read."""
    if not os.path.lexists(path):
        return []
    content = read_text(path, path.parent, BrokenRun)
    if (lines := content.count(b"\n")) > MAX_LOG_LINES:
        raise refusal(path, f"has {lines:,} lines (the maximum is {MAX_LOG_LINES:,})", BrokenRun)
    return content.removesuffix(b"\n").split(b"\n") if content else []


def write_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Write the lines of a file, each with a line break; no reader ever sees half of it."""
    with replacing(path) as temporary:
        temporary.write_bytes(b"".join(line + b"\n" for line in lines))


def read_text(path: Path, root: Path, error: type[EmbryoError]) -> bytes:
    """Return the content of a log, decompressed if gzipped, without a byte order mark. Raises `error`."""
    content = read_bytes(path, root, error)
    if content.startswith(GZIP):
        limit = LIMITS.get(path.name.removesuffix(".gz"), OTHER_LIMIT)
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                content = file.read(limit + 1)
        except (OSError, EOFError, zlib.error) as reason:
            raise refusal(path, f"cannot be decompressed: {reason}", error) from None
        if len(content) > limit:
            raise refusal(path, f"has more than {limit:,} bytes, the maximum", error)
    return content.removeprefix(codecs.BOM_UTF8)


# === Held-out accuracy by length, masking and position ===


class PositionGroup(Struct, frozen=True):
    """Masked pieces at some positions of their sequences."""

    first: Count
    last: Count
    accuracy: Annotated[float, Meta(ge=0, le=1)]
    n: Annotated[int, Meta(ge=1, le=2**63 - 1)]


class LoggedMeasure(Struct, frozen=True):
    """Held-out sequences of one length, masked in one way."""

    length: Count
    masking: Label
    positions: Annotated[list[PositionGroup], Meta(max_length=1000)]


class PositionAccuracy(NamedTuple):
    """Accuracy of the `n` masked pieces at positions `first` to `last` of sequences of `length` tokens."""

    step: int
    length: int
    masking: str  # "training", "single pieces 15 %", "whole words 15 %" or "single pieces 15 %, all [MASK]"
    first: int
    last: int
    accuracy: float
    n: int
    sample: int  # masked pieces at all positions; equal if the same sequences were measured


def read_measures(run: Run) -> list[PositionAccuracy]:
    """Return every measure by position in the order of steps; empty if the log has none. Raises BrokenRun."""
    return [
        PositionAccuracy(
            row["step"],
            measure.length,
            measure.masking,
            *(*astuple(group), sum(position_group.n for position_group in measure.positions)),
        )
        for row in read_log(run)
        if row["split"] == "heldout"
        for measure in _measures(row.get("measures"))
        for group in measure.positions
    ]


def _measures(value: Any) -> list[LoggedMeasure]:
    """Return a row's measures by position; empty if they have another form, as for replaced tokens."""
    try:
        return convert(value, list[LoggedMeasure])
    except ValidationError:
        return []


resolve(globals())
