"""Tests of the states from which a run resumes: they are complete, two are kept, and damaged ones are skipped."""

import os
from pathlib import Path

import numpy as np
import pytest
from keras import ops

from embryo_core.errors import BrokenRun
from pretrain.batches import Data
from pretrain.config import Config
from pretrain.model import PretrainingModel
from pretrain.state import Progress, latest_state, restore, save_state
from pretrain.train import build


def values(model: PretrainingModel) -> list[np.ndarray]:
    """Return every variable of a model and its optimizer."""
    return [np.array(ops.convert_to_numpy(variable)) for variable in [*model.variables, *model.optimizer.variables]]


@pytest.fixture
def saved(model: PretrainingModel, tmp_path: Path) -> Path:
    """Save states of steps 9, 10, 20 and 100 and return the run's folder."""
    for step in (9, 10, 20, 100):
        save_state(model, tmp_path, Progress(step, 8 * step, 200 * step))
    return tmp_path


def test_state_restores_every_variable(model: PretrainingModel, config: Config, saved: Path):
    """Weights, both moments and the number of updates are equal bit for bit, and so is the run's progress."""
    rng = np.random.default_rng(1)
    for variable in model.optimizer.variables:
        variable.assign(rng.integers(1, 100, variable.shape).astype(variable.dtype))
    save_state(model, saved, Progress(101, 808, 20_200))
    other = build(config)
    assert restore(other, latest_state(saved)) == Progress(101, 808, 20_200)
    moments = sum(variable.path.endswith(("momentum", "velocity")) for variable in other.optimizer.variables)
    assert moments == 2 * len(other.trainable_variables)
    for restored, expected in zip(values(other), values(model), strict=True):
        np.testing.assert_array_equal(restored, expected)


def test_only_the_last_two_states_are_kept(saved: Path):
    """Their steps are compared as numbers, not as text; no temporary file remains."""
    assert {path.name for path in (saved / "state").iterdir()} == {"step20.npz", "step100.npz"}
    assert latest_state(saved).name == "step100.npz"


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_truncated_state_is_skipped(saved: Path, share: float):
    """The previous state is chosen, however much of the last one was written."""
    path = saved / "state" / "step100.npz"
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert latest_state(saved).name == "step20.npz"


def test_flipped_bit_never_changes_a_restored_state(saved: Path):
    """Either the previous state is chosen, or every array of the damaged file is still read correctly."""
    path = saved / "state" / "step100.npz"
    whole = path.read_bytes()
    with np.load(path) as state:
        expected = {name: state[name] for name in state.files}
    first_end, directory = whole.index(b"PK", 4), whole.index(b"PK\x01\x02")
    rng = np.random.default_rng(3)
    structure = [*range(first_end + 200), *rng.integers(directory, len(whole), 150)]
    passed_over = 0
    for place in [*structure[::3], *rng.integers(0, len(whole), 50).tolist()]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << rng.integers(8))]) + whole[place + 1 :])
        if (chosen := latest_state(saved)).name == "step20.npz":
            passed_over += 1
            continue
        with np.load(chosen) as state:
            assert all(np.array_equal(state[name], array) for name, array in expected.items()), place
    assert passed_over >= 50


def test_run_with_only_damaged_states_is_refused(saved: Path):
    """Starting again would lose the log and hours of work, so the user first has to remove the folder of states."""
    for path in (saved / "state").iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BrokenRun, match=f"Every state in {saved / 'state'} is damaged; remove that folder"):
        latest_state(saved)


def test_latest_state_is_none_without_states(tmp_path: Path):
    """The folder is missing, or has only a file with another name and a pipe, which must not be opened."""
    assert latest_state(tmp_path) is None
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "steps.npz").write_bytes(b"no state")
    os.mkfifo(tmp_path / "state" / "step3.npz")
    assert latest_state(tmp_path) is None


def test_progress_counts_tokens_without_padding(data: Data):
    """An update adds the batch's sequences and its tokens that are not padding."""
    first_long = data.config.short_steps
    batch = next(batch for batch in map(data.training, range(first_long, first_long + 100)) if (batch.ids == 0).any())
    progress = Progress(4, 10, 100).after(batch)
    assert (progress.step, progress.sequences) == (5, 10 + len(batch.ids))
    assert progress.tokens == 100 + int((batch.ids != 0).sum()) < 100 + batch.ids.size


def test_linked_state_folder_is_refused(model: PretrainingModel, saved: Path, tmp_path: Path):
    """The states in the folder behind the link are not changed."""
    elsewhere = (saved / "state").rename(tmp_path / "elsewhere")
    (saved / "state").symlink_to(elsewhere)
    with pytest.raises(BrokenRun, match="is a link"):
        save_state(model, saved, Progress(200, 1600, 40_000))
    assert {path.name for path in elsewhere.iterdir()} == {"step20.npz", "step100.npz"}
