"""Fine-tune the checkpoints of a run on downstream tasks and store scores, answers and curves (Section 5).

Each task at each step with each seed is a part of its own in the results: killed and run again it goes on.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tqdm import tqdm

from embryo_core import results
from embryo_core.engine.hub import most_pieces
from embryo_core.errors import ConfigError, MissingCapability, unknown
from embryo_core.evaluate import Report
from embryo_core.finetune import plan, protocols
from embryo_core.finetune.cluster_workers import ClusterWorkers, cluster_workers
from embryo_core.finetune.forms import evaluation
from embryo_core.finetune.plan import Asked
from embryo_core.finetune.protocols import Choice
from embryo_core.finetune.questions import QuestionTask
from embryo_core.finetune.rates import OF_TRAINING, choose
from embryo_core.finetune.texts import remember
from embryo_core.finetune.trainees import Trainee, make_trainee
from embryo_core.finetune.units import Unit, find, work, write
from embryo_core.finetune.workers import Workers, choose_device, default_jobs, open_workers
from embryo_core.tokenizers.tokenizer import Tokenizer, check_vocabulary, load_tokenizer
from embryo_core.types import Checkpoint, Run

FEWEST = 16  # pieces of a sequence that can be tuned on: special tokens, and a few of each of two texts

Opening = Callable[[Mapping[str, Trainee]], AbstractContextManager[Workers | ClusterWorkers]]


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
    """Fine-tune checkpoints on tasks, each given with its folder, with seeds 1 to `seeds`; what is done is skipped.

    A task is one of GLUE, squad, or the user's own under any other name. Without `steps` all checkpoints that have
    weights. `jobs` fine-tunings run at once, by default one on each core, or one on a GPU; or as many as the Ray
    cluster has cores or GPUs whose address is `ray` (see `cluster.on_ray`). A checkpoint that cannot be read, or a
    fine-tuning that fails, is reported and passed over.

    Raises EmbryoError for unknown names and steps, and for data that are missing, faulty, or not those of the results
    at hand; OSError where the disk is full. What was written before stays.
    """
    if protocol not in protocols.PROTOCOLS:
        raise ConfigError(unknown("protocol", protocol, protocols.PROTOCOLS))
    checkpoints = plan.trainable(run, steps)
    asked = plan.ask(run, tasks, checkpoints, seeds, protocol, overwrite)
    plan.remove_leftovers(run, asked)
    report = Report(done_before=sum(one.done_before for one in asked))
    pending = [one for one in asked if one.pending or _is_before(one, asked)]
    if any(one.pending for one in pending):
        _finetune(run, pending, checkpoints, _opening(device, jobs, ray), report, progress)
    results.compact(run)
    return report


def _opening(device: str | None, jobs: int | None, ray: str | None) -> Opening:
    """What opens the workers, here or on a cluster. Raises ConfigError for a device that is not here."""
    if ray is not None:
        return lambda trainees: cluster_workers(ray, trainees, device)
    device = choose_device(device)
    return lambda trainees: open_workers(trainees, device, jobs or default_jobs(device))


def _is_before(asked: Asked, others: Sequence[Asked]) -> bool:
    """Whether it is MNLI, and others are left that begin from it."""
    return asked.name == "mnli" and any(other.from_mnli and other.pending for other in others)


def _finetune(
    run: Run,
    asked: Sequence[Asked],
    checkpoints: Sequence[Checkpoint],
    opening: Opening,
    report: Report,
    progress: bool,
) -> None:
    late = plan.late(run)
    tokenizer = load_tokenizer(run)
    check_vocabulary(late, tokenizer.vocabulary_size)
    choices = {one.name: plan.noted_choice(run, one) for one in asked if one.protocol == "quick"}
    without = [name for name, choice in choices.items() if choice is None]
    staying = [one for one in asked if one.staying and choices.get(one.name)]
    report.remarks += [plan.kept_rate(one, choices[one.name]) for one in staying]
    trainees = _encode(asked, without, tokenizer, late)
    report.remarks += [one.data.remark for one in asked if one.data.remark]
    with opening(trainees) as workers:
        by_name = {one.name: one for one in asked}
        for name, one in by_name.items():
            if name not in without:
                _settle(run, one, trainees[name], choices.get(name))
        lengths = {name: trainees[name + OF_TRAINING].train.lengths for name in without}
        identities = {name: by_name[name].identity for name in without}
        for name, choice in choose(workers, late, lengths, identities, progress):  # noted at once: a run killed goes on
            if isinstance(choice, str):
                report.failures.append(choice)
            else:
                _settle(run, by_name[name], trainees[name], choice)
        asked = [one for one in asked if one.settings]
        cost = {one.name: one.settings.updates * one.settings.batch * _mean_length(trainees[one.name]) for one in asked}
        _work(workers, plan.units(asked, checkpoints, cost), report, tqdm(desc=run.name, disable=not progress))


def _work(workers: Workers | ClusterWorkers, units: Sequence[Unit], report: Report, bar: tqdm) -> None:
    """Have the units done; what those of a cluster find is written here."""
    bar.total = sum(item.written for unit in units for item in unit.items)
    far = isinstance(workers, ClusterWorkers)
    with bar:
        for unit, done in workers.do(find if far else work, units):
            written, failures = write(unit, done) if far else done
            report.computed += written
            report.failures += failures
            bar.set_postfix_str(f"step {unit.checkpoint.step}")
            bar.update(sum(item.written for item in unit.items))


# === Data and settings ===


def _encode(
    asked: Sequence[Asked], without_rate: Sequence[str], tokenizer: Tokenizer, late: Checkpoint
) -> dict[str, Trainee]:
    """All tasks, read and tokenized once; those without a learning rate also with training data held out."""
    most = most_pieces(late)
    if most < FEWEST:
        raise MissingCapability(
            f"The models of run '{late.run.name}' read {most} pieces at once; fine-tuning needs {FEWEST} at least."
        )
    found: dict[str, Trainee] = {}
    for one in asked:
        one.read()
        remember(one.sha256, one.folder)
        length = min(_length(one), most)
        found[one.name] = make_trainee(one.data, tokenizer, length)
        if one.name in without_rate:
            found[one.name + OF_TRAINING] = make_trainee(one.data.held_out(), tokenizer, length)
    return found


def _length(asked: Asked) -> int:
    if asked.protocol == "quick":
        return protocols.QUICK_LENGTH
    return _paper(asked).length


def _paper(asked: Asked) -> protocols.Settings:
    return protocols.paper(asked.name, isinstance(asked.data, QuestionTask) and asked.data.unanswerable)


def _mean_length(trainee: Trainee) -> float:
    return float(trainee.train.lengths.mean())


def _settle(run: Run, asked: Asked, trainee: Trainee, choice: Choice | None) -> None:
    """Settle the settings, and note them with the data under the name of each seed."""
    asked.settings = protocols.quick(trainee.train.lengths, choice.learning_rate) if choice else _paper(asked)
    labels = list(asked.data.labels) if not isinstance(asked.data, QuestionTask) else []
    summary = {"note": _note(asked, trainee, choice), "labels": labels, **(choice.summary if choice else {})}
    if asked.overwrite:
        for name in plan.stored_seeds(run, asked.name):
            results.forget_other(run, name, asked.identity)
    for seed in sorted({seed for _, seed in asked.pending}):
        name = evaluation(asked.name, seed)
        results.begin(run, name, asked.identity, summary, asked.overwrite)


def _note(asked: Asked, trainee: Trainee, choice: Choice | None) -> str:
    """One sentence on the data and the settings."""
    rate = f"{asked.settings.updates:,} updates, learning rate {asked.settings.learning_rate:g}"
    if choice:
        by = " by the loss, as the best scores are equal," if choice.is_tied and choice.losses else ""
        rate += f", chosen{by} at step {choice.step} on a tenth of the training data"
    return f"{len(trainee.targets):,} training sequences of {asked.folder.name}; protocol {asked.protocol}, {rate}"
