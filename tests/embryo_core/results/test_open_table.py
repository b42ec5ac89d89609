"""Tests that invalid untrusted tables are refused with one message, and invalid summaries are recomputed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embryo_core import results
from embryo_core.errors import ResultsError
from embryo_core.results import parquet_files
from embryo_core.results.parquet_files import open_table, write_checksum
from embryo_core.results.rows import read_table
from embryo_core.results.summaries import read_stored, read_summary
from embryo_core.results.tables import CLOZE, SCORES, SURPRISALS, TABLES, WORDS, Table
from embryo_core.results.write import SUMMARIES
from embryo_core.types import Run
from tests.conftest import checkpoint_at
from tests.embryo_core.results.conftest import METRICS, STEPS, find, make_run, put


@pytest.fixture(scope="module")
def sound_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the root of a run whose tables and summaries are all compacted."""
    root = tmp_path_factory.mktemp("sound")
    run = make_run(root)
    for metric in METRICS:
        for step in STEPS:
            results.write(checkpoint_at(run, step), metric, find(metric, step))
    results.compact(run)
    return root


@pytest.fixture
def stored_copy(sound_root: Path, tmp_path: Path) -> Run:
    """Return a copy of the run with compacted results."""
    return make_run(Path(shutil.copytree(sound_root, tmp_path / "stored")))


def path_of(run: Run, name: str) -> Path:
    """Return the file of a table or summary."""
    return run.results / f"{name}.parquet"


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table], **metadata: Any) -> None:
    """Change the rows of a file and some of its metadata, and write the correct checksum next to it."""
    kept = {name: value for name, value in (pq.read_metadata(path).metadata or {}).items() if name != b"ARROW:schema"}
    kept |= {name.encode(): value for name, value in metadata.items()}
    pq.write_table(change(pq.read_table(path)).replace_schema_metadata(kept), path, compression="zstd")
    write_checksum(path)


def cell(name: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    """Return a change of the first value of a column."""

    def change(rows: pa.Table) -> pa.Table:
        values = pa.array([value, *rows[name].to_pylist()[1:]], rows.schema.field(name).type)
        return rows.set_column(rows.column_names.index(name), name, values)

    return change


def repeat_rows(rows: pa.Table) -> pa.Table:
    """Return 300,000 copies of one row, more than a step may have; compressed, they need a few kilobytes."""
    return rows.take(pa.array(np.zeros(300_000, np.int32)))


def not_utf8(name: str) -> Callable[[pa.Table], pa.Table]:
    """Return a change of the first text of a column to bytes that are not UTF-8."""

    def change(rows: pa.Table) -> pa.Table:
        content = [b"\xff\xfe", *(value.encode() for value in rows[name].to_pylist()[1:])]
        return rows.set_column(rows.column_names.index(name), name, pa.array(content).view(pa.string()))

    return change


OF_TABLES = {
    "null": (SCORES, cell("metric", None)),
    "long text": (CLOZE, cell("subject", "x" * 5_000_000)),
    "invalid text": (CLOZE, not_utf8("prediction")),
    "a row twice": (CLOZE, lambda rows: pa.concat_tables([rows, rows.slice(0, 1)])),
    "a row many times": (SCORES, repeat_rows),
    "another column": (SCORES, lambda rows: rows.append_column("more", pa.nulls(len(rows)))),
}


@pytest.mark.parametrize(("table", "change"), OF_TABLES.values(), ids=OF_TABLES.keys())
def test_invalid_table_is_refused(stored_copy: Run, table: Table, change: Callable[[pa.Table], pa.Table]):
    """The message names the file, is printable, and is shorter than 1,000 characters."""
    rewrite(path_of(stored_copy, table.name), change)
    with pytest.raises(ResultsError, match=rf"{table.name}\.parquet cannot be read") as error:
        read_table(stored_copy, table)
    assert str(error.value).isprintable() and len(str(error.value)) < 1000


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_too_many_rows_per_step_are_refused(run: Run, table: Table):
    """Opening the table fails before its rows are read: a single step has 300,000 of them."""
    values = {pa.string(): "a", pa.bool_(): True, pa.large_binary(): b"\0\0"}
    row = {field.name: values.get(field.type, 1) for field in table.schema}
    put(path_of(run, table.name), repeat_rows(pa.Table.from_pylist([row], table.schema)))
    with pytest.raises(ResultsError, match="rows; the maximum is"), open_table(run, path_of(run, table.name), table):
        pass


@pytest.mark.parametrize(("table", "name"), [(WORDS, "word"), (SCORES, "evaluation"), (SURPRISALS, "occurrences")])
def test_dictionary_of_long_text_is_refused_before_decoding(run: Run, table: Table, name: str):
    """A file of less than 64 KB would take 500 MB of memory."""
    values = {pa.string(): "a", pa.bool_(): True, pa.large_binary(): b"\0\0"}
    row = {field.name: values.get(field.type, 1) for field in table.schema}
    count, size = 500, 2**20
    rows = pa.Table.from_pylist([row], table.schema).take(pa.array(np.zeros(count, np.int32)))
    text = pa.array([("x" if table.schema.field(name).type == pa.string() else b"x") * size])
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), text)
    rows = rows.set_column(rows.column_names.index(name), name, column)
    rows = rows.set_column(1, "step", pa.array(range(count), pa.int64()))
    path = path_of(run, table.name)
    put(path, rows, compression="zstd", store_schema=False, dictionary_pagesize_limit=2**30)
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(ResultsError, match=f"{count * size:,} bytes in a row group"):
        read_table(run, table)
    assert path.stat().st_size < 2**16 and pa.default_memory_pool().max_memory() < before + count * size / 4


def test_pandas_metadata_are_ignored(stored_copy: Run):
    """Frames of tables and summaries are built from the schema, whatever the file's pandas metadata say."""
    expected, facts = results.read_scores(stored_copy), results.read_histories(stored_copy)
    for name in ("scores", "facts"):
        rewrite(path_of(stored_copy, name), lambda rows: rows, pandas=json.dumps({"columns": 5, "index_columns": "a"}))
    rewrite(path_of(stored_copy, "facts"), lambda rows: rows, pandas="[" * 1000)
    assert results.read_scores(stored_copy).equals(expected)
    assert read_stored(stored_copy, SUMMARIES[0]) is not None and results.read_histories(stored_copy).equals(facts)


def test_part_in_folder_of_another_step_is_refused(stored_copy: Run):
    """A part's folder names its metric and step, which its rows must have."""
    results.write(checkpoint_at(stored_copy, 9), "mask_prediction", find("mask_prediction", 9))
    part = stored_copy.results / "parts" / "mask_prediction" / "step9"
    part.rename(part.with_name("step10"))
    with pytest.raises(ResultsError, match="another evaluation"):
        results.read_scores(stored_copy)


OF_SUMMARIES = {
    "null": lambda rows: cell(rows.column_names[0], None)(rows),
    "long text": lambda rows: cell(next(f.name for f in rows.schema if f.type == pa.string()), "x" * 5_000_000)(rows),
    "a row twice": lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]),
    "a row many times": repeat_rows,
    "another column": lambda rows: rows.append_column("more", pa.nulls(len(rows))),
}


@pytest.mark.parametrize("change", OF_SUMMARIES.values(), ids=OF_SUMMARIES.keys())
@pytest.mark.parametrize("summary", SUMMARIES, ids=lambda summary: summary.table.name)
def test_invalid_summary_is_recomputed(stored_copy: Run, summary: Any, change: Callable[[pa.Table], pa.Table]):
    """Even with correct checksums of itself and its table, an invalid summary is replaced by what the table says."""
    expected, path = read_summary(stored_copy, summary), path_of(stored_copy, summary.table.name)
    if not expected.num_rows or (change is OF_SUMMARIES["long text"] and pa.string() not in expected.schema.types):
        pytest.skip("it has no row, or no text")
    rewrite(path, change)
    assert read_stored(stored_copy, summary) is None
    assert read_summary(stored_copy, summary).equals(expected)
    path.unlink()
    results.compact(stored_copy)
    assert read_stored(stored_copy, summary).equals(expected)


@pytest.mark.parametrize(("column", "value"), [("history", "never"), ("first", 2**62), ("right", b"\0")])
def test_contradictory_fact_summary_is_recomputed(stored_copy: Run, column: str, value: Any):
    """The history and first step of a fact must agree with its bits of correct answers."""
    (facts,) = (summary for summary in SUMMARIES if summary.table.name == "facts")
    expected = read_summary(stored_copy, facts)
    known = next((i for i, row in enumerate(expected.to_pylist()) if row["first"] is not None), None)
    values = expected[column].to_pylist()
    values[known or 0] = value
    rewrite(
        path_of(stored_copy, "facts"),
        lambda rows: rows.set_column(rows.column_names.index(column), column, pa.array(values, rows[column].type)),
    )
    recomputed = read_stored(stored_copy, facts)
    assert recomputed is None or recomputed.equals(expected)
    assert read_summary(stored_copy, facts).equals(expected)


def test_number_of_steps_is_bounded(stored_copy: Run, monkeypatch: pytest.MonkeyPatch):
    """A table may have at most as many steps as a run has checkpoints; the steps listed in the footer are ignored."""
    rewrite(path_of(stored_copy, "cloze"), lambda rows: rows, done='{"world_knowledge": "all"}')
    assert results.steps_by_metric(stored_copy)["world_knowledge"] == set(STEPS)
    monkeypatch.setattr(parquet_files, "MAX_CHECKPOINTS", len(STEPS) - 1)
    parquet_files._examine.cache_clear()
    with pytest.raises(ResultsError, match="steps"):
        results.steps_by_metric(stored_copy)
