"""The parquet room: writes what metrics find and reads it back as tables; no other module touches parquet.

    results/<run>/{scores,words,cloze,attention}.parquet     compacted tables, sorted
    results/<run>/parts/<metric>/step{N}/<table>.parquet     one evaluation (a metric at a step) not yet compacted
    results/<run>/sources.json                               the data that each metric was computed on

An evaluation is written to a folder `step{N}.tmp` that is renamed when complete, so it is there as a whole or not at
all, and the folder's name is its own mark of being done. Readers see parts and compacted tables together; a part
replaces the compacted rows of its evaluation. Compaction removes a part only once every table holds it. So a process
killed between any two writes leaves a state from which a rerun gives the same files, byte for byte: rows are unique and
sorted, and nothing in a file depends on when or in which order it was written.

Writers take turns through a lock on the results folder; readers never wait.
"""

import fcntl
import json
import math
import os
import shutil
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
from embryo_core.runs import write_json
from embryo_core.types import AttentionMap, ClozeAnswer, Findings, Run, Score, WordCount

# === Tables ===


@dataclass(frozen=True)
class Table:
    """Schema of one parquet file, the columns that identify and sort its rows, and those that share a row group."""

    name: str  # also the name of its list in Findings
    columns: dict[str, pa.DataType]
    key: tuple[str, ...]
    group: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The columns, after `evaluation`: the metric whose evaluation wrote the row (one may write several scores)."""
        return pa.schema({"evaluation": pa.string(), "step": pa.int64(), **self.columns})


SCORES = Table(
    "scores",
    {"metric": pa.string(), "layer": pa.int32(), "group": pa.string(), "value": pa.float64(), "n": pa.int64()},
    key=("metric", "step", "layer", "group"),
)
WORDS = Table(
    "words",
    {"metric": pa.string(), "tag": pa.string(), "word": pa.string(), "n": pa.int64(), "correct": pa.int64()},
    key=("metric", "tag", "word", "step"),
    group=("metric", "tag"),
)
CLOZE = Table(
    "cloze",
    {
        "fact": pa.string(),
        "relation": pa.string(),
        "subject": pa.string(),
        "object": pa.string(),
        "rank": pa.int64(),
        "probability": pa.float32(),
        "prediction": pa.string(),
        "prediction_probability": pa.float32(),
    },
    key=("relation", "fact", "step"),
    group=("relation",),
)
ATTENTION = Table(
    "attention",
    {
        "layer": pa.int32(),
        "head": pa.int32(),
        "sentences": pa.int64(),
        "length": pa.int32(),  # L; weights are the L x L matrix row by row
        "weights": pa.list_(pa.float16()),
    },
    key=("layer", "head", "step"),
    group=("layer", "head"),
)
TABLES = (SCORES, WORDS, CLOZE, ATTENTION)


# === Writing ===


def write(run: Run, metric: str, step: int, findings: Findings) -> None:
    """Write all that one metric found at one step, replacing what was there.

    Raises ResultsError, and writes nothing, for no rows at all, a number that is not finite, n below 1, a row of
    another run or step, or two rows with the same key.
    """
    _check(run, metric, step, findings)
    tables = [(table, _rows(table, metric, getattr(findings, table.name))) for table in TABLES]
    final = run.results / "parts" / metric / f"step{step}"
    with _locked(run):
        temporary = _empty_folder(final.with_name(final.name + ".tmp"))
        for table, rows in tables:
            if rows.num_rows:
                _write_sorted(temporary / f"{table.name}.parquet", table, rows)
        if final.exists():
            _remove(final)
        os.rename(temporary, final)


def compact(run: Run) -> None:
    """Merge all parts into the compacted tables; what is read stays the same. Nothing to do without parts."""
    if not (run.results / "parts").is_dir():
        return
    with _locked(run):
        parts = _parts(run)
        for table in TABLES if parts else ():
            rows = _read(run, table)
            if rows.num_rows:
                path = run.results / f"{table.name}.parquet"
                temporary = path.with_name(path.name + ".tmp")
                _write_sorted(temporary, table, rows)
                os.replace(temporary, path)
            else:
                (run.results / f"{table.name}.parquet").unlink(missing_ok=True)
        for path in parts.values():
            _remove(path)
        shutil.rmtree(run.results / "parts")  # by now only leftovers of killed writers


def write_sources(run: Run, metric: str, facts: dict[str, Any]) -> None:
    """Note in sources.json what data the metric is computed on: data, sha256, sentences, limit, note."""
    with _locked(run):
        write_json(run.results / "sources.json", dict(sorted({**read_sources(run), metric: facts}.items())))


def _check(run: Run, metric: str, step: int, findings: Findings) -> None:
    rows = [row for table in TABLES for row in getattr(findings, table.name)]
    told = f"Metric '{metric}' at step {step} of run '{run.name}'"
    if not rows:
        raise ResultsError(f"{told} found nothing, so nothing was written; check the data it was given.")
    for row in rows:
        if (row.run, row.step) != (run.name, step):
            raise ResultsError(f"{told} gave a row of run '{row.run}', step {row.step}; nothing was written.")
        if not _sound(row):
            raise ResultsError(f"{told} gave {_shown(row)}, which is no measurement; nothing was written.")
    for table in TABLES:
        seen = set()
        for row in getattr(findings, table.name):
            key = tuple(getattr(row, name) for name in table.key)
            if key in seen:
                raise ResultsError(f"{told} gave two rows of {table.name} for {key}; nothing was written.")
            seen.add(key)


def _sound(row: Score | WordCount | ClozeAnswer | AttentionMap) -> bool:
    match row:
        case Score():
            return row.n > 0 and math.isfinite(row.value)
        case WordCount():
            return row.n > 0 and 0 <= row.correct <= row.n
        case ClozeAnswer():
            return row.rank > 0 and math.isfinite(row.probability) and math.isfinite(row.prediction_probability)
        case AttentionMap():
            square = row.weights.ndim == 2 and row.weights.shape[0] == row.weights.shape[1] > 0
            return bool(row.sentences > 0 and square and np.isfinite(row.weights.astype(np.float16)).all())


def _shown(row: Any) -> str:
    values = {name: value for name, value in vars(row).items() if name not in ("run", "step", "metric")}
    if "weights" in values:
        values["weights"] = f"{'x'.join(map(str, row.weights.shape))} (finite: {bool(np.isfinite(row.weights).all())})"
    return f"{type(row).__name__} with " + ", ".join(f"{name} {value}" for name, value in values.items())


def _rows(table: Table, metric: str, rows: list) -> pa.Table:
    columns = {name: pa.array([getattr(row, name) for row in rows], kind) for name, kind in _plain(table).items()}
    columns["evaluation"] = pa.array([metric] * len(rows), pa.string())
    if table is ATTENTION:
        flat = [np.ravel(row.weights).astype(np.float16) for row in rows]
        ends = np.cumsum([0, *map(len, flat)], dtype=np.int32)
        columns["weights"] = pa.ListArray.from_arrays(ends, pa.array(np.concatenate([np.zeros(0, np.float16), *flat])))
        columns["length"] = pa.array([row.weights.shape[0] for row in rows], pa.int32())
    return pa.table(columns, schema=table.schema)


def _plain(table: Table) -> dict[str, pa.DataType]:
    """Columns that are attributes of the rows as they stand."""
    made_here = ("evaluation", "weights", "length")
    return {field.name: field.type for field in table.schema if field.name not in made_here}


def _write_sorted(path: Path, table: Table, rows: pa.Table) -> None:
    """Write rows sorted by the table's key, one row group for each value of its group columns (else a single one)."""
    rows = rows.sort_by([(name, "ascending") for name in table.key]).combine_chunks()
    sizes = [rows.num_rows]
    if table.group:
        counted = rows.group_by(list(table.group), use_threads=False).aggregate([([], "count_all")])
        sizes = counted["count_all"].to_pylist()
    dictionary = [field.name for field in table.schema if field.type == pa.string()]
    with pq.ParquetWriter(
        path, table.schema, compression="zstd", use_dictionary=dictionary, write_page_checksum=True
    ) as file:
        for start, end in pairwise(np.cumsum([0, *sizes]).tolist()):
            file.write_table(rows.slice(start, end - start), row_group_size=end - start)


# === Reading ===


@dataclass(frozen=True, eq=False)
class AttentionHistory:
    """One head at all evaluated steps: steps [S] int, weights [S, L, L] float32, and the sentences averaged over."""

    steps: np.ndarray
    weights: np.ndarray
    sentences: int


def done(run: Run, metric: str) -> set[int]:
    """Steps at which the metric has been written, compacted or not."""
    steps = {step for name, step in _parts(run) if name == metric}
    for table in TABLES:
        path = run.results / f"{table.name}.parquet"
        if path.is_file():
            rows = _load(run, path, table, pc.field("evaluation") == metric, ["step"])
            steps.update(rows["step"].unique().to_pylist())
    return steps


def read_scores(run: Run, metric: str | None = None) -> pd.DataFrame:
    """Scores of a run, or of one metric: run, metric, step, layer, group, value, n; sorted by metric and step."""
    rows = _read(run, SCORES, None if metric is None else pc.field("metric") == metric)
    frame = rows.select(["metric", "step", "layer", "group", "value", "n"]).to_pandas()
    frame["layer"] = frame["layer"].astype("Int64")
    frame.insert(0, "run", pd.Series(run.name, index=frame.index, dtype="str"))
    return frame


def read_words(run: Run, metric: str, tags: list[str] | None = None, step: int | None = None) -> pd.DataFrame:
    """Words behind a metric, of some Penn tags or all, at one step or all: metric, step, tag, word, n, correct."""
    where = pc.field("metric") == metric
    if tags is not None:
        where &= pc.field("tag").isin(pa.array(list(tags), pa.string()))
    if step is not None:
        where &= pc.field("step") == step
    return _read(run, WORDS, where).select(["metric", "step", "tag", "word", "n", "correct"]).to_pandas()


def read_cloze(run: Run, relation: str | None = None, fact: str | None = None) -> pd.DataFrame:
    """What each step answered to the facts of a relation, to one fact, or to all; sorted by relation, fact, step.

    Columns: step, fact, relation, subject, object, rank, probability, prediction, prediction_probability. Giving the
    relation with the fact is faster: the table has one row group per relation.
    """
    wheres = [pc.field(name) == value for name, value in (("relation", relation), ("fact", fact)) if value is not None]
    where = wheres[0] & wheres[1] if len(wheres) == 2 else wheres[0] if wheres else None
    return _read(run, CLOZE, where).select(["step", *CLOZE.columns]).to_pandas()


def read_attention(run: Run, layer: int, head: int) -> AttentionHistory:
    """One head's maps at every evaluated step (layer 1 is the lowest, head 1 the first); may be none."""
    rows = _read(run, ATTENTION, (pc.field("layer") == layer) & (pc.field("head") == head))
    weights, sentences = _maps(run, rows)
    return AttentionHistory(rows["step"].to_numpy(), weights, sentences)


def read_attention_step(run: Run, step: int) -> tuple[np.ndarray, int]:
    """All heads at one step: weights [layers, heads, L, L] float32, and the sentences averaged over; empty and 0 if none."""
    _, weights, sentences = _all_heads(run, pc.field("step") == step)
    return weights[0] if len(weights) else weights.reshape(weights.shape[1:]), sentences


def read_attention_steps(run: Run) -> tuple[np.ndarray, np.ndarray, int]:
    """All heads at every evaluated step, in one read: steps [S], weights [S, layers, heads, L, L] float32, sentences."""
    return _all_heads(run, None)


def read_sources(run: Run) -> dict[str, dict[str, Any]]:
    """What data each metric was computed on, as noted by write_sources; empty where nothing was."""
    path = run.results / "sources.json"
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (json.JSONDecodeError, UnicodeDecodeError) as reason:
        raise _unreadable(run, path, reason) from None


def _all_heads(run: Run, where: pc.Expression | None) -> tuple[np.ndarray, np.ndarray, int]:
    rows = _read(run, ATTENTION, where)
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


def _read(run: Run, table: Table, where: pc.Expression | None = None) -> pa.Table:
    """Rows of parts and of the compacted table, without the compacted rows that a part replaces, sorted by key."""
    for _ in range(10):
        try:
            return _read_once(run, table, where)
        except FileNotFoundError:  # a writer replaced or compacted a part while we read: look again
            continue
    raise ResultsError(f"{run.results} keeps changing; wait until the evaluation of '{run.name}' has ended.")


def _read_once(run: Run, table: Table, where: pc.Expression | None) -> pa.Table:
    parts = _parts(run)  # listed before the compacted table is opened: a part that goes meanwhile is found there
    sources = []
    compacted = run.results / f"{table.name}.parquet"
    if compacted.is_file():
        sources.append(_load(run, compacted, table, _without(parts, where)))
    for folder in parts.values():
        path = folder / f"{table.name}.parquet"
        if path.is_file() or not folder.is_dir():
            sources.append(_load(run, path, table, where))
    rows = pa.concat_tables([table.schema.empty_table(), *sources])
    return rows.sort_by([(name, "ascending") for name in table.key]) if len(sources) > 1 else rows


def _without(parts: dict[tuple[str, int], Path], where: pc.Expression | None) -> pc.Expression | None:
    for metric in {name for name, _ in parts}:
        steps = pa.array([step for name, step in parts if name == metric], pa.int64())
        kept = ~((pc.field("evaluation") == metric) & pc.field("step").isin(steps))
        where = kept if where is None else where & kept
    return where


def _load(
    run: Run, path: Path, table: Table, where: pc.Expression | None, columns: list[str] | None = None
) -> pa.Table:
    """Rows of one file; only row groups that may hold some are read. Raises FileNotFoundError, ResultsError."""
    try:
        rows = pq.read_table(path, columns=columns, filters=where, page_checksum_verification=True)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, KeyError) as reason:
        raise _unreadable(run, path, reason) from None
    if columns is None and not rows.schema.equals(table.schema):
        raise _unreadable(run, path, f"its columns are {', '.join(rows.schema.names)}")
    return rows


def _unreadable(run: Run, path: Path, reason: object) -> ResultsError:
    why = str(reason).splitlines()[0]
    return ResultsError(
        f"{path} cannot be read ({why}); delete it and run: python -m embryo_core evaluate {run.name} --overwrite"
    )


def _parts(run: Run) -> dict[tuple[str, int], Path]:
    """Folders of the complete parts by (metric, step), sorted."""
    found = {}
    for path in (run.results / "parts").glob("*/step*"):
        if path.name.removeprefix("step").isdecimal():
            found[path.parent.name, int(path.name.removeprefix("step"))] = path
    return dict(sorted(found.items()))


@contextmanager
def _locked(run: Run) -> Iterator[None]:
    """One writer at a time; the lock goes with the process that holds it, however it ends."""
    run.results.mkdir(parents=True, exist_ok=True)
    folder = os.open(run.results, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _empty_folder(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def _remove(part: Path) -> None:
    """Remove a part at once: renamed first, so that nobody meets half of it."""
    going = part.with_name(part.name + ".old.tmp")
    shutil.rmtree(going, ignore_errors=True)
    os.rename(part, going)
    shutil.rmtree(going)
