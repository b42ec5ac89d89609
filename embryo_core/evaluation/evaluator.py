"""Evaluate a run: plan the missing results, then load, compute and write, checkpoint by checkpoint.

Each (metric, step) is written as a whole. A killed evaluation loses at most the results in progress, and a rerun
completes it with the same results. All results of a metric come from the same data, which sources.json records.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from embryo_core import results, runs
from embryo_core.engine.device import CPU, Device
from embryo_core.engine.hub_cache import prefetch_checkpoints
from embryo_core.engine.model import Model, read_model
from embryo_core.errors import BrokenCheckpoint, DatasetMismatch, EmbryoError, MissingWeights, ResultsError
from embryo_core.evaluation.plan import MetricPlan, MetricRequest, Report, Work, plan_evaluation, work_of
from embryo_core.measurements import Findings
from embryo_core.metric import Limits, Metric, MetricData
from embryo_core.types import Checkpoint, Run

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class MetricResult:
    """The findings of one metric at one checkpoint, and the metric's summary of its data for sources.json."""

    metric: str
    findings: Findings
    summary: dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """The reason why metrics could not be computed at one checkpoint."""

    reason: str  # a sentence
    metric_count: int  # metrics that could not be computed

    @classmethod
    def of_metric(cls, metric: str, checkpoint: Checkpoint, reason: object) -> "Failure":
        """Return the failure of one metric."""
        return cls(f"Metric '{metric}' failed at step {checkpoint.step}: {reason}", 1)


Outcomes = Iterator[tuple[Checkpoint, MetricResult | Failure]]
Compute = Callable[[Sequence[Work]], Outcomes]  # yields outcomes in any order


def run_locally(work: Sequence[Work], device: Device = CPU, discard: bool = False) -> Outcomes:
    """Compute on this machine, step by step, prefetching the next step's weights; `discard` removes them after use."""
    evaluator, requests = CheckpointEvaluator(device), dict(work)
    for checkpoint, missing in prefetch_checkpoints([*requests], discard):
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
    """Compute metrics at the checkpoints whose models have the outputs that they need, and write the results.

    `data` maps each source to its path: {"treebank": ...}. Without `metric_names`, all metrics with data are computed;
    a variant such as {"probing:mine": ...} is always computed. Without `steps`, every checkpoint is evaluated.
    `options` are values for the options that metrics declare. Existing results are kept unless `overwrite`. `compute`
    yields outcomes, which are written as they arrive. Unreadable checkpoints and failing metrics are reported and
    skipped.

    Raises EmbryoError for an unknown metric, source or step, and for data that are missing, unreadable, or differ from
    the data of existing results; results written before an error are kept.
    """
    with runs.snapshot():  # caches the listing of a long series
        plans, report = plan_evaluation(run, data, metric_names, steps, limit, options or {}, overwrite)
    for plan in plans:
        runs.remember_folder(plan.source.sha256, plan.source.path)  # for pages that show texts of the data
    plan_of = {plan.metric.name: plan for plan in plans}
    total = sum(len(plan.pending) for plan in plans)
    with tqdm(total=total, desc=run.name, unit="result", disable=not (progress and total)) as bar:
        for checkpoint, outcome in compute(work_of(plans)):
            bar.set_postfix_str(f"step {checkpoint.step}")
            failure = outcome if isinstance(outcome, Failure) else _write(checkpoint, plan_of[outcome.metric], outcome)
            if failure:
                report.failures.append(failure.reason)
            report.computed += failure is None
            bar.update(failure.metric_count if failure else 1)
    results.compact(run)
    return report


def _write(checkpoint: Checkpoint, plan: MetricPlan, result: MetricResult) -> Failure | None:
    """Write a result; return a Failure if that fails. Raises DatasetMismatch if another evaluation changed the data."""
    findings, overwrite = result.findings, plan.replaces_other_data
    try:
        results.write(checkpoint, result.metric, findings, plan.dataset(), result.summary, overwrite)
    except DatasetMismatch:
        raise
    except ResultsError as reason:
        return Failure.of_metric(result.metric, checkpoint, reason)
    plan.replaces_other_data = False  # results of other data found from now on belong to a concurrent evaluation
    return None


# === A checkpoint, in this process or in a worker of a cluster (cluster.py) ===


class CheckpointEvaluator:
    """An evaluator of one run's checkpoints on one device, which reads the data once."""

    def __init__(self, device: Device):
        self._device = device
        self._data: dict[str, MetricData] = {}  # by name of the metric

    def evaluate(
        self, checkpoint: Checkpoint, requests: Sequence[MetricRequest], missing: EmbryoError | None = None
    ) -> Iterator[MetricResult | Failure]:
        """Yield results as soon as they are computed; metrics that share a forward pass finish together.

        `missing` is the error if the checkpoint's weights are missing. It, and errors in reading the model or computing
        a metric, are yielded as Failure. Raises CorpusError for bad data, and OSError.
        """
        try:
            if missing:
                raise missing
            model = read_model(checkpoint, self._device)
        except (BrokenCheckpoint, MissingWeights) as reason:
            yield Failure(str(reason), len(requests))
            return
        for metric, source in requests:  # read all data first, since errors in them should appear early
            if metric.name not in self._data:
                self._data[metric.name] = metric.read(model.tokenizer, Limits.for_model(model), source)
        passes: dict[Any, list[Metric]] = {}
        for metric, source in requests:
            shared = metric.shared_pass
            passes.setdefault((shared, source) if shared else metric.name, []).append(metric)
        for metrics in passes.values():
            yield from self._compute(model, metrics)

    def _compute(self, model: Model, metrics: Sequence[Metric]) -> list[MetricResult | Failure]:
        """Compute one metric, or several in a shared pass; if the shared pass fails, compute each separately."""
        first, data = metrics[0], [self._data[metric.name] for metric in metrics]
        try:
            if len(metrics) == 1 or first.shared_pass is None:
                all_findings = [first.compute(model, data[0])]
            else:
                all_findings = first.shared_pass(model, list(zip(metrics, data, strict=True)))
        except OSError:  # such as a full disk: later writes would fail too
            raise
        except Exception as reason:  # one failure does not stop the other metrics
            if len(metrics) > 1:
                return [outcome for metric in metrics for outcome in self._compute(model, [metric])]
            checkpoint = model.checkpoint
            logger.exception("%s failed at step %d of %s", first.name, checkpoint.step, checkpoint.run.name)
            return [Failure.of_metric(first.name, checkpoint, reason)]
        return [
            MetricResult(metric.name, findings, data_of_metric.summary)
            for metric, findings, data_of_metric in zip(metrics, all_findings, data, strict=True)
        ]
