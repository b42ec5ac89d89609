"""The tables of results: their columns, keys and row groups."""

from dataclasses import dataclass, field

import pyarrow as pa

TYPES = {
    "string": pa.string(),
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "bytes": pa.binary(),
    "float16 bytes": pa.large_binary(),  # little-endian; see attention_codec.py
}


@dataclass(frozen=True)
class Table:
    """One table of a run; its `name` is also the name of its list in `Findings` and of its file.

    Every table begins with `evaluation`, the metric that wrote the row (one evaluation may write scores of several
    names), and `step`; a summary of another table (summaries.py) does not. The run is not stored: it is the name of
    the folder.
    """

    name: str
    columns: dict[str, str] = field(hash=False)
    key: tuple[str, ...]  # these columns identify a row; rows are sorted by them
    group: tuple[str, ...] = ()  # rows that are equal in these form a row group, which is read or skipped as a whole
    max_group_rows: int = 2**26
    optional: tuple[str, ...] = ()  # columns that may have no value
    is_summary: bool = False
    command: str = "evaluate"  # the command that writes the table

    @property
    def all_columns(self) -> dict[str, str]:
        """Return the types of all columns by name, in order."""
        return self.columns if self.is_summary else {"evaluation": "string", "step": "int64", **self.columns}

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the table."""
        return pa.schema({name: TYPES[kind] for name, kind in self.all_columns.items()})

    def schema_of(self, columns: list[str] | None) -> pa.Schema:
        """Return the schema of some columns, in their order, or of all."""
        return self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])


SCORES = Table(
    "scores",
    {"metric": "string", "layer": "int32", "group": "string", "value": "float64", "n": "int64"},
    key=("metric", "step", "layer", "group"),
    group=("metric",),
    optional=("layer", "group"),
)
WORDS = Table(
    "words",
    {"metric": "string", "tag": "string", "word": "string", "band": "string", "n": "int64", "correct": "int64"},
    key=("metric", "tag", "word", "step"),
    group=("metric", "tag"),
    optional=("band",),
)
CLOZE = Table(
    "cloze",
    {
        "fact": "string",
        "relation": "string",
        "subject": "string",
        "object": "string",
        "rank": "int64",
        "probability": "float32",
        "prediction": "string",
        "prediction_probability": "float32",
    },
    key=("relation", "fact", "step"),
    group=("relation",),
    max_group_rows=2**16,  # bounds the memory of reading a relation of a long series
)
VARIANTS = Table(
    "variants",
    {
        "fact": "string",
        "relation": "string",
        "kind": "string",
        "variant": "string",
        "rank": "int64",
        "prediction": "string",
    },
    key=("relation", "fact", "kind", "variant", "step"),
    group=("relation",),
    max_group_rows=2**16,  # bounds the memory of reading a relation of a long series
)
PAIRS = Table(
    "pairs",
    {"paradigm": "string", "pair": "int32", "good": "float32", "bad": "float32"},
    key=("paradigm", "pair", "step"),
    group=("paradigm",),
    max_group_rows=2**16,  # bounds the memory of reading a paradigm of a long series
)
SURPRISALS = Table(
    "surprisals",
    {
        "word": "string",
        "n": "int64",
        "surprisal": "float32",
        "chance": "float32",
        "occurrences": "float16 bytes",
        "pieces": "float32",
        "category": "string",
        "age": "float32",
        "concreteness": "float32",
    },
    key=("word", "step"),
    optional=("category", "age", "concreteness"),
)
GRAMS = Table(
    "grams",
    {"layer": "int32", "n": "int64", "products": "float16 bytes"},
    key=("layer", "step"),
    group=("layer",),
)
ATTENTION = Table(
    "attention",
    # `length` is L; `weights` holds the L x L matrix row by row
    {"layer": "int32", "head": "int32", "sentences": "int64", "length": "int32", "weights": "float16 bytes"},
    key=("step", "layer", "head"),
    group=("step",),
)
PROBES = Table(
    "probes",
    {
        "task": "string",
        "layer": "int32",
        "control": "bool",
        "iteration": "int32",
        "train_loss": "float64",
        "dev_f1": "float64",
    },
    key=("task", "layer", "control", "step", "iteration"),
    group=("task",),
)
TASK_SCORES = Table(
    "task_scores",
    {"task": "string", "seed": "int32", "predictor": "string", "metric": "string", "value": "float64", "n": "int64"},
    key=("task", "metric", "predictor", "seed", "step"),
    command="finetune",
)
TUNING = Table(
    "tuning",
    {"task": "string", "seed": "int32", "update": "int32", "train_loss": "float64", "dev_score": "float64"},
    key=("task", "seed", "step", "update"),
    group=("task",),
    command="finetune",
)
ANSWERS = Table(
    "answers",
    {"task": "string", "seed": "int32", "example": "int32", "gold": "float32", "answer": "float32"},
    key=("task", "example", "seed", "step"),
    group=("task",),
    command="finetune",
)
SPANS = Table(
    "spans",
    {
        "task": "string",
        "seed": "int32",
        "question": "string",
        "start": "int32",
        "end": "int32",
        "exact": "float32",
        "f1": "float32",
    },
    key=("task", "question", "seed", "step"),
    group=("task",),
    command="finetune",
)
TABLES = tuple(table for table in globals().values() if isinstance(table, Table))
