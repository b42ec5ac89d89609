"""Cached reads of runs and results for all pages (attention maps: maps.py; texts of tasks: task_data.py)."""

from contextlib import suppress

import pandas as pd

from app.caching import cached, cached_resource, files_state, log_state, results_state, run_state
from embryo_core import comparison, runs
from embryo_core import results as store
from embryo_core.browser.growth import make_tiles
from embryo_core.engine.capabilities import run_capabilities
from embryo_core.errors import ResultsError
from embryo_core.figures import (
    acquisition,
    early_signals,
    finetuning_examples,
    finetuning_tables,
    grammar,
    knowledge_facts,
    overview,
    patterns,
    probing_scores,
    tokens,
    word_tables,
)
from embryo_core.figures import geometry as geometry_figures
from embryo_core.figures import growth as tiles
from embryo_core.figures import phases as phase_tables
from embryo_core.figures.axis import AxisChoice
from embryo_core.findings import Judgement, judge
from embryo_core.types import Run

FACTS = "world_knowledge"  # the metric whose results are facts

# === Faults of checkpoints ===


def _audit_state(run: Run) -> str:
    """Return a string that changes with the report of the audit, or with a checkpoint."""
    return files_state(run, run.path / runs.AUDIT_FILE) + runs.checkpoints_digest(run)


audit = cached(_audit_state, 16)(runs.read_audit)


# === Outputs of models ===

capabilities = cached(runs.checkpoints_digest, 64)(run_capabilities)


# === Progress of runs ===


def _progress_state(run: Run) -> str:
    """Return a string that changes with checkpoints, card or word frequencies, on which axes of steps depend."""
    return runs.checkpoints_digest(run) + files_state(run, run.path / "run.json", run.frequencies)


step_axis = cached(lambda run: _progress_state(run) + _audit_state(run) + log_state(run), 64)(AxisChoice.for_run)
supports_axis = cached(_progress_state, 64)(AxisChoice.supports)
designs = cached(lambda run: _progress_state(run) + results_state(run) + log_state(run), 16)(comparison.designs)
agreement = cached(run_state, 32)(acquisition.agreement)
early_measures = cached(run_state, 16)(early_signals.common_measures)

# === Stored results ===

scores = store.read_scores
fact_histories = cached(results_state, 4, "Reading the facts")(store.read_histories)
sources = cached(results_state, 16)(store.read_sources)
examples = cached(results_state, 16)(store.read_example_questions)


def evaluated_steps(run: Run, metric: str) -> set[int]:
    """Return the steps with results of any metric whose name begins with `metric`. Raises ResultsError."""
    return set().union(*(steps for name, steps in _steps_by_metric(run).items() if name.startswith(metric)))


def last_evaluated_step(run: Run) -> int:
    """Return the last step with any result; 0 if no step has one, or if a table cannot be read."""
    with suppress(ResultsError):
        return max(set().union(*_steps_by_metric(run).values()), default=0)
    return 0


_steps_by_metric = cached_resource(results_state, 64)(store.steps_by_metric)
steps_done = cached_resource(results_state, 64)(store.steps_done)


def answers(run: Run, relation: str, **where: int | str) -> pd.DataFrame:
    """Return the answers to a relation with these values of columns, such as one `step` or one `fact`.

    Columns are those of `results.read_relation`. Raises ResultsError.
    """
    rows = _answers(run, relation)
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows.astype({"fact": "str", "prediction": "str"})


_answers = cached_resource(results_state, 2)(store.read_relation)


def templates(run: Run) -> dict[str, str]:
    """Return the template of each LAMA relation in the results: {"P19": "[X] was born in [Y] ."}."""
    return sources(run).get(FACTS, {}).get("templates", {})


phases = overview.training_phases
phase_changes = cached(lambda run: log_state(run) + results_state(run), 16)(phase_tables.phase_changes)


# === Facts ===

first_fact = cached(results_state, 16)(knowledge_facts.first_fact)
relation_table = cached(results_state, 16, "Reading the facts")(knowledge_facts.relation_table)


# === Geometry ===

geometry = cached(results_state, 32)(geometry_figures.measure_table)
measures = cached(results_state, 32)(geometry_figures.measured)
rank_stretches = cached(results_state, 32)(geometry_figures.rank_stretches)


# === Minimal pairs ===

pair_sets = cached(results_state, 32)(grammar.pair_sets)
pair_accuracies = cached(results_state, 32)(grammar.accuracy_table)
pair_shapes = cached(results_state, 16, "Reading the pairs")(grammar.paradigm_shapes)


# === Fine-tuning ===

tuning_scores = cached(results_state, 8)(finetuning_tables.read_scores)
tuning_reached = cached(results_state, 32, "Resampling the development examples")(finetuning_tables.read_reached)
tuning_seeds = cached(results_state, 32)(finetuning_examples.read_seeds)
tuning_associations = cached(run_state, 8)(finetuning_tables.read_associations)


# === Words of a list ===

word_ages = cached(results_state, 16, "Estimating the ages of words")(word_tables.age_table)


# === Tiles of the Overview ===


@cached(run_state, 32)
def introduce_run(run: Run) -> tuple[str, str]:
    """Return two sentences: what to watch in a run, and what kind of run it is (see `growth.introduce_run`)."""
    last = runs.checkpoints(run)[-1]
    return tiles.introduce_run(run, last.step, last.tokens)


growth = cached_resource(results_state, 16)(make_tiles)


# === Tables for figures ===


@cached(results_state, 32)
def words(run: Run, metric: str, group: str, step: int | None = None) -> pd.DataFrame:
    """Return the words of a category at one step or at all steps; words of an uncased model are merged by case."""
    return tokens.merge_case(store.read_words(run, metric, group, step), tokens.is_cased(run))


head_scores = patterns.read_behaviour


@cached(results_state, 16)
def strongest_head(run: Run) -> tuple[str, int, int]:
    """Return the pattern, layer and head that a page opens with (see `patterns.clearest_head`). Raises ResultsError."""
    return patterns.clearest_head(head_scores(run))


def default_head(run: Run) -> tuple[str, int, int]:
    """Return `strongest_head`, or a fixed pattern, layer and head if the scores of heads cannot be read."""
    with suppress(ResultsError):
        return strongest_head(run)
    return patterns.FIRST_HEAD


probe_scores = cached(results_state, 8)(probing_scores.read_probe_scores)


@cached(results_state, 16)
def judgements(run: Run, names: tuple[str, ...] | None = None) -> list[Judgement]:
    """Return the run's verdict on each finding of the paper, or on the findings in `names`. Raises ResultsError."""
    return judge(run, names)
