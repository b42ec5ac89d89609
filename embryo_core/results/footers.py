"""Footers of parquet files: how large a file says it is, and which of its row groups hold a step."""

from collections.abc import Collection
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from embryo_core.results.files import StoredFile

MOST_ROWS = 2**26  # of a file
MOST_VALUES = 2**31  # of a column, where a row holds many
ANY_STEP = (0, np.iinfo(np.int64).max)


def check_size(file: pa.NativeFile) -> pq.FileMetaData:
    """The footer of a file. Raises ValueError where it announces more rows or values than are read."""
    found = pq.read_metadata(file)
    groups = [found.row_group(i) for i in range(found.num_row_groups)]
    values = sum(max((group.column(i).num_values for i in range(group.num_columns)), default=0) for group in groups)
    if found.num_rows > MOST_ROWS or values > MOST_VALUES:
        raise ValueError(f"it has {found.num_rows:,} rows and {values:,} values, more than are read")
    file.seek(0)
    return found


@lru_cache(maxsize=16)  # the footer of a long series takes milliseconds
def footer_of(file: StoredFile) -> pq.FileMetaData:
    """The footer of a table's file. Raises ValueError as `check_size` does."""
    return check_size(file.opened)


def groups_with_steps(file: StoredFile, steps: Collection[int]) -> list[int]:
    """The row groups of a table's file that may have rows of one of these steps."""
    first, last = _steps_of_groups(file)
    known = np.array(sorted(steps))
    return np.flatnonzero(np.searchsorted(known, first) < np.searchsorted(known, last, side="right")).tolist()


@lru_cache(maxsize=4)
def _steps_of_groups(file: StoredFile) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last step that each row group may hold, [groups] each."""
    footer = footer_of(file)
    place = footer.schema.names.index("step")
    bounds = [footer.row_group(i).column(place).statistics for i in range(footer.num_row_groups)]
    known = [(each.min, each.max) if each and each.has_min_max else ANY_STEP for each in bounds]
    first, last = np.array(known, object).reshape(-1, 2).T  # a stranger's bounds may be larger than an int64
    return first, last
