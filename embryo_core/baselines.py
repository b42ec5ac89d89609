"""What accuracies are worth: those of always giving the most frequent answer, and facts whose subject tells the object.

All of it is computed from stored tables when they are read (docs/metrics.md, Baselines).
"""

from collections.abc import Iterable, Sequence

import pandas as pd

from embryo_core.word_groups import ALL, BANDS, TAGS

COLUMNS = ["group", "answer", "value", "n"]


def of_facts(facts: pd.DataFrame) -> pd.DataFrame:
    """The accuracy of always answering each relation's most frequent object: group, answer, value, n; "all" is last.

    `facts` has a row for each fact that was asked, with its relation and object (`results.read_histories`). Of objects
    that are equally frequent the first by name is the answer; "all", which counts each fact once, has none.
    """
    rows = []
    for relation, objects in facts.groupby("relation")["object"]:
        answer, count = _most_frequent(objects.value_counts())
        rows.append((relation, answer, count / len(objects), len(objects)))
    if rows:
        right = sum(value * n for *_, value, n in rows)
        rows.append((ALL, pd.NA, right / len(facts), len(facts)))
    return pd.DataFrame(rows, columns=COLUMNS)


def of_words(words: pd.DataFrame, cased: bool = True) -> pd.DataFrame:
    """The accuracy of always answering the most frequent word of each group of a treebank: group, answer, value, n.

    `words` are those of one metric at one step, of all groups (`results.read_words`). Words of a model that is not
    `cased` count without case. Groups without words are left out.
    """
    if not cased:
        words = words.assign(word=words["word"].str.lower())
    members = {group: words["tag"].isin(tags) for group, tags in TAGS.items()}
    members |= {band: words["band"] == band for band in BANDS}
    members[ALL] = pd.Series(True, words.index)
    rows = []
    for group, of_group in members.items():
        counts = words[of_group].groupby("word")["n"].sum()
        if len(counts):
            answer, count = _most_frequent(counts)
            rows.append((group, answer, count / counts.sum(), int(counts.sum())))
    return pd.DataFrame(rows, columns=COLUMNS)


def _most_frequent(counts: pd.Series) -> tuple[str, int]:
    """The most frequent word and its count; of equals the first by name."""
    counts = counts.sort_index()
    return counts.idxmax(), int(counts.max())


def named_by_subject(facts: pd.DataFrame) -> pd.Series:
    """Whether the object stands in the subject's name, upper and lower case alike: bool, a row for each fact.

    This is the string match filter of Poerner, Waltinger and Schütze (2020), "E-BERT: Efficient-Yet-Effective Entity
    Embeddings for BERT".
    """
    pairs = zip(facts["object"], facts["subject"], strict=True)
    return pd.Series([thing.casefold() in name.casefold() for thing, name in pairs], facts.index, dtype=bool)


def precision(facts: pd.DataFrame, right: pd.DataFrame, steps: Iterable[int]) -> pd.DataFrame:
    """Precision at 1 over these `facts` alone, at all `steps`: group (relation, or "all"), step, value, n.

    `right` has a row for each fact and step at which its answer was right (`results.read_right_answers`).
    """
    counted = right.merge(facts[["relation", "fact"]])
    steps = list(steps)
    n = facts.groupby("relation").size()
    hits = counted.groupby(["relation", "step"]).size().unstack(fill_value=0).reindex(n.index, fill_value=0)
    hits = hits.reindex(columns=steps, fill_value=0)
    parts = [_curve(relation, steps, hits.loc[relation], count) for relation, count in n.items()]
    if not parts:
        return pd.DataFrame(columns=["group", "step", "value", "n"])
    return pd.concat([*parts, _curve(ALL, steps, hits.sum(), len(facts))], ignore_index=True)


def _curve(group: str, steps: Sequence[int], hits: pd.Series, n: int) -> pd.DataFrame:
    return pd.DataFrame({"group": group, "step": steps, "value": hits.to_numpy() / n, "n": n})
