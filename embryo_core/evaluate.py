"""Evaluate a run: checkpoint outside, metric inside, each checkpoint loaded once; what is done is skipped.

A kill at any moment loses at most the metric being computed: each (metric, step) is written as a whole, and a rerun
goes on from there to the same results. Results of a metric always come from one set of data, noted in sources.json.
"""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tqdm import tqdm

from embryo_core import corpora, metrics, results, runs
from embryo_core.engine.model import Model, load
from embryo_core.errors import BrokenCheckpoint, CorpusError, ResultsError
from embryo_core.metrics.edge_probing import TASKS, EdgeProbing
from embryo_core.types import Checkpoint, Data, Metric, Run, Sources

log = logging.getLogger(__name__)
FETCHED = ("treebank", "lama")  # data that `python -m embryo_core fetch` brings


@dataclass
class Report:
    """What an evaluation did, counted in results: one result is one metric at one checkpoint."""

    computed: int = 0
    done_before: int = 0
    failures: list[str] = field(default_factory=list)  # one sentence for each broken checkpoint or failed metric
    left_out: list[str] = field(default_factory=list)  # metrics nobody asked for by name, and without data


def evaluate(
    run: Run,
    sources: Sources,
    metric_names: Sequence[str] | None = None,
    steps: Iterable[int] | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> Report:
    """Compute the metrics (all that the run supports) at the steps (each metric's own grid) and store what they find.

    The user's own probing tasks in `sources` are computed whatever the metrics. Without `metric_names`, metrics whose
    data were not given are left out. A checkpoint that cannot be read, or a metric that fails on one, is reported and
    passed over. With `overwrite`, what was done is computed again. Raises EmbryoError for an unknown metric or step,
    and for data that are missing, unreadable, or not those of the results at hand; nothing written before is lost by
    that.
    """
    if not runs.checkpoints(run) and not runs.broken(run):
        runs.checkpoint(run, 0)  # raises, telling how a run gets its checkpoints
    checkpoints = None if steps is None else [runs.checkpoint(run, step) for step in sorted(set(steps))]
    chosen = _chosen(sources, metric_names)
    tasks = [_task(run, metric, checkpoints, own, overwrite) for metric, own in chosen if metric.supports(run)]
    without = [task.metric for task in tasks if task.pending and not task.identity]
    if without and (metric_names is not None or len(without) == len(tasks)):
        raise CorpusError(_ask_for_data(without[0]))
    tasks = [task for task in tasks if task.metric not in without]
    report = Report(done_before=sum(task.done_before for task in tasks), left_out=[metric.name for metric in without])
    if steps is None:
        report.failures += [reason for _, reason in runs.broken(run)]
    with tqdm(
        total=sum(len(task.pending) for task in tasks), desc=run.name, unit="result", disable=not progress
    ) as bar:
        for checkpoint in sorted({c for task in tasks for c in task.pending}, key=lambda c: c.step):
            _evaluate_checkpoint(checkpoint, tasks, report, bar)
    results.compact(run)
    return report


# === What is to be done ===


@dataclass
class Task:
    """One metric in one evaluation."""

    metric: Metric
    sources: Sources
    identity: dict[str, Any]  # of its data: name, sha256, limit, protocol; empty where none were given
    replaces: bool  # its results at hand are of other data and go before the first new one comes
    pending: list[Checkpoint]
    done_before: int
    data: Data | None = None  # what the metric read, once the first model is loaded


def _chosen(sources: Sources, names: Sequence[str] | None) -> list[tuple[Metric, Sources]]:
    """The metrics to compute, each with its sources; last the user's own probing tasks."""
    for name in sources.probes:
        if name in TASKS or not re.fullmatch(r"\w[\w.-]*", name):
            raise CorpusError(
                f"A probing task of your own cannot be named '{name}'; choose a name of letters, digits, '_', '-' and "
                f"'.' that is none of {', '.join(TASKS)}."
            )
    own = [(EdgeProbing(name), replace(sources, probing=folder)) for name, folder in sources.probes.items()]
    own_names = {metric.name for metric, _ in own}
    known = metrics.METRICS if names is None else metrics.named(name for name in names if name not in own_names)
    return [(metric, sources) for metric in known] + own


def _task(run: Run, metric: Metric, checkpoints: list[Checkpoint] | None, sources: Sources, overwrite: bool) -> Task:
    candidates = _default_grid(run, metric) if checkpoints is None else checkpoints
    done = results.done(run, metric.name)
    pending = [c for c in candidates if overwrite or c.step not in done]
    path = getattr(sources, metric.source)
    identity = {} if path is None else {**corpora.fingerprint(path), "limit": sources.limit}
    if identity and metric.source == "probing":
        identity["protocol"] = sources.protocol
    recorded = results.read_sources(run).get(metric.name, {})
    other = bool(done) and any(recorded.get(key) != value for key, value in identity.items())
    if other and not overwrite:
        raise ResultsError(
            f"Results of '{metric.name}' for run '{run.name}' are of {_shown(recorded)}, received {_shown(identity)}; "
            "give the same data, or --overwrite to replace them."
        )
    return Task(metric, sources, identity, other, pending, len(candidates) - len(pending))


def _ask_for_data(metric: Metric) -> str:
    fetched = f", or run: python -m embryo_core fetch {metric.source}" if metric.source in FETCHED else "."
    return f"Metric '{metric.name}' needs data and none were given; name them with --{metric.source} PATH{fetched}"


def _default_grid(run: Run, metric: Metric) -> list[Checkpoint]:
    """Every `metric.every`-th checkpoint, and the last one."""
    checkpoints = runs.checkpoints(run)
    return [c for i, c in enumerate(checkpoints) if i % metric.every == 0 or i == len(checkpoints) - 1]


def _shown(identity: dict[str, Any]) -> str:
    if not identity:
        return "unknown data"
    limit = "no limit" if identity["limit"] is None else f"limit {identity['limit']}"
    protocol = f", {identity['protocol']} protocol" if "protocol" in identity else ""
    return f"{identity['data']} (sha256 {identity['sha256'][:12]}..., {limit}{protocol})"


# === Doing it ===


def _evaluate_checkpoint(checkpoint: Checkpoint, tasks: list[Task], report: Report, bar: tqdm) -> None:
    todo = [task for task in tasks if checkpoint in task.pending]
    bar.set_postfix_str(f"step {checkpoint.step}")
    try:
        model = load(checkpoint)
    except BrokenCheckpoint as reason:
        report.failures.append(str(reason))
        bar.update(len(todo))
        return
    for task in tasks:  # all at once, so that bad data are known before anything takes time
        if task.pending and task.data is None:
            _read(task, model)
    for task in todo:
        _compute(task, model, report)
        bar.update()


def _read(task: Task, model: Model) -> None:
    """Read a metric's data; only when that went well do results of other data make room."""
    run, name = model.checkpoint.run, task.metric.name
    task.data = task.metric.read(model, task.sources)
    if task.replaces:
        results.forget(run, name)
    results.write_sources(run, name, {**task.identity, **task.data.facts})


def _compute(task: Task, model: Model, report: Report) -> None:
    checkpoint, name = model.checkpoint, task.metric.name
    try:
        results.write(checkpoint.run, name, checkpoint.step, task.metric.compute(model, checkpoint, task.data))
        report.computed += 1
    except Exception as reason:  # the batch boundary: one failure does not stop the others
        log.exception("%s failed at step %d of %s", name, checkpoint.step, checkpoint.run.name)
        report.failures.append(f"Metric '{name}' failed at step {checkpoint.step}: {reason}")
