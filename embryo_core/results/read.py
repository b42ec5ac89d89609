"""Readers of results: the evaluated steps, and a function for each kind of row.

Functions that return a frame or arrays raise ResultsError if a file cannot be read.
"""

import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from embryo_core import runs
from embryo_core.errors import BrokenExamples, ResultsError
from embryo_core.groups import ALL, TAGS
from embryo_core.results import tables
from embryo_core.results.attention_codec import to_numbers
from embryo_core.results.memo import memoized
from embryo_core.results.pending import list_pending
from embryo_core.results.provenance import incomparable_evaluations, read_sources
from embryo_core.results.rows import EVERYTHING, NOTHING, read_table, read_values, retry_until_stable, steps_of_file
from embryo_core.runs.schema import ExampleQuestion, Examples
from embryo_core.types import Run

EXAMPLES_FILE = "examples.json"
# metric -> the table to which it writes rows at every step
OWN_TABLES = {"attention": tables.ATTENTION, "world_knowledge": tables.CLOZE}


# === Steps that are done ===


def steps_by_metric(run: Run) -> defaultdict[str, set[int]]:
    """Return the steps at which each metric has results, compacted or pending. Raises ResultsError."""

    def read() -> defaultdict[str, set[int]]:
        steps = defaultdict(set)
        for metric, step in list_pending(run):
            steps[metric].add(step)
        for table in tables.TABLES:
            for metric, compacted in steps_of_file(run, table).items():
                steps[metric].update(compacted)
        return steps

    return retry_until_stable(run, read)


def steps_done(run: Run, metric: str) -> set[int]:
    """Return the steps with averaged maps ("attention") or answers to facts ("world_knowledge"). Raises ResultsError.

    Only the metric's table is read, so damage to other tables does not matter.
    """

    def read() -> set[int]:
        pending = {step for name, step in list_pending(run) if name == metric}
        return pending.union(steps_of_file(run, OWN_TABLES[metric]).get(metric, ()))

    return retry_until_stable(run, read)


# === Scores, words and facts ===


@memoized
def read_scores(
    run: Run, metric: str | Iterable[str] | None = None, prefix: str = "", categories: bool = False
) -> pd.DataFrame:
    """Return the scores of these metrics (default: all) whose names begin with `prefix`, sorted.

    Columns: run, metric, step, layer, group, value, n. With `categories`, which take less memory, texts are categories.
    """
    columns = ["metric", "step", "layer", "group", "value", "n"]
    rows = read_table(run, tables.SCORES, _metric_condition(metric, prefix), columns=columns)
    frame = rows.to_pandas(strings_to_categorical=categories, self_destruct=True).astype({"layer": "Int64"})
    frame.insert(0, "run", pd.Series(run.name, frame.index, "category" if categories else "str"))
    return frame


def read_metrics(run: Run) -> list[str]:
    """Return the names of the scores that a run has, sorted."""
    return _metrics(run)["metric"].tolist()


@memoized
def _metrics(run: Run) -> pd.DataFrame:
    return pd.DataFrame({"metric": read_values(run, tables.SCORES, "metric")}, dtype="str")


@memoized
def read_words(run: Run, metric: str, group: str | None = None, step: int | None = None) -> pd.DataFrame:
    """Return the words behind a metric's scores, of one group or all, at one step or all.

    Columns: metric, step, tag, word, band, n, correct; the counts add up to the score. `group` is a group of scores
    (see `groups`).
    """
    of_group = EVERYTHING
    if group in TAGS:
        of_group = pc.field("tag").isin(pa.array(TAGS[group], pa.string()))
    elif group not in (None, ALL):
        of_group = pc.field("band") == group
    rows = read_table(run, tables.WORDS, _equals("metric", metric) & of_group, step)
    return rows.select(["metric", "step", "tag", "word", "band", "n", "correct"]).to_pandas()


def read_cloze(run: Run, relation: str | None = None, fact: str | None = None, step: int | None = None) -> pd.DataFrame:
    """Return step and columns of `measurements.ClozeAnswer`, by relation, fact, step; fast if a relation is given."""
    rows = read_table(run, tables.CLOZE, _equals("relation", relation) & _equals("fact", fact), step)
    return rows.select(["step", *tables.CLOZE.columns]).to_pandas()


def read_relation(run: Run, relation: str) -> pd.DataFrame:
    """Return the answers to all facts of a relation, by fact and step; texts are categories, which take less memory.

    Columns: step, fact, rank, probability, prediction, prediction_probability (see `measurements.ClozeAnswer`).
    """
    columns = ["step", "fact", "rank", "probability", "prediction", "prediction_probability"]
    rows = read_table(run, tables.CLOZE, _equals("relation", relation), columns=columns)
    return rows.to_pandas(strings_to_categorical=True)


@memoized
def read_variant_answers(run: Run, relation: str, fact: str) -> pd.DataFrame:
    """Return the answers to a fact's variants where it was answered right: step, kind, variant, rank, prediction."""
    rows = read_table(run, tables.VARIANTS, _equals("relation", relation) & _equals("fact", fact))
    return rows.select(["step", "kind", "variant", "rank", "prediction"]).to_pandas()


@memoized
def read_pair_scores(run: Run, paradigm: str | None = None, step: int | None = None) -> pd.DataFrame:
    """Return the scores of minimal pairs: step, paradigm (set/phenomenon/paradigm), pair, good, bad; sorted."""
    rows = read_table(run, tables.PAIRS, _equals("paradigm", paradigm), step)
    return rows.select(["step", "paradigm", "pair", "good", "bad"]).to_pandas()


@memoized
def read_surprisals(run: Run, word: str | None = None) -> pd.DataFrame:
    """Return step and columns of `measurements.ListedWordSurprisal` for one or all words, by word and step."""
    rows = read_table(run, tables.SURPRISALS, _equals("word", word))
    return rows.select(["step", *tables.SURPRISALS.columns]).to_pandas()


# === Products of states ===


def read_gram_matrices(run: Run, layer: int | None = None) -> pd.DataFrame:
    """Return products of states for similarities (`measurements.StateProducts`): layer, step, n, products; sorted."""
    rows = read_table(run, tables.GRAM_MATRICES, _equals("layer", layer))
    if len(pc.unique(rows["n"])) > 1:
        raise ResultsError(
            f"Products of states of run '{run.name}' are of different numbers of words; run: "
            f"python -m embryo_core evaluate {run.name} --metrics geometry --overwrite"
        )
    return rows.select(["layer", "step", "n", "products"]).to_pandas()


# === Probes and fine-tuning ===


@memoized
def read_probes(run: Run, task: str | None = None, layer: int | None = None, step: int | None = None) -> pd.DataFrame:
    """Return the curves of probes: step, task, layer (0: embeddings), control, iteration, train_loss, dev_f1."""
    rows = read_table(run, tables.PROBES, _equals("task", task) & _equals("layer", layer), step)
    return rows.select(["step", *tables.PROBES.columns]).to_pandas()


@memoized
def read_task_scores(run: Run, task: str | None = None) -> pd.DataFrame:
    """Return scores of fine-tuned checkpoints and of controls: step, task, seed, predictor, metric, value, n.

    Here and in the readers below, seeds that differ from the first in data, protocol or learning rate are left out.
    """
    return _read_tuned(run, tables.TASK_SCORES, task)


@memoized
def read_tuning(run: Run, task: str | None = None, step: int | None = None) -> pd.DataFrame:
    """Return the training curves of fine-tuning: step, task, seed, update, train_loss, dev_score."""
    return _read_tuned(run, tables.TUNING, task, step)


@memoized
def read_answers(run: Run, task: str) -> pd.DataFrame:
    """Return the answers to the development examples of a task: step, task, seed, example, gold, answer."""
    return _read_tuned(run, tables.ANSWERS, task)


@memoized
def read_spans(run: Run, task: str) -> pd.DataFrame:
    """Return the answers to questions about paragraphs: step, task, seed, question, start, end, exact, f1."""
    return _read_tuned(run, tables.SPANS, task)


def _read_tuned(run: Run, table: tables.Table, task: str | None, step: int | None = None) -> pd.DataFrame:
    """Return rows of fine-tuned checkpoints, without seeds that must not be averaged with the first."""
    rows = read_table(run, table, _equals("task", task), step)
    others = incomparable_evaluations(pc.unique(rows["evaluation"]).to_pylist(), read_sources(run))
    if others:
        rows = rows.filter(~pc.field("evaluation").isin(others))
    return rows.select(["step", *table.columns]).to_pandas()


# === Attention maps ===


@dataclass(frozen=True, eq=False)
class AttentionHistory:
    """One head's maps at evaluated steps: steps [S] int, weights [S, L, L] float32, and the sentences averaged over."""

    steps: np.ndarray
    weights: np.ndarray
    sentences: int


def read_attention(run: Run, layer: int, head: int, steps: Iterable[int] | None = None) -> AttentionHistory:
    """Return one head's maps at every evaluated step, or at some; layer 1 is the lowest, head 1 the first."""
    of_head = (pc.field("layer") == layer) & (pc.field("head") == head)
    rows = read_table(run, tables.ATTENTION, of_head, _step_condition(steps))
    weights, sentences = _maps(run, rows)
    return AttentionHistory(rows["step"].to_numpy(), weights, sentences)


def read_attention_step(run: Run, step: int) -> tuple[np.ndarray, int]:
    """Return all heads at one step: weights [layers, heads, L, L] float32, and sentences (0 if there are no maps)."""
    _, weights, sentences = read_attention_steps(run, [step])
    return weights[0] if len(weights) else weights.reshape(weights.shape[1:]), sentences


def read_attention_steps(
    run: Run, steps: Iterable[int] | None = None, head: int | None = None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return steps [S], weights [S, layers, heads, L, L] and sentences, for one or all heads, at some or all steps."""
    rows = read_table(run, tables.ATTENTION, _equals("head", head), _step_condition(steps))
    weights, sentences = _maps(run, rows)
    stored_steps = np.unique(rows["step"].to_numpy())
    layers, heads = pc.max(rows["layer"]).as_py() or 0, len(pc.unique(rows["head"]))
    if len(weights) != layers * heads * len(stored_steps):
        named = f"step {stored_steps[0]}" if len(stored_steps) == 1 else f"{len(stored_steps)} steps"
        raise _unusable(
            run,
            f"Attention of run '{run.name}' at {named} has {len(weights)} maps, not {layers} layers of {heads} heads",
        )
    # rows are sorted by step, layer, head
    return stored_steps, weights.reshape(len(stored_steps), layers, heads, *weights.shape[1:]), sentences


def _maps(run: Run, rows: pa.Table) -> tuple[np.ndarray, int]:
    """Return the maps [rows, L, L] of some rows, and the smallest number of averaged sentences."""
    lengths = set(pc.unique(rows["length"]).to_pylist())
    if len(lengths) > 1:
        listed = ", ".join(map(str, sorted(lengths)))
        raise _unusable(run, f"Attention maps of run '{run.name}' differ in length ({listed})")
    length = lengths.pop() if lengths else 0
    weights = to_numbers(rows["weights"]).reshape(rows.num_rows, length, length)
    return weights, pc.min(rows["sentences"]).as_py() or 0


def _unusable(run: Run, maps: str) -> ResultsError:
    return ResultsError(f"{maps}; run: python -m embryo_core evaluate {run.name} --metrics attention --overwrite")


# === Example questions ===


def read_example_questions(run: Run) -> list[ExampleQuestion]:
    """Return the example questions of a run, in their order. Raises BrokenExamples."""
    path = run.results / EXAMPLES_FILE
    if not os.path.lexists(path):
        return []
    return runs.read_json(path, run.results, Examples, BrokenExamples)


# === Conditions on rows ===


def _equals(column: str, value: str | int | None) -> pc.Expression:
    """Return the condition that a column has this value; None matches every row."""
    return EVERYTHING if value is None else pc.field(column) == value


def _metric_condition(metric: str | Iterable[str] | None, prefix: str) -> pc.Expression:
    """Return the condition on the metric of a score; a prefix becomes bounds, by which row groups are skipped."""
    wanted = [metric] if metric is None or isinstance(metric, str) else sorted(metric)
    condition = reduce(or_, (_equals("metric", name) for name in wanted), NOTHING)
    if not prefix:
        return condition
    return condition & (pc.field("metric") >= prefix) & (pc.field("metric") < prefix + chr(sys.maxunicode))


def _step_condition(steps: Iterable[int] | None) -> set[int] | None:
    return None if steps is None else {*steps}
