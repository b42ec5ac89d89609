"""Evaluate a run: plan what is missing, then load, compute and write, checkpoint by checkpoint.

Each (metric, step) is written as a whole. A killed evaluation loses at most what it was computing, and a rerun goes on
from there to the same results. All results of a metric are of the same data, noted in sources.json.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from embryo_core import results, runs
from embryo_core.engine.device import CPU, Device
from embryo_core.engine.hub_cache import fetched_ahead
from embryo_core.errors import OtherData, ResultsError
from embryo_core.evaluate.checkpoint import CheckpointEvaluator, Failure, MetricResult
from embryo_core.evaluate.plan import MetricPlan, Report, Work, plan_evaluation, work_of
from embryo_core.types import Checkpoint, Run

Outcomes = Iterator[tuple[Checkpoint, MetricResult | Failure]]
Compute = Callable[[Sequence[Work]], Outcomes]  # in any order


def run_locally(work: Sequence[Work], device: Device = CPU, discard: bool = False) -> Outcomes:
    """Compute in this process, in the order of steps.

    Weights on the Hub are fetched one checkpoint ahead; `discard` removes them again once they were used.
    """
    evaluator, requests = CheckpointEvaluator(device), dict(work)
    for checkpoint, missing in fetched_ahead([*requests], discard):
        for outcome in evaluator.evaluate(checkpoint, requests[checkpoint], missing):
            yield checkpoint, outcome


def evaluate(
    run: Run,
    data: Mapping[str, Path],
    metric_names: Sequence[str] | None = None,
    steps: Iterable[int] | None = None,
    *,
    limit: int | None = None,
    options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    progress: bool = False,
    compute: Compute = run_locally,
) -> Report:
    """Compute metrics at the checkpoints whose models give what they need, and write the results.

    `data` has a path for each source: {"treebank": ...}. Without `metric_names`, all metrics with data are computed; a
    variant such as {"probing:mine": ...} is computed whatever the names. Without `steps`, each metric has its own grid.
    `options` are those that the metrics declare. Existing results are kept unless `overwrite`. `compute` yields
    outcomes, which are written as they come. A checkpoint that cannot be read and a metric that fails are reported and
    skipped.

    Raises EmbryoError for an unknown metric, source or step, and for data that are missing, unreadable or not those of
    the existing results; everything written before stays.
    """
    with runs.snapshot():  # lists a long series once
        plans, report = plan_evaluation(run, data, metric_names, steps, limit, options or {}, overwrite)
    for plan in plans:
        runs.remember_folder(plan.source.sha256, plan.source.path)  # pages show its sentences
    by_metric = {plan.metric.name: plan for plan in plans}
    with tqdm(total=sum(len(p.pending) for p in plans), desc=run.name, unit="result", disable=not progress) as bar:
        for checkpoint, outcome in compute(work_of(plans)):
            bar.set_postfix_str(f"step {checkpoint.step}")
            if isinstance(outcome, MetricResult):
                failure = _write(checkpoint, by_metric[outcome.metric], outcome)
            else:
                failure = outcome
            if failure:
                report.failures.append(failure.reason)
            report.computed += failure is None
            bar.update(failure.metrics if failure else 1)
    results.compact(run)
    return report


def _write(checkpoint: Checkpoint, plan: MetricPlan, result: MetricResult) -> Failure | None:
    """Write a result, or return why that failed.

    Raises OtherData if another evaluation has replaced the data meanwhile.
    """
    found, overwrite = result.findings, plan.replaces_other_data
    try:
        results.write(checkpoint, result.metric, found, plan.dataset(), result.summary, overwrite)
    except OtherData:
        raise
    except ResultsError as reason:
        return Failure.of_metric(result.metric, checkpoint, reason)
    plan.replaces_other_data = False  # later results of other data are another evaluation's
    return None
