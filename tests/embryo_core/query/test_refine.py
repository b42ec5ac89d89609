"""A trace that grows in rounds has only exact answers, finds changes first, and ends as the trace of all steps."""

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from embryo_core import query, runs
from embryo_core.engine.cache import ModelCache
from embryo_core.errors import BrokenCheckpoint
from embryo_core.query import refine
from embryo_core.query.refine import Refinement, gaps, halved
from embryo_core.query.trace import Trace
from embryo_core.types import Run
from tests.conftest import copy_run, lengthen

ONE, TWO = "The cat sat on the [MASK] .", "The [MASK] sat on the [MASK] ."
COUNT = 24


@pytest.fixture(scope="module")
def series(tiny_run: Run, shared: Callable[..., Path]) -> Run:
    """A run of COUNT checkpoints with the weights of the tiny run's."""

    def make(root: Path) -> None:
        lengthen(copy_run(tiny_run, root), range(100, 100 + COUNT - 3))

    return runs.read_run(shared("series", make) / "runs" / tiny_run.name)


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six checkpoints at first, then three in a round."""
    monkeypatch.setattr(refine, "FIRST", 6)
    monkeypatch.setattr(refine, "ROUND", 3)


def to_the_end(refinement: Refinement) -> list[Trace]:
    """Ask all rounds; the trace after each."""
    refinement.ask(refinement.next_round())
    traces = [refinement.trace]
    while steps := refinement.next_round():
        refinement.ask(steps)
        traces.append(refinement.trace)
    return traces


def test_the_last_round_gives_the_whole_trace(series: Run, short_rounds: None) -> None:
    """Number for number, and every trace before it has the same answers at its steps."""
    *before, last = to_the_end(Refinement(series, ONE))
    whole = query.trace(series, ONE)
    assert last == whole
    leaders = dict(zip(whole.steps, whole.masks[0].leaders))
    whole_by_token = {one.token: dict(zip(whole.steps, one.probabilities)) for one in whole.masks[0].candidates}
    assert [len(found.steps) for found in before] == list(range(6, COUNT, 3))
    for found in before:
        assert found.masks[0].leaders == tuple(leaders[step] for step in found.steps)
        for one in found.masks[0].candidates:
            assert one.probabilities == tuple(whole_by_token[one.token][step] for step in found.steps)


def test_joint_answers_end_as_those_of_the_whole_trace(series: Run, short_rounds: None) -> None:
    """Answers that come to lead are scored at the steps asked before; probabilities agree to their rounding."""
    *before, last = to_the_end(Refinement(series, TWO))
    whole = query.trace(series, TWO)
    assert [len(found.steps) for found in before] == [6, 12]
    assert (last.steps, last.masks, last.joint.leaders) == (whole.steps, whole.masks, whole.joint.leaders)
    assert [one.token for one in last.joint.candidates] == [one.token for one in whole.joint.candidates]
    for one, other in zip(last.joint.candidates, whole.joint.candidates, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, rel=1e-4)
        assert one.ranks == other.ranks


def test_a_short_series_is_asked_at_once(tiny_run: Run) -> None:
    """No more checkpoints than the first round takes: one round, as without rounds."""
    (found,) = to_the_end(Refinement(tiny_run, ONE))
    assert found == query.trace(tiny_run, ONE)


def test_rounds_go_where_the_answer_changes(series: Run, short_rounds: None) -> None:
    """At the end of the narrowing, steps whose leaders differ are neighbours, and others are still unasked."""
    refinement = Refinement(series, ONE)
    refinement.ask(refinement.next_round())
    assert refinement.narrowing
    while refinement.narrowing:
        refinement.ask(refinement.next_round())
    leaders = dict(zip(refinement.trace.steps, refinement.trace.masks[0].leaders))
    places = [refinement.steps.index(step) for step in leaders]
    for (low, one), (high, other) in pairwise(zip(places, leaders.values())):
        assert high - low == 1 or one == other
    assert refinement.next_round()


def test_the_widest_gap_is_halved_first() -> None:
    """Gaps whose ends differ come first, the widest of them first; what lies beyond the asked steps differs."""
    steps = list(range(10, 30))
    between = gaps(steps, {10: "a", 14: "b", 20: "b", 27: "b", 29: "c"})
    assert halved(steps, between, 1) == [12]
    assert halved(steps, between, 4) == [11, 12, 13, 28]
    assert halved(steps, between, 5) == [11, 12, 13, 23, 28]
    assert halved(steps, between, 99) == [step for step in steps if step not in (10, 14, 20, 27, 29)]
    assert halved(steps, gaps(steps, {step: "a" for step in steps[:-2]}), 9) == [28, 29]
    assert [agree for agree, *_ in gaps(steps, {14: "a", 20: "a"})] == [False, True, False]


def test_halves_are_as_wide_as_they_are() -> None:
    """The halves of a wide gap come before a gap that is narrower than they are."""
    steps = list(range(30))
    between = gaps(steps, {step: step for step in (0, 16, *range(17, 21), *range(26, 30))})
    assert halved(steps, between, 3) == [4, 8, 12]
    assert halved(steps, between, 4) == [4, 8, 12, 23]


def test_a_change_of_any_mask_is_a_change(series: Run) -> None:
    """Steps whose answers agree in the first mask alone are two whose answers differ."""
    refinement = Refinement(series, TWO)
    refinement.ask([0, 120])
    found = refinement.trace
    masks = replace(found.masks[0], leaders=("the", "the")), found.masks[1]
    for second in ("cat", "dog"):
        joint = replace(found.joint, leaders=("the | cat", f"the | {second}"))
        refinement._trace = replace(found, masks=masks, joint=joint)
        assert refinement.narrowing == (second == "dog")


def test_steps_of_the_readers_own_are_asked_too(series: Run, short_rounds: None) -> None:
    """A step is asked once, with the first round or later."""
    refinement = Refinement(series, ONE)
    refinement.ask([*refinement.next_round(), 103])
    refinement.ask([103, 105])
    assert {103, 105} <= set(refinement.trace.steps) and len(refinement.trace.steps) == len(refinement.asked)


def test_an_interrupted_round_is_asked_again(series: Run, short_rounds: None) -> None:
    """What ends a round leaves the trace as it was; later it goes on."""

    class Gone(Exception):
        pass

    def leave() -> None:
        raise Gone

    refinement = Refinement(series, ONE)
    refinement.ask(refinement.next_round())
    before = refinement.trace
    with pytest.raises(Gone), query.pausing(leave):
        refinement.ask(refinement.next_round())
    assert refinement.trace == before
    while steps := refinement.next_round():
        refinement.ask(steps)
    assert refinement.trace == query.trace(series, ONE)


def test_broken_checkpoints_are_left_out(series: Run, tmp_path: Path, short_rounds: None) -> None:
    """They are named as in the whole trace, and count as asked; where all are broken the trace says so."""
    run = copy_run(series, tmp_path)
    for step in (0, 8, 16, 102, 120):
        (runs.checkpoint(run, step).path / "model.safetensors").write_bytes(b"")
    *_, last = to_the_end(refinement := Refinement(run, ONE))
    assert last == query.trace(run, ONE) and len(last.skipped) == 5
    assert len(refinement.asked) == COUNT
    for found in runs.checkpoints(run):
        (found.path / "model.safetensors").write_bytes(b"")
    refinement = Refinement(runs.read_run(run.path.rename(run.path.with_name("moved"))), ONE)
    refinement.ask(refinement.next_round())
    with pytest.raises(BrokenCheckpoint, match="No checkpoint of run 'moved' can be read"):
        assert refinement.trace


def test_the_first_models_stay_while_the_others_pass(series: Run, short_rounds: None, monkeypatch) -> None:
    """With room for eight models a whole refinement leaves the six of the first picture in memory."""
    models, first = ModelCache(), runs.loadable(series)
    size = models.get(first[0]).nbytes
    models = ModelCache(limit=8 * size)
    monkeypatch.setattr(sys.modules[query.sweep.__module__], "MODELS", models)
    refinement = Refinement(series, ONE)
    refinement.ask(refinement.next_round())
    begun = set(refinement.asked)
    while steps := refinement.next_round():
        refinement.ask(steps)
        assert models.nbytes <= 8 * size
    assert begun <= {model.checkpoint.step for model in models._models.values()}
