"""The Overview tells what the last audit found."""

from embryo_core import runs
from embryo_core.runs import Audit, Fault


def opened(dashboard, run, monkeypatch):
    """The Overview of a run that a test may change."""
    monkeypatch.setenv("EMBRYO_DATA", str(run.path.parent.parent))
    page = dashboard.open("overview")
    assert not page.exception
    return page


def test_faults_are_listed_with_the_command(dashboard_with_results, own_run, monkeypatch):
    """Each with its sentence, which is never read as markup."""
    runs.write_audit(own_run, Audit((Fault((8,), "tensor", "The *bias* at step 8 is odd."),), 3))
    page = opened(dashboard_with_results, own_run, monkeypatch)
    (found,) = [one for one in page.expander if "audit" in one.label]
    assert found.label == "The audit found 1 fault in this run's checkpoints; curves break there."
    assert "\\*bias\\* at step 8" in found.markdown[0].value
    assert found.code[0].value == "python -m embryo_core audit tiny"


def test_a_run_without_faults_says_nothing(dashboard_with_results, own_run, monkeypatch):
    """Audited or not."""
    runs.write_audit(own_run, Audit((), 3))
    page = opened(dashboard_with_results, own_run, monkeypatch)
    assert not [one for one in page.expander if "audit" in one.label]
