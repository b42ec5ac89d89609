"""Summaries of large tables, in files beside them, so that no page reads such a table as a whole.

    facts.parquet    of cloze.parquet: how the answers to each fact went (histories.py)
    counts.parquet   of words.parquet: how often each word stands in the treebank (word_counts.py)
    reached.parquet  of answers.parquet: when each task's score had most of its last value (reached.py)
    reached_spans.parquet  of spans.parquet: the same of answers to questions
    positions.parquet  of attention.parquet: how much each head attends to fixed positions (position_weights.py)

The metadata of a summary name the checksum of the table that it was made from. It is made when tables are compacted.
Parts may be added to it. Where that cannot be, it is missing, or not that of the rows at hand, it is computed anew.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from embryo_core.errors import ResultsError
from embryo_core.results.files import is_stored, remove, replacing_table, stored_checksum, verified
from embryo_core.results.rows import read_parts
from embryo_core.results.tables import Table
from embryo_core.types import Run

SOURCE = b"made_from"
Parts = dict[tuple[str, int], pa.Table]  # rows by metric and step


@dataclass(frozen=True)
class Summary:
    """What is summed up: the `file` beside the `table`, its columns, how it is computed, and what it has to be.

    `check` raises ValueError for rows that cannot be a summary. `compute` may add to the schema's metadata. `add` gives
    the summary with the rows of parts, of which it reads some `columns`; None where only `compute` can tell.
    """

    file: str
    table: Table
    schema: pa.Schema
    compute: Callable[[Run], pa.Table]
    check: Callable[[pa.Table], None]
    columns: tuple[str, ...]
    add: Callable[[pa.Table, Parts], pa.Table | None] = lambda summary, parts: None


def read(run: Run, summary: Summary) -> pa.Table:
    """The summary of all that is stored, parts included. Raises ResultsError."""
    found = read_whole(run, summary)
    return summary.compute(run) if found is None else found


def read_whole(run: Run, summary: Summary) -> pa.Table | None:
    """The same where it is stored, and parts can be added to it; otherwise None."""
    parts = read_parts(run, summary.table, [*summary.columns])  # before the file: what is compacted now is in that
    found = _read_stored(run, summary)
    return summary.add(found, parts) if parts and found is not None else found


def write(run: Run, summary: Summary) -> None:
    """Make the summary that of the compacted table; without one there is none. For a writer that holds the lock."""
    path, source = run.results / summary.file, _source(run, summary)
    if source is None:
        remove(path)
    elif not is_written(run, summary):
        rows = summary.compute(run)
        metadata = {**(rows.schema.metadata or {}), SOURCE: source}
        with replacing_table(path) as temporary:
            pq.write_table(
                rows.replace_schema_metadata(metadata), temporary, compression="zstd", write_page_checksum=True
            )


def is_written(run: Run, summary: Summary) -> bool:
    """Whether the summary is that of the compacted table, written to its end, or there is nothing to sum up."""
    if _source(run, summary) is None:
        return True
    read = _read_stored(run, summary) is not None
    return read and stored_checksum(run.results / summary.file, run.results) is not None


def _source(run: Run, summary: Summary) -> str | None:
    """The checksum of the compacted table."""
    return stored_checksum(run.results / f"{summary.table.name}.parquet", run.results)


def _read_stored(run: Run, summary: Summary) -> pa.Table | None:
    """The stored summary; None where there is none of the compacted table, or it is damaged."""
    path = run.results / summary.file
    if not is_stored(path):
        return None
    try:
        with verified(run, path) as file:
            if file is None:
                return None
            rows = pq.read_table(file.opened, page_checksum_verification=True)
        if (rows.schema.metadata or {}).get(SOURCE) != (_source(run, summary) or "").encode():
            raise ValueError("it is the summary of another table")
        if not rows.schema.equals(summary.schema):
            raise ValueError(f"its columns are {', '.join(rows.schema.names)}")
        summary.check(rows)
        return rows
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, ResultsError):
        return None
