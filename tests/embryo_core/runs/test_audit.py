"""What an audit found is stored next to run.json, and curves break at its faults."""

import json
import shutil

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenRun
from embryo_core.runs import Audit, Fault
from embryo_core.types import Run


def test_an_audit_is_read_as_it_was_written(own_run):
    """None before there is one."""
    assert runs.read_audit(own_run) is None
    audit = Audit((Fault((8, 16), "swapped", "Steps 8 and 16 are swapped."), Fault((), "unreadable", "A folder.")), 3)
    runs.write_audit(own_run, audit)
    assert runs.read_audit(own_run) == audit


@pytest.mark.parametrize("content", ["[]", "{", '{"faults": [{"steps": [-1], "kind": "x", "what": ""}]}'])
def test_a_file_that_is_no_audit_is_one_sentence(own_run, content):
    """As of any file in a run's folder."""
    (own_run.path / "audit.json").write_text(content)
    with pytest.raises(BrokenRun, match=r"audit\.json is not valid"):
        runs.read_audit(own_run)


def test_an_audit_of_more_steps_than_any_run_has_is_refused(own_run):
    """A page would list a million gaps."""
    fault = {"steps": [*range(70_000)], "kind": "missing", "what": ""}
    (own_run.path / "audit.json").write_text(json.dumps({"faults": [fault] * 2, "checkpoints": 3}))
    with pytest.raises(BrokenRun, match="name 140,000 steps"):
        runs.read_audit(own_run)


def test_curves_break_at_missing_and_faulty_steps(own_run):
    """Planned steps after the last checkpoint are no gap where the log does not have them: they are still to come."""
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
    """Plans other steps for the run, whose log has held-out rows up to step 16, where its last checkpoint is."""

    def plan(*steps: int) -> Run:
        card = json.loads((own_run.path / "run.json").read_text())
        (own_run.path / "run.json").write_text(json.dumps(card | {"planned_steps": steps}))
        return runs.read_run(own_run.path)

    return plan


def log(run: Run, *rows: tuple[str, int]) -> None:
    """Let pretraining go on: more rows for the log."""
    with (run.path / "log.jsonl").open("a") as file:
        file.writelines(json.dumps({"split": split, "step": step, "loss": 5.0}) + "\n" for split, step in rows)


def test_a_last_step_that_the_log_has_is_missing(planning):
    """Held-out text is measured once a checkpoint is written; without such rows the one of training has to do."""
    run = planning(16, 0, 8)
    shutil.rmtree(run.path / "checkpoints" / "step16")
    assert runs.missing_steps(run) == [16] and runs.gaps(run) == (16,)
    (run.path / "log.jsonl").unlink()
    assert runs.missing_steps(run) == []
    log(run, ("train", 12))
    assert runs.missing_steps(run) == []
    log(run, ("train", 16))
    assert runs.missing_steps(run) == [16]


def test_steps_that_training_has_not_passed_are_still_to_come(planning):
    """One that is logged and not yet measured is being written."""
    run = planning(0, 8, 16, 20, 32)
    log(run, ("train", 18))
    assert runs.missing_steps(run) == []
    log(run, ("train", 20))
    assert runs.missing_steps(run) == []
    log(run, ("train", 22))
    assert runs.missing_steps(run) == [20]
    log(run, ("train", 32), ("heldout", 32))
    assert runs.missing_steps(run) == [20, 32]


def test_a_damaged_log_tells_nothing(planning):
    """Lines that are no rows are passed over; a log that cannot be read leaves what the checkpoints tell."""
    run = planning(0, 4, 8, 16, 32)
    with (run.path / "log.jsonl").open("ab") as file:
        file.write(b'{"split": "train", "step": 4.5}\n{"split": "other", "step": 64}\n\xff\n[]\n{"split": "train"')
    assert runs.missing_steps(run) == [4]
    (run.path / "log.jsonl").unlink()
    (run.path / "log.jsonl").symlink_to("/etc/hostname")
    assert runs.missing_steps(run) == [4]


def test_a_run_that_has_just_begun_lacks_nothing(planning):
    """Not even its first step."""
    run = planning(0, 8, 16)
    shutil.rmtree(run.path / "checkpoints")
    (run.path / "log.jsonl").unlink()
    assert runs.missing_steps(run) == []


def test_a_step_that_cannot_be_read_is_not_missing(own_run):
    """It is reported as unreadable."""
    card = json.loads((own_run.path / "run.json").read_text())
    (own_run.path / "run.json").write_text(json.dumps(card | {"planned_steps": [0, 8, 16]}))
    (own_run.path / "checkpoints" / "step8" / "manifest.json").write_text("{")
    assert runs.missing_steps(runs.read_run(own_run.path)) == []
