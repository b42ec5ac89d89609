"""What an audit found is kept beside run.json, and tells where curves break."""

import json
import shutil

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenRun
from embryo_core.runs import Audit, Fault


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
    with pytest.raises(BrokenRun, match="audit.json is not valid"):
        runs.read_audit(own_run)


def test_curves_break_at_missing_and_faulty_steps(own_run):
    """Planned steps after the last checkpoint are no gap: they are still to come."""
    card = json.loads((own_run.path / "run.json").read_text())
    (own_run.path / "run.json").write_text(json.dumps(card | {"planned_steps": [0, 4, 8, 16, 32]}))
    run = runs.read_run(own_run.path)
    assert runs.missing_steps(run) == [4] and runs.gaps(run) == (4,)
    runs.write_audit(run, Audit((Fault((8,), "tensor", "A tensor."),), 3))
    assert runs.gaps(run) == (4, 8)
    shutil.rmtree(run.path / "checkpoints" / "step8")
    assert runs.missing_steps(run) == [4, 8]


def test_a_step_that_cannot_be_read_is_not_missing(own_run):
    """It is reported as unreadable."""
    card = json.loads((own_run.path / "run.json").read_text())
    (own_run.path / "run.json").write_text(json.dumps(card | {"planned_steps": [0, 8, 16]}))
    (own_run.path / "checkpoints" / "step8" / "manifest.json").write_text("{")
    assert runs.missing_steps(runs.read_run(own_run.path)) == []
