"""What the captions of the Knowledge page say: what is counted, and when a fact counts as learned or forgotten."""

import pandas as pd

from embryo_core.corpora.baselines import named_by_subject
from embryo_core.corpora.groups import ALL
from embryo_core.curves import HISTORIES
from embryo_core.figures.markdown import literal
from embryo_core.types import StepUnit
from embryo_core.words import percent, point, quantity

RULES = (
    "A fact is **learned** if its answer is correct from some step on, up to the last; **forgotten** if it was correct "
    "over one stretch of steps only, and then wrong to the end; **oscillating** if it was correct over two or more "
    "stretches; **never learned** if at no step. The curve of a relation has fallen where it is significantly (95 %) "
    "below its highest point so far. A relation is **learned** if its curve never falls and **oscillating** if it "
    "falls and comes back. If it stays fallen, it is **declined** above half of that point and **forgotten** below. "
    "It is **never learned** if its curve is never significantly above 2 %."
)
TYPES = (
    " Types as in LAMA: 1-1, one object for each subject and one subject for each object; N-1, many subjects share an "
    "object; N-M, subjects have several objects too. In the curve and baseline of a type each fact counts once."
)
ONE_FACT = "What the model answered at each step, as in the paper's Table 9."


def beside_baseline(frame: pd.DataFrame, without: pd.DataFrame, unit: StepUnit) -> str:
    """What all facts' last precision at 1 is worth, over all facts and over those `without` an object in the subject.

    Both are `charts.knowledge.relation_curves`.
    """
    every, others = (_last_of_all(curves) for curves in (frame, without))
    at = point(int(every["step"]), unit)
    words = (
        f"Always answering a relation's most frequent object is right for {percent(every['baseline'])} of "
        f"{every['n']:,} facts; the run's {percent(every['value'])} at {at} is {_place(every)} that."
    )
    if others is None or others["n"] == every["n"]:
        return words
    named = every["n"] - others["n"]
    return (
        f"{words} In {quantity(named, 'fact')} ({percent(named / every['n'], 0)}) the subject's name contains the "
        f"object; without them the run answers {percent(others['value'])} of {others['n']:,} correctly, "
        f"{_place(others)} the baseline's {percent(others['baseline'])}."
    )


def _last_of_all(curves: pd.DataFrame) -> pd.Series | None:
    of_all = curves[curves["relation"] == ALL].sort_values("step")
    return of_all.iloc[-1] if len(of_all) else None


def _place(row: pd.Series) -> str:
    """Whether a precision is above its baseline; both are counted on the same facts."""
    if row["low"] > row["baseline"]:
        return "above"
    return "below" if row["high"] < row["baseline"] else "not significantly different from"


def precision(note: str, facts: pd.DataFrame, unnamed: bool) -> str:
    """The caption of the curves of relations, on the `facts` that the `note` names, or those that are `unnamed`."""
    named = int(named_by_subject(facts).sum())
    verb = "is" if named == 1 else "are"
    facts_left_out = f" Left out {verb} {quantity(named, 'fact')} whose subject's name contains the object."
    left_out = facts_left_out if unnamed else ""
    return (
        "Precision at 1: the share of facts whose object is the model's top answer. The model fills the masked place "
        f"with any piece of its vocabulary. Facts: {literal(note)}.{left_out} Dashed: the precision of always "
        "answering a relation's most frequent object; for all relations, each one's own. Bands are 95 % Wilson "
        "intervals from the number of facts. Click a point for its facts."
    )


def relations(facts: pd.DataFrame) -> str:
    """How many facts had which history, and the rules of these."""
    total = facts["history"].value_counts().reindex(HISTORIES, fill_value=0)
    counted = ", ".join(f"{count:,} {name}" for name, count in total.items())
    return (
        f"Of {len(facts):,} facts asked: {counted}. {RULES} Only facts whose object is a single piece of the "
        "vocabulary can be asked. Click a row for the relation's facts."
    )


def facts(table: pd.DataFrame, listed: pd.DataFrame, step: int, unit: StepUnit) -> str:
    """How many facts of a relation (`table`) are right at a step, and how many of them are `listed`."""
    right = int((table["rank"] == 1).sum())
    return (
        f"At {point(step, unit)}, {right:,} of {len(table):,} facts of this relation are answered correctly; "
        f"{len(listed):,} are listed. Click a row to follow one fact through all steps."
    )
