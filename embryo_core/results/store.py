"""The parquet room: writes what metrics find and reads it back as tables; no other module touches parquet.

    results/<run>/<table>.parquet                            compacted: scores, words, cloze, attention, probes; sorted
    results/<run>/parts/<metric>/step{N}/<table>.parquet     one evaluation (a metric at a step) not yet compacted
    results/<run>/sources.json                               the data that each metric was computed on

An evaluation is there as a whole or not at all (parts.py). Readers see parts and compacted tables together; a part
replaces the compacted rows of its evaluation. Compaction removes a part only once every table holds it. So a process
killed between any two writes leaves a state from which a rerun gives the same files, byte for byte: rows are unique and
sorted, and nothing in a file depends on when or in which order it was written. Writers take turns; readers never wait.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from embryo_core.errors import ResultsError
from embryo_core.results.parts import Parts, list_parts, lock, new_part, remove_leftovers, remove_part
from embryo_core.results.tables import ATTENTION, CLOZE, PROBES, SCORES, TABLES, WORDS, Table
from embryo_core.results.validate import check
from embryo_core.runs import write_json
from embryo_core.types import Checkpoint, Findings, Run

TYPES = {
    "string": pa.string(),
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "float16 list": pa.list_(pa.field("item", pa.float16(), nullable=False)),  # never null: twice as fast to read
}
EVERYTHING = pc.scalar(True)

# === Writing ===


def write(checkpoint: Checkpoint, metric: str, findings: Findings) -> None:
    """Write all that one metric found at one checkpoint, replacing what was there.

    Raises ResultsError, and writes nothing, for no rows at all, a number that is not finite, n below 1, or two rows
    with the same key.
    """
    check(checkpoint, metric, findings)
    run, step = checkpoint.run, checkpoint.step
    tables = [(table, _rows(table, metric, step, getattr(findings, table.name))) for table in TABLES]
    with lock(run), new_part(run, metric, step) as folder:
        for table, rows in tables:
            if rows.num_rows:
                _write_sorted(folder / f"{table.name}.parquet", table, rows)


def compact(run: Run) -> None:
    """Merge all parts into the compacted tables; what is read stays the same. Nothing to do without parts."""
    if not (run.results / "parts").is_dir():
        return
    with lock(run):
        parts = list_parts(run)
        for table in TABLES if parts else ():
            _replace(run, table, _read(run, table))
        for part in parts.values():
            remove_part(part)
        remove_leftovers(run)


def forget(run: Run, metric: str) -> None:
    """Remove all results of a metric; its data are forgotten first, so that a killed removal is not taken for done."""
    with lock(run):
        write_json(run.results / "sources.json", {k: v for k, v in read_sources(run).items() if k != metric})
        for (name, _), part in list_parts(run).items():
            if name == metric:
                remove_part(part)
        for table in TABLES:
            if (run.results / f"{table.name}.parquet").is_file():
                _replace(run, table, _read(run, table, pc.field("evaluation") != metric))


def write_sources(run: Run, metric: str, facts: dict[str, Any]) -> None:
    """Note in sources.json what data the metric is computed on: data, sha256, sentences, limit, note."""
    with lock(run):
        write_json(run.results / "sources.json", dict(sorted({**read_sources(run), metric: facts}.items())))


def _schema(table: Table) -> pa.Schema:
    return pa.schema({name: TYPES[kind] for name, kind in table.all_columns.items()})


def _rows(table: Table, metric: str, step: int, rows: list) -> pa.Table:
    made = {"evaluation": pa.repeat(pa.scalar(metric), len(rows)), "step": pa.repeat(pa.scalar(step), len(rows))}
    if table is ATTENTION:
        flat = [np.ravel(row.weights).astype(np.float16) for row in rows]
        ends = np.cumsum([0, *map(len, flat)], dtype=np.int32)
        weights = pa.array(np.concatenate([np.zeros(0, np.float16), *flat]))
        made["weights"] = pa.ListArray.from_arrays(ends, weights, type=TYPES["float16 list"])
        made["length"] = pa.array([row.weights.shape[0] for row in rows], pa.int32())
    plain = {name: [getattr(row, name) for row in rows] for name in table.all_columns if name not in made}
    return pa.table({**made, **plain}, schema=_schema(table))


def _replace(run: Run, table: Table, rows: pa.Table) -> None:
    """Make these rows the compacted table; without rows there is no file."""
    path = run.results / f"{table.name}.parquet"
    if rows.num_rows:
        temporary = path.with_name(path.name + ".tmp")
        _write_sorted(temporary, table, rows)
        os.replace(temporary, path)
    else:
        path.unlink(missing_ok=True)


def _write_sorted(path: Path, table: Table, rows: pa.Table) -> None:
    """Write rows sorted by the table's key, one row group for each value of its group columns (else a single one)."""
    rows = rows.sort_by([(name, "ascending") for name in table.key]).combine_chunks()
    sizes = [rows.num_rows]
    if table.group:
        counted = rows.group_by(list(table.group), use_threads=False).aggregate([([], "count_all")])
        sizes = counted["count_all"].to_pylist()
    text = [name for name, kind in table.all_columns.items() if kind == "string"]
    schema = _schema(table).with_metadata({"done": json.dumps(_evaluations(rows))})
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=text, write_page_checksum=True) as file:
        for start, end in pairwise(np.cumsum([0, *sizes]).tolist()):
            file.write_table(rows.slice(start, end - start), row_group_size=end - start)


def _evaluations(rows: pa.Table) -> dict[str, list[int]]:
    """Steps of each evaluation that has rows here; kept in the file's metadata, where `done` finds them at once."""
    pairs = rows.group_by(["evaluation", "step"], use_threads=False).aggregate([]).to_pylist()
    found: dict[str, list[int]] = {}
    for metric, step in sorted((pair["evaluation"], pair["step"]) for pair in pairs):
        found.setdefault(metric, []).append(step)
    return found


# === Reading ===


@dataclass(frozen=True, eq=False)
class AttentionHistory:
    """One head at all evaluated steps: steps [S] int, weights [S, L, L] float32, and the sentences averaged over."""

    steps: np.ndarray
    weights: np.ndarray
    sentences: int


def done(run: Run, metric: str) -> set[int]:
    """Steps at which the metric has been written, compacted or not."""
    steps = {step for name, step in list_parts(run) if name == metric}
    for table in TABLES:
        path = run.results / f"{table.name}.parquet"
        if path.is_file():
            with _explaining(run, path):
                steps.update(json.loads(pq.read_schema(path).metadata[b"done"]).get(metric, []))
    return steps


def read_scores(run: Run, metric: str | None = None) -> pd.DataFrame:
    """Scores of a run, or of one metric: run, metric, step, layer, group, value, n; sorted by metric and step."""
    rows = _read(run, SCORES, _where("metric", metric))
    frame = rows.select(["metric", "step", "layer", "group", "value", "n"]).to_pandas()
    frame["layer"] = frame["layer"].astype("Int64")
    frame.insert(0, "run", pd.Series(run.name, index=frame.index, dtype="str"))
    return frame


def read_words(run: Run, metric: str, tags: list[str] | None = None, step: int | None = None) -> pd.DataFrame:
    """Words behind a metric, of some Penn tags or all, at one step or all: metric, step, tag, word, n, correct."""
    of_tags = EVERYTHING if tags is None else pc.field("tag").isin(pa.array(list(tags), pa.string()))
    rows = _read(run, WORDS, _where("metric", metric) & of_tags, step)
    return rows.select(["metric", "step", "tag", "word", "n", "correct"]).to_pandas()


def read_cloze(run: Run, relation: str | None = None, fact: str | None = None) -> pd.DataFrame:
    """What each step answered to the facts of a relation, to one fact, or to all; sorted by relation, fact, step.

    Columns: step, fact, relation, subject, object, rank, probability, prediction, prediction_probability. Giving the
    relation with the fact is faster: the table has one row group per relation.
    """
    rows = _read(run, CLOZE, _where("relation", relation) & _where("fact", fact))
    return rows.select(["step", *CLOZE.columns]).to_pandas()


def read_probes(run: Run, task: str | None = None, layer: int | None = None, step: int | None = None) -> pd.DataFrame:
    """Training curves of the probes of a task and layer, at one step or all; sorted by task, layer, control, step.

    Columns: step, task, layer (0 is the embeddings), control, iteration, train_loss, dev_f1. Giving the task is faster.
    """
    rows = _read(run, PROBES, _where("task", task) & _where("layer", layer), step)
    return rows.select(["step", *PROBES.columns]).to_pandas()


def read_attention(run: Run, layer: int, head: int) -> AttentionHistory:
    """One head's maps at every evaluated step (layer 1 is the lowest, head 1 the first); may be none."""
    rows = _read(run, ATTENTION, _where("layer", layer) & _where("head", head))
    weights, sentences = _maps(run, rows)
    return AttentionHistory(rows["step"].to_numpy(), weights, sentences)


def read_attention_step(run: Run, step: int) -> tuple[np.ndarray, int]:
    """All heads at one step: weights [layers, heads, L, L] float32, and the sentences averaged over (0: no maps)."""
    _, weights, sentences = _all_heads(run, step)
    return weights[0] if len(weights) else weights.reshape(weights.shape[1:]), sentences


def read_attention_steps(run: Run) -> tuple[np.ndarray, np.ndarray, int]:
    """All heads at every evaluated step, in one read: steps [S], weights [S, layers, heads, L, L], sentences."""
    return _all_heads(run, None)


def read_sources(run: Run) -> dict[str, dict[str, Any]]:
    """What data each metric was computed on, as noted by write_sources; empty where nothing was."""
    path = run.results / "sources.json"
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as reason:
        raise _unreadable(run, path, reason) from None


def _all_heads(run: Run, step: int | None) -> tuple[np.ndarray, np.ndarray, int]:
    rows = _read(run, ATTENTION, step=step)
    weights, sentences = _maps(run, rows)
    steps = np.unique(rows["step"].to_numpy())
    layers, heads = (pc.max(rows[name]).as_py() or 0 for name in ("layer", "head"))
    if len(weights) != layers * heads * len(steps):
        at = f"step {steps[0]}" if len(steps) == 1 else f"{len(steps)} steps"
        raise ResultsError(
            f"Attention of run '{run.name}' at {at} has {len(weights)} maps, not {layers} layers of {heads} heads; "
            f"run: python -m embryo_core evaluate {run.name} --metrics attention --overwrite"
        )
    by_head = weights.reshape(layers, heads, len(steps), *weights.shape[1:])  # rows are sorted by layer, head, step
    return steps, np.moveaxis(by_head, 2, 0), sentences


def _maps(run: Run, rows: pa.Table) -> tuple[np.ndarray, int]:
    lengths = set(rows["length"].to_pylist())
    if len(lengths) > 1:
        raise ResultsError(
            f"Attention maps of run '{run.name}' differ in length ({', '.join(map(str, sorted(lengths)))}); "
            f"run: python -m embryo_core evaluate {run.name} --metrics attention --overwrite"
        )
    length = lengths.pop() if lengths else 0
    flat = rows["weights"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    weights = flat.astype(np.float32).reshape(rows.num_rows, length, length)
    return weights, pc.min(rows["sentences"]).as_py() or 0


# === Files ===


def _where(column: str, value: str | int | None) -> pc.Expression:
    return EVERYTHING if value is None else pc.field(column) == value


def _read(run: Run, table: Table, where: pc.Expression = EVERYTHING, step: int | None = None) -> pa.Table:
    """Rows (of one step) of parts and of the compacted table, less those that a part replaces, sorted by key."""
    for _ in range(10):
        try:
            return _read_once(run, table, where & _where("step", step), step)
        except FileNotFoundError:  # a writer replaced or compacted a part while we read: look again
            continue
    raise ResultsError(f"{run.results} keeps changing; wait until the evaluation of '{run.name}' has ended.")


def _read_once(run: Run, table: Table, where: pc.Expression, step: int | None) -> pa.Table:
    # Parts are listed before the compacted table is opened: one that goes in between is in that table.
    parts = {key: folder for key, folder in list_parts(run).items() if step in (None, key[1])}
    sources = []
    compacted = run.results / f"{table.name}.parquet"
    if compacted.is_file():
        sources.append(_load(run, compacted, table, where & _outside(parts)))
    for folder in parts.values():
        path = folder / f"{table.name}.parquet"
        if path.is_file() or not folder.is_dir():
            sources.append(_load(run, path, table, where))
    rows = pa.concat_tables([_schema(table).empty_table(), *sources])
    return rows.sort_by([(name, "ascending") for name in table.key]) if len(sources) > 1 else rows


def _outside(parts: Parts) -> pc.Expression:
    """The rows of evaluations that no part replaces."""
    where = EVERYTHING
    for metric in {name for name, _ in parts}:
        steps = pa.array([step for name, step in parts if name == metric], pa.int64())
        where &= ~(_where("evaluation", metric) & pc.field("step").isin(steps))
    return where


def _load(run: Run, path: Path, table: Table, where: pc.Expression) -> pa.Table:
    """Rows of one file; only row groups that may hold some are read. Raises FileNotFoundError, ResultsError.

    Given a path, pyarrow opens it once for the footer and once for the rows, and it may be replaced in between.
    """
    with _explaining(run, path), pa.OSFile(str(path)) as file:
        rows = pq.read_table(file, filters=where, page_checksum_verification=True)
        if not rows.schema.equals(_schema(table)):
            raise ValueError(f"its columns are {', '.join(rows.schema.names)}")
        return rows


@contextmanager
def _explaining(run: Run, path: Path) -> Iterator[None]:
    """Turn what goes wrong in reading a file into a ResultsError, except that there is none."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError) as reason:
        raise _unreadable(run, path, reason) from None


def _unreadable(run: Run, path: Path, reason: object) -> ResultsError:
    why = str(reason).splitlines()[0]
    return ResultsError(
        f"{path} cannot be read ({why}); delete it and run: python -m embryo_core evaluate {run.name} --overwrite"
    )
