"""The attention of each head to fixed positions at every step, summarised in positions.parquet."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from embryo_core.curves import normalise_rows
from embryo_core.curves.scores import POSITIONS, position_weights
from embryo_core.results.attention_codec import COLUMN, to_numbers
from embryo_core.results.memo import memoized
from embryo_core.results.read import read_attention, steps_done
from embryo_core.results.rows import read_table, read_values, sort_rows
from embryo_core.results.summaries import PendingRows, Summary, read_summary
from embryo_core.results.tables import ATTENTION, Table
from embryo_core.types import Run

NORMALISED = tuple(f"{position}_normalised" for position in POSITIONS)
MEANS = (*POSITIONS, *NORMALISED)
POSITION_WEIGHTS = Table("positions", " ".join([*ATTENTION.key, *MEANS]), key=ATTENTION.key, is_summary=True)
SCHEMA = POSITION_WEIGHTS.schema


@memoized
def read_position_weights(run: Run, layer: int, head: int, normalised: bool = False) -> pd.DataFrame:
    """Return a head's attention to fixed positions at every evaluated step: step, same, previous, next, first.

    See `scores.position_weights`; with `normalised`, each row of a map is divided by its sum first.
    """
    rows = read_summary(run, POSITION_WEIGHTS_SUMMARY)
    of_head = rows.filter((pc.field("layer") == layer) & (pc.field("head") == head))
    steps, columns = of_head["step"].to_numpy(), NORMALISED if normalised else POSITIONS
    if steps.tolist() == sorted(steps_done(run, ATTENTION.name)):
        means = np.stack([of_head[name].to_numpy() for name in columns], axis=-1)
    else:  # the summary lacks a step; reading its maps raises the reason
        maps = read_attention(run, layer, head)
        steps = maps.steps
        means = position_weights(normalise_rows(maps.weights) if normalised else maps.weights)
    return pd.DataFrame({"step": steps} | dict(zip(POSITIONS, means.T, strict=True)))


def _compute(run: Run) -> pa.Table:
    summaries = (_summarize_step(read_table(run, ATTENTION, step=step)) for step in read_values(run, ATTENTION, "step"))
    return pa.concat_tables([SCHEMA.empty_table(), *summaries])


def _add(summary: pa.Table, pending: PendingRows) -> pa.Table:
    """Return the summary with the maps of pending steps, which replace existing ones."""
    steps = pa.array([step for _, step in pending], pa.int64())
    summaries = [summary.filter(~pc.field("step").isin(steps)), *map(_summarize_step, pending.values())]
    return sort_rows(ATTENTION, pa.concat_tables(summaries))


def _summarize_step(maps: pa.Table) -> pa.Table:
    """Return the summary of a step's maps; empty unless all have the same length of at least two positions."""
    lengths = pc.unique(maps["length"]).to_pylist()
    if len(lengths) != 1 or lengths[0] < 2:
        return SCHEMA.empty_table()
    weights = to_numbers(maps[COLUMN]).reshape(-1, lengths[0], lengths[0])
    means = np.hstack([position_weights(weights), position_weights(normalise_rows(weights))])
    columns = {name: maps[name] for name in ATTENTION.key} | dict(zip(MEANS, means.T, strict=True))
    return pa.table(columns, SCHEMA)


COLUMNS = (*ATTENTION.key, "length", COLUMN)
POSITION_WEIGHTS_SUMMARY = Summary(POSITION_WEIGHTS, ATTENTION, _compute, COLUMNS, _add)
