"""Parquet files of other tools, such as tasks on the Hugging Face Hub, read within limits."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from embryo_core.errors import CorpusError, first_line
from embryo_core.results.checks import check_size
from embryo_core.results.parquet_files import UNREADABLE, read_groups

if TYPE_CHECKING:
    import pandas as pd
    from datasets import Dataset

MAX_BYTES = 2**30  # bytes of a file, and of its rows in memory
MAX_ROWS, MAX_VALUES = 2**20, 2**25  # limited, since a value of one bit takes eight bytes in a list


def read_foreign(paths: Sequence[Path]) -> dict[str, list[Any]]:
    """Return the columns of a table in several files as lists of Python values. Raises CorpusError."""
    columns: dict[str, list[Any]] = {}
    for path in paths:
        tables = _read_file(path)
        if columns and tables.keys() != columns.keys():
            raise CorpusError(
                f"{path} has the columns {', '.join(tables)}, and {paths[0]} has {', '.join(columns)}; "
                "give parts of one table."
            )
        for name, values in tables.items():
            columns.setdefault(name, []).extend(values)
    return columns


def write_foreign(rows: "Dataset | pd.DataFrame", path: Path) -> None:
    """Write the rows of a frame or of a Hugging Face dataset for other tools to read."""
    rows.to_parquet(path)


def _read_file(path: Path) -> dict[str, list[Any]]:
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            raise ValueError(f"it is not a file, or is larger than {MAX_BYTES:,} bytes")
        with pa.OSFile(str(path)) as file:
            footer, chunks, size = pq.read_metadata(file), [], 0
            check_size(footer, MAX_ROWS, MAX_VALUES)
            for rows in read_groups(file, footer, range(footer.num_row_groups)):
                chunks.append(rows)
                size += rows.nbytes
                if size > MAX_BYTES:
                    raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
            return pa.concat_tables(chunks).to_pydict()
    except UNREADABLE as reason:
        raise CorpusError(f"{path} cannot be read as a parquet file ({first_line(reason)}); fetch it again.") from None
