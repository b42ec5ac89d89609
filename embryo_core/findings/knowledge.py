"""Section 6: facts about the world come and go."""

from embryo_core import curves, results
from embryo_core.corpora.groups import ALL
from embryo_core.findings.comparisons import fallen
from embryo_core.findings.evidence import Evidence
from embryo_core.findings.finding import Comparison, Finding, Tested
from embryo_core.words import quantity

PRECISION = "world_knowledge"
KINDS = ("learned", "forgotten", "oscillating", "never learned")
LEAST = 0.01  # of the facts that a kind has to have
FEWEST = 3  # steps at which every kind is possible: known, forgotten, and known again


def last_step_is_not_the_best(evidence: Evidence) -> Tested:
    """Each relation that was ever learned, and all facts together: how far the last step lies below the best."""
    names = (ALL, *(relation for relation in evidence.groups(PRECISION) if relation != ALL))
    found = {name: curve for name in names if (curve := evidence.curve(PRECISION, name))}
    learned = {
        name: curve
        for name, curve in found.items()
        if name == ALL or curves.classify_curve(curve.values, curve.n) != "never learned"
    }
    relations, never = len(found.keys() - {ALL}), len(found) - len(learned)
    return Tested(
        [fallen("all relations" if relation == ALL else relation, curve) for relation, curve in learned.items()],
        f"{never} of {relations} relations were never learned and are left out." if never else "",
    )


def four_fates(evidence: Evidence) -> Tested:
    """Each kind of history: its share of the facts, above one in a hundred."""
    steps = evidence.scores(PRECISION)["step"].nunique()
    if steps < FEWEST:
        return Tested([], f"Facts were asked at {quantity(steps, 'step')}; one oscillates over {FEWEST} at least.")
    kinds = results.read_histories(evidence.run)["history"]
    counts = kinds.value_counts().reindex(KINDS, fill_value=0)
    facts = int(counts.sum())
    found = []
    for kind in KINDS:
        share = counts[kind] / facts
        low, high = curves.interval(share, facts)
        above = (float(end) - LEAST for end in (share, low, high))
        found.append(Comparison(kind, *above, "share of the facts", facts))
    return Tested(found, ", ".join(f"{counts[kind]:,} {kind}" for kind in KINDS) + ".")


KNOWLEDGE = {"page": "Knowledge", "view": {}, "metrics": (PRECISION,), "command": "evaluate --lama FOLDER"}
FINDINGS = (
    Finding(
        name="knowledge_fluctuates",
        claim="Knowledge of the world comes and goes, and the last step is not the best.",
        place="Section 6, Figures 6 and 14",
        predicts="The last precision of a relation lies below the best one before it.",
        test=last_step_is_not_the_best,
        **KNOWLEDGE,
    ),
    Finding(
        name="four_fates",
        claim="Facts are learned, forgotten, oscillating, or never learned.",
        place="Section 6, Table 9",
        predicts="Each of the four kinds has more than one fact in a hundred.",
        test=four_fates,
        **KNOWLEDGE,
    ),
)
