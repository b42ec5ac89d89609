"""The table of all relations of the Knowledge page (Section 6)."""

import pandas as pd

from embryo_core import curves, results
from embryo_core.curves.baselines import object_in_subject
from embryo_core.figures.figure import Caption, sentences
from embryo_core.figures.knowledge import METRIC, precision_table
from embryo_core.groups import ALL, RELATION_NAMES
from embryo_core.types import Run

HISTORY_NOTE = (
    "A fact is “learned” if its answer is correct from some step on, up to the last; “forgotten” if it was correct "
    "over one stretch of steps only, and then wrong to the end; “oscillating” if it was correct over two or more "
    "stretches; “never learned” if at no step. The curve of a relation has fallen where it is significantly (95 %) "
    "below its highest point so far. A relation is “learned” if its curve never falls and “oscillating” if it "
    "falls and comes back. If it stays fallen, it is “declined” above half of that point and “forgotten” below. "
    "It is “never learned” if its curve is never significantly above 2 %."
)


def relation_table(run: Run) -> pd.DataFrame:
    """Return the table of `summarise_relations` for a run. Raises ResultsError."""
    coverage, facts = results.read_scores(run, f"{METRIC}_coverage"), results.read_histories(run)
    return summarise_relations(precision_table(run), coverage, facts, precision_table(run, without_giveaways=True))


def summarise_relations(
    precision: pd.DataFrame, coverage: pd.DataFrame, facts: pd.DataFrame, without: pd.DataFrame
) -> pd.DataFrame:
    """Return a row for each relation, the best at the last step first.

    Columns: relation, name, last (precision at 1 at the last step), answer (the most frequent object) and baseline (the
    precision of always answering it), named (proportion of facts whose subject's name contains the object), without
    (the last precision over all other facts), asked (n facts), all (facts of the relation), coverage, history (of the
    relation's curve), and the number of facts with each history.

    `precision` is a `precision_table`, `coverage` the metric "world_knowledge_coverage", `facts` are
    `results.read_histories`, `without` is a `precision_table` over facts whose subject does not name the object.
    """
    curve = precision[precision["relation"] != ALL]
    coverage_by_relation = coverage[coverage["group"] != ALL].sort_values("step").groupby("group")
    table = coverage_by_relation.agg(coverage=("value", "last"), all=("n", "last")).rename_axis("relation")
    by_relation = curve.groupby("relation")
    table["last"] = by_relation["value"].last()
    table[["answer", "baseline"]] = by_relation[["answer", "baseline"]].first()
    table["named"] = object_in_subject(facts).groupby(facts["relation"]).mean()
    table["without"] = without.groupby("relation")["value"].last()
    table["history"] = pd.Series({name: curves.classify_curve(rows["value"], rows["n"]) for name, rows in by_relation})
    counts = facts.groupby(["relation", "history"]).size().unstack().reindex(columns=curves.HISTORIES)
    table = table.join(counts).fillna(dict.fromkeys(curves.HISTORIES, 0)).astype(dict.fromkeys(curves.HISTORIES, int))
    table["asked"] = table[list(curves.HISTORIES)].sum(axis=1)
    table = table.sort_values("last", ascending=False).reset_index()
    table.insert(1, "name", table["relation"].map(RELATION_NAMES).fillna(""))
    columns = ["last", "answer", "baseline", "named", "without", "asked", "all", "coverage", "history"]
    return table[["relation", "name", *columns, *curves.HISTORIES]]


def describe_relations(facts: pd.DataFrame) -> Caption:
    """Return the caption: the number of facts with each history, and the rules of histories."""
    total = facts["history"].value_counts().reindex(curves.HISTORIES, fill_value=0)
    counts = ", ".join(f"{count:,} {name}" for name, count in total.items())
    return Caption(
        f"Of {len(facts):,} facts asked: {counts}.",
        sentences(HISTORY_NOTE, "Only facts whose object is a single piece of the vocabulary can be asked."),
        hint="Click a row for the relation's facts.",
    )
