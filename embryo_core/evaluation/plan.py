"""Plan an evaluation: which metrics to compute, at which checkpoints, and on which data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from embryo_core import corpora, metrics, results, runs
from embryo_core.engine.capabilities import may_support
from embryo_core.errors import CorpusError, MissingCapability, unknown
from embryo_core.metric import Metric, Source
from embryo_core.types import Checkpoint, Run


@dataclass
class Report:
    """Counts and messages of an evaluation or fine-tuning; one metric at one checkpoint counts as one result."""

    computed: int = 0
    done_before: int = 0
    failures: list[str] = field(default_factory=list)  # a sentence for each broken checkpoint or failed metric
    left_out: list[str] = field(default_factory=list)  # metrics without data that were not requested by name
    remarks: list[str] = field(default_factory=list)  # notes on data that are easily misunderstood
    lost: list[str] = field(default_factory=list)  # notes on checkpoints with neither results nor weights


MetricRequest = tuple[Metric, Source]  # a metric to compute and its data
Work = tuple[Checkpoint, list[MetricRequest]]  # requests for one checkpoint, computed with one loaded model


@dataclass
class MetricPlan:
    """The checkpoints at which a metric is to be computed, and its data."""

    metric: Metric
    pending: list[Checkpoint]
    done_before: int
    lost: list[Checkpoint]  # checkpoints with neither results nor weights
    source: Source = field(init=False)  # set if anything is pending
    replaces_other_data: bool = False  # whether the first result replaces existing results of other data

    def dataset(self) -> results.DatasetId:
        """Return the identity of the data: name, SHA-256, limit, and the options that change results."""
        options = {option.name: self.source.options[option.name] for option in self.metric.options if option.identifies}
        if self.source.second:
            options[f"{self.metric.second}_sha256"] = self.source.second.sha256
        return {"data": self.source.path.name, "sha256": self.source.sha256, "limit": self.source.limit, **options}


def plan_evaluation(
    run: Run,
    data: Mapping[str, Path],
    metric_names: Sequence[str] | None,
    steps: Iterable[int] | None,
    limit: int | None,
    options: Mapping[str, Any],
    overwrite: bool,
) -> tuple[list[MetricPlan], Report]:
    """Return plans for the metrics to compute, and a report on the rest; arguments and errors as for `evaluate`."""
    if not runs.checkpoints(run) and not runs.broken_checkpoints(run):
        runs.checkpoint(run, 0)  # raises UnknownStep with the command that makes checkpoints
    checkpoints = None if steps is None else runs.loadable_checkpoints(run, steps)
    done, named = results.steps_by_metric(run), metric_names is not None
    plans = [
        _plan_metric(run, m, checkpoints, done[m.name], named, overwrite) for m in _choose_metrics(data, metric_names)
    ]
    for path in data.values():  # checked even if all results exist and nothing is read, since a path may be mistyped
        corpora.require(path)
    last = runs.checkpoints(run)[-1:]
    if not named and not any(may_support(one, plan.metric.needs) for one in last for plan in plans):
        raise MissingCapability(
            f"Run '{run.name}' has models of the family '{run.family}', which no metric can evaluate; "
            "evaluate a run of another family."
        )
    without_data = [plan.metric for plan in plans if plan.pending and not {*plan.metric.sources} <= {*data}]
    if without_data and (named or len(without_data) == sum(bool(plan.pending or plan.done_before) for plan in plans)):
        raise _missing_data(without_data[0], data)
    report = Report(done_before=sum(plan.done_before for plan in plans), left_out=[m.name for m in without_data])
    if steps is None:
        report.failures += [reason for _, reason in runs.broken_checkpoints(run)]
        report.lost += runs.explain_missing_weights({checkpoint for plan in plans for checkpoint in plan.lost})
    plans = [plan for plan in plans if plan.pending and plan.metric not in without_data]
    _open_sources(plans, data, limit, options)
    for plan in plans:
        _check_existing_results(run, plan, done[plan.metric.name], overwrite)
    return plans, report


def work_of(plans: Sequence[MetricPlan]) -> list[Work]:
    """Return the requests for each checkpoint, in the order of steps."""
    pending = sorted(
        {checkpoint for plan in plans for checkpoint in plan.pending}, key=lambda checkpoint: checkpoint.step
    )
    return [
        (checkpoint, [(plan.metric, plan.source) for plan in plans if checkpoint in plan.pending])
        for checkpoint in pending
    ]


def _choose_metrics(data: Mapping[str, Path], names: Sequence[str] | None) -> list[Metric]:
    """Return the named metrics, by default all, then the variants in `data`. Raises UnknownMetric and CorpusError."""
    sources = sorted({name for metric in metrics.METRICS for name in metric.sources})
    with_variants = {metric.source: metric for metric in metrics.METRICS if metric.variants}
    variants = []
    for name in data:
        base, colon, variant = name.partition(":")  # the variant "probing:mine" of the metric that reads "probing"
        if base not in (with_variants if colon else sources):
            raise CorpusError(
                unknown("data", name, [f"{source}:NAME" for source in with_variants] if colon else sources)
            )
        if colon:
            variants.append(with_variants[base].variant(variant))
    added = {metric.name for metric in variants}
    chosen = metrics.METRICS if names is None else metrics.get_metrics(name for name in names if name not in added)
    return [*chosen, *variants]


def _plan_metric(
    run: Run, metric: Metric, checkpoints: list[Checkpoint] | None, done: set[int], named: bool, overwrite: bool
) -> MetricPlan:
    """Plan a metric at the chosen checkpoints, by default at all."""
    grid = runs.checkpoints(run) if checkpoints is None else checkpoints
    candidates = [
        checkpoint
        for checkpoint in grid
        if (checkpoint.step in done and not overwrite) or may_support(checkpoint, metric.needs)
    ]
    if named and grid and not candidates:
        needs = " and ".join(
            "masked_words or next_words" if capability == "words" else capability for capability in sorted(metric.needs)
        )
        raise MissingCapability(
            f"Metric '{metric.name}' needs {needs}, which no such checkpoint of run "
            f"'{run.name}' gives; leave it out of --metrics."
        )
    pending = [
        checkpoint for checkpoint in candidates if checkpoint.has_weights and (overwrite or checkpoint.step not in done)
    ]
    lost = [checkpoint for checkpoint in candidates if not checkpoint.has_weights and checkpoint.step not in done]
    return MetricPlan(metric, pending, len(candidates) - len(pending) - len(lost), lost)


def _open_sources(
    plans: Sequence[MetricPlan], data: Mapping[str, Path], limit: int | None, options: Mapping[str, Any]
) -> None:
    """Set the source of each plan, with the options of its metric; each file is opened once."""
    needed = {name for plan in plans for name in plan.metric.sources}
    opened = {name: corpora.open_source(data[name], limit) for name in needed}
    for plan in plans:
        metric = plan.metric
        plan.source = replace(
            opened[metric.source],
            limit=limit if metric.limited else None,
            options={option.name: options.get(option.name, option.default) for option in metric.options},
            second=opened[metric.second] if metric.second else None,
        )


def _missing_data(metric: Metric, data: Mapping[str, Path]) -> CorpusError:
    """Return the error for a metric whose data were not given, in part or at all."""
    lacking = [name for name in metric.sources if name not in data]
    fetched = f", or run: python -m embryo_core fetch {metric.source}" if metric.source in corpora.FETCHED else "."
    options = " and ".join(f"--{name} PATH" for name in lacking)
    return CorpusError(f"Metric '{metric.name}' needs data that were not given; name them with {options}{fetched}")


def _check_existing_results(run: Run, plan: MetricPlan, done: set[int], overwrite: bool) -> None:
    """Raise DatasetMismatch if existing results are of other data and may not be replaced, before computing."""
    irreplaceable = done & runs.steps_without_weights(run)
    plan.replaces_other_data = overwrite and not irreplaceable
    if done and not plan.replaces_other_data:
        results.check_dataset(run, plan.metric.name, plan.dataset(), irreplaceable)
