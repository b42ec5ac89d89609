"""Tests of asking all checkpoints of a run, at once and in rounds: answers equal those of each checkpoint alone."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from embryo_core import query, runs
from embryo_core.engine.cache import MODELS, ModelCache
from embryo_core.errors import BrokenCheckpoint, QueryError, UnknownStep
from embryo_core.query import TOGETHER, Answers, Refinement, asking, sweep
from embryo_core.query.answers import leads
from embryo_core.query.asking import find_gaps, halve
from embryo_core.query.beam import Reply, joint_log_probability, search
from embryo_core.types import Run
from tests.conftest import copy_run, lengthen
from tests.rounding import probability_rounding

ONE = "The cat sat on the [MASK] ."
TWO = "The [MASK] sat on the [MASK] ."
STEPS = (0, 8, 16)
COUNT = 24


# === All at once ===


def test_table_equals_answers_at_single_steps(tiny_run: Run) -> None:
    """The leader, probabilities and ranks of each step are those answered at that step alone."""
    answers = query.ask(tiny_run, ONE, k=3)
    assert answers.steps == STEPS and answers.skipped == () and answers.table["exact"].all()
    leaders = answers.leaders()
    for step, rows in answers.history().groupby("step"):
        listed = {answer.token: answer for answer in query.ask(tiny_run, ONE, [step], 700).best(step)}
        assert leaders[step] == next(iter(listed)) == answers.best(step)[0].token
        for row in rows.itertuples():
            assert row.probability == pytest.approx(listed[row.token].probability)
            assert row.rank == listed[row.token].rank
    assert len(answers.history()) == 3 * answers.history()["token"].nunique()
    assert set(leaders.values()) <= set(answers.history()["token"])


def test_several_masks_are_answered_singly_and_jointly(tiny_run: Run) -> None:
    """The best joint answer has rank 1; its words lead at their masks, and its probability is the product of theirs."""
    answers = query.ask(tiny_run, TWO)
    table = answers.table[answers.table["leads"]].set_index(["step", "mask"])
    for step in STEPS:
        joint, first, second = (table.loc[(step, mask)] for mask in (TOGETHER, 1, 2))
        assert joint["rank"] == 1 and joint["token"] == query.SEPARATOR.join([first["token"], second["token"]])
        assert joint["probability"] == pytest.approx(first["probability"] * second["probability"])


def test_joint_answers_are_scored_at_every_step(tiny_run: Run) -> None:
    """At a step where the beam lacks an answer, the model scores it alone."""
    answers, outside = query.ask(tiny_run, TWO, k=4), 0
    models = [MODELS.get(runs.checkpoint(tiny_run, step)) for step in STEPS]
    question = answers.question
    replies = search(models, question)
    names = {query.SEPARATOR.join(question.tokenizer.readable(ids)): ids for reply in replies for ids in reply.answers}
    for step, model, reply in zip(STEPS, models, replies, strict=True):
        kept = [tuple(ids) for ids in reply.answers.tolist()]
        history = answers.history(TOGETHER)
        for row in history[history["step"] == step].itertuples():
            ids = names[row.token]
            (total,) = joint_log_probability(model, question, reply, ids[None])
            assert row.probability == pytest.approx(np.exp(total), rel=1e-4)
            place = kept.index(tuple(ids)) if tuple(ids) in kept else len(kept)
            exact = place < len(kept) and reply.log_probabilities[place] >= reply.bound
            assert (row.rank, row.exact) == (place + 1, exact)
            outside += place == len(kept)
    assert outside > 1


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize(("text", "mask"), [(ONE, 1), (TWO, TOGETHER), (TWO, 2)])
def test_history_has_all_leaders_and_the_last_steps_best(tiny_run: Run, text: str, mask: int, k: int) -> None:
    """It has no other answers."""
    answers = query.ask(tiny_run, text, k=k)
    best = [answer.token for answer in query.ask(tiny_run, text, [16], k).best(16, mask)]
    assert set(answers.history(mask)["token"]) == {*answers.leaders(mask).values(), *best}
    assert [answer.token for answer in answers.best(16, mask)] == best


def test_final_answer_leads_for_good_after_all_others() -> None:
    """The step at which it first led may be earlier."""
    steps = [0, 1, 2, 4, 8]
    assert leads(steps, "abbab") == (1, 8)
    assert leads(steps, "abbbb") == (1, 1)
    assert leads(steps, "bbbbb") == (0, 0)
    assert leads(steps, "bacbb") == (0, 4)


def test_given_steps_are_answered_in_ascending_order(tiny_run: Run) -> None:
    """The error for a step that the run lacks names the step."""
    assert query.ask(tiny_run, ONE, [16, 0]).steps == (0, 16)
    with pytest.raises(UnknownStep, match="no checkpoint at step 5"):
        query.ask(tiny_run, ONE, [5])


@pytest.mark.parametrize("ask", [query.ask, query.ask_layers])
def test_broken_checkpoints_are_left_out(own_run: Run, ask: Callable[[Run, str], Answers]) -> None:
    """A truncated checkpoint is named and the others answer; an error is raised if all are broken."""
    weights = [runs.checkpoint(own_run, step).path / "model.safetensors" for step in STEPS]
    weights[1].write_bytes(weights[1].read_bytes()[:1000])
    answers = ask(own_run, ONE)
    assert answers.steps == (0, 16) and len(answers.skipped) == 1 and "step8" in answers.skipped[0]
    for path in weights:
        path.write_bytes(b"")
    own = runs.read_run(own_run.path.rename(own_run.path.with_name("moved")))
    with pytest.raises(BrokenCheckpoint, match="No checkpoint of run 'moved' can be read"):
        ask(own, ONE)


# === Layers ===


def test_last_layer_gives_the_models_answers(tiny_run: Run) -> None:
    """Tokens and ranks are equal at every step, and probabilities up to rounding."""
    layer_answers, answers = query.ask_layers(tiny_run, ONE, k=5), query.ask(tiny_run, ONE, k=5)
    assert (
        layer_answers.steps == STEPS
        and set(layer_answers.table["layer"]) == {0, 1, 2}
        and len(layer_answers.table) == 3 * 3 * 5
    )
    model = MODELS.get(runs.checkpoint(tiny_run, 16))
    for step in STEPS:
        expected = answers.best(step)
        probabilities = [answer.probability for answer in expected]
        tolerance = probability_rounding(model, model.max_positions, probabilities)
        last = layer_answers.best(step, layer=2)
        assert [(answer.token, answer.rank) for answer in last] == [(answer.token, answer.rank) for answer in expected]
        np.testing.assert_allclose([answer.probability for answer in last], probabilities, rtol=tolerance)


@pytest.mark.parametrize("mask", [1, 2])
def test_every_layer_equals_transformers(tiny_run: Run, mask: int) -> None:
    """The head of transformers is applied to its hidden states; the other mask of the text stays a mask."""
    import torch
    from transformers import AlbertForPreTraining

    layer_answers = query.ask_layers(tiny_run, TWO, mask, [16], 700)
    model, question = MODELS.get(runs.checkpoint(tiny_run, 16)), layer_answers.question
    reference = AlbertForPreTraining.from_pretrained(model.checkpoint.path).eval()
    with torch.no_grad():
        states = reference(torch.tensor(question.ids[None]), output_hidden_states=True).hidden_states
        logits = [reference.predictions(state[0, question.masks[mask - 1]]) for state in states]
    for layer, of_layer in enumerate(logits):
        expected = torch.softmax(of_layer.double(), dim=0).numpy()
        best = np.argsort(-expected, kind="stable")
        own = layer_answers.best(16, mask, layer)
        assert own[0].token == model.tokenizer.readable(best[:1])[0]
        tolerance = probability_rounding(model, len(question.ids), expected)
        np.testing.assert_allclose([answer.probability for answer in own], expected[best], rtol=tolerance)


def test_layers_of_a_missing_mask_are_refused(tiny_run: Run) -> None:
    """The message gives the number of masks in the text."""
    with pytest.raises(QueryError, match=r"There is no \[MASK\] 3: the text has 2"):
        query.ask_layers(tiny_run, TWO, 3)


# === Rounds ===


@pytest.fixture(scope="module")
def series(tiny_run: Run, shared: Callable[..., Path]) -> Run:
    """Return a run of COUNT checkpoints with the weights of the tiny run's."""

    def make(root: Path) -> None:
        lengthen(copy_run(tiny_run, root), range(100, 100 + COUNT - 3))

    return runs.read_run(shared("series", make) / "runs" / tiny_run.name)


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask six checkpoints in the first round, and three in each further round."""
    monkeypatch.setattr(asking, "FIRST_ROUND_SIZE", 6)
    monkeypatch.setattr(asking, "ROUND_SIZE", 3)


def to_the_end(refinement: Refinement) -> list[Answers]:
    """Ask all rounds; return the answers after each."""
    refinement.ask(refinement.next_round())
    answers_of_rounds = [refinement.answers]
    while steps := refinement.next_round():
        refinement.ask(steps)
        answers_of_rounds.append(refinement.answers)
    return answers_of_rounds


def rows_at(answers: Answers, steps: tuple[int, ...], mask: int = 1) -> pd.DataFrame:
    """Return the rows of the best answers at these steps."""
    table = answers.table
    return table[table["step"].isin(steps) & (table["mask"] == mask) & table["listed"]].reset_index(drop=True)


@pytest.mark.parametrize("word", ["", "the", "catsat"], ids=["the best answers", "one piece", "several pieces"])
def test_last_round_gives_the_table_of_the_whole_series(series: Run, short_rounds: None, word: str) -> None:
    """Every number is equal, and each table before it has the same answers at its steps."""
    question = Refinement(series, ONE).question
    question = question.track(word) if word else question
    *before, last = to_the_end(Refinement(series, question))
    whole = query.ask(series, question)
    assert_frame_equal(last.table, whole.table)
    assert [len(answers.steps) for answers in before] == list(range(6, COUNT, 3))
    for answers in before:
        assert answers.leaders().items() <= whole.leaders().items()
        assert_frame_equal(rows_at(answers, answers.steps), rows_at(whole, answers.steps))


def test_joint_rounds_end_with_the_whole_table(series: Run, short_rounds: None) -> None:
    """New leaders are also scored at the steps asked before; probabilities are equal up to rounding."""
    *before, last = to_the_end(Refinement(series, TWO))
    whole = query.ask(series, TWO)
    assert [len(answers.steps) for answers in before] == [6, 12]
    key = ["step", "mask", "token"]
    one, other = (answers.table.sort_values(key, ignore_index=True) for answers in (last, whole))
    assert_frame_equal(one, other, rtol=1e-4)


def test_rounds_narrow_down_changes_of_the_answer(series: Run, short_rounds: None) -> None:
    """After narrowing, asked steps with different leaders are neighbours, and other steps are still unasked."""
    refinement = Refinement(series, ONE)
    refinement.ask(refinement.next_round())
    assert refinement.narrowing
    while refinement.narrowing:
        refinement.ask(refinement.next_round())
    leaders = refinement.answers.leaders()
    places = [refinement.steps.index(step) for step in leaders]
    for (low, one), (high, other) in pairwise(zip(places, leaders.values())):
        assert high - low == 1 or one == other
    assert refinement.next_round()


def test_widest_gap_is_halved_first() -> None:
    """Gaps whose ends differ, or that are at an end of the series, come before others; the widest comes first."""
    steps = list(range(10, 30))
    gaps = find_gaps(steps, {10: "a", 14: "b", 20: "b", 27: "b", 29: "c"})
    assert halve(steps, gaps, 1) == [12]
    assert halve(steps, gaps, 4) == [11, 12, 13, 28]
    assert halve(steps, gaps, 5) == [11, 12, 13, 23, 28]
    assert halve(steps, gaps, 99) == [step for step in steps if step not in (10, 14, 20, 27, 29)]
    assert halve(steps, find_gaps(steps, {step: "a" for step in steps[:-2]}), 9) == [28, 29]
    assert [agree for agree, *_ in find_gaps(steps, {14: "a", 20: "a"})] == [False, True, False]
    wide = list(range(30))  # the halves of a wide gap come before a gap narrower than they are
    gaps = find_gaps(wide, {step: step for step in (0, 16, *range(17, 21), *range(26, 30))})
    assert halve(wide, gaps, 3) == [4, 8, 12]
    assert halve(wide, gaps, 4) == [4, 8, 12, 23]


def test_given_steps_are_asked_once(series: Run, short_rounds: None) -> None:
    """Step 103 is given with the first round and again with step 105."""
    refinement = Refinement(series, ONE)
    refinement.ask([*refinement.next_round(), 103])
    refinement.ask([103, 105])
    assert {103, 105} <= set(refinement.answers.steps) and len(refinement.answers.steps) == len(refinement.asked)


def test_interrupted_round_can_be_asked_again(series: Run, short_rounds: None) -> None:
    """The interruption leaves the answers unchanged, and the rounds after it end with the whole table."""

    class Gone(Exception):
        pass

    def leave() -> None:
        raise Gone

    refinement = Refinement(series, ONE)
    refinement.ask(refinement.next_round())
    before = refinement.answers
    with pytest.raises(Gone), query.pausing(leave):
        refinement.ask(refinement.next_round())
    assert refinement.answers is before
    while steps := refinement.next_round():
        refinement.ask(steps)
    assert_frame_equal(refinement.answers.table, query.ask(series, ONE).table)


def test_rounds_leave_out_broken_checkpoints(series: Run, tmp_path: Path, short_rounds: None) -> None:
    """They have the reasons that `ask` gives, and count as asked."""
    run = copy_run(series, tmp_path)
    for step in (0, 8, 16, 102, 120):
        (runs.checkpoint(run, step).path / "model.safetensors").write_bytes(b"")
    *_, last = to_the_end(refinement := Refinement(run, ONE))
    whole = query.ask(run, ONE)
    assert_frame_equal(last.table, whole.table)
    assert last.skipped == whole.skipped and len(last.skipped) == 5 and len(refinement.asked) == COUNT


def test_models_of_the_first_round_stay_in_memory(series: Run, short_rounds: None, monkeypatch) -> None:
    """There is room for eight models; those of later rounds are transient and do not evict the first six."""
    models, first = ModelCache(), runs.loadable_checkpoints(series)
    size = models.get(first[0]).nbytes
    models = ModelCache(limit=8 * size)
    monkeypatch.setattr(sweep, "MODELS", models)
    refinement = Refinement(series, ONE)
    refinement.ask(refinement.next_round())
    begun = set(refinement.asked)
    while steps := refinement.next_round():
        refinement.ask(steps)
        assert models.nbytes <= 8 * size
    assert begun <= {model.checkpoint.step for model in models._models.values()}


def test_joint_rank_is_exact_above_the_steps_bound(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank at the bound is exact too; the beam need not have kept the answer."""
    ids, empty = np.array([[1, 1], [2, 2]]), [np.zeros((2, 3))] * 4
    replies = {step: Reply(ids, np.log([p, p / 2]), np.log(p / 2), *empty) for step, p in ((0, 0.6), (8, 0.2))}
    monkeypatch.setattr(asking, "sweep", lambda *_: ({step: [np.log(0.15)] for step in replies}, {}))
    scores = {}
    asking._add_scores(tiny_run, None, replies, [(1, 1), (3, 3)], scores)
    places = {step: {one: own[1:] for one, own in scores_of_step.items()} for step, scores_of_step in scores.items()}
    kept = {(1, 1): (1, True), (2, 2): (2, True)}
    assert places == {0: kept | {(3, 3): (3, False)}, 8: kept | {(3, 3): (2, True)}}
