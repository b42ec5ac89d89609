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
KINDS = {  # in TYPES, of a column by its name
    name: kind
    for kind, names in {
        "string": "evaluation metric group tag word band category fact relation subject object prediction kind variant "
        "paradigm task predictor question history",
        "bool": "control",
        "int32": "layer head length pair iteration seed update example start end",
        "int64": "step n correct rank sentences first earliest latest",
        "float32": "probability prediction_probability good bad surprisal chance pieces age concreteness gold answer "
        "exact f1",
        "float64": "value share train_loss dev_f1 dev_score",
        "bytes": "right",
        "float16 bytes": "weights occurrences products",
    }.items()
    for name in names.split()
}


@dataclass(frozen=True)
class Table:
    """One table of a run; its `name` is also the name of its list in `Findings` and of its file.

    Every table begins with `evaluation`, the metric that wrote the row (one evaluation may write scores of several
    names), and `step`; a summary of another table (summaries.py) does not. The run is not stored: it is the name of
    the folder.
    """

    name: str
    names: str  # of its columns, in their order
    key: tuple[str, ...]  # these columns identify a row; rows are sorted by them
    group: tuple[str, ...] = ()  # rows that are equal in these form a row group, which is read or skipped as a whole
    max_group_rows: int = 2**26
    optional: tuple[str, ...] = ()  # columns that may have no value
    is_summary: bool = False
    command: str = "evaluate"  # the command that writes the table
    kinds: dict[str, str] = field(default_factory=dict, hash=False)  # where they are not those of KINDS

    @property
    def columns(self) -> list[str]:
        """Return the names of the table's own columns."""
        return self.names.split()

    @property
    def all_columns(self) -> dict[str, str]:
        """Return the types of all columns by name, in order."""
        names = self.columns if self.is_summary else ["evaluation", "step", *self.columns]
        return {name: self.kinds.get(name) or KINDS[name] for name in names}

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the table."""
        return pa.schema({name: TYPES[kind] for name, kind in self.all_columns.items()})

    def schema_of(self, columns: list[str] | None) -> pa.Schema:
        """Return the schema of some columns, in their order, or of all."""
        return self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])


SCORES = Table(
    "scores",
    "metric layer group value n",
    key=("metric", "step", "layer", "group"),
    group=("metric",),
    optional=("layer", "group"),
)
WORDS = Table(
    "words",
    "metric tag word band n correct",
    key=("metric", "tag", "word", "step"),
    group=("metric", "tag"),
    optional=("band",),
)
CLOZE = Table(
    "cloze",
    "fact relation subject object rank probability prediction prediction_probability",
    key=("relation", "fact", "step"),
    group=("relation",),
    max_group_rows=2**16,  # bounds the memory of reading a relation of a long series, as in the next two
)
VARIANTS = Table(
    "variants",
    "fact relation kind variant rank prediction",
    key=("relation", "fact", "kind", "variant", "step"),
    group=("relation",),
    max_group_rows=2**16,
)
PAIRS = Table(
    "pairs",
    "paradigm pair good bad",
    key=("paradigm", "pair", "step"),
    group=("paradigm",),
    max_group_rows=2**16,
)
SURPRISALS = Table(
    "surprisals",
    "word n surprisal chance occurrences pieces category age concreteness",
    key=("word", "step"),
    optional=("category", "age", "concreteness"),
)
GRAMS = Table("grams", "layer n products", key=("layer", "step"), group=("layer",))
ATTENTION = Table(  # `length` is L; `weights` holds the L x L matrix row by row
    "attention", "layer head sentences length weights", key=("step", "layer", "head"), group=("step",)
)
PROBES = Table(
    "probes",
    "task layer control iteration train_loss dev_f1",
    key=("task", "layer", "control", "step", "iteration"),
    group=("task",),
)
TASK_SCORES = Table(
    "task_scores",
    "task seed predictor metric value n",
    key=("task", "metric", "predictor", "seed", "step"),
    command="finetune",
)
TUNING = Table(
    "tuning",
    "task seed update train_loss dev_score",
    key=("task", "seed", "step", "update"),
    group=("task",),
    command="finetune",
)
ANSWERS = Table(
    "answers",
    "task seed example gold answer",
    key=("task", "example", "seed", "step"),
    group=("task",),
    command="finetune",
)
SPANS = Table(
    "spans",
    "task seed question start end exact f1",
    key=("task", "question", "seed", "step"),
    group=("task",),
    command="finetune",
)
TABLES = tuple(table for table in globals().values() if isinstance(table, Table))
