"""Results read back as frames: which steps are done, and a function for each kind of row."""

from collections import defaultdict
from collections.abc import Iterable
from functools import reduce
from operator import or_

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from embryo_core.corpora.word_groups import ALL, TAGS
from embryo_core.results.parts import list_parts
from embryo_core.results.rows import (
    EVERYTHING,
    NOTHING,
    begins,
    equals,
    read_table,
    read_values,
    settled,
    steps_of_file,
)
from embryo_core.results.sources import of_other_data, read_sources
from embryo_core.results.tables import (
    ANSWERS,
    ATTENTION,
    CLOZE,
    PROBES,
    SCORES,
    SPANS,
    TABLES,
    TASK_SCORES,
    TUNING,
    WORDS,
    Table,
)
from embryo_core.types import Run

OWN = {"attention": ATTENTION, "world_knowledge": CLOZE}  # the table of metrics that have rows in it at every step


def done(run: Run) -> defaultdict[str, set[int]]:
    """Steps at which each metric has been written, compacted or not; none of other metrics. Raises ResultsError."""
    return settled(run, lambda: _done_once(run))


def steps_done(run: Run, metric: str) -> set[int]:
    """Steps of averaged maps or facts (OWN), compacted or not: what other tables hold, or lack, does not matter.

    Raises ResultsError.
    """

    def read() -> set[int]:
        parts = {step for name, step in list_parts(run) if name == metric}
        return parts.union(steps_of_file(run, OWN[metric]).get(metric, ()))

    return settled(run, read)


def _done_once(run: Run) -> defaultdict[str, set[int]]:
    steps = defaultdict(set)
    for metric, step in list_parts(run):
        steps[metric].add(step)
    for table in TABLES:
        for metric, compacted in steps_of_file(run, table).items():
            steps[metric].update(compacted)
    return steps


def read_scores(run: Run, metric: str | Iterable[str] | None = None, prefix: str = "") -> pd.DataFrame:
    """Scores of a run, of one metric or some, or of those with a prefix; sorted by metric and step.

    Columns: run, metric, step, layer, group, value, n.
    """
    rows = read_table(run, SCORES, _of_metrics(metric, prefix))
    frame = rows.select(["metric", "step", "layer", "group", "value", "n"]).to_pandas()
    frame["layer"] = frame["layer"].astype("Int64")
    frame.insert(0, "run", pd.Series(run.name, index=frame.index, dtype="str"))
    return frame


def read_many_scores(run: Run, metric: str | Iterable[str] | None = None, prefix: str = "") -> pd.DataFrame:
    """The same in less memory, for metrics with a score for each head: texts are categories, and there is no run.

    Columns: metric, step, layer, group, value, n.
    """
    columns = ["metric", "step", "layer", "group", "value", "n"]
    rows = read_table(run, SCORES, _of_metrics(metric, prefix), columns=columns)
    return rows.to_pandas(strings_to_categorical=True, self_destruct=True).astype({"layer": "Int64"})


def _of_metrics(metric: str | Iterable[str] | None, prefix: str) -> pc.Expression:
    wanted = [metric] if metric is None or isinstance(metric, str) else sorted(metric)
    return reduce(or_, (equals("metric", name) for name in wanted), NOTHING) & begins("metric", prefix)


def read_metrics(run: Run) -> list[str]:
    """Names of the scores that there are, sorted."""
    return read_values(run, SCORES, "metric")


def read_words(run: Run, metric: str, group: str | None = None, step: int | None = None) -> pd.DataFrame:
    """The words behind a metric's scores, of one group or all, at one step or all; their counts sum to the score's.

    Columns: metric, step, tag, word, band, n, correct. `group` is that of the score (see word_groups).
    """
    of_group = EVERYTHING
    if group in TAGS:
        of_group = pc.field("tag").isin(pa.array(TAGS[group], pa.string()))
    elif group not in (None, ALL):
        of_group = equals("band", group)
    rows = read_table(run, WORDS, equals("metric", metric) & of_group, step)
    return rows.select(["metric", "step", "tag", "word", "band", "n", "correct"]).to_pandas()


def read_cloze(run: Run, relation: str | None = None, fact: str | None = None, step: int | None = None) -> pd.DataFrame:
    """What one step or each answered to the facts of a relation, to one fact, or to all; by relation, fact, step.

    Columns: step, fact, relation, subject, object, rank, probability, prediction, prediction_probability. Giving the
    relation with the fact is faster: the table has one row group per relation.
    """
    rows = read_table(run, CLOZE, equals("relation", relation) & equals("fact", fact), step)
    return rows.select(["step", *CLOZE.columns]).to_pandas()


def read_relation(run: Run, relation: str) -> pd.DataFrame:
    """What was answered to the facts of a relation at all steps, in little memory; by fact and step.

    Columns: step, fact, rank, probability, prediction, prediction_probability; texts are categories.
    """
    names = [name for name in CLOZE.columns if name not in ("relation", "subject", "object")]
    rows = read_table(run, CLOZE, equals("relation", relation), columns=["step", *names])
    return rows.select(["step", *names]).to_pandas(strings_to_categorical=True)


def read_probes(run: Run, task: str | None = None, layer: int | None = None, step: int | None = None) -> pd.DataFrame:
    """Training curves of the probes of a task and layer, at one step or all; sorted by task, layer, control, step.

    Columns: step, task, layer (0 is the embeddings), control, iteration, train_loss, dev_f1. Giving the task is faster.
    """
    rows = read_table(run, PROBES, equals("task", task) & equals("layer", layer), step)
    return rows.select(["step", *PROBES.columns]).to_pandas()


def read_task_scores(run: Run, task: str | None = None) -> pd.DataFrame:
    """Scores of fine-tuned checkpoints and of controls, of one task or all; sorted by task, metric, predictor, seed.

    Columns: step, task, seed, predictor, metric, value, n. Here and below, seeds whose data, protocol or learning rate
    are not those of the task's first are left out.
    """
    return _frame(run, TASK_SCORES, task)


def read_tuning(run: Run, task: str | None = None, step: int | None = None) -> pd.DataFrame:
    """Training curves of fine-tuning: step, task, seed, update, train_loss, dev_score; sorted by task, seed, step."""
    return _frame(run, TUNING, task, step)


def read_answers(run: Run, task: str, step: int | None = None) -> pd.DataFrame:
    """What was answered to each development example: step, task, seed, example, gold, answer; sorted by example."""
    return _frame(run, ANSWERS, task, step)


def read_spans(run: Run, task: str, step: int | None = None) -> pd.DataFrame:
    """What was answered to each question about a paragraph: step, task, seed, question, start, end, exact, f1."""
    return _frame(run, SPANS, task, step)


def _frame(run: Run, table: Table, task: str | None, step: int | None = None) -> pd.DataFrame:
    rows = read_table(run, table, equals("task", task), step)
    others = of_other_data(pc.unique(rows["evaluation"]).to_pylist(), read_sources(run))
    if others:
        rows = rows.filter(~pc.field("evaluation").isin(others))
    return rows.select(["step", *table.columns]).to_pandas()
