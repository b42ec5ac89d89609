"""What is to be fine-tuned: tasks and their data, what is done already, settings, and the units that are left."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embryo_core import corpora, results, runs
from embryo_core.engine.capabilities import gives
from embryo_core.engine.remote import fetch_checkpoint
from embryo_core.errors import (
    BrokenCheckpoint,
    ConfigError,
    CorpusError,
    MissingCapability,
    MissingWeights,
    OtherData,
)
from embryo_core.finetune import kept
from embryo_core.finetune.forms import GLUE, SQUAD, evaluation
from embryo_core.finetune.protocols import Choice, Settings
from embryo_core.finetune.questions import QuestionTask, read_questions
from embryo_core.finetune.tasks import TextTask, data_sha256, read_task
from embryo_core.finetune.units import Item, Unit
from embryo_core.types import Checkpoint, Run
from embryo_core.words import quantity

Pairs = set[tuple[int, int]]  # (step, seed)


@dataclass
class Asked:
    """One task as it is asked for; what is not known at once is filled in."""

    name: str
    folder: Path
    protocol: str
    sha256: str
    pending: Pairs
    done_before: int
    overwrite: bool  # results of other data may go
    staying: set[tuple[int, str]]  # steps and seeds of results that --overwrite leaves as they are
    more: dict[str, Any] = field(default_factory=dict)  # what else identifies its results
    data: TextTask | QuestionTask | None = None
    settings: Settings | None = None

    @property
    def from_mnli(self) -> bool:
        """Whether it begins from the checkpoint's weights after MNLI."""
        return self.protocol == "paper" and self.name in GLUE and GLUE[self.name].from_mnli

    @property
    def identity(self) -> dict[str, Any]:
        """What tells these results from others."""
        known = {"data": self.folder.name, "sha256": self.sha256, "limit": None, "protocol": self.protocol, **self.more}
        return known if self.settings is None else known | {"learning_rate": self.settings.learning_rate}

    def read(self) -> None:
        """Read the data. Raises CorpusError."""
        self.data = read_questions(self.folder) if self.name == SQUAD else read_task(self.name, self.folder)


def trainable(run: Run, steps: Iterable[int] | None) -> list[Checkpoint]:
    """The checkpoints to fine-tune: those of these steps, or all that have weights.

    Raises UnknownStep, MissingWeights, MissingCapability where none has an encoder that can be trained.
    """
    chosen = runs.loadable(run, steps)
    if not chosen:
        runs.checkpoint(run, 0)  # raises, telling how a run gets its checkpoints
    found = [checkpoint for checkpoint in chosen if "trainable" in _gives(checkpoint)]
    if not found:
        raise MissingCapability(
            f"No checkpoint of run '{run.name}' that was asked for has an encoder that can be trained; choose a run of "
            "ALBERT, BERT or ELECTRA."
        )
    return found


def late(run: Run) -> Checkpoint:
    """The last checkpoint that can be fine-tuned and whose files are right.

    Raises what is wrong with the first where none is: BrokenCheckpoint, or MissingWeights.
    """
    for checkpoint in reversed(trainable(run, None)):
        try:
            fetch_checkpoint(checkpoint)
            runs.verify(checkpoint)
        except (BrokenCheckpoint, MissingWeights) as error:
            reason = error
        else:
            return checkpoint
    raise reason


def _gives(checkpoint: Checkpoint) -> frozenset[str]:
    """What the model gives; one that cannot be read may, and tells what is wrong when it is its turn."""
    try:
        return gives(checkpoint)
    except BrokenCheckpoint:
        return frozenset({"trainable"})


def ask(
    run: Run, tasks: Mapping[str, Path], checkpoints: Sequence[Checkpoint], seeds: int, protocol: str, overwrite: bool
) -> list[Asked]:
    """Each task with the (step, seed) pairs that lack results. Raises CorpusError, OtherData."""
    asked = [_ask(run, name, folder, checkpoints, seeds, protocol, overwrite) for name, folder in tasks.items()]
    mnli = next((one for one in asked if one.name == "mnli"), None)
    for one in asked:
        if one.from_mnli:
            if mnli is None:
                raise ConfigError(
                    f"Protocol 'paper' begins '{one.name}' from weights tuned on MNLI, whose data were not given; add "
                    "mnli to --tasks, or use --protocol quick."
                )
            one.more["mnli_sha256"] = mnli.sha256
    for one in asked:
        _check(run, one)
    return asked


def _ask(
    run: Run, name: str, folder: Path, checkpoints: Sequence[Checkpoint], seeds: int, protocol: str, overwrite: bool
) -> Asked:
    pairs = {(checkpoint.step, seed) for checkpoint in checkpoints for seed in range(1, seeds + 1)}
    written = results.done(run)
    done = {(step, seed) for seed in range(1, seeds + 1) for step in written[evaluation(name, seed)]}
    weightless = {checkpoint.step for checkpoint in runs.checkpoints(run) if not checkpoint.has_weights}
    stored = {(step, _seed(other)) for other in stored_seeds(run, name) for step in written[other]}
    again = {(step, str(seed)) for step, seed in pairs}
    replaceable = overwrite and not {step for step, _ in stored} & weightless  # else they could not come again
    pending, staying = (pairs, stored - again) if overwrite else (pairs - done, set())
    if not folder.is_dir():
        raise CorpusError(f"{folder}, for the task '{name}', is no folder; give one with --glue, --squad or --task.")
    sha256 = _sha256(run, name, folder)
    return Asked(name, folder, protocol, sha256, pending, len(pairs) - len(pending), replaceable, staying)


def _sha256(run: Run, name: str, folder: Path) -> str:
    """The hash of a task's data; that of its whole folder where results of an earlier version have it."""
    found, sources = data_sha256(name, folder), results.read_sources(run)
    noted = {str(sources[other].get("sha256")) for other in stored_seeds(run, name) if other in sources}
    if noted - {found} and (whole := corpora.open_source(folder).sha256) in noted:
        return whole
    return found


def stored_seeds(run: Run, task: str) -> list[str]:
    """The names of a task's results, one for each seed that has some."""
    return sorted(name for name, steps in results.done(run).items() if steps and name.startswith(evaluation(task, "")))


def _seed(name: str) -> str:
    """The seed in the name of a task's results."""
    return name.rpartition(":")[2]


def _check(run: Run, asked: Asked) -> None:
    """Raise OtherData, before anything takes time, where results at hand are of other data or another protocol.

    Those of every seed: their mean is what is shown.
    """
    if asked.overwrite:
        return
    weightless = {checkpoint.step for checkpoint in runs.checkpoints(run) if not checkpoint.has_weights}
    for name in stored_seeds(run, asked.name):
        try:
            results.check_identity(run, name, asked.identity)
        except OtherData:
            if not (gone := results.done(run)[name] & weightless):
                raise
            raise OtherData(
                f"Scores of '{asked.name}' for run '{run.name}' are of other data or another protocol than asked for, "
                f"and those of {quantity(len(gone), 'step')} without weights cannot be computed again; give the same."
            ) from None


def noted_choice(run: Run, asked: Asked) -> Choice | None:
    """The learning rate of the results at hand of this task, whatever their seed; None where it is to be chosen.

    It is chosen anew where all of them are overwritten: in one curve, all scores have the same.
    """
    if asked.overwrite and not asked.staying:
        return None
    for name, noted in sorted(results.read_sources(run).items()):
        same = all(noted.get(key) == value for key, value in asked.identity.items() if key != "data")
        if name.startswith(evaluation(asked.name, "")) and same:
            return Choice.of(noted)
    return None


def kept_rate(asked: Asked, choice: Choice) -> str:
    """One sentence on why --overwrite did not have the learning rate chosen anew."""
    step, seed = min(asked.staying)
    return (
        f"'{asked.name}' keeps its learning rate {choice.learning_rate:g}, as scores that are not computed again have "
        f"it, such as that of step {step} and seed {seed}; it is chosen anew where --overwrite covers all of them."
    )


def units(asked: Sequence[Asked], checkpoints: Sequence[Checkpoint], cost: Mapping[str, float]) -> list[Unit]:
    """What is left, checkpoint by checkpoint, of each the costliest first. Tasks that begin from MNLI come after it."""
    found: list[Unit] = []
    for checkpoint in checkpoints:
        for seed in sorted({seed for one in asked for step, seed in one.pending if step == checkpoint.step}):
            pending = {one.name: one for one in asked if (checkpoint.step, seed) in one.pending}
            chain = _chain(asked, pending, checkpoint, seed)
            alone = [Unit(checkpoint, seed, (_item(one),)) for name, one in pending.items() if not _in(chain, name)]
            found += sorted([*chain, *alone], key=lambda unit: -sum(cost[item.task] for item in unit.items))
    return found


def _chain(asked: Sequence[Asked], pending: Mapping[str, Asked], checkpoint: Checkpoint, seed: int) -> list[Unit]:
    """MNLI and the tasks that begin from it as one unit; none where no such task is left."""
    after = [one for one in pending.values() if one.from_mnli]
    if not after:
        return []
    mnli = next(one for one in asked if one.name == "mnli")
    weights = kept.weights_file(checkpoint, seed, mnli.settings, mnli.identity)
    again = "mnli" in pending or not kept.readable(weights)
    first = (_item(mnli, written="mnli" in pending),) if again else ()
    return [Unit(checkpoint, seed, (*first, *map(_item, after)), weights)]


def _in(chain: Sequence[Unit], task: str) -> bool:
    return any(item.task == task for unit in chain for item in unit.items)


def _item(asked: Asked, written: bool = True) -> Item:
    return Item(asked.name, asked.settings, asked.identity, written, asked.from_mnli)


def remove_leftovers(run: Run, asked: Sequence[Asked]) -> None:
    """Remove weights after MNLI whose tasks are done: of a process that was killed just before it did so."""
    after, done = [one for one in asked if one.from_mnli], results.done(run)
    for (step, seed), file in kept.kept_weights(run) if after else ():
        if all(step in done[evaluation(one.name, seed)] for one in after):
            file.unlink(missing_ok=True)
