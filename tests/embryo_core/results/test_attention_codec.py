"""Maps of a file are those that were written, and those of earlier files, with bytes in order or lists of numbers."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from embryo_core import results
from embryo_core.errors import ResultsError
from embryo_core.results import attention_codec
from embryo_core.results.parquet_files import write_checksum
from embryo_core.types import Run
from tests.conftest import at
from tests.embryo_core.results.conftest import STEPS, find, put, tree

HEADS = [(layer, head) for layer in (1, 2) for head in (1, 2, 3)]


@pytest.fixture
def maps(run: Run) -> np.ndarray:
    """Those of a run, compacted: [S, layers, heads, L, L]."""
    for step in STEPS:
        results.write(at(run, step), "attention", find("attention", step))
    results.compact(run)
    return results.read_attention_steps(run)[1]


def make_earlier(run: Run, kind: pa.DataType) -> None:
    """Write the file anew as earlier versions did: with the bytes of each map in order, or with lists of numbers."""
    path = run.results / "attention.parquet"
    rows = pq.read_table(path)
    maps = attention_codec.decode(rows)[attention_codec.COLUMN].to_pylist()
    column = pa.array(
        maps if kind == attention_codec.MAP else [np.frombuffer(one, attention_codec.WEIGHT) for one in maps], kind
    )
    place = rows.column_names.index(attention_codec.STORED_COLUMN)
    pq.write_table(rows.set_column(place, pa.field(attention_codec.COLUMN, kind), column), path, row_group_size=5)
    write_checksum(path)


EARLIER = pytest.mark.parametrize(
    "kind", [attention_codec.MAP, attention_codec.LIST_OF_WEIGHTS], ids=["bytes", "lists"]
)


def test_a_file_has_lower_bytes_first(run: Run, maps: np.ndarray):
    """Of each map the lower byte of every weight, row by row, and then the upper one: docs/metrics.md says so."""
    rows = pq.read_table(run.results / "attention.parquet").to_pylist()
    assert len(rows) == len(STEPS) * len(HEADS)
    for row in rows:
        map_of_row = maps[STEPS.index(row["step"]), row["layer"] - 1, row["head"] - 1].astype(np.float16)
        pairs = [weight.tobytes() for weight in map_of_row.ravel()]
        assert row["halves"] == b"".join(pair[:1] for pair in pairs) + b"".join(pair[1:] for pair in pairs)


@EARLIER
def test_an_earlier_file_has_the_same_maps(run: Run, maps: np.ndarray, kind: pa.DataType):
    """All, of some steps, of one, and of a head."""
    make_earlier(run, kind)
    np.testing.assert_array_equal(results.read_attention_steps(run)[1], maps)
    np.testing.assert_array_equal(results.read_attention_steps(run, STEPS[1:3])[1], maps[1:3])
    np.testing.assert_array_equal(results.read_attention_step(run, STEPS[-1])[0], maps[-1])
    for layer, head in HEADS:
        np.testing.assert_array_equal(results.read_attention(run, layer, head).weights, maps[:, layer - 1, head - 1])


@EARLIER
def test_parts_join_an_earlier_file(run: Run, maps: np.ndarray, kind: pa.DataType):
    """And together they become the file that is written without it, byte for byte."""
    written = tree(run.results)
    make_earlier(run, kind)
    results.write(at(run, STEPS[0]), "attention", find("attention", STEPS[0]))
    np.testing.assert_array_equal(results.read_attention_steps(run)[1], maps)
    results.compact(run)
    assert tree(run.results) == written


def test_lists_that_may_hold_nothing_are_refused(run: Run, maps: np.ndarray):
    """They were never written."""
    make_earlier(run, pa.list_(pa.field("item", pa.float16(), nullable=True)))
    with pytest.raises(ResultsError, match=r"attention\.parquet cannot be read .its columns are"):
        results.read_attention_steps(run)


@EARLIER
def test_an_earlier_file_without_a_summary_is_summed_up(run: Run, maps: np.ndarray, kind: pa.DataType):
    """The summary of positions reads some columns of the file, whose name for the maps is another."""
    expected = results.read_position_weights(run, 2, 3)
    make_earlier(run, kind)
    results.write(at(run, STEPS[0]), "attention", find("attention", STEPS[0]))
    results.compact(run)
    assert results.read_position_weights(run, 2, 3).equals(expected)


def test_half_a_number_is_refused(run: Run, maps: np.ndarray):
    """A map of an odd number of bytes is no matrix, in halves as in order."""
    path = run.results / "attention.parquet"
    rows = pq.read_table(path)
    odd = pa.array([one[:-1] for one in rows[attention_codec.STORED_COLUMN].to_pylist()], attention_codec.MAP)
    rows = rows.set_column(
        rows.column_names.index(attention_codec.STORED_COLUMN),
        pa.field(attention_codec.STORED_COLUMN, attention_codec.MAP),
        odd,
    )
    put(path, rows, row_group_size=len(HEADS))
    with pytest.raises(ResultsError, match=r"attention\.parquet cannot be read"):
        results.read_attention_steps(run)


def test_rows_of_a_slice_keep_their_maps():
    """A filter leaves slices of what was read, which begin anywhere."""
    rng = np.random.default_rng(0)
    lists = [rng.random(n).astype(np.float16) for n in (4, 9, 0, 1)]
    rows = pa.table({"n": range(4), attention_codec.COLUMN: pa.array(lists, attention_codec.LIST_OF_WEIGHTS)})
    for some in (rows, rows.slice(1), rows.slice(1, 1), rows.slice(4), rows.filter(pc.field("n") != 1)):
        held = [lists[n].tobytes() for n in some["n"].to_pylist()]
        assert attention_codec.decode(some)[attention_codec.COLUMN].to_pylist() == held
        packed = attention_codec.encode(attention_codec.decode(some))
        assert attention_codec.decode(packed)[attention_codec.COLUMN].to_pylist() == held
        assert attention_codec.decode(packed.slice(1))[attention_codec.COLUMN].to_pylist() == held[1:]
