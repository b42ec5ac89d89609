"""Edge probing: what a linear probe reads off the states of every layer about labelled spans (Section 4).

The four tasks are parts of speech, constituents, coreference and semantic roles, in the form of Tenney et al. (2019,
https://arxiv.org/abs/1905.06316), and any other in that form. For each task and layer, 0 being the embeddings:

    edge_probing_f1        micro-averaged F1 of the probe on the whole test set
    edge_probing_control   the same of a probe trained and tested on random labels of word types (probing/control.py)
    edge_probing_majority  that of always giving the most frequent label of the training set; it has no layer

Selectivity, F1 less the control task's, is taken on reading. The probes' own training curves go to probes.parquet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embryo_core.errors import CorpusError
from embryo_core.metrics.probing.data import ProbingData, ProbingTask, read_tasks
from embryo_core.types import Checkpoint, Findings, ProbeCurve, Run, Score, Sources

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.metrics.probing.training import Trained

TASKS = ("pos", "constituent", "coref", "srl")


@dataclass(frozen=True, eq=False)
class Tasks:
    """What `read` returns."""

    data: ProbingData
    protocol: str
    memory: int  # bytes of features
    facts: dict[str, Any]


class EdgeProbing:
    """Probes of the four tasks; or of one task of the user's own, an evaluation by itself, named edge_probing:NAME."""

    family = "probing"
    every = 1
    source = "probing"

    def __init__(self, task: str | None = None):
        self.name = "edge_probing" if task is None else f"edge_probing:{task}"
        self._task = task

    def supports(self, run: Run) -> bool:
        return run.family in ("albert", "bert")

    def read(self, model: "Model", sources: Sources) -> Tasks:
        folders = _folders(sources.probing) if self._task is None else {self._task: sources.probing}
        data = read_tasks(folders, model, sources.limit)
        sizes = {task.name: task.sizes for task in data.tasks}
        facts = {
            "sentences": len(data.sentences),
            "spans": len(data.sentence),
            **data.left_out,
            "tasks": sizes,
            "note": _note(data, sources, model),
        }
        return Tasks(data, sources.protocol, sources.probe_memory * 2**20, facts)

    def compute(self, model: "Model", checkpoint: Checkpoint, tasks: Tasks) -> Findings:
        from embryo_core.metrics.probing.features import span_features
        from embryo_core.metrics.probing.training import train_all  # torch: the list of metrics does without

        features = span_features(model, tasks.data, tasks.memory)
        findings = Findings()
        for task, trained in zip(
            tasks.data.tasks, train_all(features, tasks.data.tasks, tasks.protocol, model.cores), strict=True
        ):
            findings.scores += _scores(checkpoint, task, trained)
            findings.probes += _curves(checkpoint, task, trained)
        return findings


def _scores(checkpoint: Checkpoint, task: ProbingTask, trained: Sequence["Trained"]) -> list[Score]:
    run, step, n = checkpoint.run.name, checkpoint.step, len(task.test.labels)
    most_frequent = np.bincount(task.train.labels).argmax()
    majority = float((task.test.labels == most_frequent).mean())
    scores = [Score(run, step, "edge_probing_majority", majority, n, task.name)]
    for layer, probe in enumerate(trained):
        for metric, f1 in zip(("edge_probing_f1", "edge_probing_control"), probe.f1, strict=True):
            scores.append(Score(run, step, metric, f1, n, task.name, layer))
    return scores


def _curves(checkpoint: Checkpoint, task: ProbingTask, trained: Sequence["Trained"]) -> list[ProbeCurve]:
    return [
        ProbeCurve(checkpoint.run.name, checkpoint.step, task.name, layer, control, point.iteration, loss, f1)
        for layer, probe in enumerate(trained)
        for point in probe.curve
        for control, loss, f1 in zip((False, True), point.train_loss, point.dev_f1, strict=True)
    ]


def _folders(path: Path) -> dict[str, Path]:
    """The folders of the four tasks that are there, in their order. Raises CorpusError."""
    if not path.is_dir():
        raise CorpusError(f"{path} is no folder; give one that holds folders named {', '.join(TASKS)}.")
    found = sorted(folder.name for folder in path.iterdir() if folder.is_dir() and not folder.name.startswith("."))
    for name in found:
        if name not in TASKS:
            raise CorpusError(
                f"{path} has the folder '{name}', which is none of {', '.join(TASKS)}; move it elsewhere and give it "
                f"as a task of your own: --probe {name}=FOLDER"
            )
    if not found:
        raise CorpusError(
            f"{path} has no folder named {', '.join(TASKS)}; if it is one task itself: --probe NAME={path}"
        )
    return {name: path / name for name in TASKS if name in found}


def _note(data: ProbingData, sources: Sources, model: "Model") -> str:
    """One sentence on what was probed and what was left out."""
    tests = ", ".join(f"{task.name} {len(task.test.labels):,}" for task in data.tasks)
    note = f"test targets: {tests}; {len(data.sentences):,} distinct sentences of {sources.probing.name}"
    if data.left_out["too_long"]:
        note += f"; {data.left_out['too_long']:,} targets in sentences of over {model.max_positions} pieces left out"
    if data.left_out["no_pieces"]:
        note += f"; {data.left_out['no_pieces']:,} targets without a piece left out"
    return note
