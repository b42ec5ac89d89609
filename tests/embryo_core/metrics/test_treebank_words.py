"""Tests of token reconstruction and mask prediction: counts equal those of the paper's procedure, word by word."""

from collections import Counter

import numpy as np
import pytest

from embryo_core import corpora, metrics, results, runs
from embryo_core.engine.model import load
from embryo_core.errors import CorpusError
from embryo_core.metric import Limits
from embryo_core.metrics.word_prediction import TokenReconstruction
from tests.conftest import copy_run
from tests.embryo_core.metrics.conftest import read, write_treebank

RECONSTRUCTION = TokenReconstruction()
BAND = {"rank 50-99": 2}  # river and town
NAMES = ("token_reconstruction", "mask_prediction")


def compute_metric(name, model):
    """Compute a metric on the sample."""
    (metric,) = metrics.get_metrics([name])
    return metric.compute(model, read(metric, model))


@pytest.mark.parametrize("name", NAMES)
def test_counts_equal_the_papers_procedure(trained_model, paper, sample, name):
    """For every word with every tag, hits and misses equal those of one sentence at a time."""
    expected = getattr(paper, name)(corpora.read_treebank(sample / "treebank.conllu"))
    counts = Counter()
    for row in compute_metric(name, trained_model).words:
        counts[row.tag, row.word, True] += row.correct
        counts[row.tag, row.word, False] += row.n - row.correct
    assert +counts == expected
    hits = sum(n for (_, _, hit), n in expected.items() if hit)
    assert hits > 30  # there is something to count


@pytest.mark.parametrize("name", NAMES)
def test_words_of_a_group_sum_to_its_score(trained_model, sample, tmp_path, name):
    """Words are read back from the store, for all groups and bands; "all" holds every tagged word."""
    run = copy_run(trained_model.checkpoint.run, tmp_path)
    findings = compute_metric(name, trained_model)
    results.write(runs.checkpoint(run, 16), name, findings)
    for score in findings.scores:
        words = results.read_words(run, name, score.group, step=16)
        assert words["n"].sum() == score.n
        assert words["correct"].sum() / words["n"].sum() == score.value
    n = {score.group: score.n for score in findings.scores}
    assert n["all"] == sum(len(example.targets) for example in corpora.read_treebank(sample / "treebank.conllu"))
    assert n["rank 50-99"] < n["all"]


def test_scores_have_the_groups_of_the_paper(trained_model):
    """These are the nine categories and the single tags of Figures 1, 7 and 8."""
    groups = {score.group for score in compute_metric("token_reconstruction", trained_model).scores}
    nine = "conjunction, determiner, preposition, adjective, adverb, verb, noun, proper noun, pronoun".split(", ")
    assert {*nine, "NN", "NNS", "JJ", "VBD", "VBG", "VBN", "VBP", "VBZ", "all"} <= groups


def test_frequency_bands_follow_training_ranks(trained_model):
    """Words at ranks 50 to 99 of the pretraining counts form a band, whatever their case in the treebank."""
    data = read(RECONSTRUCTION, trained_model)
    members = [word for word, is_in in zip(data.words, data.groups["rank 50-99"], strict=True) if is_in]
    assert members and {word.lower() for word in members} <= {"river", "town"}
    assert "rank 300-349" not in data.groups


def test_ranks_start_at_1_and_bands_include_both_ends(trained_model, tmp_path):
    """The word in line 50 of frequencies.tsv is the first of its band, and the word in line 99 the last."""
    words = {49: "the", 50: "river", 99: "town", 100: "dog"}
    (tmp_path / "frequencies.tsv").write_text("".join(f"{words.get(rank, f'w{rank}')}\t9\n" for rank in range(1, 101)))
    path = write_treebank(tmp_path / "a.conllu", *((word, "NN") for word in words.values()))
    limits = Limits(trained_model.max_positions, tmp_path / "frequencies.tsv")
    data = RECONSTRUCTION.read(trained_model.tokenizer, limits, corpora.open_source(path))
    assert data.bands == [None, "rank 50-99", "rank 50-99", None]
    assert data.groups["rank 50-99"].tolist() == [False, True, True, False]


def test_rank_is_of_the_whole_word_in_any_case(trained_model, tmp_path):
    """A compound that pretraining counted as several words does not get the rank of the first."""
    (tmp_path / "frequencies.tsv").write_text("".join(f"w{i}\t9\n" for i in range(60)) + "river\t8\ntown\t7\n")
    words = ("River", "town", "river-town", "TOWN")
    assert [len(trained_model.tokenizer.split_words(word)) for word in words] == [1, 1, 3, 1]
    path = write_treebank(tmp_path / "a.conllu", *((word, "NN") for word in words))
    limits = Limits(trained_model.max_positions, tmp_path / "frequencies.tsv")
    data = RECONSTRUCTION.read(trained_model.tokenizer, limits, corpora.open_source(path))
    assert data.bands == ["rank 50-99", "rank 50-99", None, "rank 50-99"]


def test_possessive_pronouns_are_pronouns(trained_model, tmp_path):
    """Penn's PRP$ counts as PRP does; the possessive ending POS does not."""
    path = write_treebank(tmp_path / "a.conllu", ("she", "PRP"), ("her", "PRP$"), ("'s", "POS"))
    assert read(RECONSTRUCTION, trained_model, path).groups["pronoun"].tolist() == [True, True, False]


def test_run_without_frequencies_has_no_bands(own_run):
    """The other groups remain if pretraining left no frequencies.tsv."""
    (own_run.path / "frequencies.tsv").unlink(missing_ok=True)
    groups = read(RECONSTRUCTION, load(runs.checkpoint(own_run, 0))).groups
    assert groups and not [group for group in groups if group.startswith("rank")]


def test_limit_takes_first_sentences(trained_model, sample):
    """The summary has the number of sentences read."""
    data = read(RECONSTRUCTION, trained_model, limit=3)
    assert (len(data.sentences), data.summary["sentences"]) == (3, 3)
    first = corpora.read_treebank(sample / "treebank.conllu")[0]
    assert tuple(data.words[: len(first.targets)]) == first.words


def test_sentences_beyond_model_positions_are_left_out_and_counted(trained_model, tmp_path):
    """64 positions hold [CLS], [SEP] and 62 pieces; a sentence with one more is left out."""
    path = write_treebank(tmp_path / "long.conllu", *[("a", "DT")] * 62, None, *[("a", "DT")] * 63)
    data = read(RECONSTRUCTION, trained_model, path)
    assert [len(ids) for ids in data.sentences] == [64]
    assert data.summary["too_long"] == 1
    assert "1 longer than 64 pieces were left out" in data.summary["note"]


def test_word_without_pieces_is_left_out(trained_model, tmp_path):
    """A zero-width space is a token of some treebanks, but the tokenizer drops it."""
    path = write_treebank(tmp_path / "a.conllu", ("the", "DT"), ("\u200b", "NN"), ("river", "NN"))
    data = read(RECONSTRUCTION, trained_model, path)
    assert data.words == ["the", "river"]
    assert np.array_equal(
        data.end - data.start, [len(trained_model.tokenizer.encode_words([w]).ids) for w in data.words]
    )


def test_sentence_without_pieces_is_left_out(trained_model, tmp_path):
    """One piece is enough; a sentence of [CLS] and [SEP] alone is not counted as too long."""
    words = [("\u200b", "NN"), None, ("the", "DT"), None, ("a", "DT"), ("the", "DT")]
    path = write_treebank(tmp_path / "a.conllu", *words)
    data = read(RECONSTRUCTION, trained_model, path)
    assert [len(ids) for ids in data.sentences] == [3, 4]
    assert (data.summary["sentences"], data.summary["words"], data.summary["too_long"]) == (2, 3, 0)


def test_unknown_kinds_of_tags_are_refused(trained_model, tmp_path):
    """Labels of another edge-probing task are not parts of speech, and German tags are neither Penn's nor universal."""
    (tmp_path / "srl.jsonl").write_text('{"text": "It rained", "targets": [{"span1": [1, 2], "label": "ARG1"}]}\n')
    german = write_treebank(tmp_path / "a.conllu", ("ich", "PPER"), ("sehe", "VVFIN"), ("das", "ART"), ("Haus", "NN"))
    for path, tag in ((tmp_path / "srl.jsonl", "ARG1"), (german, "VVFIN")):
        with pytest.raises(CorpusError, match=f"neither Penn's nor universal .*{tag}"):
            read(RECONSTRUCTION, trained_model, path)


def test_universal_tags_form_separate_groups(trained_model, tmp_path):
    """The groups are named after the tags; no Penn group has these words."""
    path = write_treebank(tmp_path / "a.conllu", ("the", "DET"), ("river", "NOUN"), ("town", "NOUN"), (".", "PUNCT"))
    groups = read(RECONSTRUCTION, trained_model, path).groups
    assert {name: members.sum() for name, members in groups.items()} == {"DET": 1, "NOUN": 2} | BAND


def test_untagged_treebank_is_read_only_by_metrics_of_sentences(trained_model, tmp_path):
    """Attention and positions need no tags; scores of words do."""
    path = write_treebank(tmp_path / "a.conllu", *[("the", "_"), ("river", "_"), ("town", "_")])
    with pytest.raises(CorpusError, match="no part-of-speech tag"):
        read(RECONSTRUCTION, trained_model, path)
    for metric in metrics.get_metrics(["attention", "positions"]):
        assert read(metric, trained_model, path).summary["sentences"] == 1
