"""Every table of a run is opened in one way: a stranger's file of any of them is one sentence, or computed anew."""

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
from tests.conftest import at
from tests.embryo_core.results.conftest import METRICS, STEPS, find, make_run, put


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the root of a run whose tables and summaries are all compacted."""
    root = tmp_path_factory.mktemp("sound")
    run = make_run(root)
    for metric in METRICS:
        for step in STEPS:
            results.write(at(run, step), metric, find(metric, step))
    results.compact(run)
    return root


@pytest.fixture
def stored(sound: Path, tmp_path: Path) -> Run:
    """Return a copy of that run."""
    return make_run(Path(shutil.copytree(sound, tmp_path / "stored")))


def path_of(run: Run, name: str) -> Path:
    """Return the file of a table or summary."""
    return run.results / f"{name}.parquet"


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table], **metadata: Any) -> None:
    """Change the rows of a file, keep its metadata but for some, and put the right checksum next to it."""
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


def repeated(rows: pa.Table) -> pa.Table:
    """Return as many rows like the first as no step of a table has; they are some kilobytes in a file."""
    return rows.take(pa.array(np.zeros(300_000, np.int32)))


def not_utf8(name: str) -> Callable[[pa.Table], pa.Table]:
    """Return a change of the first text of a column to bytes that are none."""

    def change(rows: pa.Table) -> pa.Table:
        content = [b"\xff\xfe", *(value.encode() for value in rows[name].to_pylist()[1:])]
        return rows.set_column(rows.column_names.index(name), name, pa.array(content).view(pa.string()))

    return change


OF_TABLES = {
    "null": (SCORES, cell("metric", None)),
    "long text": (CLOZE, cell("subject", "x" * 5_000_000)),
    "invalid text": (CLOZE, not_utf8("prediction")),
    "a row twice": (CLOZE, lambda rows: pa.concat_tables([rows, rows.slice(0, 1)])),
    "a row many times": (SCORES, repeated),
    "another column": (SCORES, lambda rows: rows.append_column("more", pa.nulls(len(rows)))),
}


@pytest.mark.parametrize(("table", "change"), OF_TABLES.values(), ids=OF_TABLES.keys())
def test_a_strange_table_is_one_sentence(stored: Run, table: Table, change: Callable[[pa.Table], pa.Table]):
    """It names the file and the command."""
    rewrite(path_of(stored, table.name), change)
    with pytest.raises(ResultsError, match=rf"{table.name}\.parquet cannot be read") as error:
        read_table(stored, table)
    assert str(error.value).isprintable() and len(str(error.value)) < 1000


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_more_rows_than_a_step_has_are_refused(run: Run, table: Table):
    """Before a column is read but evaluation and step."""
    values = {pa.string(): "a", pa.bool_(): True, pa.large_binary(): b"\0\0"}
    row = {field.name: values.get(field.type, 1) for field in table.schema}
    put(path_of(run, table.name), repeated(pa.Table.from_pylist([row], table.schema)))
    with pytest.raises(ResultsError, match="rows, more than"), open_table(run, path_of(run, table.name), table):
        pass


@pytest.mark.parametrize(("table", "name"), [(WORDS, "word"), (SCORES, "evaluation"), (SURPRISALS, "occurrences")])
def test_a_long_text_in_every_row_is_refused_before_rows_are_made(run: Run, table: Table, name: str):
    """A file of a few kilobytes would take gigabytes."""
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


def test_metadata_of_pandas_do_not_reach_it(stored: Run):
    """Of any kind: frames are made by the table's own columns, and of summaries too."""
    expected, facts = results.read_scores(stored), results.read_histories(stored)
    for name in ("scores", "facts"):
        rewrite(path_of(stored, name), lambda rows: rows, pandas=json.dumps({"columns": 5, "index_columns": "a"}))
    rewrite(path_of(stored, "facts"), lambda rows: rows, pandas="[" * 1000)
    assert results.read_scores(stored).equals(expected)
    assert read_stored(stored, SUMMARIES[0]) is not None and results.read_histories(stored).equals(facts)


def test_a_part_of_another_evaluation_is_refused(stored: Run):
    """The folder names the metric and the step."""
    results.write(at(stored, 9), "mask_prediction", find("mask_prediction", 9))
    part = stored.results / "parts" / "mask_prediction" / "step9"
    part.rename(part.with_name("step10"))
    with pytest.raises(ResultsError, match="another evaluation"):
        results.read_scores(stored)


OF_SUMMARIES = {
    "null": lambda rows: cell(rows.column_names[0], None)(rows),
    "long text": lambda rows: cell(next(f.name for f in rows.schema if f.type == pa.string()), "x" * 5_000_000)(rows),
    "a row twice": lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]),
    "a row many times": repeated,
    "another column": lambda rows: rows.append_column("more", pa.nulls(len(rows))),
}


@pytest.mark.parametrize("change", OF_SUMMARIES.values(), ids=OF_SUMMARIES.keys())
@pytest.mark.parametrize("summary", SUMMARIES, ids=lambda summary: summary.own.name)
def test_a_strange_summary_is_computed_anew(stored: Run, summary: Any, change: Callable[[pa.Table], pa.Table]):
    """With the checksum of its table in it, and its own next to it: what is shown is what the table says."""
    expected, path = read_summary(stored, summary), path_of(stored, summary.own.name)
    if not expected.num_rows or (change is OF_SUMMARIES["long text"] and pa.string() not in expected.schema.types):
        pytest.skip("it has no row, or no text")
    rewrite(path, change)
    assert read_stored(stored, summary) is None
    assert read_summary(stored, summary).equals(expected)
    path.unlink()
    results.compact(stored)
    assert read_stored(stored, summary).equals(expected)


@pytest.mark.parametrize(("column", "value"), [("history", "never"), ("first", 2**62), ("right", b"\0")])
def test_facts_that_contradict_themselves_are_computed_anew(stored: Run, column: str, value: Any):
    """What the bits say about a fact is what its history and first step have to say."""
    (facts,) = (summary for summary in SUMMARIES if summary.own.name == "facts")
    expected = read_summary(stored, facts)
    known = next((i for i, row in enumerate(expected.to_pylist()) if row["first"] is not None), None)
    values = expected[column].to_pylist()
    values[known or 0] = value
    rewrite(
        path_of(stored, "facts"),
        lambda rows: rows.set_column(rows.column_names.index(column), column, pa.array(values, rows[column].type)),
    )
    found = read_stored(stored, facts)
    assert found is None or found.equals(expected)
    assert read_summary(stored, facts).equals(expected)


def test_steps_are_bounded(stored: Run, monkeypatch: pytest.MonkeyPatch):
    """More steps than a run has checkpoints are no table; what the footer says of steps is not read."""
    rewrite(path_of(stored, "cloze"), lambda rows: rows, done='{"world_knowledge": "all"}')
    assert results.done(stored)["world_knowledge"] == set(STEPS)
    monkeypatch.setattr(parquet_files, "MAX_CHECKPOINTS", len(STEPS) - 1)
    parquet_files._examine.cache_clear()
    with pytest.raises(ResultsError, match="steps"):
        results.done(stored)
