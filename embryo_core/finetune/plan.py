"""Plan fine-tuning: the checkpoints and tasks, the results that exist, and the jobs that remain."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from embryo_core import corpora, results, runs
from embryo_core.engine.capabilities import may_support
from embryo_core.engine.hub_cache import fetch_checkpoint
from embryo_core.errors import (
    BrokenCheckpoint,
    ConfigError,
    CorpusError,
    EmbryoError,
    MissingCapability,
    MissingWeights,
)
from embryo_core.finetune.squad import QuestionTask, read_squad
from embryo_core.finetune.task_specs import GLUE, SQUAD, RateChoice, TuningSettings, results_name
from embryo_core.finetune.tasks import TextTask, data_sha256, read_task
from embryo_core.finetune.workers import JobTask, TuningJob, is_readable, mnli_file, mnli_files
from embryo_core.types import Checkpoint, Run

Pairs = set[tuple[int, int]]  # (step, seed)
StoredSteps = Mapping[str, set[int]]  # name of results -> their steps (see `results.steps_by_metric`)


# === Tasks ===


@dataclass
class TaskPlan:
    """A task to tune on. Its data are read on first use; its settings are set once its learning rate is known."""

    name: str
    folder: Path
    protocol: str
    sha256: str
    pending: Pairs
    done_before: int
    overwrite: bool  # whether results of other data may be removed
    staying: set[tuple[int, str]]  # steps and seeds of results that --overwrite does not replace
    more: dict[str, Any] = field(default_factory=dict)  # further entries of the identity, such as MNLI's hash
    settings: TuningSettings | None = None

    @property
    def from_mnli(self) -> bool:
        """Return whether tuning starts from the checkpoint's weights after MNLI."""
        return self.protocol == "paper" and self.name in GLUE and GLUE[self.name].from_mnli

    @property
    def identity(self) -> dict[str, Any]:
        """Return what identifies the task's results: data, protocol and, once set, learning rate."""
        data = {"data": self.folder.name, "sha256": self.sha256, "limit": None, "protocol": self.protocol, **self.more}
        return data if self.settings is None else data | {"learning_rate": self.settings.learning_rate}

    @cached_property
    def data(self) -> TextTask | QuestionTask:
        """Return the task's data, read on first use. Raises CorpusError."""
        return read_squad(self.folder) if self.name == SQUAD else read_task(self.name, self.folder)

    @property
    def unanswerable(self) -> bool:
        """Return whether the data have questions without an answer."""
        return isinstance(self.data, QuestionTask) and self.data.unanswerable

    def job_task(self, written: bool = True) -> JobTask:
        """Return the task as part of a job; `settings` must be set before."""
        assert self.settings is not None
        return JobTask(self.name, self.settings, self.identity, written, self.from_mnli)


def plan_tasks(
    run: Run, tasks: Mapping[str, Path], checkpoints: Sequence[Checkpoint], seeds: int, protocol: str, overwrite: bool
) -> list[TaskPlan]:
    """Plan each task: the (step, seed) pairs without results. Raises CorpusError, ConfigError, DatasetMismatch."""
    stored_steps = results.steps_by_metric(run)
    pairs = {(checkpoint.step, seed) for checkpoint in checkpoints for seed in range(1, seeds + 1)}
    plans = [_plan_task(run, name, folder, pairs, stored_steps, protocol, overwrite) for name, folder in tasks.items()]
    mnli = next((plan for plan in plans if plan.name == "mnli"), None)
    for plan in plans:
        if plan.from_mnli:
            if mnli is None:
                raise ConfigError(
                    f"Protocol 'paper' begins '{plan.name}' from weights tuned on MNLI, whose data were not given; add "
                    "mnli to --tasks, or use --protocol quick."
                )
            plan.more["mnli_sha256"] = mnli.sha256
    for plan in plans:  # checked before slow work; all seeds must agree, since their mean is shown
        for name in () if plan.overwrite else names_of_results(stored_steps, plan.name):
            results.check_dataset(run, name, plan.identity, stored_steps[name] & runs.steps_without_weights(run))
    return plans


def _plan_task(
    run: Run, name: str, folder: Path, pairs: Pairs, stored_steps: StoredSteps, protocol: str, overwrite: bool
) -> TaskPlan:
    """Plan one task: which (step, seed) pairs to tune, and which stored results --overwrite may replace."""
    names = names_of_results(stored_steps, name)
    stored_seeds = {
        (step, result_name.removeprefix(results_name(name, "")))
        for result_name in names
        for step in stored_steps[result_name]
    }
    replaced = {(step, str(seed)) for step, seed in pairs}
    # results of steps whose weights are gone could not be computed again
    replaceable = overwrite and not {step for step, _ in stored_seeds} & runs.steps_without_weights(run)
    pending = pairs if overwrite else {(step, seed) for step, seed in pairs if (step, str(seed)) not in stored_seeds}
    remaining = stored_seeds - replaced if overwrite else set()
    if not folder.is_dir():
        raise CorpusError(f"{folder}, for the task '{name}', is not a folder; give one with --glue, --squad or --task.")
    sha256 = _data_hash(run, names, name, folder)
    return TaskPlan(name, folder, protocol, sha256, pending, len(pairs) - len(pending), replaceable, remaining)


def _data_hash(run: Run, names: Sequence[str], task: str, folder: Path) -> str:
    """Return the hash of a task's data, or of its whole folder if results `names` of an earlier version have that."""
    sha256, sources = data_sha256(task, folder), results.read_sources(run)
    recorded_hashes = {str(sources[name].get("sha256")) for name in names if name in sources}
    if recorded_hashes - {sha256} and (folder_sha256 := corpora.open_source(folder).sha256) in recorded_hashes:
        return folder_sha256
    return sha256


def names_of_results(stored_steps: StoredSteps, task: str) -> list[str]:
    """List the names of a task's results, one for each seed with results."""
    prefix = results_name(task, "")
    return sorted(name for name, steps in stored_steps.items() if steps and name.startswith(prefix))


# === Learning rates of stored results ===


def stored_choice(run: Run, plan: TaskPlan) -> RateChoice | None:
    """Return the learning rate of this task's stored results, of any seed; None if it has to be chosen.

    A new rate is chosen only if all results are overwritten, since all scores of a curve share one learning rate.
    """
    if plan.overwrite and not plan.staying:
        return None
    for name, entry in sorted(results.read_sources(run).items()):
        is_same = all(entry.get(key) == value for key, value in plan.identity.items() if key != "data")
        if name.startswith(results_name(plan.name, "")) and is_same:
            return RateChoice.read(entry)
    return None


def explain_kept_rate(plan: TaskPlan, choice: RateChoice) -> str:
    """Return a sentence that explains why --overwrite kept the learning rate."""
    step, seed = min(plan.staying)
    return (
        f"'{plan.name}' keeps its learning rate {choice.learning_rate:g}, because existing scores "
        f"have it, such as that of step {step} and seed {seed}; --overwrite over all of them chooses a new one."
    )


# === Checkpoints ===


def trainable_checkpoints(run: Run, steps: Iterable[int] | None) -> list[Checkpoint]:
    """List the trainable checkpoints of `steps`, or of all. Raises UnknownStep, MissingWeights, MissingCapability."""
    trainable = [
        checkpoint for checkpoint in runs.loadable_checkpoints(run, steps) if may_support(checkpoint, {"trainable"})
    ]
    if not trainable:
        raise MissingCapability(
            f"None of the chosen checkpoints of run '{run.name}' has a model that can be fine-tuned."
        )
    return trainable


def last_intact_checkpoint(run: Run) -> Checkpoint:
    """Return the last trainable checkpoint with intact weights. If none is intact, raises the first one's error."""
    reason: EmbryoError | None = None
    for checkpoint in reversed(trainable_checkpoints(run, None)):
        try:
            fetch_checkpoint(checkpoint)
            runs.verify(checkpoint)
        except (BrokenCheckpoint, MissingWeights) as error:
            reason = error
        else:
            return checkpoint
    assert reason is not None
    raise reason


# === Jobs ===


def plan_jobs(
    plans: Sequence[TaskPlan], checkpoints: Sequence[Checkpoint], cost: Mapping[str, float]
) -> list[TuningJob]:
    """Plan the remaining jobs, for each checkpoint and seed the most expensive first.

    MNLI and the tasks that start from its weights form one job. `cost` maps tasks to the pieces read in training.
    """
    jobs: list[TuningJob] = []
    for checkpoint in checkpoints:
        for seed in sorted({seed for plan in plans for step, seed in plan.pending if step == checkpoint.step}):
            pending = {plan.name: plan for plan in plans if (checkpoint.step, seed) in plan.pending}
            chain = _mnli_chain(plans, pending, checkpoint, seed)
            chained_tasks = {task.task for job in chain for task in job.tasks}
            single_jobs = [
                TuningJob(checkpoint, seed, (plan.job_task(),))
                for name, plan in pending.items()
                if name not in chained_tasks
            ]
            jobs += sorted([*chain, *single_jobs], key=lambda job: -sum(cost[task.task] for task in job.tasks))
    return jobs


def _mnli_chain(
    plans: Sequence[TaskPlan], pending: Mapping[str, TaskPlan], checkpoint: Checkpoint, seed: int
) -> list[TuningJob]:
    """Return one job of MNLI, unless its weights are kept, and the pending tasks that start from it; [] without any."""
    dependents = [plan for plan in pending.values() if plan.from_mnli]
    if not dependents:
        return []
    mnli = next(plan for plan in plans if plan.name == "mnli")
    mnli_task = mnli.job_task(written="mnli" in pending)
    weights = mnli_file(checkpoint, seed, mnli_task.settings, mnli.identity)
    tasks = [plan.job_task() for plan in dependents]
    if "mnli" in pending or not is_readable(weights):
        tasks.insert(0, mnli_task)
    return [TuningJob(checkpoint, seed, tuple(tasks), weights)]


def remove_unneeded_weights(run: Run, plans: Sequence[TaskPlan]) -> None:
    """Remove weights after MNLI that a killed process left behind once the tasks starting from them were done."""
    dependents, stored_steps = [plan for plan in plans if plan.from_mnli], results.steps_by_metric(run)
    for (step, seed), file in mnli_files(run) if dependents else ():
        if all(step in stored_steps[results_name(plan.name, seed)] for plan in dependents):
            file.unlink(missing_ok=True)
