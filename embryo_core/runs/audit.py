"""The faults that an audit found in a run's checkpoints, stored in audit.json, and the steps at which curves break."""

from dataclasses import asdict, dataclass
from typing import Annotated

from msgspec import Meta
from msgspec.json import Decoder

from embryo_core.errors import BrokenRun
from embryo_core.runs.atomic_files import write_json
from embryo_core.runs.log import last_logged
from embryo_core.runs.manifests import broken_checkpoints, checkpoints
from embryo_core.runs.schema import MAX_STEPS
from embryo_core.runs.trust import own_folder, read_json, refusal
from embryo_core.runs.value_types import Count, Label, Text
from embryo_core.types import Run

AUDIT_FILE = "audit.json"


@dataclass(frozen=True)
class Fault:
    """A fault at some steps: `what` is a sentence with a remedy, and `kind` a category for programs."""

    steps: tuple[Count, ...]
    kind: Label  # unreadable | missing | equal | swapped | out of line | tensor | not finite | config | tokenizer
    what: Text


@dataclass(frozen=True)
class Audit:
    """The faults that an audit found, and the number of audited checkpoints."""

    faults: Annotated[tuple[Fault, ...], Meta(max_length=20_000)]
    checkpoints: Count


def write_audit(run: Run, audit: Audit) -> None:
    """Write the audit of a run, replacing an earlier one. Raises BrokenRun if audit.json is a link."""
    write_json(own_folder(run.path / AUDIT_FILE, run.path, BrokenRun), asdict(audit))


def read_audit(run: Run) -> Audit | None:
    """Return the last audit of a run, or None without one. Raises BrokenRun if audit.json is not valid."""
    if not (run.path / AUDIT_FILE).is_file():
        return None
    audit = read_json(run.path / AUDIT_FILE, run.path, Audit, BrokenRun)
    if (steps := sum(len(fault.steps) for fault in audit.faults)) > MAX_STEPS:
        raise refusal(
            run.path / AUDIT_FILE, f"has faults that name {steps:,} steps, more than {MAX_STEPS:,}", BrokenRun
        )
    return audit


def missing_steps(run: Run) -> list[int]:
    """Return planned steps that lack a checkpoint although a later one exists, or the log shows that it was saved."""
    existing = {checkpoint.step for checkpoint in checkpoints(run)}
    damaged = {path.name for path, _ in broken_checkpoints(run)}
    lacking = [step for step in run.planned_steps if step not in existing and f"step{step}" not in damaged]
    last = max(existing, default=-1)
    if max(lacking, default=last) > last:  # the log is only needed in this case
        last = max(last, _saved_up_to(run))
    return [step for step in lacking if step <= last]


def _saved_up_to(run: Run) -> int:
    """Return the step up to which planned checkpoints must have been saved, by the log; -1 if unknown.

    Training logs a step, saves it, and then measures it on held-out text, if there is any.
    """
    try:
        logged = last_logged(run)
    except BrokenRun:
        return -1
    measured = logged.get("heldout")
    trained = logged.get("train", -1)
    return trained if measured is None else max(measured, trained - 1)


def gaps(run: Run) -> tuple[int, ...]:
    """Return the steps at which curves break, since a checkpoint is missing or faulty. Raises BrokenRun."""
    audit = read_audit(run)
    faulty = [step for fault in audit.faults for step in fault.steps] if audit else []
    return tuple(sorted({*missing_steps(run), *faulty}))


Decoder(Audit)  # resolves its fields now, since two threads that do so at once crash the process
