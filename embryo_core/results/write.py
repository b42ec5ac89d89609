"""Write the findings of metrics to pending evaluations, and compact these into one file per table.

    results/<run>/<table>.parquet                            compacted: one file per table, sorted
    results/<run>/parts/<metric>/step{N}/<table>.parquet     one evaluation (a metric at a step), pending
    results/<run>/sources.json                               the data that each metric was computed on

An evaluation is stored completely or not at all (pending.py), and writers take turns. Compaction removes a pending
evaluation only once every table contains it. So after a process was killed between any two writes, a rerun produces the
same files, byte for byte: rows are unique and sorted, and nothing in a file depends on the time or order of writing.

Without compaction, a thousand steps of one metric are a thousand files. Reading 200 of them and verifying their
checksums took 0.3 s of one core, reading the compacted table 0.01 s.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import to_builtins

from embryo_core.errors import DatasetMismatch, ResultsError
from embryo_core.measurements import Findings
from embryo_core.results import attention_codec, pending
from embryo_core.results.checks import bounds_of, check_keys, check_rows
from embryo_core.results.fact_histories import FACTS_SUMMARY
from embryo_core.results.parquet_files import is_stored, remove_table, replacing_table, write_checksum
from embryo_core.results.provenance import DatasetId, check_dataset, read_sources
from embryo_core.results.read import EXAMPLES_FILE, steps_by_metric
from embryo_core.results.rows import EVERYTHING, read_table, read_values, sort_rows, steps_of_file
from embryo_core.results.summaries import (
    IN_ANSWERS,
    IN_SPANS,
    POSITION_WEIGHTS_SUMMARY,
    WORD_COUNTS_SUMMARY,
    is_written,
    write_summary,
)
from embryo_core.results.tables import ATTENTION, TABLES, Table
from embryo_core.runs import own_folder, write_json
from embryo_core.runs.atomic_files import UNFINISHED
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.types import Checkpoint, Run

SUMMARIES = (FACTS_SUMMARY, WORD_COUNTS_SUMMARY, IN_ANSWERS, IN_SPANS, POSITION_WEIGHTS_SUMMARY)
STEPS_PER_PENDING = 50  # compacted steps of a metric for each evaluation that may stay pending


def write(
    checkpoint: Checkpoint,
    metric: str,
    findings: Findings,
    dataset: DatasetId | None = None,
    summary: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> None:
    """Write all findings of one metric at one checkpoint, replacing earlier ones.

    The data are checked and recorded first, as by `note_dataset`. Raises ResultsError if there are no rows, a value
    that readers would reject (checks.py), or two rows with the same key, and DatasetMismatch as `note_dataset` does;
    then no findings are written.
    """
    run, step, tables = checkpoint.run, checkpoint.step, _checked(checkpoint, metric, findings)
    with pending.lock(run):
        _note(run, metric, dataset or {}, summary, overwrite)
        with pending.writing_pending(run, metric, step) as folder:
            for table, rows in tables:
                path = folder / f"{table.name}.parquet"
                _write_file(path, table, [sort_rows(table, rows)])
                write_checksum(path)


def write_examples(run: Run, examples: Sequence[ExampleQuestion]) -> None:
    """Write the example questions of a run, replacing earlier ones. Raises ResultsError for a link."""
    own_folder(run.results, run.results, ResultsError)
    write_json(run.results / EXAMPLES_FILE, to_builtins(list(examples)))


# === Compaction ===


def compact(run: Run) -> None:
    """Merge pending evaluations into the compacted tables, unless they are few; readers see the same rows.

    Since a table is rewritten completely, a step that is added to a long series stays pending until there are more.
    Tables without pending rows are unchanged. Pending rows are read and checked like those of an unknown writer, even
    if this process has just written them.
    """
    unfinished = any(run.results.glob(f"*{UNFINISHED}"))  # a writer is writing a table, or was killed while doing so
    if not unfinished and not (run.results / "parts").is_dir() and _are_summaries_written(run):
        return
    with pending.lock(run):
        pending.remove_unfinished(run)
        waiting = pending.list_pending(run)
        if waiting and _are_few(run, waiting) and _are_summaries_written(run):
            return
        pending.check_removable(waiting.values())
        for table in TABLES:
            if _is_changed(run, table, waiting):
                replace_table(run, table, _stored(run, table))
        for summary in SUMMARIES:
            write_summary(run, summary)
        for folder in waiting.values():
            pending.remove_pending(folder)
        pending.remove_leftovers(run)


def _are_few(run: Run, waiting: pending.Pending) -> bool:
    """Return whether every metric has fewer than one pending evaluation per STEPS_PER_PENDING compacted steps."""
    counts, steps = Counter(metric for metric, _ in waiting), steps_by_metric(run)
    return all(len(steps[metric]) - count > STEPS_PER_PENDING * count for metric, count in counts.items())


def _is_changed(run: Run, table: Table, waiting: pending.Pending) -> bool:
    """Return whether a pending evaluation has rows of this table, or replaces one that had some."""
    compacted = steps_of_file(run, table)
    return any(
        is_stored(folder / f"{table.name}.parquet") or step in compacted.get(metric, ())
        for (metric, step), folder in waiting.items()
    )


def _are_summaries_written(run: Run) -> bool:
    return all(is_written(run, summary) for summary in SUMMARIES)


# === Data behind results ===


def note_dataset(
    run: Run, metric: str, dataset: DatasetId, summary: Mapping[str, Any] | None = None, overwrite: bool = False
) -> None:
    """Record the data of a metric's results with their `summary`; without a summary, only check them.

    Raises DatasetMismatch if the metric has results of other data, unless `overwrite` may remove them.
    """
    with pending.lock(run):
        _note(run, metric, dataset, summary, overwrite)


def _note(run: Run, metric: str, dataset: DatasetId, summary: Mapping[str, Any] | None, overwrite: bool) -> None:
    """Record or check data as `note_dataset` does; the caller holds the lock."""
    try:
        check_dataset(run, metric, dataset)
    except DatasetMismatch:
        if not overwrite and (summary is None or steps_by_metric(run)[metric]):
            raise
        if overwrite:
            _forget(run, metric)
    records = read_sources(run)
    if summary is not None and records.get(metric) != (entry := {**dataset, **summary}):
        write_json(run.results / "sources.json", dict(sorted({**records, metric: entry}.items())))


def _forget(run: Run, metric: str) -> None:
    """Remove a metric's results, and the record of their data first, so that no partial removal looks complete."""
    folders = [folder for (name, _), folder in pending.list_pending(run).items() if name == metric]
    pending.check_removable(folders)
    write_json(run.results / "sources.json", {k: v for k, v in read_sources(run).items() if k != metric})
    for folder in folders:
        pending.remove_pending(folder)
    for table in TABLES:
        if is_stored(run.results / f"{table.name}.parquet") and metric in (
            steps_of_file(run, table) or [metric]  # no steps: a killed process left the checksum of a removed file
        ):
            replace_table(run, table, _stored(run, table, pc.field("evaluation") != metric))
    for summary in SUMMARIES:
        write_summary(run, summary)


# === Files ===


def _checked(checkpoint: Checkpoint, metric: str, findings: Findings) -> list[tuple[Table, pa.Table]]:
    """Return the rows of each table that has findings. Raises ResultsError as `write` does."""
    evaluated = f"Metric '{metric}' at step {checkpoint.step} of run '{checkpoint.run.name}'"
    checked = []
    for table in TABLES:
        if findings_of_table := getattr(findings, table.name):
            try:
                rows = _rows(table, metric, checkpoint.step, findings_of_table)
                checked.append((table, check_rows(table, rows, bounds_of(checkpoint.run))))
                check_keys(table, rows)
            except (ValueError, TypeError, pa.ArrowException) as reason:
                raise ResultsError(
                    f"{evaluated} gave {table.name} that are no results ({reason}); nothing was written."
                ) from None
    if not checked:
        raise ResultsError(f"{evaluated} gave no rows, and nothing was written; check its data.")
    return checked


def _rows(table: Table, metric: str, step: int, rows: list) -> pa.Table:
    """Return findings as rows of a table."""
    made = {"evaluation": pa.repeat(pa.scalar(metric), len(rows)), "step": pa.repeat(pa.scalar(step), len(rows))}
    if table is ATTENTION:
        made["weights"] = attention_codec.to_column(row.weights for row in rows)
        made["length"] = pa.array([row.weights.shape[0] for row in rows], pa.int32())
    plain = {name: [getattr(row, name) for row in rows] for name in table.schema.names if name not in made}
    return pa.table({**made, **plain}, schema=table.schema)


def _stored(run: Run, table: Table, where: pc.Expression = EVERYTHING) -> Iterator[pa.Table]:
    """Yield the stored rows by key, some row groups at a time, since all of them may not fit into memory."""
    if not table.group:
        yield read_table(run, table, where)
        return
    for value in read_values(run, table, table.group[0]):
        yield read_table(run, table, where & (pc.field(table.group[0]) == value))


def replace_table(run: Run, table: Table, chunks: Iterable[pa.Table]) -> None:
    """Write rows as the compacted table; without rows, remove its file.

    The caller passes rows sorted by the key, within and across chunks; no row group extends over two chunks.
    """
    path = run.results / f"{table.name}.parquet"
    filled = (rows for rows in chunks if rows.num_rows)
    if (first := next(filled, None)) is None:
        remove_table(path)
        return
    with replacing_table(path) as temporary:
        _write_file(temporary, table, chain([first], filled))


def _write_file(path: Path, table: Table, chunks: Iterable[pa.Table]) -> None:
    """Write sorted rows, with a row group for each value of the table's group columns."""
    schema = attention_codec.stored_schema(table.schema)
    options: dict[str, Any] = {
        "compression": "zstd",
        "use_dictionary": [column.name for column in schema if column.type == pa.string()],
        "write_statistics": [name for name in schema.names if name != attention_codec.STORED_COLUMN],
    }
    if attention_codec.STORED_COLUMN in schema.names:
        options["compression_level"] = {attention_codec.STORED_COLUMN: 3}  # 5 % smaller than at the default, 1
    with pq.ParquetWriter(path, schema, **options) as file:
        for chunk in chunks:
            rows = attention_codec.encode(chunk).combine_chunks()
            sizes: list[int] = [rows.num_rows]
            if table.group:
                groups = rows.group_by(list(table.group), use_threads=False)
                sizes = groups.aggregate([([], "count_all")])["count_all"].to_pylist()
            for start, end in pairwise(np.cumsum([0, *sizes]).tolist()):
                size = min(end - start, table.max_group_rows)
                file.write_table(rows.slice(start, end - start), row_group_size=size)
