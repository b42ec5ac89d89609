"""Fine-tune the checkpoints of a run on downstream tasks and store scores, answers and curves (Section 5).

Results are stored separately for each task, step and seed, so a rerun of a killed command continues where it stopped.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

from tqdm import tqdm

from embryo_core import results, runs
from embryo_core.engine.device import Device, find_training_device
from embryo_core.engine.transformers_models import max_sequence_length
from embryo_core.errors import ConfigError, DatasetMismatch, MissingCapability, ResultsError, unknown
from embryo_core.evaluation import Report
from embryo_core.finetune import plan as planning
from embryo_core.finetune import workers
from embryo_core.finetune.encoded_tasks import EncodedTask, encode_task
from embryo_core.finetune.plan import TaskPlan
from embryo_core.finetune.rates import HELD_OUT_SUFFIX, choose_rates
from embryo_core.finetune.task_specs import (
    PROTOCOLS,
    QUICK_LENGTH,
    RateChoice,
    paper_settings,
    quick_settings,
    results_name,
)
from embryo_core.finetune.tasks import TextTask
from embryo_core.tokenizers.checks import check_vocabulary
from embryo_core.tokenizers.tokenizer import Tokenizer, load_tokenizer
from embryo_core.types import Checkpoint, Run

MIN_PIECES = 16  # shortest maximum sequence length: special tokens and a few pieces of each of two texts


def finetune(
    run: Run,
    tasks: Mapping[str, Path],
    steps: Iterable[int] | None = None,
    *,
    seeds: int = 1,
    protocol: str = "quick",
    device: str | None = None,
    jobs: int | None = None,
    ray: str | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> Report:
    """Fine-tune checkpoints on each task with seeds 1 to `seeds`; skip results that exist.

    `tasks` maps names to data folders: a task of GLUE, squad, or the user's own task under any other name. Without
    `steps`, all checkpoints with weights are tuned. `jobs` fine-tunings run at once, by default one per core, or one on
    a GPU; with `ray`, the address of a Ray cluster (see `evaluation.cluster`), one per core or GPU of the cluster. A
    checkpoint that cannot be read, or a fine-tuning that fails, is reported and skipped.

    Raises EmbryoError for unknown names and steps, and for data that are missing, faulty, or differ from the data of
    the stored results; OSError if the disk is full. Results written before an error are kept.
    """
    if protocol not in PROTOCOLS:
        raise ConfigError(unknown("protocol", protocol, PROTOCOLS))
    checkpoints = planning.trainable_checkpoints(run, steps)
    plans = planning.plan_tasks(run, tasks, checkpoints, seeds, protocol, overwrite)
    planning.remove_unneeded_weights(run, plans)
    report = Report(done_before=sum(plan.done_before for plan in plans))
    from_mnli = any(plan.from_mnli and plan.pending for plan in plans)
    needed_plans = [plan for plan in plans if plan.pending or (plan.name == "mnli" and from_mnli)]
    if any(plan.pending for plan in needed_plans):
        if ray is None:
            device = find_training_device(device)
            open_pool = partial(workers.open_workers, device=device, count=jobs or Device(device).parallel_passes())
        else:
            open_pool = partial(workers.open_cluster, address=ray, device=device)
        _finetune(run, needed_plans, checkpoints, open_pool, report, progress)
    results.compact(run)
    return report


def _finetune(
    run: Run,
    plans: Sequence[TaskPlan],
    checkpoints: Sequence[Checkpoint],
    open_pool: Callable[[workers.EncodedTasks], AbstractContextManager[workers.DoJobs]],
    report: Report,
    progress: bool,
) -> None:
    """Encode the tasks, choose learning rates that are missing, run the jobs, and update the report."""
    last_checkpoint = planning.last_intact_checkpoint(run)
    tokenizer = load_tokenizer(run)
    check_vocabulary(last_checkpoint, tokenizer.vocabulary_size)
    choices = {plan.name: planning.stored_choice(run, plan) for plan in plans if plan.protocol == "quick"}
    tasks_to_choose = [name for name, choice in choices.items() if choice is None]
    for plan in plans:
        if plan.staying and (choice := choices.get(plan.name)):
            report.remarks.append(planning.explain_kept_rate(plan, choice))
    encoded_tasks = _encode(plans, tasks_to_choose, tokenizer, last_checkpoint)
    report.remarks += [plan.data.remark for plan in plans if plan.data.remark]
    with open_pool(encoded_tasks) as do_jobs:
        by_name = {plan.name: plan for plan in plans}
        for name, plan in by_name.items():
            if name not in tasks_to_choose:
                _set_settings(run, plan, encoded_tasks[name], choices.get(name))
        lengths = {name: encoded_tasks[name + HELD_OUT_SUFFIX].train.lengths for name in tasks_to_choose}
        identities = {name: by_name[name].identity for name in tasks_to_choose}
        for name, rate in choose_rates(do_jobs, last_checkpoint, lengths, identities, progress):
            if isinstance(rate, str):
                report.failures.append(rate)
            else:  # recorded at once, so that a killed command does not choose it again
                _set_settings(run, by_name[name], encoded_tasks[name], rate)
        settings_by_task = {plan.name: plan.settings for plan in plans if plan.settings}
        cost = {
            name: task_settings.updates * task_settings.batch * float(encoded_tasks[name].train.lengths.mean())
            for name, task_settings in settings_by_task.items()
        }
        jobs = planning.plan_jobs([by_name[name] for name in settings_by_task], checkpoints, cost)
        _run_jobs(do_jobs, jobs, report, tqdm(desc=run.name, disable=not progress))


def _run_jobs(do_jobs: workers.DoJobs, jobs: list[workers.TuningJob], report: Report, bar: tqdm) -> None:
    """Run the jobs, write each result as it arrives, and update the report. Raises DatasetMismatch and OSError."""
    bar.total = sum(task.written for job in jobs for task in job.tasks)
    with bar:
        for job, (findings, failure) in do_jobs(workers.tune_first, jobs):
            task, *later_tasks = job.tasks
            if findings is not None:
                try:
                    results.write(job.checkpoint, results_name(task.task, job.seed), findings, task.identity)
                    report.computed += 1
                except DatasetMismatch:
                    raise
                except ResultsError as reason:
                    failure = f"{job.describe(task)} failed: {reason}"
            if failure:
                report.failures.append(failure)
                job = replace(job, has_failed=True)
            if later_tasks:
                jobs.insert(0, replace(job, tasks=tuple(later_tasks)))
            elif job.mnli and not job.has_failed:
                job.mnli.unlink(missing_ok=True)
            bar.set_postfix_str(f"step {job.checkpoint.step}")
            bar.update(task.written)


# === Data and settings ===


def _encode(
    plans: Sequence[TaskPlan], to_choose: Sequence[str], tokenizer: Tokenizer, checkpoint: Checkpoint
) -> dict[str, EncodedTask]:
    """Read and encode all tasks; encode tasks without a learning rate a second time, with training data held out."""
    max_length = max_sequence_length(checkpoint)
    if max_length < MIN_PIECES:
        raise MissingCapability(
            f"The models of run '{checkpoint.run.name}' read {max_length} pieces at once; fine-tuning needs "
            f"{MIN_PIECES} at least."
        )
    encoded_tasks: dict[str, EncodedTask] = {}
    for plan in plans:
        data = plan.data
        runs.remember_folder(plan.sha256, plan.folder)
        is_quick = plan.protocol == "quick"
        length = min(QUICK_LENGTH if is_quick else paper_settings(plan.name, plan.unanswerable).length, max_length)
        encoded_tasks[plan.name] = encode_task(data, tokenizer, length)
        if plan.name in to_choose:
            encoded_tasks[plan.name + HELD_OUT_SUFFIX] = encode_task(data.held_out(), tokenizer, length)
    return encoded_tasks


def _set_settings(run: Run, plan: TaskPlan, encoded_task: EncodedTask, choice: RateChoice | None) -> None:
    """Set the settings of a task, and record settings and data in the sources of each seed's results."""
    if choice:
        plan.settings = quick_settings(encoded_task.train.lengths, choice.learning_rate)
    else:
        plan.settings = paper_settings(plan.name, plan.unanswerable)
    labels = list(plan.data.labels) if isinstance(plan.data, TextTask) else []
    rate = f"{plan.settings.updates:,} updates, learning rate {plan.settings.learning_rate:g}"
    if choice:
        criterion = " by the loss, as the best scores are equal," if choice.is_tied and choice.losses else ""
        rate += f", chosen{criterion} at step {choice.step} on a tenth of the training data"
    note = f"{len(encoded_task.targets):,} training sequences of {plan.folder.name}; protocol {plan.protocol}, {rate}"
    summary = {"note": note, "labels": labels, **(choice.summary if choice else {})}
    for name in planning.names_of_results(results.steps_by_metric(run), plan.name) if plan.overwrite else ():
        results.note_dataset(run, name, plan.identity, overwrite=True)
    for seed in sorted({seed for _, seed in plan.pending}):
        results.note_dataset(run, results_name(plan.name, seed), plan.identity, summary, plan.overwrite)
