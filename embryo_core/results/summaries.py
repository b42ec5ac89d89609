"""Summaries of large tables, in files next to them, so that no page reads a large table completely.

    facts.parquet          of cloze.parquet: the history of the answers to each fact (fact_histories.py)
    counts.parquet         of words.parquet: how often each word occurs in the treebank
    reached.parquet        of answers.parquet: when each task's score reached a share of its last value
    reached_spans.parquet  of spans.parquet: the same for answers to questions
    positions.parquet      of attention.parquet: the attention of each head to fixed positions

A summary is written when tables are compacted; its metadata contain the checksum of its table. Readers add the pending
evaluations to it. If that is impossible, or if the file is missing or of another version of the table, they compute the
summary again. For 200 checkpoints this takes 1.7 s of one core for the facts, 1.1 s for the answers to SQuAD, 0.9 s for
the positions and 0.5 s for the words, all growing with the checkpoints.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from embryo_core.curves import normalise_rows
from embryo_core.curves.reached import LABEL_METRICS, SHARES, ReachedStep, reached_steps
from embryo_core.curves.scores import POSITIONS, position_weights
from embryo_core.errors import ResultsError
from embryo_core.results.attention_codec import WEIGHTS_COLUMN, to_numbers
from embryo_core.results.checks import check_keys
from embryo_core.results.memo import memoized
from embryo_core.results.parquet_files import is_stored, open_table, remove_table, replacing_table, stored_checksum
from embryo_core.results.pending import list_pending
from embryo_core.results.read import read_answers, read_attention, read_spans, read_task_scores, steps_done
from embryo_core.results.rows import read_pending, read_table, read_values, sort_rows, steps_of_file
from embryo_core.results.tables import ANSWERS, ATTENTION, SPANS, WORDS, Table
from embryo_core.types import Run

SOURCE_KEY = b"made_from"
MIN_ROWS = 4096  # rows that a summary may always have, even if its table has fewer
PendingRows = dict[tuple[str, int], pa.Table]  # (metric, step) -> rows


@dataclass(frozen=True)
class Summary:
    """The summary `table` of a `source` table, in a file next to it, and the functions that compute and check it.

    `compute` may add to the schema's metadata. `add` returns the summary with the rows of pending evaluations, of which
    `columns` are read, or None if the summary must be computed again. `check` raises ValueError for a stored summary
    that contradicts itself, or the steps of each evaluation in the source.
    """

    table: Table
    source: Table
    compute: Callable[[Run], pa.Table]
    columns: tuple[str, ...]
    add: Callable[[pa.Table, PendingRows], pa.Table | None] = lambda summary, pending: None
    check: Callable[[pa.Table, dict[str, list[int]]], None] = lambda rows, done: None

    @property
    def file(self) -> str:
        """Return the name of the summary's file."""
        return f"{self.table.name}.parquet"


def read_summary(run: Run, summary: Summary) -> pa.Table:
    """Return the summary of all results, including pending ones. Raises ResultsError."""
    summary_table = read_stored(run, summary)
    return summary.compute(run) if summary_table is None else summary_table


def read_stored(run: Run, summary: Summary) -> pa.Table | None:
    """Return the stored summary with pending rows; None if it is missing, or if the rows cannot be added."""
    # read before the file, which includes rows that are compacted meanwhile
    pending = read_pending(run, summary.source, [*summary.columns])
    stored_table = _read_file(run, summary)
    return summary.add(stored_table, pending) if pending and stored_table is not None else stored_table


def write_summary(run: Run, summary: Summary) -> None:
    """Write the summary of the compacted table, or remove it with the table. The caller holds the lock."""
    path, source = run.results / summary.file, _source(run, summary)
    if source is None:
        remove_table(path)
    elif not is_written(run, summary):
        rows = summary.compute(run)
        rows = rows.replace_schema_metadata({**(rows.schema.metadata or {}), SOURCE_KEY: source})
        with replacing_table(path) as temporary:
            pq.write_table(rows, temporary, compression="zstd")


def is_written(run: Run, summary: Summary) -> bool:
    """Return whether the stored summary is complete and up to date, or the table has nothing to summarise."""
    if _source(run, summary) is None:
        return True
    read = _read_file(run, summary) is not None
    return read and stored_checksum(run.results / summary.file, run.results) is not None


def _source(run: Run, summary: Summary) -> str | None:
    """Return the checksum of the compacted table, if any."""
    return stored_checksum(run.results / f"{summary.source.name}.parquet", run.results)


def _read_file(run: Run, summary: Summary) -> pa.Table | None:
    """Return the stored summary; None if it is missing, damaged, or of another version of the table."""
    path, source = run.results / summary.file, run.results / f"{summary.source.name}.parquet"
    if not is_stored(path):
        return None
    try:
        with open_table(run, source, summary.source) as table, open_table(run, path, summary.table) as stored:
            if not table or not stored or stored.footer.num_rows > max(table.footer.num_rows, MIN_ROWS):
                return None
            rows = stored.read()
            check_keys(summary.table, rows)
            summary.check(rows, table.done)
        current = rows.schema.metadata.get(SOURCE_KEY) == (_source(run, summary) or "").encode()
        return rows if current else None
    except (ResultsError, FileNotFoundError):
        return None


# === How often each word occurs in the treebank ===

WORD_COUNTS = Table("counts", "metric tag word band n", "metric tag word", optional=WORDS.optional, is_summary=True)


@memoized
def read_word_counts(run: Run, metric: str) -> pd.DataFrame:
    """Return the words of a metric at the last step of its evaluation: metric, tag, word, band, n."""
    return read_summary(run, WORD_COUNTS_SUMMARY).filter(pc.field("metric") == metric).to_pandas()


def _count_words(run: Run) -> pa.Table:
    """Return the words of each metric at the last step of its evaluation."""
    steps = steps_of_file(run, WORDS)
    for metric, step in list_pending(run):
        steps.setdefault(metric, []).append(step)
    counts = [
        read_table(run, WORDS, pc.field("evaluation") == metric, max(steps_of_metric), [*WORD_COUNTS.columns, "step"])
        for metric, steps_of_metric in sorted(steps.items())
    ]
    return pa.concat_tables([WORD_COUNTS.schema.empty_table(), *(rows.select(WORD_COUNTS.columns) for rows in counts)])


WORD_COUNTS_SUMMARY = Summary(WORD_COUNTS, WORDS, _count_words, ("metric", "step"))

# === When a task's score reached a share of its last value ===

REACHED_KEY = "task metric share"
ENDS = ("step", "earliest", "latest")  # columns, null if the last score is not significantly above 0
REACHED_METRICS = {ANSWERS.name: (*LABEL_METRICS, "spearman", "pearson"), SPANS.name: ("exact", "f1")}


def read_reached(run: Run, task: str, metric: str, spans: bool = False) -> list[ReachedStep | None]:
    """Return when a task's score reached each of `SHARES` of its last value; None if that is not significantly above 0.

    `spans` is for a task whose answers are spans. Raises ResultsError if the steps answered different examples.
    """
    summary = IN_SPANS if spans else IN_ANSWERS
    rows = read_stored(run, summary)
    if rows is not None:
        matching = rows.filter((pc.field("task") == task) & (pc.field("metric") == metric)).to_pylist()
        by_share = {
            row["share"]: None if row["step"] is None else ReachedStep(*(row[end] for end in ENDS)) for row in matching
        }
        if by_share.keys() == set(SHARES):
            return [by_share[share] for share in SHARES]
    return _reached_of(summary.source, run, task, metric)  # raises the reason if the summary lacks a task


def _reached_of(table: Table, run: Run, task: str, metric: str) -> list[ReachedStep | None]:
    return reached_steps((read_spans if table is SPANS else read_answers)(run, task), metric)


def _compute_reached(table: Table, summary_table: Table, run: Run) -> pa.Table:
    """Compute when each score of each task reached each share; a score for which this fails has no rows."""
    rows = []
    for task in read_values(run, table, "task"):
        scored = set(read_task_scores(run, task)["metric"])
        for metric in (name for name in REACHED_METRICS[table.name] if name in scored):
            with suppress(ResultsError):
                for share, reached in zip(SHARES, _reached_of(table, run, task, metric), strict=True):
                    ends = {end: getattr(reached, end, None) for end in ENDS}
                    rows.append({"task": task, "metric": metric, "share": share, **ends})
    return pa.Table.from_pylist(rows, summary_table.schema)


def _reached_summary(name: str, table: Table) -> Summary:
    own = Table(name, " ".join([REACHED_KEY, *ENDS]), REACHED_KEY, optional=ENDS, is_summary=True)
    return Summary(own, table, partial(_compute_reached, table, own), ("task", "step"))


IN_ANSWERS, IN_SPANS = _reached_summary("reached", ANSWERS), _reached_summary("reached_spans", SPANS)

# === Attention of each head to fixed positions ===

NORMALISED = tuple(f"{position}_normalised" for position in POSITIONS)
MEANS = (*POSITIONS, *NORMALISED)
POSITION_WEIGHTS = Table("positions", " ".join([ATTENTION.key_names, *MEANS]), ATTENTION.key_names, is_summary=True)


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


def _weigh_positions(run: Run) -> pa.Table:
    summaries = (_summarise_step(read_table(run, ATTENTION, step=step)) for step in read_values(run, ATTENTION, "step"))
    return pa.concat_tables([POSITION_WEIGHTS.schema.empty_table(), *summaries])


def _add_positions(summary: pa.Table, pending: PendingRows) -> pa.Table:
    """Return the summary with the maps of pending steps, which replace existing ones."""
    steps = pa.array([step for _, step in pending], pa.int64())
    summaries = [summary.filter(~pc.field("step").isin(steps)), *map(_summarise_step, pending.values())]
    return sort_rows(ATTENTION, pa.concat_tables(summaries))


def _summarise_step(maps: pa.Table) -> pa.Table:
    """Return the summary of a step's maps; empty unless all have the same length of at least two positions."""
    lengths = pc.unique(maps["length"]).to_pylist()
    if len(lengths) != 1 or lengths[0] < 2:
        return POSITION_WEIGHTS.schema.empty_table()
    weights = to_numbers(maps[WEIGHTS_COLUMN]).reshape(-1, lengths[0], lengths[0])
    means = np.hstack([position_weights(weights), position_weights(normalise_rows(weights))])
    columns = {name: maps[name] for name in ATTENTION.key} | dict(zip(MEANS, means.T, strict=True))
    return pa.table(columns, POSITION_WEIGHTS.schema)


POSITION_WEIGHTS_SUMMARY = Summary(
    POSITION_WEIGHTS, ATTENTION, _weigh_positions, (*ATTENTION.key, "length", WEIGHTS_COLUMN), _add_positions
)
