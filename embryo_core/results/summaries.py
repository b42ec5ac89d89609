"""Summaries of large tables, in files next to them, so that no page reads such a table as a whole.

    facts.parquet          of cloze.parquet: how the answers to each fact developed (fact_histories.py)
    counts.parquet         of words.parquet: how often each word occurs in the treebank
    reached.parquet        of answers.parquet: when each task's score reached a share of its last value
    reached_spans.parquet  of spans.parquet: the same for answers to questions
    positions.parquet      of attention.parquet: how much each head attends to fixed positions (position_weights.py)

The metadata of a summary name the checksum of the table that it was made from. It is made when tables are compacted.
Pending evaluations may be added to it. If that is impossible, or if the file is missing or not that of the table, it is
computed again. Of 200 checkpoints the facts take 1.7 s of one core so, the answers to SQuAD 1.1 s, the positions 0.9 s
and the words 0.5 s, all growing with the checkpoints.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from embryo_core.curves.reached import LABELLED, SHARES, Reached, reached, reached_in_spans
from embryo_core.errors import ResultsError
from embryo_core.results.memo import remembered
from embryo_core.results.parquet_files import is_stored, remove, replacing_table, stored_checksum, verified
from embryo_core.results.pending import list_pending
from embryo_core.results.read import read_answers, read_spans, read_task_scores
from embryo_core.results.rows import read_pending, read_table, read_values, steps_of_file
from embryo_core.results.tables import ANSWERS, SPANS, WORDS, Table
from embryo_core.types import Run

SOURCE = b"made_from"
PendingRows = dict[tuple[str, int], pa.Table]  # by metric and step


@dataclass(frozen=True)
class Summary:
    """What is summarised: the `file` next to the `table`, its columns, how it is computed and checked.

    `check` raises ValueError for rows that cannot be a summary. `compute` may add to the schema's metadata. `add`
    returns the summary with the rows of pending evaluations, of which it reads some `columns`; None if only `compute`
    can.
    """

    file: str
    table: Table
    schema: pa.Schema
    compute: Callable[[Run], pa.Table]
    check: Callable[[pa.Table], None]
    columns: tuple[str, ...]
    add: Callable[[pa.Table, PendingRows], pa.Table | None] = lambda summary, pending: None


def read_summary(run: Run, summary: Summary) -> pa.Table:
    """Return the summary of all results, pending ones included. Raise ResultsError."""
    found = read_stored(run, summary)
    return summary.compute(run) if found is None else found


def read_stored(run: Run, summary: Summary) -> pa.Table | None:
    """Return the same without computing it anew: None if it is not stored, or if pending rows cannot be added."""
    pending = read_pending(run, summary.table, [*summary.columns])  # before the file, which has what is compacted now
    found = _read_file(run, summary)
    return summary.add(found, pending) if pending and found is not None else found


def write_summary(run: Run, summary: Summary) -> None:
    """Write the summary of the compacted table, or remove it if there is none. The caller holds the lock."""
    path, source = run.results / summary.file, _source(run, summary)
    if source is None:
        remove(path)
    elif not is_written(run, summary):
        rows = summary.compute(run)
        rows = rows.replace_schema_metadata({**(rows.schema.metadata or {}), SOURCE: source})
        with replacing_table(path) as temporary:
            pq.write_table(rows, temporary, compression="zstd", write_page_checksum=True)


def is_written(run: Run, summary: Summary) -> bool:
    """Return whether the stored summary is complete and that of the compacted table, or there is nothing to sum up."""
    if _source(run, summary) is None:
        return True
    read = _read_file(run, summary) is not None
    return read and stored_checksum(run.results / summary.file, run.results) is not None


def _source(run: Run, summary: Summary) -> str | None:
    """Return the checksum of the compacted table."""
    return stored_checksum(run.results / f"{summary.table.name}.parquet", run.results)


def _read_file(run: Run, summary: Summary) -> pa.Table | None:
    """Return the stored summary; None if there is none of the compacted table, or if it is damaged."""
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


# === How often each word occurs in the treebank ===

WORD_COLUMNS = ["metric", "tag", "word", "band", "n"]
WORD_SCHEMA = WORDS.schema_of(WORD_COLUMNS)


@remembered
def read_word_counts(run: Run, metric: str) -> pd.DataFrame:
    """Return the words of a metric at the last step of its evaluation: metric, tag, word, band, n."""
    return read_summary(run, COUNTS).filter(pc.field("metric") == metric).to_pandas()


def _check_counts(rows: pa.Table) -> None:
    if rows.num_rows and (rows["n"].null_count or pc.min(rows["n"]).as_py() < 1):
        raise ValueError("it does not count its words")


def _count_words(run: Run) -> pa.Table:
    steps = steps_of_file(run, WORDS)
    for metric, step in list_pending(run):
        steps.setdefault(metric, []).append(step)
    found = [
        read_table(run, WORDS, pc.field("evaluation") == metric, max(own), [*WORD_COLUMNS, "step"])
        for metric, own in sorted(steps.items())
    ]
    return pa.concat_tables([WORD_SCHEMA.empty_table(), *(rows.select(WORD_COLUMNS) for rows in found)])


COUNTS = Summary("counts.parquet", WORDS, WORD_SCHEMA, _count_words, _check_counts, ("metric", "step"))

# === When a task's score reached a share of its last value ===

ENDS = ("step", "earliest", "latest")  # null if the last score is not surely above 0
REACHED_METRICS = {ANSWERS.name: (*LABELLED, "spearman", "pearson"), SPANS.name: ("exact", "f1")}
REACHED_SCHEMA = pa.schema(
    {"task": pa.string(), "metric": pa.string(), "share": pa.float64()} | dict.fromkeys(ENDS, pa.int64())
)


def read_reached(run: Run, task: str, metric: str) -> list[Reached | None]:
    """Return when a task's score reached each of `SHARES` of its last value; None if that is not surely above 0.

    Raise ResultsError if the answers are not those to the same examples at every step.
    """
    return _read_reached(run, IN_ANSWERS, task, metric)


def read_reached_in_spans(run: Run, task: str, metric: str) -> list[Reached | None]:
    """Return the same for a task whose answers are spans of a paragraph; `metric` is exact or f1."""
    return _read_reached(run, IN_SPANS, task, metric)


def _read_reached(run: Run, summary: Summary, task: str, metric: str) -> list[Reached | None]:
    rows = read_stored(run, summary)
    if rows is not None:
        own = rows.filter((pc.field("task") == task) & (pc.field("metric") == metric)).to_pylist()
        by_share = {row["share"]: None if row["step"] is None else Reached(*(row[end] for end in ENDS)) for row in own}
        if by_share.keys() == set(SHARES):
            return [by_share[share] for share in SHARES]
    return _reached_of(summary.table, run, task, metric)  # says why, if the summary leaves a task out


def _reached_of(table: Table, run: Run, task: str, metric: str) -> list[Reached | None]:
    if table is SPANS:
        return reached_in_spans(read_spans(run, task), metric)
    return reached(read_answers(run, task), metric)


def _compute_reached(table: Table, run: Run) -> pa.Table:
    found = []
    for task in read_values(run, table, "task"):
        scored = set(read_task_scores(run, task)["metric"])
        for metric in (name for name in REACHED_METRICS[table.name] if name in scored):
            with suppress(ResultsError):
                for share, each in zip(SHARES, _reached_of(table, run, task, metric), strict=True):
                    ends = {end: getattr(each, end, None) for end in ENDS}
                    found.append({"task": task, "metric": metric, "share": share, **ends})
    return pa.Table.from_pylist(found, REACHED_SCHEMA)


def _check_reached(rows: pa.Table) -> None:
    known = set(pc.unique(rows["share"]).to_pylist()) <= set(SHARES)
    ordered = all(row["earliest"] <= row["latest"] for row in rows.to_pylist() if row["step"] is not None)
    if not known or not ordered:
        raise ValueError("it does not say when scores were reached")


IN_ANSWERS, IN_SPANS = (
    Summary(file, table, REACHED_SCHEMA, partial(_compute_reached, table), _check_reached, ("task", "step"))
    for file, table in (("reached.parquet", ANSWERS), ("reached_spans.parquet", SPANS))
)
