"""A question is computed in chunks, between which it can wait or end; its answer does not depend on their size."""

import threading

import numpy as np
import pytest

from embryo_core import query, runs
from embryo_core.engine import device
from embryo_core.engine.cache import MODELS
from embryo_core.query import chunks, pausing, sentence
from embryo_core.types import Run
from tests.rounding import probability_rounding

TWO = "the [MASK] sat on the [MASK] ."
ASKED = {
    "answer": lambda run: query.answer(run, TWO, 8),
    "trace": lambda run: query.trace(run, TWO),
    "track": lambda run: query.track(run, TWO, "catsat"),
    "lens": lambda run: query.lens(run, TWO),
    "attention": lambda run: sentence.attend_over_steps(run, TWO, 1, 1).weights.tolist(),
}


@pytest.fixture
def pauses() -> list[threading.Thread]:
    """The threads in which the questions of the test have paused, in order."""
    return []


@pytest.mark.parametrize("what", ASKED)
def test_every_question_pauses_at_least_once_for_each_checkpoint(
    what: str, tiny_run: Run, pauses: list[threading.Thread]
) -> None:
    """Outside of `pausing` nobody is called."""
    with pausing(lambda: pauses.append(threading.current_thread())):
        ASKED[what](tiny_run)
    count = len(pauses)
    assert count >= (1 if what == "answer" else 3)
    ASKED[what](tiny_run)
    assert len(pauses) == count


def test_smaller_chunks_give_the_same_answer(
    tiny_run: Run, pauses: list[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With chunks of one row each, a beam pauses before each row; ranks and words stay, probabilities to rounding."""
    expected = query.trace(tiny_run, TWO)
    monkeypatch.setattr(chunks, "OPERATIONS", 1)
    with pausing(lambda: pauses.append(threading.current_thread())):
        found = query.trace(tiny_run, TWO)
    assert len(pauses) >= 3 * (1 + query.BEAM_WIDTH)
    assert [history.leaders for history in found.masks] == [history.leaders for history in expected.masks]
    model = MODELS.get(runs.checkpoint(tiny_run, 16))
    for one, other in zip(found.joint.candidates, expected.joint.candidates, strict=True):
        # of two factors
        tolerance = 2 * probability_rounding(model, model.max_positions, np.array(other.probabilities))
        assert one.probabilities == pytest.approx(other.probabilities, rel=tolerance)


def test_every_thread_of_a_sweep_pauses(
    tiny_run: Run, pauses: list[threading.Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threads of a pool call what their question was given, and not what another was."""
    monkeypatch.setattr(device, "passes_at_once", lambda: 2)
    with pausing(lambda: pauses.append(threading.current_thread())):
        query.trace(tiny_run, TWO)
    assert len(set(pauses)) == 2


def test_what_a_pause_raises_ends_the_question(tiny_run: Run) -> None:
    """It is the caller's, whichever thread it was raised in."""

    def end() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError), pausing(end):
        query.trace(tiny_run, TWO)
