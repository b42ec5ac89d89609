"""What the rows of a table may be: checked before they are written, and again when a file is read.

A file may come from a stranger: its checksum shows that it is whole, not that its rows are results.
"""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from embryo_core.errors import ResultsError
from embryo_core.results import attention_codec
from embryo_core.results.tables import ATTENTION, SURPRISALS, TABLES, Table
from embryo_core.types import (
    AttentionMap,
    Checkpoint,
    ClozeAnswer,
    Findings,
    PairScore,
    ProbeCurve,
    Score,
    SpanAnswer,
    TaskAnswer,
    TaskScore,
    TuningPoint,
    VariantAnswer,
    WordCount,
    WordSurprise,
)

MAX_ROWS = 2**26  # of a file
MAX_VALUES = 2**31  # of a column with lists
MAX_CELLS = 2**25  # of a table with a column for each step, unless it is well filled
MAX_CELLS_PER_ROW = 4  # of a table that is not
MAX_TEXT = 4096  # bytes
SUMMARY_METADATA = (b"made_from", b"steps", b"asked_at_every_step")  # see summaries.py
INT32, INT64 = 2**31 - 1, 2**63 - 1
BOUNDS = {  # least and largest value of a column
    "step": (0, INT64),
    "first": (0, INT64),
    "earliest": (0, INT64),
    "latest": (0, INT64),
    "share": (0, 1),
    "layer": (0, 1024),
    "head": (1, 1024),
    "n": (1, INT64),
    "correct": (0, INT64),
    "rank": (1, INT64),
    "probability": (0, 1.001),  # rounded
    "prediction_probability": (0, 1.001),
    "pair": (0, INT32),
    "age": (0, 1200),  # months
    "pieces": (0, 4096),
    "sentences": (1, INT64),
    "length": (1, 4096),
    "iteration": (0, INT32),
    "dev_f1": (0, 1),
    "seed": (0, INT32),
    "update": (1, INT32),
    "dev_score": (-1, 1),
    "example": (0, INT32),
    "start": (0, INT32),
    "end": (0, INT32),
    "exact": (0, 1),
    "f1": (0, 1),
}


# === Before writing ===


def check_findings(checkpoint: Checkpoint, metric: str, findings: Findings) -> None:
    """Raise ResultsError if there are no rows, if a row is not a measurement, or if two have the same key."""
    evaluated = f"Metric '{metric}' at step {checkpoint.step} of run '{checkpoint.run.name}'"
    if not any(getattr(findings, table.name) for table in TABLES):
        raise ResultsError(f"{evaluated} found nothing, so nothing was written; check the data it was given.")
    for table in TABLES:
        seen = set()
        for row in getattr(findings, table.name):
            if not _is_measurement(row):
                raise ResultsError(f"{evaluated} gave {_describe(row)}, which is no measurement; nothing was written.")
            key = tuple(getattr(row, name) for name in table.key if name != "step")
            if key in seen:
                raise ResultsError(f"{evaluated} gave two rows of {table.name} for {key}; nothing was written.")
            seen.add(key)


def _is_measurement(row: Any) -> bool:
    """Return whether a row counts at least one case and has finite numbers within their range."""
    match row:
        case Score():
            return row.n > 0 and math.isfinite(row.value)
        case WordCount():
            return row.n > 0 and 0 <= row.correct <= row.n
        case ClozeAnswer():
            return row.rank > 0 and math.isfinite(row.probability) and math.isfinite(row.prediction_probability)
        case VariantAnswer():
            return row.rank > 0
        case PairScore():
            return row.pair >= 0 and math.isfinite(row.good) and math.isfinite(row.bad)
        case WordSurprise():
            each = np.frombuffer(row.occurrences, attention_codec.WEIGHT)
            return 0 < row.n == len(each) and bool(np.isfinite([row.surprisal, row.chance, *each]).all())
        case ProbeCurve():
            return row.iteration >= 0 and math.isfinite(row.train_loss) and 0 <= row.dev_f1 <= 1
        case TaskScore():
            return row.n > 0 and -1 <= row.value <= 1
        case TuningPoint():
            return row.update > 0 and math.isfinite(row.train_loss) and -1 <= row.dev_score <= 1
        case TaskAnswer():
            return row.example >= 0 and math.isfinite(row.gold) and math.isfinite(row.answer)
        case SpanAnswer():
            return 0 <= row.start <= row.end and 0 <= row.exact <= 1 and 0 <= row.f1 <= 1
        case AttentionMap():
            square = row.weights.ndim == 2 and row.weights.shape[0] == row.weights.shape[1] > 0
            with np.errstate(over="ignore"):  # weights are stored as float16
                return bool(row.sentences > 0 and square and np.isfinite(row.weights.astype(np.float16)).all())
    raise TypeError(f"{type(row).__name__} is no row of a table")


def _describe(row: Any) -> str:
    values = {name: value for name, value in vars(row).items() if name != "metric"}
    if "weights" in values:
        shape = "x".join(map(str, row.weights.shape))
        values["weights"] = f"{shape} from {np.min(row.weights, initial=0):g} to {np.max(row.weights, initial=0):g}"
    return f"{type(row).__name__} with " + ", ".join(f"{name} {value}" for name, value in values.items())


# === After reading ===


def check_size(footer: pq.FileMetaData, max_rows: int = MAX_ROWS) -> None:
    """Raise ValueError if the footer of a file announces more rows or values than are read."""
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    values = sum(max((group.column(i).num_values for i in range(group.num_columns)), default=0) for group in groups)
    if footer.num_rows > max_rows or values > MAX_VALUES:
        raise ValueError(f"it has {footer.num_rows:,} rows and {values:,} values, more than are read")


def check_rows(table: Table, rows: pa.Table, columns: list[str] | None = None) -> pa.Table:
    """Return rows as a table has them, without metadata of the file but those of summaries.

    Raise ValueError if they have other columns than the table, or a value that is missing or out of bounds. `columns`
    are those that were read, by default all.
    """
    schema = table.schema_of(columns)
    if not rows.schema.equals(schema):
        raise ValueError(f"its columns are {', '.join(rows.schema.names)}")
    rows.validate(full=True)
    for name in rows.column_names:
        column, kind = rows[name], table.all_columns[name]
        if column.null_count and name not in table.optional:
            raise ValueError(f"{name} has no value in {column.null_count} rows")
        if not _is_within_bounds(name, kind, column):
            raise ValueError(f"{name} has a value out of bounds")
    if table is ATTENTION and columns is None:
        squares = pc.multiply(pc.multiply(rows["length"], rows["length"]), attention_codec.WEIGHT.itemsize)
        squares = pc.equal(pc.binary_length(rows[attention_codec.COLUMN]), squares)
        if not pc.all(squares, min_count=0).as_py():
            raise ValueError("weights are no square matrix")
    if table is SURPRISALS and columns is None:
        check_occurrences(rows)
    noted = {name: value for name, value in (rows.schema.metadata or {}).items() if name in SUMMARY_METADATA}
    return pa.Table.from_arrays(rows.columns, schema=schema.with_metadata(noted))


def check_occurrences(rows: pa.Table) -> None:
    """Raise ValueError if a word has not one finite number for each of its occurrences."""
    sizes = pc.equal(pc.binary_length(rows["occurrences"]), pc.multiply(rows["n"], attention_codec.WEIGHT.itemsize))
    if not pc.all(sizes, min_count=0).as_py() or not np.isfinite(attention_codec.to_numbers(rows["occurrences"])).all():
        raise ValueError("occurrences are not a finite number each")


def _is_within_bounds(name: str, kind: str, column: pa.ChunkedArray) -> bool:
    if kind in ("string", "bytes"):
        return (pc.max(pc.binary_length(column)).as_py() or 0) <= MAX_TEXT
    if kind.startswith("float") and "bytes" not in kind and not pc.all(pc.is_finite(column), min_count=0).as_py():
        return False
    if name not in BOUNDS or column.null_count == len(column):
        return True
    found, (least, most) = pc.min_max(column).as_py(), BOUNDS[name]
    return least <= found["min"] and found["max"] <= most


def check_keys(table: Table, rows: pa.Table) -> None:
    """Raise ValueError if two rows have one key, or if a table of the rows by step would be large and mostly empty."""
    names = [name for name in table.key if name in rows.column_names]
    if not table.is_summary and "step" not in names:
        return
    others, _ = _codes(rows, [name for name in names if name != "step"])
    steps, count = _codes(rows, [name for name in names if name == "step"])
    codes = np.sort(others * count + steps, kind="stable")  # fast on rows that are sorted already
    if (codes[1:] == codes[:-1]).any():
        raise ValueError(f"two rows have the same {', '.join(table.key)}")
    cells = count * len(np.unique(others)) if count > 1 else rows.num_rows
    if cells > max(MAX_CELLS, MAX_CELLS_PER_ROW * rows.num_rows):
        raise ValueError(f"its {rows.num_rows:,} rows would be a table of {cells:,} cells by step")


def _codes(rows: pa.Table, names: list[str]) -> tuple[np.ndarray, int]:
    """Return one number per row that encodes its values in these columns, and how many numbers are possible."""
    codes, count = np.zeros(rows.num_rows, np.int64), 1
    for name in names:
        column = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes * len(column.dictionary) + column.indices.to_numpy()
        count *= len(column.dictionary)
    return codes, count
