"""Tests of findings about facts, with constructed histories and curves."""

import pandas as pd
import pytest

from embryo_core import results
from embryo_core.findings import knowledge
from embryo_core.findings.finding import verdict_of
from tests.embryo_core.findings.conftest import STEPS, evidence, risen


@pytest.mark.parametrize(("kinds", "verdict"), [(4, "reproduced"), (1, "contradicted")])
def test_each_fate_needs_more_than_1_percent_of_facts(run, monkeypatch, kinds: int, verdict: str):
    """Either each of the four kinds has 250 facts, or all 1,000 facts are of one kind."""
    facts = pd.DataFrame({"history": [knowledge.HISTORY_KINDS[i % kinds] for i in range(1000)]})
    monkeypatch.setattr(results, "read_histories", lambda run: facts)
    tested = knowledge.four_histories(evidence(run, (knowledge.PRECISION_METRIC, "all", None, risen(8))))
    assert verdict_of(tested.comparisons) == verdict and f"{1000 // kinds:,} learned" in tested.statistic


@pytest.mark.parametrize(("learned", "outcome"), [(9_750, (False, True)), (10_250, (True, False))])
def test_fate_of_1_percent_of_a_million_facts_is_the_limit(run, monkeypatch, learned: int, outcome: tuple[bool, bool]):
    """The interval of a share of 1 % has a width of 0.04 %."""
    facts = pd.DataFrame({"history": ["learned"] * learned + ["never learned"] * (10**6 - learned)})
    monkeypatch.setattr(results, "read_histories", lambda run: facts)
    tested = knowledge.four_histories(evidence(run, (knowledge.PRECISION_METRIC, "all", None, risen(8))))
    (comparison,) = (each for each in tested.comparisons if each.what == "learned")
    assert (comparison.holds, comparison.opposed) == outcome


@pytest.mark.parametrize("steps", [1, 2])
def test_fates_need_three_steps(run, steps: int):
    """No fact can be forgotten at the first step or oscillate over two."""
    scored_evidence = evidence(run, (knowledge.PRECISION_METRIC, "all", None, risen(8)))
    whole = scored_evidence.scores(knowledge.PRECISION_METRIC)
    scored_evidence.__dict__["scores"] = lambda metric: whole[whole["step"].isin(STEPS[:steps])]
    tested = knowledge.four_histories(scored_evidence)
    assert not tested.comparisons
    assert tested.statistic == f"Facts were asked at {steps} step{'s'[: steps - 1]}; a fact oscillates over 3 at least."


def test_relation_with_one_step_is_not_called_never_learned(run):
    """A single step is no curve."""
    scored_evidence = evidence(run, (knowledge.PRECISION_METRIC, "P19", None, risen(8)))
    whole = scored_evidence.scores(knowledge.PRECISION_METRIC)
    scored_evidence.__dict__["scores"] = lambda metric: whole[whole["step"] == 8]
    tested = knowledge.last_step_is_not_the_best(scored_evidence)
    assert not tested.comparisons and not tested.statistic


def test_all_facts_are_compared_even_if_never_learned(run):
    """The row of all facts does not count as a relation that was left out."""
    flat = [0.001] * len(STEPS)
    scored_evidence = evidence(
        run, *((knowledge.PRECISION_METRIC, group, None, flat) for group in ("all", "P36", "P19"))
    )
    tested = knowledge.last_step_is_not_the_best(scored_evidence)
    assert [comparison.what for comparison in tested.comparisons] == ["all relations"]
    assert tested.statistic == "2 of 2 relations were never learned and are left out."


def test_relations_never_learned_are_left_out(run):
    """One relation falls and the other never rises, so all facts and the first are compared."""
    falling = [*risen(8, 0.0, 0.5)[:-1], 0.2]
    scored_evidence = evidence(
        run,
        *((knowledge.PRECISION_METRIC, group, None, falling) for group in ("all", "P19")),
        (knowledge.PRECISION_METRIC, "P36", None, [0.001] * len(STEPS)),
    )
    tested = knowledge.last_step_is_not_the_best(scored_evidence)
    assert [comparison.what for comparison in tested.comparisons] == ["all relations", "P19"]
    assert verdict_of(tested.comparisons) == "reproduced" and "1 of 2 relations" in tested.statistic
