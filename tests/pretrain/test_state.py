"""States from which a run resumes: complete, the last two, and a damaged one passed over."""

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
    """Every variable of a model and its optimizer."""
    return [np.array(ops.convert_to_numpy(variable)) for variable in [*model.variables, *model.optimizer.variables]]


@pytest.fixture
def saved(model: PretrainingModel, tmp_path: Path) -> Path:
    """Return a run's folder after states of the steps 9, 10, 20 and 100."""
    for step in (9, 10, 20, 100):
        save_state(model, tmp_path, Progress(step, 8 * step, 200 * step))
    return tmp_path


def test_a_state_brings_back_every_variable(model: PretrainingModel, config: Config, saved: Path):
    """Weights, both moments, and the count of updates, bit for bit; and how far the run had come."""
    rng = np.random.default_rng(1)
    for variable in model.optimizer.variables:
        variable.assign(rng.integers(1, 100, variable.shape).astype(variable.dtype))
    save_state(model, saved, Progress(101, 808, 20_200))
    other = build(config)
    assert restore(other, latest_state(saved)) == Progress(101, 808, 20_200)
    moments = sum(variable.path.endswith(("momentum", "velocity")) for variable in other.optimizer.variables)
    assert moments == 2 * len(other.trainable_variables)
    for found, expected in zip(values(other), values(model), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_only_the_last_two_states_are_kept(saved: Path):
    """By their steps as numbers, not as text; nothing temporary stays."""
    assert {path.name for path in (saved / "state").iterdir()} == {"step20.npz", "step100.npz"}
    assert latest_state(saved).name == "step100.npz"


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_state_cut_short_is_passed_over(saved: Path, share: float):
    """However much of the last state is there, the one before is taken."""
    path = saved / "state" / "step100.npz"
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert latest_state(saved).name == "step20.npz"


def test_a_state_with_a_flipped_byte_is_passed_over(saved: Path):
    """Wherever it is: the state before is taken, or none of what is read of this one is another."""
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


def test_where_all_states_are_damaged_nothing_is_trained_again_unasked(saved: Path):
    """The log and hours of work would be gone: one sentence names the folder to remove."""
    for path in (saved / "state").iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BrokenRun, match=f"Every state in {saved / 'state'} is damaged; remove that folder"):
        latest_state(saved)


def test_without_a_state_there_is_none(tmp_path: Path):
    """No folder, an empty one, and one with nothing but other files give None; a pipe is not opened."""
    assert latest_state(tmp_path) is None
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "steps.npz").write_bytes(b"no state")
    os.mkfifo(tmp_path / "state" / "step3.npz")
    assert latest_state(tmp_path) is None


def test_progress_counts_tokens_without_padding(data: Data):
    """One update more, the batch's sequences, and its tokens that are not padding."""
    first_long = data.config.short_steps
    batch = next(batch for batch in map(data.training, range(first_long, first_long + 100)) if (batch.ids == 0).any())
    found = Progress(4, 10, 100).after(batch)
    assert (found.step, found.sequences) == (5, 10 + len(batch.ids))
    assert found.tokens == 100 + int((batch.ids != 0).sum()) < 100 + batch.ids.size


def test_states_behind_a_link_are_not_touched(model: PretrainingModel, saved: Path, tmp_path: Path):
    """A link in the place of the folder is refused, and the states that it leads to stay."""
    elsewhere = (saved / "state").rename(tmp_path / "elsewhere")
    (saved / "state").symlink_to(elsewhere)
    with pytest.raises(BrokenRun, match="is a link"):
        save_state(model, saved, Progress(200, 1600, 40_000))
    assert {path.name for path in elsewhere.iterdir()} == {"step20.npz", "step100.npz"}
