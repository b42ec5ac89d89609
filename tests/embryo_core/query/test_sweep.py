"""Tests of sweeps: each readable checkpoint is asked once, memory is limited, and questions can be paused or ended."""

import threading

import pytest
from pandas.testing import assert_frame_equal

from embryo_core import query, runs
from embryo_core.engine import device
from embryo_core.engine.cache import MODELS, ModelCache
from embryo_core.errors import QueryError
from embryo_core.query import beam, pausing, sweep
from embryo_core.query.sweep import sweep_run
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run
from tests.rounding import probability_rounding


def numbers(models) -> list[int]:
    """Return the step of each model."""
    return [model.checkpoint.step for model in models]


def test_answers_come_in_the_order_of_steps(tiny_run: Run) -> None:
    """All checkpoints are asked, or those of the given steps, each once."""
    answers, skipped = sweep_run(tiny_run, numbers)
    assert [*answers.items()] == [(0, 0), (8, 8), (16, 16)] and skipped == ()
    answers, _ = sweep_run(tiny_run, lambda models: [-step for step in numbers(models)], steps=[16, 0, 16])
    assert [*answers.items()] == [(0, 0), (16, -16)]


def test_broken_checkpoint_is_left_out(own_run: Run) -> None:
    """The reason names it, and the others answer."""
    (runs.checkpoint(own_run, 8).path / "model.safetensors").write_bytes(b"")
    answers, skipped = sweep_run(own_run, numbers)
    assert [*answers] == [0, 16] and len(skipped) == 1 and "step8" in skipped[0]


def test_steps_without_weights_are_counted_if_all_are_asked(own_run: Run) -> None:
    """The count is left out if steps are given."""
    runs.remove_weights(runs.checkpoint(own_run, 8))
    _, (counted,) = sweep_run(own_run, numbers)
    assert "2 of 3" in counted and sweep_run(own_run, numbers, steps=[0, 16])[1] == ()


def test_error_of_a_question_ends_the_sweep(tiny_run: Run) -> None:
    """The caller receives the error."""

    def refuse(models):
        raise QueryError("no")

    with pytest.raises(QueryError, match="no"):
        sweep_run(tiny_run, refuse)


@pytest.mark.parametrize(("room", "groups"), [(1.5, [[0], [8], [16]]), (5, [[0, 8], [16]]), (100, [[0, 8, 16]])])
def test_memory_stays_within_the_limit(tiny_run: Run, monkeypatch: pytest.MonkeyPatch, room: float, groups) -> None:
    """Models asked together fill a quarter of the limit; the cache keeps models up to the limit."""
    models, asked = ModelCache(), []
    size = models.get(runs.checkpoint(tiny_run, 0)).nbytes
    monkeypatch.setenv("EMBRYO_MODEL_MEMORY", f"{int(room * size)} B")
    monkeypatch.setattr(sweep, "MODELS", models)
    monkeypatch.setattr(device, "parallel_passes", lambda: 1)

    def ask(group):
        asked.append(numbers(group))
        return [models.nbytes <= room * size for _ in group]

    assert [*sweep_run(tiny_run, ask)[0].values()] == [True, True, True]
    assert asked == groups
    assert models.nbytes == min(int(room), 3) * size


# === Chunks ===

TWO = "the [MASK] sat on the [MASK] ."
ASKED = {
    "one step": lambda run: query.ask(run, TWO, [8]),
    "all steps": lambda run: query.ask(run, TWO),
    "a word": lambda run: query.ask(run, query.read_question(TWO, load_tokenizer(run)).track("catsat")),
    "layers": lambda run: query.ask_layers(run, TWO),
    "attention": lambda run: query.attend_over_steps(run, TWO, 1, 1).weights.tolist(),
}


@pytest.fixture
def pauses() -> list[threading.Thread]:
    """Return a list for the threads in which the questions of the test pause, in order."""
    return []


@pytest.mark.parametrize("what", ASKED)
def test_question_pauses_at_least_once_per_checkpoint(what: str, tiny_run: Run, pauses: list[threading.Thread]) -> None:
    """Outside of `pausing` the function is not called."""
    with pausing(lambda: pauses.append(threading.current_thread())):
        ASKED[what](tiny_run)
    count = len(pauses)
    assert count >= (1 if what == "one step" else 3)
    ASKED[what](tiny_run)
    assert len(pauses) == count


def test_smaller_chunks_give_the_same_answer(
    tiny_run: Run, pauses: list[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With chunks of one row, a beam pauses before each row; the answer is equal up to rounding of probabilities."""
    expected = query.ask(tiny_run, TWO)
    monkeypatch.setattr(beam, "OPERATIONS", 1)
    with pausing(lambda: pauses.append(threading.current_thread())):
        answers = query.ask(tiny_run, TWO)
    assert len(pauses) >= 3 * (1 + query.BEAM_WIDTH)
    model = MODELS.get(runs.checkpoint(tiny_run, 16))
    tolerance = 2 * probability_rounding(model, model.max_positions, expected.table["probability"])  # two factors
    key = ["step", "mask", "token"]
    tables = [each.history(mask).sort_values(key, ignore_index=True) for each in (answers, expected) for mask in (0,)]
    assert_frame_equal(*tables, rtol=tolerance)


def test_every_thread_of_a_sweep_pauses(
    tiny_run: Run, pauses: list[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threads of the pool call the function that was given to their question."""
    monkeypatch.setattr(device, "parallel_passes", lambda: 2)
    with pausing(lambda: pauses.append(threading.current_thread())):
        query.ask(tiny_run, TWO)
    assert len(set(pauses)) == 2


def test_error_in_a_pause_ends_the_question(tiny_run: Run) -> None:
    """The caller receives the error."""

    def end() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError), pausing(end):
        query.ask(tiny_run, TWO)
