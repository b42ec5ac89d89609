"""Tests of stored audits, and of the missing or faulty steps at which curves break."""

import json
import shutil

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenRun
from embryo_core.runs import Audit, Fault
from embryo_core.types import Run


def test_audit_is_read_as_written(own_run):
    """Before the first audit the result is None."""
    assert runs.read_audit(own_run) is None
    audit = Audit((Fault((8, 16), "swapped", "Steps 8 and 16 are swapped."), Fault((), "unreadable", "A folder.")), 3)
    runs.write_audit(own_run, audit)
    assert runs.read_audit(own_run) == audit


@pytest.mark.parametrize("content", ["[]", "{", '{"faults": [{"steps": [-1], "kind": "x", "what": ""}]}'])
def test_invalid_audit_file_is_refused(own_run, content):
    (own_run.path / "audit.json").write_text(content)
    with pytest.raises(BrokenRun, match=r"audit\.json is not valid"):
        runs.read_audit(own_run)


def test_audit_with_too_many_steps_is_refused(own_run):
    """A page would otherwise list 140,000 gaps."""
    fault = {"steps": [*range(70_000)], "kind": "missing", "what": ""}
    (own_run.path / "audit.json").write_text(json.dumps({"faults": [fault] * 2, "checkpoints": 3}))
    with pytest.raises(BrokenRun, match="name 140,000 steps"):
        runs.read_audit(own_run)


def test_curves_break_at_missing_and_faulty_steps(own_run):
    """A planned step after the last checkpoint is no gap unless the log has it: it is still to come."""
    card = json.loads((own_run.path / "run.json").read_text())
    (own_run.path / "run.json").write_text(json.dumps(card | {"planned_steps": [0, 4, 8, 16, 32]}))
    run = runs.read_run(own_run.path)
    assert runs.missing_steps(run) == [4] and runs.gaps(run) == (4,)
    runs.write_audit(run, Audit((Fault((8,), "tensor", "A tensor."),), 3))
    assert runs.gaps(run) == (4, 8)
    shutil.rmtree(run.path / "checkpoints" / "step8")
    assert runs.missing_steps(run) == [4, 8]


@pytest.fixture
def planning(own_run):
    """Return a function that plans other steps for a run; its held-out rows and checkpoints end at step 16."""

    def plan(*steps: int) -> Run:
        card = json.loads((own_run.path / "run.json").read_text())
        (own_run.path / "run.json").write_text(json.dumps(card | {"planned_steps": steps}))
        return runs.read_run(own_run.path)

    return plan


def log(run: Run, *rows: tuple[str, int]) -> None:
    """Append rows to the log, as continued pretraining does."""
    with (run.path / "log.jsonl").open("a") as file:
        file.writelines(json.dumps({"split": split, "step": step, "loss": 5.0}) + "\n" for split, step in rows)


def test_logged_last_step_without_checkpoint_is_missing(planning):
    """Held-out text is measured after a checkpoint is written; without held-out rows, training rows decide."""
    run = planning(16, 0, 8)
    shutil.rmtree(run.path / "checkpoints" / "step16")
    assert runs.missing_steps(run) == [16] and runs.gaps(run) == (16,)
    (run.path / "log.jsonl").unlink()
    assert runs.missing_steps(run) == []
    log(run, ("train", 12))
    assert runs.missing_steps(run) == []
    log(run, ("train", 16))
    assert runs.missing_steps(run) == [16]


def test_steps_not_yet_passed_by_training_are_not_missing(planning):
    """A step whose training is logged but not yet measured may be being written."""
    run = planning(0, 8, 16, 20, 32)
    log(run, ("train", 18))
    assert runs.missing_steps(run) == []
    log(run, ("train", 20))
    assert runs.missing_steps(run) == []
    log(run, ("train", 22))
    assert runs.missing_steps(run) == [20]
    log(run, ("train", 32), ("heldout", 32))
    assert runs.missing_steps(run) == [20, 32]


def test_damaged_log_adds_no_missing_steps(planning):
    """Invalid lines are skipped; if the log cannot be read, only the gap between checkpoints is missing."""
    run = planning(0, 4, 8, 16, 32)
    with (run.path / "log.jsonl").open("ab") as file:
        file.write(b'{"split": "train", "step": 4.5}\n{"split": "other", "step": 64}\n\xff\n[]\n{"split": "train"')
    assert runs.missing_steps(run) == [4]
    (run.path / "log.jsonl").unlink()
    (run.path / "log.jsonl").symlink_to("/etc/hostname")
    assert runs.missing_steps(run) == [4]


def test_new_run_has_no_missing_steps(planning):
    """Without checkpoints and a log, not even the first planned step is missing."""
    run = planning(0, 8, 16)
    shutil.rmtree(run.path / "checkpoints")
    (run.path / "log.jsonl").unlink()
    assert runs.missing_steps(run) == []


def test_unreadable_step_is_not_missing(own_run):
    """A step with a broken manifest still counts as existing."""
    card = json.loads((own_run.path / "run.json").read_text())
    (own_run.path / "run.json").write_text(json.dumps(card | {"planned_steps": [0, 8, 16]}))
    (own_run.path / "checkpoints" / "step8" / "manifest.json").write_text("{")
    assert runs.missing_steps(runs.read_run(own_run.path)) == []
