"""Known results of edge probing, written through the store: two tasks of the metric and one of the user."""

from embryo_core import results
from embryo_core.measurements import Findings, ProbeCurve, Score
from embryo_core.types import Run
from tests.conftest import checkpoint_at

STEPS = (0, 8, 16)
F1 = {  # task: layer: F1 at each of STEPS
    "pos": {0: (0.50, 0.60, 0.70), 1: (0.50, 0.80, 0.75), 2: (0.40, 0.90, 0.50)},
    "srl": {0: (0.30, 0.30, 0.40), 1: (0.30, 0.50, 0.60), 2: (0.30, 0.70, 0.60)},
    "mine": {0: (0.20, 0.20, 0.20), 1: (0.20, 0.30, 0.40), 2: (0.20, 0.40, 0.60)},
}
TARGETS = {"pos": 400, "srl": 100, "mine": 50}
MAJORITY, CONTROL = 0.2, 0.25
SHARED = ("pos", "srl")  # the metric's own tasks; the other one is a separate evaluation
NOTE = "spans of sentences made for the tests"


def write_probes(run: Run, tasks: tuple[str, ...] = tuple(F1), steps: tuple[int, ...] = STEPS) -> None:
    """Write results of the tasks at these steps, and a record of their data, without compacting."""
    for evaluation, own in (("edge_probing", SHARED), ("edge_probing:mine", ("mine",))):
        own = [task for task in own if task in tasks]
        sizes = {task: {"train": 8 * TARGETS[task], "dev": 60, "test": TARGETS[task], "labels": 5} for task in own}
        identity = {"data": "made", "protocol": "fast"}
        if own:
            results.note_dataset(run, evaluation, identity, {"note": NOTE, "tasks": sizes})
        for step in steps if own else ():
            results.write(checkpoint_at(run, step), evaluation, _findings(own, step))


def _findings(tasks: list[str], step: int) -> Findings:
    findings = Findings()
    for task in tasks:
        n = TARGETS[task]
        findings.scores.append(Score("edge_probing_majority", MAJORITY, n, task))
        for layer, values in F1[task].items():
            f1 = values[STEPS.index(step)]
            findings.scores.append(Score("edge_probing_f1", f1, n, task, layer))
            findings.scores.append(Score("edge_probing_control", CONTROL, n, task, layer))
            for control, top in ((False, f1), (True, CONTROL)):
                for iteration in range(4):
                    reached = MAJORITY + (top - MAJORITY) * iteration / 3
                    findings.probes.append(
                        ProbeCurve(task, layer, control, 10 * iteration, 2.0 - iteration / 2, reached)
                    )
    return findings
