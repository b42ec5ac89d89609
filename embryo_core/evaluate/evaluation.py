"""Evaluate a run: plan what is missing, have it computed checkpoint by checkpoint, write each result as a whole.

A kill at any moment loses at most what is being computed: each (metric, step) is written as a whole, and a rerun goes
on from there to the same results. Results of a metric always come from one set of data, noted in sources.json.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from embryo_core import corpora, metrics, results, runs
from embryo_core.engine.capabilities import gives
from embryo_core.engine.device import CPU, Device
from embryo_core.engine.hub_cache import fetched_ahead
from embryo_core.errors import BrokenCheckpoint, CorpusError, MissingCapability, OtherData, ResultsError, unknown
from embryo_core.evaluate.compute import Asked, Computer, Failed, Found, failed
from embryo_core.metric import Metric, Source
from embryo_core.types import Checkpoint, Run
from embryo_core.words import quantity

Pending = tuple[Checkpoint, list[Asked]]  # what is left to compute at a checkpoint, from one loaded model
Outcomes = Iterator[tuple[Checkpoint, Found | Failed]]
Compute = Callable[[Sequence[Pending]], Outcomes]  # in this process or elsewhere, in any order


@dataclass
class Report:
    """What an evaluation did, counted in results: one result is one metric at one checkpoint."""

    computed: int = 0
    done_before: int = 0
    failures: list[str] = field(default_factory=list)  # one sentence for each broken checkpoint or failed metric
    left_out: list[str] = field(default_factory=list)  # metrics nobody asked for by name, and without data
    remarks: list[str] = field(default_factory=list)  # sentences on data that may be meant otherwise
    thinned: list[str] = field(default_factory=list)  # a sentence on checkpoints that lack results, and weights too


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
    compute: Compute | None = None,
) -> Report:
    """Compute metrics at the checkpoints that give what they need, and store what they find.

    Without `metric_names` all metrics are computed, but those whose data were not given; without `steps`, on each
    metric's own grid. `data` has a path for each source: {"treebank": ...}. A variant, such as {"probing:mine": ...},
    is computed whatever the names. `options` are those that the metrics declare. What is done is skipped, or computed
    again with `overwrite`. What `compute` yields is written as it comes; by default it computes in this process, on the
    CPU (see `here`). A checkpoint that cannot be read, or a metric that fails on one, is reported and passed over.

    Raises EmbryoError for an unknown metric, source or step, and for data that are missing, unreadable, or not those of
    the results at hand; nothing written before is lost by that.
    """
    with runs.snapshot():  # a long series is listed once
        jobs, report = plan(run, data, metric_names, steps, overwrite)
    _open_sources(run, jobs, data, limit, options or {}, overwrite)
    by_name = {job.metric.name: job for job in jobs}
    with tqdm(total=sum(len(job.pending) for job in jobs), desc=run.name, unit="result", disable=not progress) as bar:
        for checkpoint, outcome in (compute or here())(_pending(jobs)):
            if isinstance(outcome, Found):
                outcome = _write(checkpoint, by_name[outcome.metric], outcome)
            bar.set_postfix_str(f"step {checkpoint.step}")
            bar.update(1 if outcome is None else outcome.metrics)
            report.computed += outcome is None
            report.failures += [outcome.reason] if outcome else []
    results.compact(run)
    return report


def here(device: Device = CPU, discard: bool = False) -> Compute:
    """Compute in this process, on a device, checkpoint by checkpoint, in the order of steps.

    Weights on the Hub are fetched one checkpoint ahead, and with `discard` those that were fetched are removed again.
    """

    def compute(pending: Sequence[Pending]) -> Outcomes:
        computer, asked = Computer(device), dict(pending)
        for checkpoint in fetched_ahead([checkpoint for checkpoint, _ in pending], discard):
            for outcome in computer.compute(checkpoint, asked[checkpoint]):
                yield checkpoint, outcome

    return compute


# === Plan ===


@dataclass
class Job:
    """The work of one metric in an evaluation: its checkpoints and its data."""

    metric: Metric
    pending: list[Checkpoint]
    done_before: int
    impossible: list[Checkpoint] = field(default_factory=list)  # not done, and without weights
    source: Source | None = None  # none where nothing is pending
    overwrite: bool = False  # results of other data may go, before the first new one comes
    begun: bool = False  # whether its data are noted


def plan(
    run: Run,
    data: Mapping[str, Path],
    metric_names: Sequence[str] | None,
    steps: Iterable[int] | None,
    overwrite: bool,
) -> tuple[list[Job], Report]:
    """The jobs, and a report of what is done, broken or left out. Arguments and errors as of `evaluate`."""
    if not runs.checkpoints(run) and not runs.broken(run):
        runs.checkpoint(run, 0)  # raises, telling how a run gets its checkpoints
    checkpoints = None if steps is None else runs.loadable(run, steps)
    named = metric_names is not None
    done = results.done(run)
    jobs = [
        _job(run, metric, checkpoints, named, overwrite, done[metric.name]) for metric in _chosen(data, metric_names)
    ]
    without = [job.metric for job in jobs if job.pending and job.metric.source not in data]
    if without and (named or len(without) == sum(bool(job.pending or job.done_before) for job in jobs)):
        raise CorpusError(_ask_for_data(without[0]))
    report = Report(done_before=sum(job.done_before for job in jobs), left_out=[metric.name for metric in without])
    if steps is None:
        report.failures += [reason for _, reason in runs.broken(run)]
        report.thinned += runs.left_out({checkpoint for job in jobs for checkpoint in job.impossible})
    return [job for job in jobs if job.pending and job.metric not in without], report


def _chosen(data: Mapping[str, Path], names: Sequence[str] | None) -> list[Metric]:
    """The metrics to compute; last the variants whose data were given. Raises UnknownMetric, CorpusError."""
    known = sorted({metric.source for metric in metrics.METRICS})
    for source in data:
        if ":" not in source and source not in known:
            raise CorpusError(unknown("data", source, known))
    variants = [_variant(source) for source in data if ":" in source]
    own = {metric.name for metric in variants}
    listed = metrics.METRICS if names is None else metrics.named(name for name in names if name not in own)
    return [*listed, *variants]


def _variant(source: str) -> Metric:
    """The variant that reads "probing:mine", of the metric that reads "probing"."""
    base, _, name = source.partition(":")
    with_variants = {metric.source: metric for metric in metrics.METRICS if metric.variants}
    if base not in with_variants:
        raise CorpusError(unknown("data", source, [f"{known}:NAME" for known in with_variants]))
    return with_variants[base].variant(name)


def _job(
    run: Run, metric: Metric, checkpoints: list[Checkpoint] | None, named: bool, overwrite: bool, done: set[int]
) -> Job:
    grid = _default_grid(run, metric) if checkpoints is None else checkpoints
    candidates = [c for c in grid if (c.step in done and not overwrite) or _meets(c, metric)]
    if named and grid and not candidates:
        raise MissingCapability(
            f"Metric '{metric.name}' needs {' and '.join(sorted(metric.needs))}, which no such checkpoint of run "
            f"'{run.name}' gives; leave it out of --metrics."
        )
    pending = [c for c in candidates if c.has_weights and (overwrite or c.step not in done)]
    impossible = [c for c in candidates if not c.has_weights and c.step not in done]
    return Job(metric, pending, len(candidates) - len(pending) - len(impossible), impossible)


def _meets(checkpoint: Checkpoint, metric: Metric) -> bool:
    """Whether the checkpoint gives what the metric needs; a broken one passes, and fails when it is loaded."""
    try:
        return metric.needs <= gives(checkpoint)
    except BrokenCheckpoint:
        return True


def _default_grid(run: Run, metric: Metric) -> list[Checkpoint]:
    """Every `metric.every`-th checkpoint, and the last one."""
    checkpoints = runs.checkpoints(run)
    return [c for i, c in enumerate(checkpoints) if i % metric.every == 0 or i == len(checkpoints) - 1]


def _ask_for_data(metric: Metric) -> str:
    fetched = f", or run: python -m embryo_core fetch {metric.source}" if metric.source in corpora.FETCHED else "."
    return f"Metric '{metric.name}' needs data and none were given; name them with --{metric.source} PATH{fetched}"


# === One set of data ===


def _open_sources(
    run: Run, jobs: list[Job], data: Mapping[str, Path], limit: int | None, options: Mapping[str, Any], overwrite: bool
) -> None:
    """Give each job its source. Raises OtherData where the results at hand are of other data, without `overwrite`."""
    opened = {name: corpora.open_source(data[name], limit) for name in {job.metric.source for job in jobs}}
    written = results.done(run)
    for job in jobs:
        own = {option.name: options.get(option.name, option.default) for option in job.metric.options}
        job.source = replace(opened[job.metric.source], options=own)
        done = written[job.metric.name]
        kept = done & {c.step for c in runs.checkpoints(run) if not c.has_weights}
        job.overwrite = overwrite and not kept  # what cannot be computed again never goes
        try:
            if done and not job.overwrite:  # known before the data are read, which takes time
                results.check_identity(run, job.metric.name, _identity(job))
        except OtherData:
            if not kept:
                raise
            raise OtherData(
                f"Results of '{job.metric.name}' for run '{run.name}' are of other data than those received, and "
                f"those of {quantity(len(kept), 'step')} without weights cannot be computed again; give the same data."
            ) from None


def _identity(job: Job) -> results.Identity:
    """What tells these results from those of other data, and the name of the data for messages."""
    source, options = job.source, job.metric.options
    own = {option.name: source.options[option.name] for option in options if option.identifies}
    return {"data": source.path.name, "sha256": source.sha256, "limit": source.limit, **own}


# === Compute and write ===


def _pending(jobs: Sequence[Job]) -> list[Pending]:
    """What is pending at each checkpoint, in the order of steps."""
    pending = sorted({checkpoint for job in jobs for checkpoint in job.pending}, key=lambda found: found.step)
    return [
        (checkpoint, [Asked(job.metric, job.source) for job in jobs if checkpoint in job.pending])
        for checkpoint in pending
    ]


def _write(checkpoint: Checkpoint, job: Job, found: Found) -> Failed | None:
    """Write what a metric found, or tell why that cannot be.

    Before its first result its data are noted, and results of other data make room.
    """
    try:
        if not job.begun:
            results.begin(checkpoint.run, found.metric, _identity(job), found.summary, job.overwrite)
            job.begun = True
        results.write(checkpoint, found.metric, found.findings, _identity(job))
    except ResultsError as reason:
        if isinstance(reason, OtherData):  # of another evaluation: nothing more can be written
            raise
        return failed(found.metric, checkpoint, reason)
    return None
