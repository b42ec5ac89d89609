"""Tests of storing attention maps, and of reading the two earlier formats (ordered bytes and lists of numbers)."""

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
from tests.conftest import checkpoint_at
from tests.embryo_core.results.conftest import STEPS, find, put, tree

HEADS = [(layer, head) for layer in (1, 2) for head in (1, 2, 3)]


@pytest.fixture
def maps(run: Run) -> np.ndarray:
    """Return all maps of a run with compacted results: [S, layers, heads, L, L]."""
    for step in STEPS:
        results.write(checkpoint_at(run, step), "attention", find("attention", step))
    results.compact(run)
    return results.read_attention_steps(run)[1]


def make_earlier(run: Run, kind: pa.DataType) -> None:
    """Rewrite the file in an earlier format: with ordered bytes of each map, or with lists of numbers."""
    path = run.results / "attention.parquet"
    rows = pq.read_table(path)
    maps = attention_codec.decode(rows)[attention_codec.WEIGHTS_COLUMN].to_pylist()
    column = pa.array(
        maps if kind == attention_codec.MAP else [np.frombuffer(head_map, attention_codec.WEIGHT) for head_map in maps],
        kind,
    )
    place = rows.column_names.index(attention_codec.STORED_COLUMN)
    pq.write_table(
        rows.set_column(place, pa.field(attention_codec.WEIGHTS_COLUMN, kind), column), path, row_group_size=5
    )
    write_checksum(path)


EARLIER = pytest.mark.parametrize(
    "kind", [attention_codec.MAP, attention_codec.LIST_OF_WEIGHTS], ids=["bytes", "lists"]
)


def test_lower_bytes_are_stored_first(run: Run, maps: np.ndarray):
    """For each map, the lower bytes of all weights, row by row, precede the upper bytes, as docs/metrics.md says."""
    rows = pq.read_table(run.results / "attention.parquet").to_pylist()
    assert len(rows) == len(STEPS) * len(HEADS)
    for row in rows:
        map_of_row = maps[STEPS.index(row["step"]), row["layer"] - 1, row["head"] - 1].astype(np.float16)
        pairs = [weight.tobytes() for weight in map_of_row.ravel()]
        assert row["halves"] == b"".join(pair[:1] for pair in pairs) + b"".join(pair[1:] for pair in pairs)


@EARLIER
def test_earlier_formats_give_the_same_maps(run: Run, maps: np.ndarray, kind: pa.DataType):
    """All steps, some steps, one step and one head are compared."""
    make_earlier(run, kind)
    np.testing.assert_array_equal(results.read_attention_steps(run)[1], maps)
    np.testing.assert_array_equal(results.read_attention_steps(run, STEPS[1:3])[1], maps[1:3])
    np.testing.assert_array_equal(results.read_attention_step(run, STEPS[-1])[0], maps[-1])
    for layer, head in HEADS:
        np.testing.assert_array_equal(results.read_attention(run, layer, head).weights, maps[:, layer - 1, head - 1])


@EARLIER
def test_compaction_converts_earlier_formats(run: Run, maps: np.ndarray, kind: pa.DataType):
    """Merged with a pending part, an earlier file becomes the same bytes as a file of the current format."""
    written = tree(run.results)
    make_earlier(run, kind)
    results.write(checkpoint_at(run, STEPS[0]), "attention", find("attention", STEPS[0]))
    np.testing.assert_array_equal(results.read_attention_steps(run)[1], maps)
    results.compact(run)
    assert tree(run.results) == written


def test_nullable_lists_are_refused(run: Run, maps: np.ndarray):
    """No version has written lists with null items."""
    make_earlier(run, pa.list_(pa.field("item", pa.float16(), nullable=True)))
    with pytest.raises(ResultsError, match=r"attention\.parquet cannot be read .its columns are"):
        results.read_attention_steps(run)


@EARLIER
def test_position_weights_are_computed_from_earlier_formats(run: Run, maps: np.ndarray, kind: pa.DataType):
    """The summary of positions reads selected columns, and the column of maps has another name in earlier files."""
    expected = results.read_position_weights(run, 2, 3)
    make_earlier(run, kind)
    results.write(checkpoint_at(run, STEPS[0]), "attention", find("attention", STEPS[0]))
    results.compact(run)
    assert results.read_position_weights(run, 2, 3).equals(expected)


def test_map_with_odd_number_of_bytes_is_refused(run: Run, maps: np.ndarray):
    """Weights are float16, so an odd number of bytes cannot be a matrix."""
    path = run.results / "attention.parquet"
    rows = pq.read_table(path)
    odd = pa.array([content[:-1] for content in rows[attention_codec.STORED_COLUMN].to_pylist()], attention_codec.MAP)
    rows = rows.set_column(
        rows.column_names.index(attention_codec.STORED_COLUMN),
        pa.field(attention_codec.STORED_COLUMN, attention_codec.MAP),
        odd,
    )
    put(path, rows, row_group_size=len(HEADS))
    with pytest.raises(ResultsError, match=r"attention\.parquet cannot be read"):
        results.read_attention_steps(run)


def test_codec_works_on_sliced_tables():
    """Filtering may leave slices that begin at any offset."""
    rng = np.random.default_rng(0)
    lists = [rng.random(n).astype(np.float16) for n in (4, 9, 0, 1)]
    rows = pa.table({"n": range(4), attention_codec.WEIGHTS_COLUMN: pa.array(lists, attention_codec.LIST_OF_WEIGHTS)})
    for some in (rows, rows.slice(1), rows.slice(1, 1), rows.slice(4), rows.filter(pc.field("n") != 1)):
        held = [lists[n].tobytes() for n in some["n"].to_pylist()]
        assert attention_codec.decode(some)[attention_codec.WEIGHTS_COLUMN].to_pylist() == held
        packed = attention_codec.encode(attention_codec.decode(some))
        assert attention_codec.decode(packed)[attention_codec.WEIGHTS_COLUMN].to_pylist() == held
        assert attention_codec.decode(packed.slice(1))[attention_codec.WEIGHTS_COLUMN].to_pylist() == held[1:]
