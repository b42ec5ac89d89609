"""What metrics find is written to parts, and parts are merged into the compacted tables.

    results/<run>/<table>.parquet                            compacted: one for each of TABLES; sorted
    results/<run>/parts/<metric>/step{N}/<table>.parquet     one evaluation (a metric at a step) not yet compacted
    results/<run>/sources.json                               the data that each metric was computed on

An evaluation is there as a whole or not at all (parts.py). Compaction removes a part only once every table holds it. So
a process killed between any two writes leaves a state from which a rerun gives the same files, byte for byte: rows are
unique and sorted, and nothing in a file depends on when or in which order it was written. Writers take turns.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from embryo_core.errors import OtherData
from embryo_core.results import order, summaries, weights
from embryo_core.results.files import is_stored, remove, replacing_table, seal
from embryo_core.results.histories import FACTS, takes_parts
from embryo_core.results.parts import (
    Parts,
    list_parts,
    lock,
    new_part,
    refuse_foreign_files,
    remove_leftovers,
    remove_part,
)
from embryo_core.results.position_weights import WEIGHTS
from embryo_core.results.reached import IN_ANSWERS, IN_SPANS
from embryo_core.results.read import done
from embryo_core.results.rows import EVERYTHING, read_table, read_values, steps_of_file
from embryo_core.results.sources import Identity, check_identity, read_sources
from embryo_core.results.tables import ATTENTION, CLOZE, TABLES, Table
from embryo_core.results.validate import check
from embryo_core.results.word_counts import COUNTS
from embryo_core.runs import write_json
from embryo_core.types import Checkpoint, Findings, Run

SUMMARIES = (FACTS, COUNTS, IN_ANSWERS, IN_SPANS, WEIGHTS)
FEW = 50  # compacted steps of a metric beside which one part stays


def write(checkpoint: Checkpoint, metric: str, findings: Findings, identity: Identity | None = None) -> None:
    """Write all that one metric found at one checkpoint, replacing what was there.

    Raises ResultsError, and writes nothing, for no rows at all, a number that is not finite, n below 1, or two rows
    with the same key; OtherData where the metric's results are by now of other data than the `identity` of these.
    """
    check(checkpoint, metric, findings)
    run, step = checkpoint.run, checkpoint.step
    tables = [(table, _rows(table, metric, step, getattr(findings, table.name))) for table in TABLES]
    with lock(run):
        check_identity(run, metric, identity or {})
        with new_part(run, metric, step) as folder:
            for table, rows in tables:
                if rows.num_rows:
                    path = folder / f"{table.name}.parquet"
                    _write(path, table, [rows])
                    seal(path)


def compact(run: Run) -> None:
    """Merge the parts into the compacted tables, once they are not few beside these; what is read stays the same.

    A table is written anew as a whole: so a step that is added to a long series stays a part until others have come.
    One of which no part has rows is left as it is.
    """
    if not (run.results / "parts").is_dir() and _are_summed_up(run):
        return
    with lock(run):
        parts = list_parts(run)
        if parts and _are_few(run, parts) and _are_summed_up(run):
            return
        refuse_foreign_files(parts)
        for table in TABLES:
            if _is_changed(run, table, parts):
                replace_table(run, table, _stored(run, table))
        _sum_up(run)
        for part in parts.values():
            remove_part(part)
        remove_leftovers(run)


def _are_few(run: Run, parts: Parts) -> bool:
    """Whether every metric has fewer parts than one for each FEW of its steps in the compacted tables.

    Answers to facts only where they can be added to their summary.
    """
    for metric, count in Counter(metric for metric, _ in parts).items():
        own = [part for (name, _), part in parts.items() if name == metric]
        tables = [table for table in TABLES if any(is_stored(part / f"{table.name}.parquet") for part in own)]
        steps = max(len(steps_of_file(run, table).get(metric, ())) for table in tables)
        if steps <= FEW * count or (CLOZE in tables and not takes_parts(run)):
            return False
    return True


def _is_changed(run: Run, table: Table, parts: Parts) -> bool:
    """Whether a part has rows of this table, or replaces an evaluation that had some."""
    compacted = steps_of_file(run, table)
    return any(
        is_stored(part / f"{table.name}.parquet") or step in compacted.get(metric, ())
        for (metric, step), part in parts.items()
    )


def begin(run: Run, metric: str, identity: Identity, summary: dict[str, Any], overwrite: bool) -> None:
    """Note what data the metric is computed on from now on; with `overwrite`, results of other data go before.

    Raises OtherData where there are such results and they may not go.
    """
    with lock(run):
        if done(run)[metric]:
            try:
                check_identity(run, metric, identity)
            except OtherData:
                if not overwrite:
                    raise
                _forget(run, metric)
        noted = {**read_sources(run), metric: {**identity, **summary}}
        write_json(run.results / "sources.json", dict(sorted(noted.items())))


def forget_other(run: Run, metric: str, identity: Identity) -> None:
    """Remove a metric's results where they are of other data than these."""
    with lock(run):
        try:
            check_identity(run, metric, identity)
        except OtherData:
            _forget(run, metric)


def _forget(run: Run, metric: str) -> None:
    """Remove a metric's results; its data are forgotten first, so that a killed removal is not taken for done."""
    refuse_foreign_files({key: part for key, part in list_parts(run).items() if key[0] == metric})
    write_json(run.results / "sources.json", {k: v for k, v in read_sources(run).items() if k != metric})
    for (name, _), part in list_parts(run).items():
        if name == metric:
            remove_part(part)
    for table in TABLES:
        if is_stored(run.results / f"{table.name}.parquet"):
            replace_table(run, table, _stored(run, table, pc.field("evaluation") != metric))
    _sum_up(run)


def _are_summed_up(run: Run) -> bool:
    return all(summaries.is_written(run, summary) for summary in SUMMARIES)


def _sum_up(run: Run) -> None:
    for summary in SUMMARIES:
        summaries.write(run, summary)


def _rows(table: Table, metric: str, step: int, rows: list) -> pa.Table:
    made = {"evaluation": pa.repeat(pa.scalar(metric), len(rows)), "step": pa.repeat(pa.scalar(step), len(rows))}
    if table is ATTENTION:
        made["weights"] = weights.to_column(row.weights for row in rows)
        made["length"] = pa.array([row.weights.shape[0] for row in rows], pa.int32())
    plain = {name: [getattr(row, name) for row in rows] for name in table.all_columns if name not in made}
    return pa.table({**made, **plain}, schema=table.schema)


def _stored(run: Run, table: Table, where: pc.Expression = EVERYTHING) -> Iterator[pa.Table]:
    """The rows that are stored, in the order of the key; where rows are in groups, some groups at a time.

    All rows of a long series together may not fit into memory.
    """
    if not table.group:
        yield read_table(run, table, where)
        return
    for value in read_values(run, table, table.group[0]):  # the first of the key, too
        yield read_table(run, table, where & (pc.field(table.group[0]) == value))


def replace_table(run: Run, table: Table, chunks: Iterable[pa.Table]) -> None:
    """Make these rows the compacted table; without rows there is no file.

    Chunks follow one another in the order of the key, and none begins within a row group.
    """
    path = run.results / f"{table.name}.parquet"
    filled = (rows for rows in chunks if rows.num_rows)
    if (first := next(filled, None)) is None:
        remove(path)
        return
    with replacing_table(path) as temporary:
        _write(temporary, table, chain([first], filled))


def _write(path: Path, table: Table, chunks: Iterable[pa.Table]) -> None:
    """Write rows sorted by the table's key, row groups for each value of its group columns (else of all rows).

    The metadata have the steps of each evaluation that has rows here, where `done` finds them at once.
    """
    text = [name for name, kind in table.all_columns.items() if kind == "string"]
    schema = weights.packed_schema(table.schema)
    bounded = [name for name in schema.names if name != weights.PACKED]  # by which row groups are passed over
    how = {"compression": "zstd", "use_dictionary": text, "write_statistics": bounded, "write_page_checksum": True}
    done: dict[str, set[int]] = {}
    if weights.PACKED in schema.names:
        how["compression_level"] = {weights.PACKED: 3}  # a twentieth smaller than at the default, 1
    with pq.ParquetWriter(path, schema, **how) as file:
        for chunk in chunks:
            rows = weights.pack(order.sort(table, chunk)).combine_chunks()
            for start, end in pairwise(np.cumsum([0, *_sizes(table, rows)]).tolist()):
                file.write_table(rows.slice(start, end - start), row_group_size=min(end - start, table.longest))
            pairs = rows.group_by(["evaluation", "step"], use_threads=False).aggregate([]).to_pydict()
            for metric, step in zip(*pairs.values(), strict=True):
                done.setdefault(metric, set()).add(step)
        file.add_key_value_metadata({"done": json.dumps({metric: sorted(done[metric]) for metric in sorted(done)})})


def _sizes(table: Table, rows: pa.Table) -> list[int]:
    """Rows of each group."""
    if not table.group:
        return [rows.num_rows]
    return rows.group_by(list(table.group), use_threads=False).aggregate([([], "count_all")])["count_all"].to_pylist()
