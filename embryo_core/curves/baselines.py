"""Baselines of accuracies: always the most frequent answer, and facts whose subject contains the object.

All are computed when stored results are read (docs/metrics.md, Baselines).
"""

from collections.abc import Iterable

import pandas as pd

from embryo_core import runs
from embryo_core.groups import ALL, BANDS, TAGS, TYPE_OF_RELATION
from embryo_core.types import RightAnswers, Run

BASELINE_COLUMNS = ["group", "answer", "value", "n"]


def fact_baselines(facts: pd.DataFrame) -> pd.DataFrame:
    """Compute the accuracy of always answering each relation's most frequent object: group, answer, value, n.

    `facts` has a row for each fact that was asked, with its relation and object (`results.read_histories`). Ties go to
    the first object by name. The last row, "all", counts each fact once and has no answer.
    """
    rows = []
    for relation, objects in facts.groupby("relation")["object"]:
        answer, count = _most_frequent(objects.value_counts())
        rows.append((relation, answer, count / len(objects), len(objects)))
    if rows:
        right = sum(value * n for *_, value, n in rows)
        rows.append((ALL, pd.NA, right / len(facts), len(facts)))
    return pd.DataFrame(rows, columns=BASELINE_COLUMNS)


def type_baselines(table: pd.DataFrame) -> pd.DataFrame:
    """Aggregate `fact_baselines` by type of relation, and by a column step if any: group, step, value, n.

    Each fact counts once.
    """
    table = table.assign(group=table["group"].map(TYPE_OF_RELATION), value=table["value"] * table["n"]).dropna(
        subset="group"
    )
    by = ["group", "step"] if "step" in table else ["group"]
    sums = table.groupby(by, as_index=False)[["value", "n"]].sum()
    return sums.assign(value=sums["value"] / sums["n"])


def word_baselines(words: pd.DataFrame, cased: bool = True) -> pd.DataFrame:
    """Compute the accuracy of always answering each group's most frequent word: group, answer, value, n.

    `words` has the words of all groups for one metric at one step (`results.read_words`). If the model is not `cased`,
    words are compared in lower case. Groups without words are left out.
    """
    if not cased:
        words = words.assign(word=words["word"].str.lower())
    of_tag = pd.DataFrame([(tag, group) for group, tags in TAGS.items() for tag in tags], columns=["tag", "group"])
    by_tag = words[["tag", "word", "n"]].merge(of_tag, on="tag")
    members = [by_tag, words[words["band"].isin(BANDS)].rename(columns={"band": "group"}), words.assign(group=ALL)]
    counts = pd.concat([rows[["group", "word", "n"]] for rows in members]).groupby(["group", "word"])["n"].sum()
    totals, words_of = counts.groupby("group").sum(), counts.groupby("group")
    rows = []
    for group in (*TAGS, *BANDS, ALL):
        if group in totals.index:
            answer, count = _most_frequent(words_of.get_group(group).droplevel("group"))
            rows.append((group, answer, count / totals[group], int(totals[group])))
    return pd.DataFrame(rows, columns=BASELINE_COLUMNS)


def _most_frequent(counts: pd.Series) -> tuple[str, int]:
    """Return the most frequent word and its count; ties go to the first by name."""
    counts = counts.sort_index()
    return counts.idxmax(), int(counts.max())


def most_frequent_word(run: Run) -> tuple[str, float] | None:
    """Return the most frequent word of a run's training text and its share of the text's pieces.

    For a word of one piece, the share is the accuracy of always answering this word at masks in such text. None if the
    run does not record its word counts or its number of pieces. Raises BrokenRun.
    """
    counts, pieces = runs.read_counts(run.frequencies), runs.counted_tokens(run)
    if not counts or not pieces:
        return None
    word = max(counts, key=counts.__getitem__)
    return word, counts[word] / pieces


def object_in_subject(facts: pd.DataFrame) -> pd.Series:
    """Return whether each fact's subject contains the object, ignoring case (Poerner et al., 2020, E-BERT)."""
    pairs = zip(facts["object"], facts["subject"], strict=True)
    contained = [object_name.casefold() in subject.casefold() for object_name, subject in pairs]
    return pd.Series(contained, facts.index, dtype=bool)


def precision(facts: pd.DataFrame, right: RightAnswers, steps: Iterable[int]) -> pd.DataFrame:
    """Compute the precision at 1 over these `facts` only, at all `steps`: group (relation, or "all"), step, value, n.

    `facts` are some rows of `results.read_histories`, and `right` covers all of its rows.
    """
    steps = list(steps)
    groups = [*facts.groupby("relation").groups.items()]
    if not groups:
        return pd.DataFrame(columns=["group", "step", "value", "n"])
    parts = []
    for group, rows in (*groups, (ALL, facts.index)):
        hits = pd.Series(right.correct[rows].sum(axis=0), right.steps).reindex(steps, fill_value=0)
        values = hits.to_numpy() / len(rows)
        parts.append(pd.DataFrame({"group": group, "step": steps, "value": values, "n": len(rows)}))
    return pd.concat(parts, ignore_index=True)
