"""Edge probing: linear probes predict labels of spans from the states of every layer (Section 4).

The four tasks are parts of speech, constituents, coreference and semantic roles, in the format of Tenney et al. (2019,
https://arxiv.org/abs/1905.06316); a user's task has the same format. For each task and layer (0: embeddings):

    edge_probing_f1        micro-averaged F1 of the probe on the whole test set
    edge_probing_control   F1 of a probe trained and tested on the control task's random labels (probing/data.py)
    edge_probing_majority  F1 of always predicting the most frequent training label; without a layer

Selectivity, F1 minus control F1, is computed when results are read. The probes' training curves are stored in
probes.parquet.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embryo_core.errors import CorpusError
from embryo_core.measurements import Findings, ProbeCurve, Score
from embryo_core.metric import Limits, Metric, Option, Source
from embryo_core.metrics.probing.data import ProbingData, ProbingTask, read_tasks

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.metrics.probing.training import ProbeResult
    from embryo_core.tokenizers.tokenizer import Tokenizer

TASKS = ("pos", "constituent", "coref", "srl")


@dataclass(frozen=True, eq=False)
class ProbingInputs:
    """Encoded tasks and the settings of their probes."""

    data: ProbingData
    protocol: str
    memory: int  # bytes of features that stay in memory; more are mapped from disk
    summary: dict[str, Any]


class EdgeProbing(Metric):
    """Probes of the four tasks, or of one user's task, which is a metric named edge_probing:NAME."""

    page = "probing"
    form = f"folder with {'/, '.join(TASKS)}/"
    needs = frozenset({"states"})
    options = (
        Option("protocol", "fast", "how probes are trained", choices=("fast", "paper"), identifies=True),
        Option("probe-memory", 2048, "MiB of features kept in memory; the rest is mapped from disk"),
    )
    variants = "probe"

    def __init__(self, task: str | None = None):
        self.name = "edge_probing" if task is None else f"edge_probing:{task}"
        self.source = "probing" if task is None else f"probing:{task}"
        self._task = task

    def variant(self, name: str) -> "EdgeProbing":
        if name in TASKS or not re.fullmatch(r"\w[\w.-]*", name):
            raise CorpusError(
                f"A probing task of your own cannot be named '{name}'; choose a name of letters, digits, '_', '-' and "
                f"'.' that is none of {', '.join(TASKS)}."
            )
        return EdgeProbing(name)

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> ProbingInputs:
        folders = _folders(source.path) if self._task is None else {self._task: source.path}
        data = read_tasks(folders, tokenizer, limits, source.limit)
        sizes_of_tasks = {task.name: task.sizes for task in data.tasks}
        summary = {
            "sentences": len(data.sentences),
            "spans": len(data.sentence),
            **data.left_out,
            "tasks": sizes_of_tasks,
            "note": _note(data, source, limits),
        }
        return ProbingInputs(data, source.options["protocol"], source.options["probe-memory"] * 2**20, summary)

    def compute(self, model: "Model", probing: ProbingInputs) -> Findings:
        # imported here because they import torch, which the list of metrics does not need
        from embryo_core.metrics.probing.probes import span_features
        from embryo_core.metrics.probing.training import train_all

        features = span_features(model, probing.data, probing.memory)
        findings = Findings()
        tasks = probing.data.tasks
        probes_of_tasks = train_all(features, tasks, probing.protocol, model.parallel_passes)
        for task, probes in zip(tasks, probes_of_tasks, strict=True):
            findings.scores += _scores(task, probes)
            findings.probes += [
                ProbeCurve(task.name, layer, control, point.iteration, loss, f1)
                for layer, probe in enumerate(probes)
                for point in probe.curve
                for control, loss, f1, end in zip(
                    (False, True), point.train_loss, point.dev_f1, probe.ends, strict=True
                )
                if point.iteration <= end
            ]
        return findings


def _scores(task: ProbingTask, probes: Sequence["ProbeResult"]) -> list[Score]:
    """Return a task's majority baseline, then the F1 and control F1 of the probes of each layer."""
    n = len(task.test.labels)
    majority_label = np.bincount(task.train.labels).argmax()
    majority = float((task.test.labels == majority_label).mean())
    scores = [Score("edge_probing_majority", majority, n, task.name)]
    for layer, probe in enumerate(probes):
        for metric, f1 in zip(("edge_probing_f1", "edge_probing_control"), probe.f1, strict=True):
            scores.append(Score(metric, f1, n, task.name, layer))
    return scores


def _folders(path: Path) -> dict[str, Path]:
    """Return the folder of each of the four tasks that `path` contains, in the order of TASKS.

    Raises CorpusError if it contains none, or a folder of another name.
    """
    if not path.is_dir():
        raise CorpusError(f"{path} is not a folder; give one that holds folders named {', '.join(TASKS)}.")
    folders = sorted(folder.name for folder in path.iterdir() if folder.is_dir() and not folder.name.startswith("."))
    for name in folders:
        if name not in TASKS:
            raise CorpusError(
                f"{path} has the folder '{name}', which is not one of {', '.join(TASKS)}; move it elsewhere and give "
                f"it as your own task: --probe {name}=FOLDER"
            )
    if not folders:
        raise CorpusError(
            f"{path} has no folder named {', '.join(TASKS)}; if it is one task itself: --probe NAME={path}"
        )
    return {name: path / name for name in TASKS if name in folders}


def _note(data: ProbingData, source: Source, limits: Limits) -> str:
    """Return the note for captions: the numbers of test targets, of sentences, and of targets left out."""
    tests = ", ".join(f"{task.name} {len(task.test.labels):,}" for task in data.tasks)
    note = f"test targets: {tests}; {len(data.sentences):,} distinct sentences of {source.path.name}"
    if data.left_out["too_long"]:
        note += f"; {data.left_out['too_long']:,} targets in sentences of over {limits.positions} pieces left out"
    if data.left_out["no_pieces"]:
        note += f"; {data.left_out['no_pieces']:,} targets without a piece left out"
    return note
