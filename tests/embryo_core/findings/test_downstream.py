"""Tests of the finding that downstream gains flatten, on constructed scores and answers."""

import pandas as pd
import pytest

from embryo_core import results
from embryo_core.curves.reached import ReachedStep, reached_steps
from embryo_core.findings import downstream
from embryo_core.findings.finding import verdict_of
from tests.embryo_core.findings.conftest import STEPS, evidence, risen


@pytest.mark.parametrize(("at", "verdict"), [(8, "reproduced"), (128, "contradicted")])
def test_gains_flatten_if_learned_in_the_first_quarter(run, monkeypatch, at: int, verdict: str):
    """RTE is answered at chance level until a step and correctly from there on; a task outside GLUE is ignored."""
    rows = [(s, 1, e, e % 2, e % 2 if s >= at else e // 2 % 2) for s in STEPS for e in range(400)]
    answers = pd.DataFrame(rows, columns=["step", "seed", "example", "gold", "answer"])
    scores = pd.DataFrame({"step": STEPS, "task": "rte", "predictor": "model", "n": 400})
    scores = scores.assign(metric="accuracy", value=[0.5 + 0.5 * (step >= at) for step in STEPS])
    same = scores.assign(predictor="majority", value=0.5)
    monkeypatch.setattr(results, "read_task_scores", lambda run: pd.concat([scores, same, scores.assign(task="own")]))
    monkeypatch.setattr(results, "read_reached", lambda run, task, metric: reached_steps(answers, metric))
    scored_evidence = evidence(run, ("any", "all", None, risen(8)))
    tested = downstream.gains_flatten(scored_evidence)
    assert [comparison.what for comparison in tested.comparisons] == ["rte"]
    assert verdict_of(tested.comparisons) == verdict
    assert tested.comparisons[0].value == pytest.approx(0.25 - at / 128)
    before = STEPS[STEPS.index(at) - 1]  # the score may have been reached just after it
    assert tested.comparisons[0].high == pytest.approx(0.25 - before / 128)
    (curve,) = scored_evidence.take_curves()  # drawn beside the verdict
    assert curve.values.tolist() == [0.5 if step < at else 1.0 for step in STEPS]


def test_seeds_are_judged_by_their_mean_at_95_percent(run, monkeypatch):
    """The step of 99 % and the best seed are ignored; n is that of one seed, and two steps are enough."""
    rows = [(0, 1, 0.5), (0, 2, 0.7), (128, 1, 0.9), (128, 2, 0.6)]
    scores = pd.DataFrame(rows, columns=["step", "seed", "value"]).assign(task="rte", metric="accuracy", n=400)
    model, same = scores.assign(predictor="model"), scores.assign(predictor="majority", value=0.7)
    monkeypatch.setattr(results, "read_reached", lambda *_: [ReachedStep(16, 0, 64), ReachedStep(128, 64, 128)])
    scored_evidence = evidence(run, ("any", "all", None, risen(8)))
    monkeypatch.setattr(results, "read_task_scores", lambda run: pd.concat([model, same]))
    (comparison,) = downstream.gains_flatten(scored_evidence).comparisons
    assert (comparison.value, comparison.n) == (0.25 - 16 / 128, 400)
    assert (comparison.low, comparison.high) == (0.25 - 64 / 128, 0.25)
    (curve,) = scored_evidence.take_curves()
    assert curve.values.tolist() == pytest.approx([0.6, 0.75]) and curve.n.tolist() == [400, 400]
    monkeypatch.setattr(results, "read_task_scores", lambda run: pd.concat([model, same.assign(value=0.8)]))
    assert downstream.gains_flatten(scored_evidence).statistic == "Not above one answer for all at the end: rte."


def test_interval_of_the_first_step_extends_to_step_0(run, monkeypatch):
    """The run was fine-tuned from step 32 on, and the score may have been reached before."""
    scores = pd.DataFrame({"step": [32, 128], "task": "rte", "predictor": "model", "n": 400, "value": 0.9})
    monkeypatch.setattr(results, "read_task_scores", lambda run: scores.assign(metric="accuracy"))
    monkeypatch.setattr(results, "read_reached", lambda *_: [ReachedStep(32, 32, 32)] * 2)
    (comparison,) = downstream.gains_flatten(evidence(run, ("any", "all", None, risen(8)))).comparisons
    assert (comparison.value, comparison.low, comparison.high) == (0, 0, 0.25)


def test_task_that_fell_below_its_baseline_is_not_compared(run, monkeypatch):
    """The last score counts rather than the best; the baseline gives one answer for all examples."""
    scores = pd.DataFrame({"step": [0, 64, 128], "value": [0.5, 0.7, 0.5]}).assign(predictor="model")
    both = pd.concat([scores, scores.assign(predictor="majority", value=0.55)])
    both = both.assign(task="rte", metric="accuracy", n=400)
    monkeypatch.setattr(results, "read_task_scores", lambda run: both)
    monkeypatch.setattr(results, "read_reached", lambda *_: [ReachedStep(0, 0, 0)] * 2)
    tested = downstream.gains_flatten(evidence(run, ("any", "all", None, risen(8))))
    assert not tested.comparisons and tested.statistic == "Not above one answer for all at the end: rte."


def test_task_that_ends_at_its_baseline_is_only_named(run, monkeypatch):
    """MRPC's F1 is 0.8 at every step, so 95 % of it are reached at once although nothing was learned."""
    scores = pd.DataFrame({"step": STEPS, "task": "mrpc", "predictor": "model", "n": 400, "metric": "f1", "value": 0.8})
    both = pd.concat([scores, scores.assign(predictor="majority", value=0.81)])
    monkeypatch.setattr(results, "read_task_scores", lambda run: both)
    monkeypatch.setattr(results, "read_reached", lambda *_: [ReachedStep(0, 0, 0), ReachedStep(0, 0, 0)])
    tested = downstream.gains_flatten(evidence(run, ("any", "all", None, risen(8))))
    assert not tested.comparisons and tested.final
    assert tested.statistic == "Not above one answer for all at the end: mrpc."


def test_task_not_significantly_above_0_is_only_named(run, monkeypatch):
    """CoLA's correlation is 0.015, and that of one answer for all is 0."""
    scores = pd.DataFrame({"step": STEPS, "task": "cola", "predictor": "model", "n": 400, "metric": "matthews"})
    both = pd.concat([scores.assign(value=0.015), scores.assign(predictor="majority", value=0.0)])
    monkeypatch.setattr(results, "read_task_scores", lambda run: both)
    monkeypatch.setattr(results, "read_reached", lambda *_: [None, None])
    tested = downstream.gains_flatten(evidence(run, ("any", "all", None, risen(8))))
    assert not tested.comparisons and tested.statistic == "Not significantly above 0 at the end: cola."
