"""Traces agree with the answers at single steps, and say when the final answer leads and stays."""

import sys

import numpy as np
import pytest

from embryo_core import query, runs
from embryo_core.engine.cache import MODELS
from embryo_core.errors import BrokenCheckpoint, UnknownStep
from embryo_core.query.trace import leads, trace
from embryo_core.types import Run

ONE = "The cat sat on the [MASK] ."
TWO = "The [MASK] sat on the [MASK] ."


def test_trace_agrees_with_single_steps(tiny_run: Run) -> None:
    """At each step the leader, probabilities and ranks of a trace are those answered at that step."""
    found = trace(tiny_run, ONE, k=3)
    (history,) = found.masks
    assert found.steps == (0, 8, 16) and found.joint is None and found.skipped == ()
    for i, step in enumerate(found.steps):
        (listed,) = query.answer(tiny_run, ONE, step, k=700).masks
        assert history.leaders[i] == listed[0].token
        by_token = {p.token: p for p in listed}
        for candidate in history.candidates:
            assert candidate.probabilities[i] == pytest.approx(by_token[candidate.token].probability)
            assert candidate.ranks[i] == by_token[candidate.token].rank
    tokens = [candidate.token for candidate in history.candidates]
    assert set(history.leaders) <= set(tokens) and len(tokens) == len(set(tokens))


def test_trace_of_several_masks(tiny_run: Run) -> None:
    """Several masks give a history for each and one for all together, whose leader has joint rank 1."""
    found = trace(tiny_run, TWO)
    assert len(found.masks) == 2
    for i in range(3):
        leader = next(c for c in found.joint.candidates if c.token == found.joint.leaders[i])
        assert leader.ranks[i] == 1
        assert leader.token == query.SEPARATOR.join(history.leaders[i] for history in found.masks)
        parts = [next(c for c in m.candidates if c.token == m.leaders[i]).probabilities[i] for m in found.masks]
        assert leader.probabilities[i] == pytest.approx(parts[0] * parts[1])


def test_every_joint_answer_has_its_own_score_at_every_step(tiny_run: Run) -> None:
    """Each asked alone, as it is where it is in no beam, at a step whose best answers are others."""
    found, outside = trace(tiny_run, TWO, k=4), 0
    models = [MODELS.get(runs.checkpoint(tiny_run, step)) for step in found.steps]
    question = query.read_question(TWO, models[0].tokenizer, models[0].max_positions)
    replies = query.ask(models, question)
    ids = {query.SEPARATOR.join(query.readable(models[0].tokenizer, one)): one for r in replies for one in r.answers}
    for i, (model, reply) in enumerate(zip(models, replies, strict=True)):
        kept = [tuple(one) for one in reply.answers.tolist()]
        for one in found.joint.candidates:
            own = ids[one.token]
            (total,) = query.joint_log_probability(model, question, reply, own[None])
            assert one.probabilities[i] == pytest.approx(np.exp(total), rel=1e-4)
            place = kept.index(tuple(own)) if tuple(own) in kept else len(kept)
            exact = place < len(kept) and reply.log_probabilities[place] >= reply.bound
            assert (one.ranks[i], one.exact[i]) == (place + 1, exact)
            outside += place == len(kept)
    assert outside > 1


def test_an_answer_is_ranked_in_the_beam_of_each_step(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly where it is as probable as the bound of that step, whether or not the beam kept it."""
    module = sys.modules[trace.__module__]
    ids, empty = np.array([[1, 1], [2, 2]]), [np.zeros((2, 3))] * 3
    replies = {step: query.Reply(ids, np.log([p, p / 2]), np.log(p / 2), *empty) for step, p in ((0, 0.6), (8, 0.2))}
    asked = {step: (None, [np.log(0.15)]) for step in replies}
    monkeypatch.setattr(module, "ask_each", lambda *_: (asked, {}))
    scores = {}
    module._score(tiny_run, TWO, replies, [(1, 1), (3, 3)], scores)
    places = {step: {one: own[1:] for one, own in found.items()} for step, found in scores.items()}
    kept = {(1, 1): (1, True), (2, 2): (2, True)}
    assert places == {0: kept | {(3, 3): (3, False)}, 8: kept | {(3, 3): (2, True)}}


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("text", [ONE, TWO])
def test_candidates_are_all_that_led_and_the_best_at_the_last_step(tiny_run: Run, text: str, k: int) -> None:
    """In this order, each once; of each mask, and of all together."""
    found, last = trace(tiny_run, text, k=k), query.answer(tiny_run, text, 16, k=k)
    listed = [(found.joint, last.joint)] if found.joint else []
    for history, best in [*zip(found.masks, last.masks, strict=True), *listed]:
        expected = dict.fromkeys([*history.leaders, *(prediction.token for prediction in best)])
        assert [candidate.token for candidate in history.candidates] == [*expected]


def test_leads_and_stays() -> None:
    """The final answer leads for good only from the step after which nothing else led."""
    steps = [0, 1, 2, 4, 8]
    assert leads(steps, "abbab") == (1, 8)
    assert leads(steps, "abbbb") == (1, 1)
    assert leads(steps, "bbbbb") == (0, 0)
    assert leads(steps, "bacbb") == (0, 4)


def test_some_steps(tiny_run: Run) -> None:
    """A trace can be asked of some steps; a step that the run lacks is named."""
    assert trace(tiny_run, ONE, steps=[16, 0]).steps == (0, 16)
    with pytest.raises(UnknownStep, match="no checkpoint at step 5"):
        trace(tiny_run, ONE, steps=[5])


def test_broken_checkpoints_are_left_out(own_run: Run) -> None:
    """A truncated checkpoint is named in the trace and the others answer; with none left the trace says so."""
    weights = [runs.checkpoint(own_run, step).path / "model.safetensors" for step in (0, 8, 16)]
    weights[1].write_bytes(weights[1].read_bytes()[:1000])
    found = trace(own_run, ONE)
    assert found.steps == (0, 16)
    assert "step8" in found.skipped[0]
    for path in weights:
        path.write_bytes(b"")
    own = runs.read_run(own_run.path.rename(own_run.path.with_name("moved")))
    with pytest.raises(BrokenCheckpoint, match="No checkpoint of run 'moved' can be read"):
        trace(own, ONE)
