"""What an audit found out about a run's checkpoints, kept in audit.json beside run.json; steps where curves break."""

from dataclasses import asdict, dataclass

from embryo_core.errors import BrokenRun
from embryo_core.runs.files import write_json
from embryo_core.runs.log import last_logged
from embryo_core.runs.manifests import broken, checkpoints
from embryo_core.runs.reading import read_json
from embryo_core.runs.schema import AuditCard
from embryo_core.runs.trust import own_folder
from embryo_core.types import Run

AUDIT = "audit.json"


@dataclass(frozen=True)
class Fault:
    """What is wrong with some steps: one sentence, with what to do; `kind` is for those who count."""

    steps: tuple[int, ...]
    kind: str  # unreadable | missing | equal | swapped | out of line | tensor | not finite | config | tokenizer
    what: str


@dataclass(frozen=True)
class Audit:
    """What was found, and how many checkpoints were looked at."""

    faults: tuple[Fault, ...]
    checkpoints: int


def write_audit(run: Run, audit: Audit) -> None:
    """Keep an audit for the pages, in place of an earlier one."""
    write_json(own_folder(run.path / AUDIT, run.path, BrokenRun), asdict(audit))


def read_audit(run: Run) -> Audit | None:
    """The last audit of a run; None where there was none. Raises BrokenRun."""
    if not (run.path / AUDIT).is_file():
        return None
    card = read_json(run.path / AUDIT, run.path, AuditCard, BrokenRun)
    return Audit(tuple(Fault(fault.steps, fault.kind, fault.what) for fault in card.faults), card.checkpoints)


def missing_steps(run: Run) -> list[int]:
    """Planned steps without a checkpoint: before the last one at hand, or saved by what the log says."""
    there = {checkpoint.step for checkpoint in checkpoints(run)}
    damaged = {path.name for path, _ in broken(run)}
    lacking = [step for step in run.planned_steps if step not in there and f"step{step}" not in damaged]
    last = max(there, default=-1)
    if max(lacking, default=last) > last:  # else the log has nothing to add
        last = max(last, _saved_up_to(run))
    return [step for step in lacking if step <= last]


def _saved_up_to(run: Run) -> int:
    """The last step whose checkpoint, were it planned, the log says was written; -1 where it says nothing.

    Training logs a step before it saves it, and measures it on held-out text, where there is any, after that.
    """
    try:
        logged = last_logged(run)
    except BrokenRun:
        return -1
    measured = logged.get("heldout")
    trained = logged.get("train", -1)
    return trained if measured is None else max(measured, trained - 1)


def gaps(run: Run) -> tuple[int, ...]:
    """Steps at which a curve breaks: planned ones without a checkpoint, and those with a fault. Raises BrokenRun."""
    audit = read_audit(run)
    faulty = [step for fault in audit.faults for step in fault.steps] if audit else []
    return tuple(sorted({*missing_steps(run), *faulty}))
