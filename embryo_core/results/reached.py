"""When each task's score reached a share of its last value; summed up in reached.parquet and reached_spans.parquet."""

from contextlib import suppress
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from embryo_core.curves.reached import LABELLED, SHARES, Reached, reached, reached_in_spans
from embryo_core.errors import ResultsError
from embryo_core.results import summaries
from embryo_core.results.read import read_answers, read_spans, read_task_scores
from embryo_core.results.rows import read_values
from embryo_core.results.summaries import Summary
from embryo_core.results.tables import ANSWERS, SPANS, Table
from embryo_core.types import Run

TEXTS = {"task": pa.string(), "metric": pa.string(), "share": pa.float64()}
ENDS = ("step", "earliest", "latest")  # null where the last score is not surely above 0
METRICS = {ANSWERS.name: (*LABELLED, "spearman", "pearson"), SPANS.name: ("exact", "f1")}
SCHEMA = pa.schema(TEXTS | dict.fromkeys(ENDS, pa.int64()))


def read_reached(run: Run, task: str, metric: str) -> list[Reached | None]:
    """When a task's score reached each of `SHARES` of its last value; None where that is not surely above 0.

    Raises ResultsError where the answers are not those to the same examples at every step.
    """
    return _read(run, IN_ANSWERS, task, metric)


def read_reached_in_spans(run: Run, task: str, metric: str) -> list[Reached | None]:
    """The same of a task whose answers are spans of a paragraph; `metric` is exact or f1."""
    return _read(run, IN_SPANS, task, metric)


def _read(run: Run, summary: Summary, task: str, metric: str) -> list[Reached | None]:
    rows = summaries.read_whole(run, summary)
    if rows is not None:
        rows = rows.filter((pc.field("task") == task) & (pc.field("metric") == metric)).to_pylist()
        by_share = {row["share"]: None if row["step"] is None else Reached(*(row[end] for end in ENDS)) for row in rows}
        if by_share.keys() == set(SHARES):
            return [by_share[share] for share in SHARES]
    return _of_task(summary.table, run, task, metric)  # which says why, where the summary leaves a task out


def _of_task(table: Table, run: Run, task: str, metric: str) -> list[Reached | None]:
    if table is SPANS:
        return reached_in_spans(read_spans(run, task), metric)
    return reached(read_answers(run, task), metric)


def _compute(table: Table, run: Run) -> pa.Table:
    found = []
    for task in read_values(run, table, "task"):
        scored = set(read_task_scores(run, task)["metric"])
        for metric in (name for name in METRICS[table.name] if name in scored):
            with suppress(ResultsError):
                for share, each in zip(SHARES, _of_task(table, run, task, metric), strict=True):
                    ends = {end: getattr(each, end, None) for end in ENDS}
                    found.append({"task": task, "metric": metric, "share": share, **ends})
    return pa.Table.from_pylist(found, SCHEMA)


def _check(rows: pa.Table) -> None:
    known = set(pc.unique(rows["share"]).to_pylist()) <= set(SHARES)
    ordered = all(row["earliest"] <= row["latest"] for row in rows.to_pylist() if row["step"] is not None)
    if not known or not ordered:
        raise ValueError("it does not say when scores were reached")


IN_ANSWERS, IN_SPANS = (
    Summary(file, table, SCHEMA, partial(_compute, table), _check, ("task", "step"))
    for file, table in (("reached.parquet", ANSWERS), ("reached_spans.parquet", SPANS))
)
