"""Differences between two runs: every accuracy of one minus that of the other, at the last step that both have."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from embryo_core import results, runs
from embryo_core.corpora.groups import ALL
from embryo_core.curves import difference_interval
from embryo_core.types import Run

KNOWLEDGE = "world knowledge"
MASKED, NEXT = "masked accuracy", "next-piece accuracy"  # in the log
MEASURES = {  # metrics, each scored over all cases together
    "mask prediction": "mask_prediction",
    "next-word prediction": "next_word_prediction",
    "token reconstruction": "token_reconstruction",
    KNOWLEDGE: "world_knowledge",
}
PROBES = "edge_probing_f1"
COLUMNS = "measure step_first step_second first second difference low high n_first n_second".split()


def differences(first: Run, second: Run) -> pd.DataFrame:
    """Return each accuracy of `second` minus that of `first` at their last common step, with Newcombe's interval.

    If one run continues the other (--init-from), the last step of each is taken, since their common steps are the same
    weights. World knowledge is compared on the facts that both were asked, which depend on the vocabulary.
    Columns: measure, step_first, step_second, first, second, difference, low, high, n_first, n_second; all but the
    measure are missing if the runs have no such steps or facts. Raises ResultsError, BrokenRun.
    """
    one, two = dict(_measures(first)), dict(_measures(second))
    rows: list[tuple[Any, ...]] = []
    for measure in dict.fromkeys([*one, *two]):
        steps = _steps(first, second, one[measure], two[measure]) if measure in one and measure in two else None
        shares = _shares((first, second), (one, two), measure, steps) if steps else None
        if steps is None or shares is None:
            rows.append((measure, *[None] * 9))
            continue
        (a, n), (b, m) = shares
        low, high = difference_interval(b, a, m, n_second=n)
        rows.append((measure, *steps, a, b, b - a, float(low), float(high), int(n), int(m)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _steps(first: Run, second: Run, one: pd.DataFrame, two: pd.DataFrame) -> tuple[int, int] | None:
    """Return the steps of both runs at which a measure is compared, or None."""
    if second.origin and continues(second, first):
        before = one.index[one.index <= second.origin.step]
        return (int(before.max()), int(two.index.max())) if len(before) else None
    if continues(first, second):
        swapped = _steps(second, first, two, one)
        return (swapped[1], swapped[0]) if swapped else None
    common = one.index.intersection(two.index)
    return (int(common.max()),) * 2 if len(common) else None


def _shares(
    compared: Sequence[Run], measures: Sequence[dict[str, pd.DataFrame]], measure: str, steps: tuple[int, int]
) -> list[tuple[float, int]] | None:
    """Return the accuracy and the number of cases of each run at its step; None if they share no case."""
    if measure != KNOWLEDGE:
        return [tuple(found[measure].loc[step]) for found, step in zip(measures, steps, strict=True)]
    answers = [_right_at(run, step) for run, step in zip(compared, steps, strict=True)]
    shared = answers[0].index.intersection(answers[1].index)
    return [(float(right[shared].mean()), len(shared)) for right in answers] if len(shared) else None


def _right_at(run: Run, step: int) -> pd.Series:
    """Return whether each fact, by relation and id, was answered right at a step; empty without stored answers."""
    facts, right = results.read_histories(run), results.read_right_answers(run)
    known = facts.index if step in right.steps else facts.index[:0]
    at = right.correct[known][:, right.steps == step].any(axis=1)
    return pd.Series(at, pd.MultiIndex.from_frame(facts.loc[known, ["relation", "fact"]]), dtype=bool)


def continues(run: Run, other: Run) -> bool:
    """Return whether a run started from a checkpoint of the other."""
    return run.origin is not None and run.origin.run == other.name


def _measures(run: Run) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each measure of a run with value and n by step; probing tasks in the layer that is best at each step."""
    log = pd.DataFrame(runs.read_log(run))
    if {"masked_lm_accuracy", "n_masked"} <= set(log):
        heldout = log[(log["split"] == "heldout") & (log["n_masked"] > 0)]
        yield MASKED, heldout.set_index("step")[["masked_lm_accuracy", "n_masked"]]
    if {"next_token_accuracy", "n_predicted"} <= set(log):
        heldout = log[(log["split"] == "heldout") & (log["n_predicted"] > 0)]
        yield NEXT, heldout.set_index("step")[["next_token_accuracy", "n_predicted"]]
    scores = results.read_scores(run)
    for measure, metric in MEASURES.items():
        rows = scores[(scores["metric"] == metric) & (scores["group"] == ALL)]
        if len(rows):
            yield measure, rows.set_index("step")[["value", "n"]]
    probes = scores[scores["metric"] == PROBES]
    for task, rows in probes.groupby("group"):
        best = rows.loc[rows.groupby("step")["value"].idxmax()]
        yield f"probing: {task}", best.set_index("step")[["value", "n"]]
