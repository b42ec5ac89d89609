"""Parquet files of others, such as the tasks of the Hugging Face Hub, read as plain columns, and written."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from embryo_core.errors import CorpusError, first_line
from embryo_core.results.footers import check_size

if TYPE_CHECKING:
    from datasets import Dataset

LIMIT = 2**30  # bytes of a file


def read_foreign(paths: Sequence[Path]) -> dict[str, list[Any]]:
    """Columns of files that are one table in parts, in their order: lists of Python values, None where there is none.

    Raises CorpusError where a file is no parquet file, or has other columns than the first.
    """
    columns: dict[str, list[Any]] = {}
    for path in paths:
        found = _read(path)
        if columns and found.keys() != columns.keys():
            raise CorpusError(
                f"{path} has the columns {', '.join(found)}, and {paths[0]} has {', '.join(columns)}; "
                "give parts of one table."
            )
        for name, values in found.items():
            columns.setdefault(name, []).extend(values)
    return columns


def write_foreign(rows: "Dataset", path: Path) -> None:
    """Write the rows of a data set of Hugging Face."""
    rows.to_parquet(path)


def _read(path: Path) -> dict[str, list[Any]]:
    try:
        if not path.is_file() or path.stat().st_size > LIMIT:
            raise ValueError(f"it is no file of at most {LIMIT:,} bytes")
        with pa.OSFile(str(path)) as file:
            check_size(file)
            return pq.read_table(file).to_pydict()
    except (pa.ArrowException, OSError, ValueError) as reason:
        raise CorpusError(f"{path} cannot be read as a parquet file ({first_line(reason)}); fetch it again.") from None
