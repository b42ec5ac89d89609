"""Maps as bytes are those that were written, and those of earlier files, which have lists of numbers."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from embryo_core import results
from embryo_core.errors import ResultsError
from embryo_core.results import weights
from embryo_core.results.files import seal
from embryo_core.types import Run
from tests.conftest import at
from tests.embryo_core.results.conftest import STEPS, find, tree

HEADS = [(layer, head) for layer in (1, 2) for head in (1, 2, 3)]


@pytest.fixture
def maps(run: Run) -> np.ndarray:
    """Those of a run, compacted: [S, layers, heads, L, L]."""
    for step in STEPS:
        results.write(at(run, step), "attention", find("attention", step))
    results.compact(run)
    return results.read_attention_steps(run)[1]


def make_earlier(run: Run, nullable: bool = False) -> None:
    """Write the file anew as earlier versions did: with lists of numbers, which are never null, or may be."""
    path = run.results / "attention.parquet"
    rows = pq.read_table(path).replace_schema_metadata({"done": pq.read_metadata(path).metadata[b"done"]})
    lists = [np.frombuffer(one, weights.NUMBERS) for one in rows[weights.COLUMN].to_pylist()]
    kind = pa.list_(pa.field("item", pa.float16(), nullable=nullable))
    column = pa.field(weights.COLUMN, kind), pa.array(lists, kind)
    pq.write_table(rows.set_column(rows.column_names.index(weights.COLUMN), *column), path, row_group_size=5)
    seal(path)


def test_an_earlier_file_has_the_same_maps(run: Run, maps: np.ndarray):
    """All, of some steps, of one, and of a head."""
    make_earlier(run)
    np.testing.assert_array_equal(results.read_attention_steps(run)[1], maps)
    np.testing.assert_array_equal(results.read_attention_steps(run, STEPS[1:3])[1], maps[1:3])
    np.testing.assert_array_equal(results.read_attention_step(run, STEPS[-1])[0], maps[-1])
    for layer, head in HEADS:
        np.testing.assert_array_equal(results.read_attention(run, layer, head).weights, maps[:, layer - 1, head - 1])


def test_parts_join_an_earlier_file(run: Run, maps: np.ndarray):
    """And together they become the file that is written without it, byte for byte."""
    written = tree(run.results)
    make_earlier(run)
    results.write(at(run, STEPS[0]), "attention", find("attention", STEPS[0]))
    np.testing.assert_array_equal(results.read_attention_steps(run)[1], maps)
    results.compact(run)
    assert tree(run.results) == written


def test_lists_that_may_hold_nothing_are_refused(run: Run, maps: np.ndarray):
    """They were never written."""
    make_earlier(run, nullable=True)
    with pytest.raises(ResultsError, match=r"attention\.parquet cannot be read .its columns are"):
        results.read_attention_steps(run)


def test_rows_of_a_slice_keep_their_maps():
    """A filter leaves slices of what was read, which begin anywhere."""
    rng = np.random.default_rng(0)
    lists = [rng.random(n).astype(np.float16) for n in (4, 9, 0, 1)]
    rows = pa.table({"n": range(4), weights.COLUMN: pa.array(lists, weights.EARLIER)})
    for some in (rows, rows.slice(1), rows.slice(1, 1), rows.slice(4), rows.filter(pc.field("n") != 1)):
        held = [lists[n].tobytes() for n in some["n"].to_pylist()]
        assert weights.with_bytes(some)[weights.COLUMN].to_pylist() == held
