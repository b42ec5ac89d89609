"""A sweep asks every readable checkpoint once, in the order of steps, within the limit of memory for models."""

import sys

import pytest

from embryo_core import runs
from embryo_core.engine import device
from embryo_core.engine.cache import ModelCache
from embryo_core.errors import QueryError
from embryo_core.query import sweep
from embryo_core.types import Run


def numbers(models) -> list[int]:
    """The step of each model."""
    return [model.checkpoint.step for model in models]


def test_answers_in_the_order_of_steps(tiny_run: Run) -> None:
    """All checkpoints, or those of the given steps."""
    assert sweep(tiny_run, numbers).answers == (0, 8, 16)
    found = sweep(tiny_run, lambda models: [-step for step in numbers(models)], steps=[16, 0, 16])
    assert (found.steps, found.answers, found.skipped) == ((0, 16), (0, -16), ())


def test_a_broken_checkpoint_is_left_out(own_run: Run) -> None:
    """It is named; the others answer."""
    (runs.checkpoint(own_run, 8).path / "model.safetensors").write_bytes(b"")
    found = sweep(own_run, numbers)
    assert found.answers == (0, 16)
    assert len(found.skipped) == 1 and "step8" in found.skipped[0]


def test_a_step_that_lost_its_weights_is_named_where_all_are_asked(own_run: Run) -> None:
    """Of steps that were given, nothing else is said."""
    runs.remove_weights(runs.checkpoint(own_run, 8))
    (named,) = sweep(own_run, numbers).skipped
    assert "step 8" in named and sweep(own_run, numbers, steps=[0, 16]).skipped == ()


def test_what_the_question_raises_ends_it(tiny_run: Run) -> None:
    """The error of any checkpoint is the caller's."""

    def refuse(models):
        raise QueryError("no")

    with pytest.raises(QueryError, match="no"):
        sweep(tiny_run, refuse)


@pytest.mark.parametrize(("room", "groups"), [(1.5, [[0], [8], [16]]), (5, [[0, 8], [16]]), (100, [[0, 8, 16]])])
def test_memory_stays_within_the_limit(tiny_run: Run, monkeypatch: pytest.MonkeyPatch, room: float, groups) -> None:
    """Models asked together fill a quarter of the limit; as many as it has room for are kept."""
    models, asked = ModelCache(), []
    size = models.get(runs.checkpoint(tiny_run, 0)).nbytes
    monkeypatch.setenv("EMBRYO_MODEL_MEMORY", f"{int(room * size)} B")
    monkeypatch.setattr(sys.modules[sweep.__module__], "MODELS", models)
    monkeypatch.setattr(device, "passes_at_once", lambda: 1)

    def ask(group):
        asked.append(numbers(group))
        return [models.nbytes <= room * size for _ in group]

    assert sweep(tiny_run, ask).answers == (True, True, True)
    assert asked == groups
    assert models.nbytes == min(int(room), 3) * size
