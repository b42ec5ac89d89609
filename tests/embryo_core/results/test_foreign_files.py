"""Tests that parquet files of other tools are read within limits."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embryo_core import results
from embryo_core.errors import CorpusError


def test_small_file_that_expands_to_gigabytes_is_refused(tmp_path: Path):
    """Too many rows or bits, repeated long texts and dates beyond Python's range are refused within 256 MB of RAM."""
    once = {"text": pa.array(np.zeros(2**10, np.int32)), "date": pa.array([2**62], pa.timestamp("us"))}
    long = pa.DictionaryArray.from_arrays(once["text"], pa.array(["x" * 2**20]))
    many = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2**20 + 1, np.int32)), pa.array(["x"]))
    before = pa.default_memory_pool().max_memory()
    bits = pa.array(np.zeros(2**18, bool))
    for column in (long, many, once["date"], bits):
        path = tmp_path / "train.parquet"
        pq.write_table(
            pa.table({f"{i}": column for i in range(200 if column is bits else 1)}),
            path,
            compression="zstd",
            store_schema=False,
        )
        with pytest.raises(CorpusError, match=r"train\.parquet cannot be read"):
            results.read_foreign([path])
        assert path.stat().st_size < 2**18
    assert pa.default_memory_pool().max_memory() < before + 2**28
