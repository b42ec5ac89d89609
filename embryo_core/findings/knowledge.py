"""Section 6: facts about the world come and go."""

from typing import Any

from embryo_core import curves, results
from embryo_core.findings.comparisons import compare_with_peak
from embryo_core.findings.evidence import Evidence
from embryo_core.findings.finding import Comparison, Finding, TestOutcome
from embryo_core.groups import ALL
from embryo_core.words import quantity

PRECISION_METRIC = "world_knowledge"
HISTORY_KINDS = ("learned", "forgotten", "oscillating", "never learned")
MIN_SHARE = 0.01  # share of the facts that each kind should exceed
MIN_HISTORY_STEPS = 3  # fewest steps at which every kind is possible: known, forgotten, and known again


def last_step_is_not_the_best(evidence: Evidence) -> TestOutcome:
    """Compare how far precision at the last step is below the best, for all facts and each relation ever learned."""
    names = (ALL, *(relation for relation in evidence.groups(PRECISION_METRIC) if relation != ALL))
    curves_by_name = {name: curve for name in names if (curve := evidence.curve(PRECISION_METRIC, name))}
    learned_curves = {
        name: curve
        for name, curve in curves_by_name.items()
        if name == ALL or curves.classify_curve(curve.values, curve.n) != "never learned"
    }
    relation_count, unlearned_count = len(curves_by_name.keys() - {ALL}), len(curves_by_name) - len(learned_curves)
    comparisons = [
        compare_with_peak("all relations" if relation == ALL else relation, curve)
        for relation, curve in learned_curves.items()
    ]
    left_out = f"{unlearned_count} of {relation_count} relations were never learned and are left out."
    return TestOutcome(comparisons, left_out if unlearned_count else "")


def four_histories(evidence: Evidence) -> TestOutcome:
    """Compare the share of facts with each kind of history with MIN_SHARE."""
    step_count = evidence.scores(PRECISION_METRIC)["step"].nunique()
    if step_count < MIN_HISTORY_STEPS:
        return TestOutcome(
            [],
            f"Facts were asked at {quantity(step_count, 'step')}; a fact oscillates over {MIN_HISTORY_STEPS} at least.",
        )
    histories = results.read_histories(evidence.run)["history"]
    counts = histories.value_counts().reindex(HISTORY_KINDS, fill_value=0)
    fact_count = int(counts.sum())
    comparisons = []
    for kind in HISTORY_KINDS:
        share = counts[kind] / fact_count
        value, low, high = (float(end) - MIN_SHARE for end in (share, *curves.interval(share, fact_count)))
        comparisons.append(Comparison(kind, value, low, high, "share of the facts", fact_count))
    return TestOutcome(comparisons, ", ".join(f"{counts[kind]:,} {kind}" for kind in HISTORY_KINDS) + ".")


SHARED_FIELDS: dict[str, Any] = {
    "page": "Knowledge",
    "view": {},
    "metrics": (PRECISION_METRIC,),
    "command": "evaluate --lama FOLDER",
    "needs": frozenset({"words"}),
}
FINDINGS = (
    Finding(
        name="knowledge_fluctuates",
        claim="Knowledge of the world comes and goes, and the last step is not the best.",
        section="Section 6, Figures 6 and 14",
        predicts="The last precision of a relation is below the best one before it.",
        test=last_step_is_not_the_best,
        **SHARED_FIELDS,
    ),
    Finding(
        name="four_fates",
        claim="Facts are learned, forgotten, oscillating, or never learned.",
        section="Section 6, Table 9",
        predicts="Each of the four kinds has more than one fact in a hundred.",
        test=four_histories,
        **SHARED_FIELDS,
    ),
)
