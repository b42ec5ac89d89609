"""Captions of the Finetuning page: how models were tuned is said as far as it is known."""

import pandas as pd

from embryo_core.figures.captions import finetuning as captions
from embryo_core.figures.captions.sentences import split
from embryo_core.types import StepUnit

NONE = pd.DataFrame({"step": [], "value": [], "tasks": []})  # no GLUE average


def test_what_nobody_noted_is_unknown() -> None:
    """The notes of a stranger's results may lack the protocol."""
    frame = pd.DataFrame({"task": ["rte"], "step": 0, "metric": ["accuracy"], "n": [4], "seeds": [1]})
    assert "(protocol quick; " in captions.scores(
        frame, NONE, {"finetuning:rte:1": {"protocol": "quick"}}, StepUnit.UPDATES
    )
    assert "(protocol unknown; " in captions.scores(frame, NONE, {"finetuning:rte:1": {}}, StepUnit.UPDATES)


def test_the_first_sentence_tells_seeds_and_the_tasks_of_the_average() -> None:
    """It is the one that is seen; the rest is behind a mark."""
    tasks = {"task": ["rte", "cola", "mine"], "value": [0.6, 0.0, 0.7], "control": [0.5, 0.0, 0.5]}
    frame = pd.DataFrame(tasks | {"step": 8, "metric": "accuracy", "n": 4, "seeds": [1, 1, 1]})
    average = pd.DataFrame({"step": [8], "value": [0.5], "tasks": ["CoLA, RTE"]})
    first, _ = split(captions.scores(frame, average, {}, StepUnit.UPDATES))
    assert "a single seed: no spread is known" in first and "GLUE average over CoLA, RTE)" in first
    assert "average" not in captions.scores(frame, NONE, {}, StepUnit.UPDATES)
    first, rest = split(captions.scores(frame.assign(seeds=3), NONE, {}, StepUnit.UPDATES))
    assert "; 3 seeds)" in first and "Bands span the seeds" in rest
    assert "; up to 3 seeds" in captions.scores(frame.assign(seeds=[3, 1, 3]), NONE, {}, StepUnit.UPDATES)
    first, rest = split(captions.table(average, frame, StepUnit.UPDATES))
    assert first == "GLUE average at step 8: 0.500, over CoLA, RTE."
    assert "At or below the control at the end, so nothing was learned to reach: CoLA." in rest


def test_random_weights_are_a_control_where_they_were_fine_tuned() -> None:
    """Elsewhere it is said that they are missing."""
    frame = pd.DataFrame({"task": "rte", "step": [0, 8], "metric": "accuracy", "n": 4, "seeds": 1})
    assert "Step 0, random weights" in captions.scores(frame, NONE, {}, StepUnit.UPDATES)
    later = captions.scores(frame.assign(step=[1024, 2048]), NONE, {}, StepUnit.UPDATES)
    assert "were not fine-tuned: the first are those of step 1,024." in later


def test_several_runs_have_their_seeds_and_the_tasks_of_all() -> None:
    """The average is over tasks that each has; random weights are a control of those that have step 0."""
    one = pd.DataFrame({"task": ["rte", "cola", "sst2"], "metric": "accuracy", "step": 0, "n": 4, "seeds": 1})
    other = pd.DataFrame({"task": ["rte", "cola"], "metric": "accuracy", "step": 1024, "n": 4, "seeds": 3})
    average = pd.DataFrame({"step": [0], "value": [0.5], "tasks": ["CoLA, RTE"]})
    words = captions.overlaid({"one": one, "other": other}, [average, NONE])
    assert "Seeds: one 1; other 3;" in words and "averages are over the tasks that all of them have: CoLA, RTE" in words
    assert "The first points of one are of random weights" in words and "the best step" not in words
    assert "averages" not in captions.overlaid({"one": one}, [NONE])


def test_seeds_of_other_data_are_named() -> None:
    """Those are left out of every mean."""
    frame = pd.DataFrame({"task": ["rte"], "step": 0, "metric": ["accuracy"], "n": [4], "seeds": [2]})
    sources = {f"finetuning:rte:{seed}": {"sha256": data} for seed, data in ((1, "a"), (2, "b"), (10, "a"))}
    assert "not those of the task's first seed: RTE with seed 2." in captions.scores(
        frame, NONE, sources, StepUnit.UPDATES
    )


def test_a_learning_rate_of_equal_trials_is_told() -> None:
    """With what decided; nothing is said where one was best, or nothing is noted."""
    rates = {"0.0001": 0.0, "0.0002": 0.0, "0.0004": -0.1}
    noted = {"learning_rate": 1e-4, "rate_step": 16, "rates": rates}
    said = "0.0001, 0.0002 had the same score, so 0.0001 was not chosen by it: it is the smallest"
    assert said in captions.curve(noted)
    losses = {"0.0001": 0.6, "0.0002": 0.5}
    assert "lowest loss" in captions.curve(noted | {"learning_rate": 2e-4, "rate_losses": losses})
    plain = captions.curve({})
    assert captions.curve(noted | {"rates": rates | {"0.0004": 0.1}}) == plain and "same score" not in plain
    assert captions.curve({"learning_rate": "x", "rates": {"1": [2]}}) == plain


def test_scores_that_are_mostly_tied_are_named() -> None:
    """Beside their correlation, which says next to nothing."""
    table = pd.DataFrame({"task": ["cola", "rte"], "value": 0.5, "low": 0.1, "high": 0.9, "steps": 19, "tied": [13, 2]})
    caption = captions.associations(table, captions.EVALUATED)
    assert "CoLA has the same score at 13 of 19 steps" in caption and "RTE" not in caption
    assert captions.EVALUATED in split(caption)[0]
