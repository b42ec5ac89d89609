"""What a choice changed is the difference of two shares, at the last step that both runs have."""

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
    """A run with scores to step 16, and another that is better, counted on other cases, and has come to step 8."""
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
    """A row of its own, all but the measure missing."""
    for score in (Score("world_knowledge", 0.5, 10, "all"),):
        results.write(at(two[0], 16), "world_knowledge", Findings(scores=[score]))
    row = differences(*two).set_index("measure").loc["world knowledge"]
    assert pd.isna(row[["step_first", "step_second", "difference", "low", "high"]]).all()


def test_masked_accuracy_is_that_of_the_held_out_text(two: list[Run]):
    """The copies share their log, so it does not differ."""
    row = differences(*two).set_index("measure").loc["masked accuracy"]
    assert row["difference"] == 0 and row["step_second"] == 16 and row["low"] < 0 < row["high"]


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
    """There is no difference to be told."""
    for run, fact in zip(two, "ab", strict=True):
        answered(run, 8, {fact: True})
    assert differences(*two).set_index("measure").loc["world knowledge"].isna().all()
