"""Whether downstream gains flatten, on scores and answers made for it."""

import pandas as pd
import pytest

from embryo_core import results
from embryo_core.curves.reached import reached
from embryo_core.findings import downstream
from embryo_core.findings.finding import verdict_of
from tests.embryo_core.findings.conftest import STEPS, evidence, risen


@pytest.mark.parametrize(("at", "verdict"), [(8, "reproduced"), (128, "contradicted")])
def test_a_task_learned_within_a_quarter_of_the_run(run, monkeypatch, at: int, verdict: str):
    """RTE answered by chance until a step, and right from there on; a task of one's own is not GLUE's."""
    rows = [(s, 1, e, e % 2, e % 2 if s >= at else e // 2 % 2) for s in STEPS for e in range(400)]
    answers = pd.DataFrame(rows, columns=["step", "seed", "example", "gold", "answer"])
    scores = pd.DataFrame({"step": STEPS, "task": "rte", "predictor": "model", "n": 400})
    scores = scores.assign(metric="accuracy", value=[0.5 + 0.5 * (step >= at) for step in STEPS])
    monkeypatch.setattr(results, "read_task_scores", lambda run: pd.concat([scores, scores.assign(task="own")]))
    monkeypatch.setattr(results, "read_reached", lambda run, task, metric: reached(answers, metric))
    found = evidence(run, ("any", "all", None, risen(8)))
    tested = downstream.gains_flatten(found)
    assert [comparison.what for comparison in tested.comparisons] == ["rte"]
    assert verdict_of(tested.comparisons) == verdict
    assert tested.comparisons[0].value == pytest.approx(0.25 - at / 128)
    (curve,) = found.taken()  # for the small picture
    assert curve.values.tolist() == [0.5 if step < at else 1.0 for step in STEPS]
