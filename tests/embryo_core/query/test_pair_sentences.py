"""Tests of the sentences of minimal pairs: they are found in local data, and their words add up to stored scores."""

import shutil

import pytest

from embryo_core import results, runs
from embryo_core.errors import QueryError
from embryo_core.evaluation import evaluate
from embryo_core.query.pair_sentences import find_pairs, read_pair_sentences, score_words
from tests.conftest import SAMPLE_DATA


@pytest.fixture
def evaluated_run(own_run, tmp_path, monkeypatch):
    """Return a run that was evaluated on the sample's pairs at two steps, and remembers their folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    evaluate(own_run, {"pairs": shutil.copytree(SAMPLE_DATA["pairs"], tmp_path / "mine")}, steps=[8, 16])
    return own_run


def test_sentences_are_found_where_they_were_evaluated(evaluated_run, tmp_path):
    """The folder is no longer used once its data have changed."""
    mine = tmp_path / "mine"
    assert find_pairs(evaluated_run, []) == mine
    assert [pair.number for pair in read_pair_sentences(evaluated_run, mine)["nouns/case/pronoun"]] == [0, 1, 2]
    (mine / "nouns.jsonl").write_text("{}\n")
    assert find_pairs(evaluated_run, []) is None


def test_sentences_are_found_in_a_data_folder(evaluated_run, tmp_path):
    """The folder used for evaluation is gone, but a folder in corpora/pairs has the same data."""
    shutil.rmtree(tmp_path / "mine")
    root = tmp_path / "root"
    assert find_pairs(evaluated_run, [root]) is None
    shutil.copytree(SAMPLE_DATA["pairs"], root / "corpora" / "pairs" / "sample")
    assert find_pairs(evaluated_run, [root]) == root / "corpora" / "pairs" / "sample"


def test_word_scores_add_up_to_stored_scores(evaluated_run):
    """They do at every step, read from a folder with another name; the words are spelled as in the sentence."""
    for paradigm, pairs in read_pair_sentences(evaluated_run, SAMPLE_DATA["pairs"]).items():
        stored_rows = results.read_pair_scores(evaluated_run, paradigm).set_index(["pair", "step"])
        for pair in pairs[:2]:
            table = score_words(evaluated_run, pair.good, pair.bad, [8, 16])
            for step, own in table.groupby("step"):
                sums = own[["good_score", "bad_score"]].sum().tolist()
                assert sums == pytest.approx(stored_rows.loc[(pair.number, step), ["good", "bad"]].tolist(), abs=1e-3)
                assert "".join(own["good"]).replace(" ", "") == pair.good.replace(" ", "")
                assert "".join(own["bad"]).replace(" ", "") == pair.bad.replace(" ", "")


def test_word_missing_in_one_sentence_keeps_its_place(evaluated_run):
    table = score_words(evaluated_run, "He lives in Paris.", "Him lives Paris.", [16])
    assert list(zip(table["good"], table["bad"], strict=True)) == [
        ("He", "Him"),
        ("lives", "lives"),
        ("in", ""),
        ("Paris", "Paris"),
        (".", "."),
    ]
    assert table["bad_score"][2] == 0


def test_sentence_longer_than_the_model_reads_is_reported(evaluated_run):
    longest = runs.read_config(runs.checkpoint(evaluated_run, 16), runs.Architecture).max_position_embeddings
    with pytest.raises(QueryError, match=f"reads {longest}"):
        score_words(evaluated_run, "a " * longest, "a", [16])
