"""What a choice changed is the difference of two shares, at the last step that both runs have."""

import json
from dataclasses import replace
from math import sqrt

import pandas as pd
import pytest

from embryo_core import results
from embryo_core.compare import differences
from embryo_core.types import ClozeAnswer, Findings, Origin, Run, Score
from tests.conftest import at, copy_run

Z = 1.959963984540054


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's interval, written out."""
    middle, reach = share + Z**2 / (2 * n), Z * sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return (middle - reach) / (1 + Z**2 / n), (middle + reach) / (1 + Z**2 / n)


@pytest.fixture
def two(tiny_run: Run, tmp_path) -> list[Run]:
    """Return a run with scores up to step 16, and a better one, scored on other cases, up to step 8."""
    found = [copy_run(tiny_run, tmp_path / name) for name in "ab"]
    for run, n, steps, gain in ((found[0], 100, (0, 8, 16), 0.0), (found[1], 50, (0, 8), 0.3)):
        for step in steps:
            score = Score("mask_prediction", step / 40 + gain, n, "all")
            results.write(at(run, step), "mask_prediction", Findings(scores=[score]))
    return found


def test_the_interval_is_newcombes(two: list[Run]):
    """Each share has its own number of cases."""
    row = differences(*two).set_index("measure").loc["mask prediction"]
    assert (row["step_first"], row["step_second"], row["n_first"], row["n_second"]) == (8, 8, 100, 50)
    assert row["difference"] == pytest.approx(0.3)
    (a_low, a_high), (b_low, b_high) = wilson(0.2, 100), wilson(0.5, 50)
    assert row["low"] == pytest.approx(0.3 - sqrt((0.5 - b_low) ** 2 + (a_high - 0.2) ** 2))
    assert row["high"] == pytest.approx(0.3 + sqrt((b_high - 0.5) ** 2 + (0.2 - a_low) ** 2))


def test_what_one_run_lacks_is_named_without_a_difference(two: list[Run]):
    """It has a row in which all but the measure is missing."""
    for score in (Score("world_knowledge", 0.5, 10, "all"),):
        results.write(at(two[0], 16), "world_knowledge", Findings(scores=[score]))
    row = differences(*two).set_index("measure").loc["world knowledge"]
    assert pd.isna(row[["step_first", "step_second", "difference", "low", "high"]]).all()


def test_masked_accuracy_is_that_of_the_held_out_text(two: list[Run]):
    """Not that of training, nor one without a masked piece."""
    for run, right, n in ((two[0], 0.2, 100), (two[1], 0.5, 50)):
        measured = [("heldout", 8, right, n), ("train", 8, 0.9, 9), ("heldout", 16, 0.0, 0), ("train", 16, 0.9, 9)]
        rows = [
            {"split": split, "step": step, "loss": 1.0, "masked_lm_accuracy": accuracy, "n_masked": masked}
            for split, step, accuracy, masked in measured
        ]
        (run.path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    row = differences(*two).set_index("measure").loc["masked accuracy"]
    assert row["difference"] == pytest.approx(0.3) and row["low"] < 0.3 < row["high"]
    assert (row["step_first"], row["step_second"], row["n_first"], row["n_second"]) == (8, 8, 100, 50)


def test_a_probing_task_is_compared_in_the_layer_that_is_best_at_the_step(two: list[Run]):
    """Each run in its own, whichever was best before."""
    by_run = [{0: (0.6, 0.3), 8: (0.5, 0.7)}, {0: (0.1, 0.2), 8: (0.9, 0.8)}]
    for run, by_step in zip(two, by_run, strict=True):
        for step, values in by_step.items():
            scores = [Score("edge_probing_f1", value, 40, "pos", layer) for layer, value in enumerate(values)]
            results.write(at(run, step), "edge_probing", Findings(scores=scores))
    row = differences(*two).set_index("measure").loc["probing: pos"]
    assert (row["step_first"], row["first"], row["second"], row["n_first"]) == (8, 0.7, 0.9, 40)


def test_a_category_is_no_measure_of_all_words(two: list[Run]):
    """Scores of a run have a row for each group; those of all cases together are compared."""
    for run in two:
        groups = (("noun", 0.1, 9), ("all", 0.4, 20))
        scores = [Score("token_reconstruction", value, n, group) for group, value, n in groups]
        results.write(at(run, 8), "token_reconstruction", Findings(scores=scores))
    row = differences(*two).set_index("measure").loc["token reconstruction"]
    assert (row["first"], row["second"], row["n_first"]) == (0.4, 0.4, 20)


def test_a_run_that_goes_on_is_compared_with_where_it_began(two: list[Run]):
    """At its last step, not at a common one, where both are the same weights; the other way round it is a loss."""
    first, second = two
    on = replace(second, origin=Origin(first.name, 8, 0, 0, "0" * 64))
    results.write(at(second, 16), "mask_prediction", Findings(scores=[Score("mask_prediction", 0.9, 50, "all")]))
    row = differences(first, on).set_index("measure").loc["mask prediction"]
    assert (row["step_first"], row["step_second"]) == (8, 16) and row["difference"] == pytest.approx(0.9 - 0.2)
    turned = differences(on, first).set_index("measure").loc["mask prediction"]
    assert (turned["step_first"], turned["step_second"]) == (16, 8)
    assert turned["difference"] == pytest.approx(0.2 - 0.9)


def answered(run: Run, step: int, right: dict[str, bool]) -> None:
    """Store the answers to facts at a step, and the precision over all of them."""
    facts = [ClozeAnswer(fact, "P1", fact, "x", 1 if hit else 2, 0.1, "x", 0.1) for fact, hit in right.items()]
    share = sum(right.values()) / len(right)
    found = Findings(scores=[Score("world_knowledge", share, len(right), "all")], cloze=facts)
    results.write(at(run, step), "world_knowledge", found)


def test_world_knowledge_is_compared_on_the_facts_that_both_were_asked(two: list[Run]):
    """Facts of one run alone, all right, don't count; nor does a step that the other lacks."""
    answered(two[0], 8, {"a": True, "b": False, "c": False})
    answered(two[1], 8, {"a": False, "b": False, "d": True, "e": True})
    answered(two[0], 16, {"a": False, "b": False, "c": True})
    row = differences(*two).set_index("measure").loc["world knowledge"]
    assert (row["step_second"], row["n_first"], row["n_second"]) == (8, 2, 2)
    assert (row["first"], row["second"], row["difference"]) == (0.5, 0, -0.5)


def test_world_knowledge_of_different_facts_is_not_compared(two: list[Run]):
    """Then there is no difference."""
    for run, fact in zip(two, "ab", strict=True):
        answered(run, 8, {fact: True})
    assert differences(*two).set_index("measure").loc["world knowledge"].isna().all()
