"""Findings about facts, against the rules computed fact by fact."""

import numpy as np
import pandas as pd
import pytest

from embryo_core import curves, results
from embryo_core.findings import knowledge
from embryo_core.findings.finding import verdict_of
from tests.embryo_core.findings.conftest import STEPS, evidence, risen


def test_histories_are_counted_fact_by_fact():
    """Ranks drawn at random, their rows in any order; facts of two relations may have one id."""
    rng = np.random.default_rng(3)
    rows = [(r, f, s, int(rng.integers(1, 4))) for r in ("P19", "P36") for f in map(str, range(40)) for s in STEPS]
    table = pd.DataFrame(rows, columns=["relation", "fact", "step", "rank"])
    slow = [
        curves.classify_history([rank == 1 for *_, rank in sorted(group, key=lambda row: row[2])])
        for group in ([row for row in rows if row[:2] == key] for key in {row[:2] for row in rows})
    ]
    found = knowledge.histories(table.sample(frac=1, random_state=1))
    assert found.to_dict() == {kind: slow.count(kind) for kind in knowledge.KINDS}


@pytest.mark.parametrize(("kinds", "verdict"), [(4, "reproduced"), (1, "contradicted")])
def test_fates_need_more_than_one_fact_in_a_hundred(run, monkeypatch, kinds: int, verdict: str):
    """Four kinds with a hundred facts each, and a run that knows everything from the start."""
    ranks = {"learned": (2, 1, 1), "forgotten": (1, 2, 2), "oscillating": (1, 2, 1), "never learned": (2, 2, 2)}
    shown = list(ranks.values())[:kinds]
    rows = [("P19", str(f), s, shown[f % kinds][s]) for f in range(1000) for s in range(3)]
    monkeypatch.setattr(
        results, "read_cloze", lambda run: pd.DataFrame(rows, columns=["relation", "fact", "step", "rank"])
    )
    tested = knowledge.four_fates(evidence(run, (knowledge.PRECISION, "all", None, risen(8))))
    assert verdict_of(tested.comparisons) == verdict and f"{1000 // kinds:,} learned" in tested.statistic


def test_relations_that_were_never_learned_are_left_out(run):
    """One falls, one never rises: all facts and the one are compared."""
    falling = [*risen(8, 0.0, 0.5)[:-1], 0.2]
    found = evidence(
        run,
        *((knowledge.PRECISION, group, None, falling) for group in ("all", "P19")),
        (knowledge.PRECISION, "P36", None, [0.001] * len(STEPS)),
    )
    tested = knowledge.last_step_is_not_the_best(found)
    assert [comparison.what for comparison in tested.comparisons] == ["all relations", "P19"]
    assert verdict_of(tested.comparisons) == "reproduced" and "1 of 2 relations" in tested.statistic
