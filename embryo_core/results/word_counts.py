"""How often each word stands in the treebank that a metric was computed on; summed up in counts.parquet."""

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from embryo_core.results import summaries
from embryo_core.results.parts import list_parts
from embryo_core.results.rows import read_table, steps_of_file
from embryo_core.results.summaries import Summary
from embryo_core.results.tables import WORDS
from embryo_core.types import Run

COLUMNS = ["metric", "tag", "word", "band", "n"]
SCHEMA = WORDS.part_schema(COLUMNS)


def read_word_counts(run: Run, metric: str) -> pd.DataFrame:
    """The words of a metric at the last step of its evaluation: metric, tag, word, band, n. Raises ResultsError."""
    return summaries.read(run, COUNTS).filter(pc.field("metric") == metric).to_pandas()


def _check(rows: pa.Table) -> None:
    if rows.num_rows and (rows["n"].null_count or pc.min(rows["n"]).as_py() < 1):
        raise ValueError("it does not count its words")


def _compute(run: Run) -> pa.Table:
    steps = steps_of_file(run, WORDS)
    for metric, step in list_parts(run):
        steps.setdefault(metric, []).append(step)
    found = [
        read_table(run, WORDS, pc.field("evaluation") == metric, max(own), [*COLUMNS, "step"])
        for metric, own in sorted(steps.items())
    ]
    return pa.concat_tables([SCHEMA.empty_table(), *(rows.select(COLUMNS) for rows in found)])


COUNTS = Summary("counts.parquet", WORDS, SCHEMA, _compute, _check, ("metric", "step"))
