"""Evaluate a run: plan what is missing, compute it checkpoint by checkpoint, write each result as a whole.

A kill at any moment loses at most what is being computed: each (metric, step) is written as a whole, and a rerun goes
on from there to the same results. Results of a metric always come from one set of data, noted in sources.json.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from embryo_core import corpora, metrics, results, runs
from embryo_core.engine.capabilities import gives
from embryo_core.engine.device import CPU, Device
from embryo_core.engine.model import Model, load
from embryo_core.errors import BrokenCheckpoint, CorpusError, MissingCapability, MissingWeights, OtherData, unknown
from embryo_core.metric import Data, Limits, Metric, Source
from embryo_core.sources.ahead import fetched_ahead
from embryo_core.types import Checkpoint, Run

log = logging.getLogger(__name__)


@dataclass
class Report:
    """What an evaluation did, counted in results: one result is one metric at one checkpoint."""

    computed: int = 0
    done_before: int = 0
    failures: list[str] = field(default_factory=list)  # one sentence for each broken checkpoint or failed metric
    left_out: list[str] = field(default_factory=list)  # metrics nobody asked for by name, and without data
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
    device: Device = CPU,
    discard: bool = False,
) -> Report:
    """Compute metrics at the checkpoints that give what they need, and store what they find.

    Without `metric_names` all metrics are computed, but those whose data were not given; without `steps`, on each
    metric's own grid. `data` has a path for each source: {"treebank": ...}. A variant, such as {"probing:mine": ...},
    is computed whatever the names. `options` are those that the metrics declare. What is done is skipped, or computed
    again with `overwrite`. Models are computed on `device`. Weights on the Hub are fetched one checkpoint ahead, and
    with `discard` those that were fetched are removed again. A checkpoint that cannot be read, or a metric that fails
    on one, is reported and passed over.

    Raises EmbryoError for an unknown metric, source or step, and for data that are missing, unreadable, or not those of
    the results at hand; nothing written before is lost by that.
    """
    jobs, report = plan(run, data, metric_names, steps, overwrite)
    _open_sources(run, jobs, data, limit, options or {}, overwrite)
    total = sum(len(job.pending) for job in jobs)
    pending = sorted({c for job in jobs for c in job.pending}, key=lambda c: c.step)
    with tqdm(total=total, desc=run.name, unit="result", disable=not progress) as bar:
        for checkpoint in fetched_ahead(pending, discard):
            _evaluate_checkpoint(checkpoint, jobs, report, bar, device)
    results.compact(run)
    return report


# === Plan ===


@dataclass
class Job:
    """What one metric has to do in an evaluation, and what it does that with."""

    metric: Metric
    pending: list[Checkpoint]
    done_before: int
    impossible: list[Checkpoint] = field(default_factory=list)  # not done, and without weights
    source: Source | None = None  # none where nothing is pending
    overwrite: bool = False  # results of other data may go, before the first new one comes
    data: Data | None = None  # what the metric read, once the first model is loaded


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
                f"those of {len(kept)} steps without weights cannot be computed again; give the same data."
            ) from None


def _identity(job: Job) -> results.Identity:
    """What tells these results from those of other data, and the name of the data for messages."""
    source, options = job.source, job.metric.options
    own = {option.name: source.options[option.name] for option in options if option.identifies}
    return {"data": source.path.name, "sha256": source.sha256, "limit": source.limit, **own}


# === Compute and write ===


def limits(model: Model) -> Limits:
    """What the models of a run read; the same at every step."""
    frequencies = model.checkpoint.run.path / "frequencies.tsv"
    return Limits(model.max_positions, frequencies if frequencies.is_file() else None)


def _passes(jobs: list[Job]) -> list[list[Job]]:
    """Jobs that share a pass over the same source, together; every other job by itself."""
    together: dict[Any, list[Job]] = {}
    for job in jobs:
        key = (job.metric.shared_pass, job.source) if job.metric.shared_pass else job.metric.name
        together.setdefault(key, []).append(job)
    return list(together.values())


def _evaluate_checkpoint(checkpoint: Checkpoint, jobs: list[Job], report: Report, bar: tqdm, device: Device) -> None:
    todo = [job for job in jobs if checkpoint in job.pending]
    bar.set_postfix_str(f"step {checkpoint.step}")
    try:
        model = load(checkpoint, device)
    except (BrokenCheckpoint, MissingWeights) as reason:  # the latter: removed since the plan was made
        report.failures.append(str(reason))
        bar.update(len(todo))
        return
    for job in jobs:  # all at once, so that bad data are known before anything takes time
        if job.data is None:
            _read(job, model)
    for together in _passes(todo):
        _compute_and_write(model, together, report)
        bar.update(len(together))


def _read(job: Job, model: Model) -> None:
    """Read a metric's data; only when that went well do results of other data make room."""
    job.data = job.metric.read(model.tokenizer, limits(model), job.source)
    results.begin(model.checkpoint.run, job.metric.name, _identity(job), job.data.summary, job.overwrite)


def _compute_and_write(model: Model, jobs: list[Job], report: Report) -> None:
    """What metrics find at one loaded checkpoint; several are those of one shared pass (see `_passes`)."""
    checkpoint, first = model.checkpoint, jobs[0].metric
    name = first.name
    try:
        if len(jobs) == 1:
            found = [first.compute(model, jobs[0].data)]
        else:
            found = first.shared_pass(model, [(job.metric, job.data) for job in jobs])
        for job, findings in zip(jobs, found, strict=True):
            results.write(checkpoint, job.metric.name, findings, _identity(job))
    except (OSError, OtherData):  # a full disk, or another evaluation: nothing more can be written
        raise
    except Exception as reason:  # the batch boundary: one failure does not stop the others
        if len(jobs) > 1:  # one of them failed: computed alone, the others do not
            for job in jobs:
                _compute_and_write(model, [job], report)
            return
        log.exception("%s failed at step %d of %s", name, checkpoint.step, checkpoint.run.name)
        report.failures.append(f"Metric '{name}' failed at step {checkpoint.step}: {reason}")
    else:
        report.computed += len(jobs)
