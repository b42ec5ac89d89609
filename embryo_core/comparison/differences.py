"""Differences in accuracy between two designs, at their last common step."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from msgspec import convert

from embryo_core import results, runs
from embryo_core.curves import difference_interval
from embryo_core.curves.multibootstrap import design_difference_interval, draw_cases, draw_shares
from embryo_core.findings.layers import PROBE_NAMES
from embryo_core.groups import ALL
from embryo_core.runs.schema import CorpusCard, SourceCard
from embryo_core.types import Run

WORLD_KNOWLEDGE = "world knowledge"
PAIRS_PREFIX = "minimal pairs: "  # followed by the name of a set
PROBES_PREFIX = "probing: "  # followed by the name of a task
MASKED_ACCURACY = "masked accuracy"
LOG_COLUMNS = {  # measure -> columns of the log: the accuracy and its n
    MASKED_ACCURACY: ("masked_lm_accuracy", "n_masked"),
    "next-piece accuracy": ("next_token_accuracy", "n_predicted"),
}
MEASURES = {  # measure -> metric, of which the score over all cases is compared
    "mask prediction": "mask_prediction",
    "next-word prediction": "next_word_prediction",
    "token reconstruction": "token_reconstruction",
    WORLD_KNOWLEDGE: "world_knowledge",
}
PROBE_METRIC = "edge_probing_f1"
PAIRS_METRIC = "minimal_pairs"
METRICS = MEASURES | {PAIRS_PREFIX: PAIRS_METRIC, PROBES_PREFIX: "edge_probing"}  # start of a measure -> metric
DIFFERENCE_COLUMNS = (
    "step_first step_second first second difference low high n_first n_second seeds_first seeds_second".split()
)


def differences(first: Sequence[Run], second: Sequence[Run]) -> pd.DataFrame:
    """Return the difference between the mean accuracies of two designs, `second` minus `first`, for each measure.

    Each design is given as the runs of its seeds; seeds without a measure are left out. Measures are compared at the
    last step that all runs have. If a run continues another (--init-from), their common steps have the same weights,
    so the last step of the new run is compared with the last step before it branched off. World knowledge and minimal
    pairs are compared on the facts and pairs that all runs have in common (facts depend on the vocabulary). The
    interval is Newcombe's for two single runs, otherwise the multi-bootstrap's over seeds and cases.

    Columns: measure, step_first, step_second, first, second, difference, low, high, n_first, n_second (of the seeds'
    steps and n, the smallest), seeds_first and seeds_second (numbers of seeds). All but the measure are missing if the
    runs have no common step or case, or were evaluated on different data. Raises ResultsError and BrokenRun.
    """
    measures_by_run = {run: measures(run) for run in (*first, *second)}
    rows: list[tuple[Any, ...]] = []
    for measure in dict.fromkeys(name for by_measure in measures_by_run.values() for name in by_measure):
        tables = {run: by_measure[measure] for run, by_measure in measures_by_run.items() if measure in by_measure}
        first_runs, second_runs = ([run for run in seeds if run in tables] for seeds in (first, second))
        is_comparable = first_runs and second_runs and _on_same_data(measure, tables)
        steps = _common_steps(first_runs, second_runs, tables) if is_comparable else {}
        row = _subtract(measure, first_runs, second_runs, tables, steps) if steps else None
        rows.append((measure, *(row or [None] * len(DIFFERENCE_COLUMNS))))
    return pd.DataFrame(rows, columns=["measure", *DIFFERENCE_COLUMNS])


def _on_same_data(measure: str, compared_runs: Iterable[Run]) -> bool:
    """Return whether the runs were evaluated on the same data, or held-out text, as far as these are recorded.

    Of facts and pairs only common ones are compared, so that their limits may differ.
    """
    if measure in LOG_COLUMNS:
        texts = (identify_sources(convert(run.corpus, CorpusCard).heldout_sources) for run in compared_runs)
        return len({tuple(text) for text in texts if text}) < 2
    records = [record for run in compared_runs if (record := results.data_options(run, _metric_of(measure)))]
    if measure.startswith((WORLD_KNOWLEDGE, PAIRS_PREFIX)):
        records = [{**record, "limit": None} for record in records]
    return all(record == records[0] for record in records)


def identify_sources(sources: Iterable[SourceCard | str]) -> list[str]:
    """Return the SHA-256 of each source of text, or its name if run.json has none, sorted."""
    return sorted(source if isinstance(source, str) else source.sha256 or source.name for source in sources)


def _metric_of(measure: str) -> str:
    """Return the metric whose results a measure compares. A user's task is a metric."""
    task = measure.removeprefix(PROBES_PREFIX)
    if task != measure and task not in PROBE_NAMES.values():
        return f"{METRICS[PROBES_PREFIX]}:{task}"
    return next(metric for start, metric in METRICS.items() if measure.startswith(start))


def _common_steps(first: Sequence[Run], second: Sequence[Run], tables: Mapping[Run, pd.DataFrame]) -> dict[Run, int]:
    """Return the step at which each run is compared; empty if the runs have no comparable step.

    If some runs continue each other, the result has only these.
    """
    if len({run.step_unit for run in tables}) > 1:
        return {}
    pairs = [*product(first, second)]
    continuations = [(old, new) for old, new in (*pairs, *((b, a) for a, b in pairs)) if continues(new, old)]
    if not continuations:
        common = sorted(set.intersection(*(set(table.index) for table in tables.values())))
        return dict.fromkeys(tables, int(common[-1])) if common else {}
    steps: dict[Run, int] = {}
    for old, new in continuations:
        parent_steps = [step for step in tables[old].index if new.origin and step <= new.origin.step]
        if not parent_steps:
            return {}
        steps |= {old: int(max(parent_steps)), new: int(tables[new].index.max())}
    return steps


def _subtract(
    measure: str, first: Sequence[Run], second: Sequence[Run], tables: Mapping[Run, pd.DataFrame], steps: dict[Run, int]
) -> tuple[Any, ...] | None:
    """Return (steps, a, b, b - a, low, high, lowest n of each, numbers of seeds); None if the runs share no case."""
    groups = [[run for run in seeds if run in steps] for seeds in (first, second)]
    ordered_runs = [*groups[0], *groups[1]]
    answers = _right_answers(measure, [(run, steps[run]) for run in ordered_runs])
    if answers is None:
        shares, n = np.array([tables[run].loc[steps[run]].tolist() for run in ordered_runs], float).T
    elif answers.shape[1]:
        shares, n = answers.mean(axis=1), np.full(len(ordered_runs), answers.shape[1])
    else:
        return None
    k = len(groups[0])
    a, b = shares[:k].mean(), shares[k:].mean()
    if len(ordered_runs) == 2:
        low, high = map(float, difference_interval(b, a, n[1], n_second=n[0]))
    else:
        draws = draw_shares(shares, n) if answers is None else draw_cases(answers)
        low, high = design_difference_interval(draws[:, :k], draws[:, k:])
    last = [min(steps[run] for run in seeds) for seeds in groups]
    return (*last, float(a), float(b), float(b - a), low, high, int(n[:k].min()), int(n[k:].min()), *map(len, groups))


def _right_answers(measure: str, run_steps: Sequence[tuple[Run, int]]) -> np.ndarray | None:
    """Return which of the N common cases each of S runs answers right, [S, N]; None if single cases are not stored."""
    if measure == WORLD_KNOWLEDGE:
        answers = [_read_facts(run, step) for run, step in run_steps]
    elif measure.startswith(PAIRS_PREFIX):
        answers = [_read_pairs(run, step, measure.removeprefix(PAIRS_PREFIX)) for run, step in run_steps]
    else:
        return None
    table = pd.concat(answers, axis=1, join="inner")
    return table.to_numpy(float).T


def _read_facts(run: Run, step: int) -> pd.Series:
    """Return whether each fact, by relation and id, was answered right at a step; empty without stored answers."""
    facts, right_answers = results.read_histories(run), results.read_right_answers(run)
    fact_indices = facts.index if step in right_answers.steps else facts.index[:0]
    answers = right_answers.correct[fact_indices][:, right_answers.steps == step].any(axis=1)
    return pd.Series(answers, pd.MultiIndex.from_frame(facts.loc[fact_indices, ["relation", "fact"]]), dtype=bool)


def _read_pairs(run: Run, step: int, set_name: str) -> pd.Series:
    """Return 1 or 0 for each pair of a set, by paradigm and number, judged right or wrong at a step; 0.5 for ties."""
    table = results.read_pair_scores(run, None, step)
    table = table[table["paradigm"].str.startswith(f"{set_name}/")].set_index(["paradigm", "pair"])
    return 0.5 + 0.5 * np.sign(table["good"] - table["bad"])


def continues(run: Run, other: Run) -> bool:
    """Return whether `run` started from a checkpoint of `other`."""
    return run.origin is not None and run.origin.run == other.name


@runs.read_once
def measures(run: Run) -> dict[str, pd.DataFrame]:
    """Return each measure of a run as a table of value and n by step; probing tasks in the best layer of each step."""
    return dict(_read_measures(run))


def _read_measures(run: Run) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each measure's name and table: logged accuracies, scores over all cases, minimal pairs, probing tasks."""
    log = pd.DataFrame(runs.read_log(run))
    for measure, (accuracy, n) in LOG_COLUMNS.items():
        if {accuracy, n} <= set(log):
            heldout = log[(log["split"] == "heldout") & (log[n] > 0)]
            yield measure, heldout.set_index("step")[[accuracy, n]]
    scores = results.read_scores(run)
    for measure, metric in MEASURES.items():
        rows = scores[(scores["metric"] == metric) & (scores["group"] == ALL)]
        if len(rows):
            yield measure, rows.set_index("step")[["value", "n"]]
    pairs = scores[(scores["metric"] == PAIRS_METRIC) & ~scores["group"].astype(str).str.contains("/")]
    for name, rows in pairs.groupby("group", observed=True):
        yield f"{PAIRS_PREFIX}{name}", rows.set_index("step")[["value", "n"]]
    probes = scores[scores["metric"] == PROBE_METRIC]
    for task, rows in probes.groupby("group"):
        best = rows.loc[rows.groupby("step")["value"].idxmax()]
        yield f"{PROBES_PREFIX}{PROBE_NAMES.get(task, task)}", best.set_index("step")[["value", "n"]]
