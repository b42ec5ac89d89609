"""The log and the word ranks are read line by line; a line that is none costs itself and nothing else."""

import json

from embryo_core import runs
from embryo_core.types import Run


def test_a_line_cut_short_is_dropped_from_the_log(own_run: Run):
    """A crash while writing loses one row, not the log."""
    rows = runs.read_log(own_run)
    with (own_run.path / "log.jsonl").open("a") as file:
        file.write('{"split": "train", "step": 20, "lo')
    assert runs.read_log(own_run) == rows and runs.damaged_lines(own_run) == 1


def test_a_step_trained_again_replaces_its_row(own_run: Run):
    """After a resume the later row of a step and split counts."""
    with (own_run.path / "log.jsonl").open("a") as file:
        file.write(json.dumps({"split": "train", "step": 4, "loss": 1.5}) + "\n")
    rows = [row for row in runs.read_log(own_run) if (row["split"], row["step"]) == ("train", 4)]
    assert rows == [{"split": "train", "step": 4, "loss": 1.5}]


def test_a_run_without_a_log_has_no_rows(own_run: Run):
    """A missing log is an empty one."""
    (own_run.path / "log.jsonl").unlink()
    assert runs.read_log(own_run) == []
