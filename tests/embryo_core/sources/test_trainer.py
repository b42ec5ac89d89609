"""trainer_state.json as a Trainer writes it, and as it should not be."""

import json
import shutil

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenTrainerState
from embryo_core.sources import add
from embryo_core.sources.trainer import read_state


def test_a_loss_that_ran_away_is_no_number(root, trainer_folder, tmp_path):
    """Python writes NaN and Infinity; that row has its learning rate alone, and the others are as they were."""
    rows = [{"step": 5, "loss": float("nan"), "learning_rate": 1e-3}, {"step": 10, "loss": float("inf")}]
    rows += [{"step": 15, "loss": 2.5}]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"global_step": 20, "log_history": rows}))
    state = read_state(tmp_path)
    assert state.global_step == 20
    assert [row.get("loss") for row in state.log_history] == [None, None, 2.5]


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff", b'{"log_history": 5}', b"[" * 100_000])
def test_a_damaged_state_costs_the_log_alone(root, trainer_folder, tmp_path, content):
    """One sentence; the checkpoints are added, and the log is that of the state before."""
    source = shutil.copytree(trainer_folder, tmp_path / "source")
    (source / "checkpoint-20" / "trainer_state.json").write_bytes(content)
    with pytest.raises(BrokenTrainerState, match="its log and counts are left out"):
        read_state(source / "checkpoint-20")
    added = add([str(source)], "mine")
    assert added.steps == (0, 10, 20) and len(added.troubles) == 1 and "trainer_state.json" in added.troubles[0]
    assert {row["step"] for row in runs.read_log(added.run)} == {0, 5, 10}
    assert [checkpoint.tokens for checkpoint in runs.checkpoints(added.run)] == [None, 5120, None]


def test_without_a_state_there_is_nothing(tmp_path):
    """A folder of weights alone."""
    assert read_state(tmp_path) is None
