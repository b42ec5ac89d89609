"""A sweep asks every readable checkpoint once, in the order of steps, and keeps no more models than the limit allows."""

import pytest

from embryo_core import runs, sweep
from embryo_core.errors import QueryError
from embryo_core.model_cache import ModelCache
from embryo_core.types import Run


def test_answers_in_the_order_of_steps(tiny_run: Run) -> None:
    """All checkpoints, or those of the given steps."""
    assert sweep.sweep(tiny_run, lambda model: model.checkpoint.step).answers == (0, 8, 16)
    found = sweep.sweep(tiny_run, lambda model: -model.checkpoint.step, steps=[16, 0, 16])
    assert (found.steps, found.answers, found.skipped) == ((0, 16), (0, -16), ())


def test_a_broken_checkpoint_is_left_out(own_run: Run) -> None:
    """It is named; the others answer."""
    (runs.checkpoint(own_run, 8).path / "model.safetensors").write_bytes(b"")
    found = sweep.sweep(own_run, lambda model: model.checkpoint.step)
    assert found.answers == (0, 16)
    assert len(found.skipped) == 1 and "step8" in found.skipped[0]


def test_what_the_question_raises_ends_it(tiny_run: Run) -> None:
    """The error of any checkpoint is the caller's."""

    def refuse(model):
        raise QueryError("no")

    with pytest.raises(QueryError, match="no"):
        sweep.sweep(tiny_run, refuse)


def test_memory_stays_within_the_limit(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for one model, all answer and one is kept."""
    models = ModelCache()
    size = models.get(runs.checkpoint(tiny_run, 0)).nbytes
    monkeypatch.setenv("EMBRYO_MODEL_MEMORY", f"{int(1.5 * size)} B")
    monkeypatch.setattr(sweep, "MODELS", models)
    assert sweep.sweep(tiny_run, lambda model: models.nbytes <= 1.5 * size).answers == (True, True, True)
    assert models.nbytes == size
