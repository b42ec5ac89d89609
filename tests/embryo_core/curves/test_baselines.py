"""Tests of the baselines: the most frequent answer, and facts whose subject contains the object."""

from collections import Counter

import pandas as pd
import pytest

from embryo_core import results
from embryo_core.corpora.lama import RELATIONS
from embryo_core.curves import baselines
from embryo_core.groups import ALL, BANDS, TAGS, TYPE_OF_RELATION
from embryo_core.types import Run

FACTS = pd.DataFrame(
    [
        ("P36", "1", "Italy", "Rome"),
        ("P36", "2", "ancient Rome", "Rome"),
        ("P36", "3", "Peru", "Lima"),
        ("P19", "4", "Paris Hilton", "paris"),
        ("P19", "5", "Bach", "Eisenach"),
    ],
    columns=["relation", "fact", "subject", "object"],
)


def test_most_frequent_object_scores_its_share_of_facts():
    """The object is chosen per relation, alphabetically first among ties; over all relations every fact counts once."""
    actual = baselines.fact_baselines(FACTS).set_index("group")
    assert actual.loc["P36", ["answer", "n"]].tolist() == ["Rome", 3] and actual.loc["P36", "value"] == 2 / 3
    assert actual.loc["P19", ["answer", "value", "n"]].tolist() == ["Eisenach", 0.5, 2]
    assert actual.loc[ALL, ["value", "n"]].tolist() == [3 / 5, 5] and pd.isna(actual.loc[ALL, "answer"])
    assert baselines.fact_baselines(FACTS[:0]).empty


def test_most_frequent_training_word_has_its_share_of_tokens(own_run: Run):
    """The share divides the word's count by the number of training tokens; without word counts the result is None."""
    word, share = baselines.most_frequent_word(own_run)
    lines = (own_run.path / "frequencies.tsv").read_text(encoding="utf-8").splitlines()
    counts = {line.split("\t")[0]: int(line.split("\t")[1]) for line in lines}
    corpus = own_run.corpus
    pieces = corpus.get("train", {}).get("tokens") or corpus["tokens"]
    assert counts[word] == max(counts.values()) and share == max(counts.values()) / pieces
    (own_run.path / "frequencies.tsv").unlink()
    assert baselines.most_frequent_word(own_run) is None


def test_object_in_subject_is_found_in_any_case():
    """The object may be any part of the subject's name."""
    assert baselines.object_in_subject(FACTS).tolist() == [False, True, False, True, False]


def test_precision_can_be_restricted_to_some_facts(tiny_results: Run):
    """Over all facts the precision is the stored score; over half of them it equals a count of their single answers."""
    facts, right = results.read_histories(tiny_results), results.read_right_answers(tiny_results)
    scores = results.read_scores(tiny_results, "world_knowledge")
    every = baselines.precision(facts, right, sorted(set(scores["step"])))
    merged = every.merge(scores, on=["group", "step"])
    assert len(merged) == len(every) == len(scores)
    assert merged["value_x"].tolist() == pytest.approx(merged["value_y"].tolist(), rel=1e-12)
    assert merged["n_x"].tolist() == merged["n_y"].tolist()

    some = facts[::2]
    actual = baselines.precision(some, right, [8, 16]).set_index(["group", "step"])
    cloze = results.read_cloze(tiny_results)
    for group in (*some["relation"].unique(), ALL):
        asked = some if group == ALL else some[some["relation"] == group]
        for step in (8, 16):
            hits = [
                row.rank == 1
                for row in cloze.itertuples()
                if row.step == step and (row.relation, row.fact) in set(zip(asked["relation"], asked["fact"]))
            ]
            assert actual.loc[(group, step), "value"] == pytest.approx(sum(hits) / len(hits))
            assert actual.loc[(group, step), "n"] == len(hits)


@pytest.mark.parametrize("cased", [True, False])
def test_most_frequent_word_scores_its_share_of_words(tiny_results: Run, cased: bool):
    """Each group is compared with a word-by-word count, which ignores capital letters if the model is uncased."""
    words = results.read_words(tiny_results, "mask_prediction", step=16)
    actual = baselines.word_baselines(words, cased).set_index("group")
    for group in (*TAGS, *BANDS, ALL):
        counts = Counter()
        for row in words.itertuples():
            if group == ALL or row.tag in TAGS.get(group, ()) or row.band == group:
                counts[row.word if cased else row.word.lower()] += row.n
        assert (group in actual.index) == bool(counts)
        if counts:
            assert actual.loc[group, "value"] == max(counts.values()) / counts.total()
            assert counts[actual.loc[group, "answer"]] == max(counts.values())
            assert actual.loc[group, "n"] == counts.total()


def test_relation_types_weight_relations_by_facts():
    """Scores at each step and baselines are aggregated; the row of all relations, which has no type, is left out."""
    table = pd.DataFrame(
        [("P19", 8, 0.5, 10), ("P20", 8, 0.2, 30), ("P36", 8, 1.0, 5), ("all", 8, 0.4, 45), ("P19", 16, 0.1, 10)],
        columns=["group", "step", "value", "n"],
    )
    actual = baselines.type_baselines(table).set_index(["group", "step"])
    assert actual.loc[("N-1", 8)].tolist() == [pytest.approx((5 + 6) / 40), 40]
    assert actual.loc[("1-1", 8)].tolist() == [1.0, 5] and actual.loc[("N-1", 16)].tolist() == [pytest.approx(0.1), 10]
    assert len(actual) == 3
    without_steps = baselines.type_baselines(table[table["step"] == 8].drop(columns="step")).set_index("group")
    assert without_steps["value"]["N-1"] == pytest.approx(11 / 40)


def test_relation_types_are_those_of_lama():
    """Of LAMA's relations 2 are 1-1, 23 N-1 and 16 N-M; the paper's 25 are those of the first two types."""
    assert Counter(TYPE_OF_RELATION.values()) == {"1-1": 2, "N-1": 23, "N-M": 16}
    assert {relation for relation, kind in TYPE_OF_RELATION.items() if kind != "N-M"} == set(RELATIONS)
