"""The tables of results: their columns, keys and row groups."""

import sys
from dataclasses import dataclass

import pyarrow as pa

MAX_LENGTH = 4096  # pieces of a sentence, or of a word
INT32, INT64, FLOAT = 2**31 - 1, 2**63 - 1, sys.float_info.max
Bounds = dict[str, tuple[float, float]]

COLUMNS: tuple[tuple[pa.DataType, tuple[float, float] | None, str], ...] = (
    # Type, smallest and largest value, names of columns; "TABLE.NAME" is a column with another type in this table.
    # checks.py also limits layers and heads to the run's numbers, and the length of texts and bytes; other floats must
    # be finite.
    (pa.string(), None, "evaluation metric group tag word band category fact relation subject object prediction kind"),
    (pa.string(), None, "variant paradigm task predictor question history"),
    (pa.bool_(), None, "control"),
    (pa.int32(), None, "layer head"),
    (pa.int32(), (1, MAX_LENGTH), "length"),
    (pa.int32(), (0, INT32), "pair iteration seed example start end"),
    (pa.int32(), (1, INT32), "update"),
    (pa.int64(), (0, INT64), "step first earliest latest correct"),
    (pa.int64(), (1, INT64), "n rank sentences"),
    (pa.int64(), (4, 4096), "grams.n"),
    (pa.float32(), None, "good bad surprisal chance concreteness gold answer same previous next positions.first"),
    (pa.float32(), None, "same_normalised previous_normalised next_normalised first_normalised"),
    (pa.float32(), (0, 1), "exact f1"),
    (pa.float32(), (0, 1.001), "probability prediction_probability"),  # rounded values may exceed 1
    (pa.float32(), (0, MAX_LENGTH), "pieces"),
    (pa.float32(), (0, 1200), "age"),  # months
    (pa.float64(), None, "value train_loss"),
    (pa.float64(), (0, 1), "share dev_f1"),
    (pa.float64(), (-1, 1), "dev_score task_scores.value"),
    (pa.binary(), None, "right"),
    (pa.large_binary(), None, "weights occurrences products"),  # float16, little-endian; see attention_codec.py
)
COLUMN_TYPES = {name: kind for kind, _, names in COLUMNS for name in names.split()}
BOUNDS: Bounds = {name: bounds for _, bounds, names in COLUMNS if bounds for name in names.split()}


@dataclass(frozen=True)
class Table:
    """One table of a run; its `name` is also the name of its file and of its list in `Findings`.

    Its first columns are `evaluation`, the metric that wrote the row (which may write scores of several names), and
    `step`; a summary of another table (summaries.py) lacks them. The run is not stored, since it names the folder.
    """

    name: str
    names: str  # names of its columns after `evaluation` and `step`, in order
    key_names: str  # these columns identify a row; rows are sorted by them
    group_size: int = 0  # leading columns of the key; rows that agree in them form a row group
    max_group_rows: int = 2**26
    optional: tuple[str, ...] = ()  # columns that may have no value
    is_summary: bool = False
    command: str = "evaluate"  # the command that writes the table

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns, without `evaluation` and `step`."""
        return self.names.split()

    @property
    def key(self) -> tuple[str, ...]:
        """Return the columns that identify a row."""
        return tuple(self.key_names.split())

    @property
    def group(self) -> tuple[str, ...]:
        """Return the columns in which the rows of a row group, the unit of reading and skipping, are equal."""
        return self.key[: self.group_size]

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the table."""
        names = self.columns if self.is_summary else ["evaluation", "step", *self.columns]
        return pa.schema({name: COLUMN_TYPES.get(f"{self.name}.{name}") or COLUMN_TYPES[name] for name in names})

    def schema_of(self, columns: list[str] | None) -> pa.Schema:
        """Return the schema of some columns, in their order, or of all."""
        return self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])


SCORES = Table(
    "scores", "metric layer group value n", "metric step layer group", group_size=1, optional=("layer", "group")
)
WORDS = Table("words", "metric tag word band n correct", "metric tag word step", group_size=2, optional=("band",))
CLOZE = Table(
    "cloze",
    "fact relation subject object rank probability prediction prediction_probability",
    "relation fact step",
    group_size=1,
    max_group_rows=2**16,  # limits the memory for reading a relation of a long series, as in the next two
)
VARIANTS = Table(
    "variants",
    "fact relation kind variant rank prediction",
    "relation fact kind variant step",
    group_size=1,
    max_group_rows=2**16,
)
PAIRS = Table("pairs", "paradigm pair good bad", "paradigm pair step", group_size=1, max_group_rows=2**16)
SURPRISALS = Table(
    "surprisals",
    "word n surprisal chance occurrences pieces category age concreteness",
    "word step",
    optional=("category", "age", "concreteness"),
)
GRAM_MATRICES = Table("grams", "layer n products", "layer step", group_size=1)
# `length` is L; `weights` holds the L x L matrix row by row
ATTENTION = Table("attention", "layer head sentences length weights", "step layer head", group_size=1)
PROBES = Table(
    "probes", "task layer control iteration train_loss dev_f1", "task layer control step iteration", group_size=1
)
TASK_SCORES = Table(
    "task_scores", "task seed predictor metric value n", "task metric predictor seed step", command="finetune"
)
TUNING = Table(
    "tuning", "task seed update train_loss dev_score", "task seed step update", group_size=1, command="finetune"
)
ANSWERS = Table("answers", "task seed example gold answer", "task example seed step", group_size=1, command="finetune")
SPANS = Table(
    "spans", "task seed question start end exact f1", "task question seed step", group_size=1, command="finetune"
)
TABLES = tuple(table for table in globals().values() if isinstance(table, Table))
