"""Token reconstruction and mask prediction count what the paper's procedure counts, word for word."""

from collections import Counter

import numpy as np
import pytest

from embryo_core import corpora, metrics, results, runs
from embryo_core.engine.model import load
from embryo_core.errors import CorpusError
from embryo_core.metric import Limits
from embryo_core.metrics.token_reconstruction import TokenReconstruction
from tests.conftest import copy_run
from tests.embryo_core.metrics.conftest import read, write_treebank

RECONSTRUCTION = TokenReconstruction()
BAND = {"rank 50-99": 2}  # river and town
NAMES = ("token_reconstruction", "mask_prediction")


def found(name, model):
    """Compute a metric."""
    (metric,) = metrics.get_metrics([name])
    return metric.compute(model, read(metric, model))


@pytest.mark.parametrize("name", NAMES)
def test_counts_equal_the_papers_procedure(trained, paper, sample, name):
    """For every word with every tag the number of hits and misses is that of one sentence at a time."""
    expected = getattr(paper, name)(corpora.read_treebank(sample / "treebank.conllu"))
    counts = Counter()
    for row in found(name, trained).words:
        counts[row.tag, row.word, True] += row.correct
        counts[row.tag, row.word, False] += row.n - row.correct
    assert +counts == expected
    hits = sum(n for (_, _, hit), n in expected.items() if hit)
    assert hits > 30  # there is something to count


@pytest.mark.parametrize("name", NAMES)
def test_the_words_of_every_group_sum_to_its_score(trained, sample, tmp_path, name):
    """As stored and read back, for parts of speech, verb forms, bands and all; "all" holds every tagged word."""
    run = copy_run(trained.checkpoint.run, tmp_path)
    findings = found(name, trained)
    results.write(runs.checkpoint(run, 16), name, findings)
    for score in findings.scores:
        words = results.read_words(run, name, score.group, step=16)
        assert words["n"].sum() == score.n
        assert words["correct"].sum() / words["n"].sum() == score.value
    n = {score.group: score.n for score in findings.scores}
    assert n["all"] == sum(len(example.targets) for example in corpora.read_treebank(sample / "treebank.conllu"))
    assert n["rank 50-99"] < n["all"]


def test_the_papers_nine_categories_and_single_tags_are_there(trained):
    """Groups of Figures 1, 7 and 8."""
    groups = {score.group for score in found("token_reconstruction", trained).scores}
    nine = "conjunction, determiner, preposition, adjective, adverb, verb, noun, proper noun, pronoun".split(", ")
    assert {*nine, "NN", "NNS", "JJ", "VBD", "VBG", "VBN", "VBP", "VBZ", "all"} <= groups


def test_bands_follow_the_ranks_of_the_training_corpus(trained):
    """Words counted by pretraining at ranks 50 to 99 form a band, however they are cased in the treebank."""
    data = read(RECONSTRUCTION, trained)
    members = [word for word, is_in in zip(data.words, data.groups["rank 50-99"], strict=True) if is_in]
    assert members and {word.lower() for word in members} <= {"river", "town"}
    assert "rank 300-349" not in data.groups


def test_ranks_count_from_1_and_bands_hold_both_ends(trained, tmp_path):
    """The word in line 50 of frequencies.tsv is the first of its band, that in line 99 the last."""
    words = {49: "the", 50: "river", 99: "town", 100: "dog"}
    (tmp_path / "frequencies.tsv").write_text("".join(f"{words.get(rank, f'w{rank}')}\t9\n" for rank in range(1, 101)))
    path = write_treebank(tmp_path / "a.conllu", *((word, "NN") for word in words.values()))
    limits = Limits(trained.max_positions, tmp_path / "frequencies.tsv")
    data = RECONSTRUCTION.read(trained.tokenizer, limits, corpora.open_source(path))
    assert data.bands == [None, "rank 50-99", "rank 50-99", None]
    assert data.groups["rank 50-99"].tolist() == [False, True, True, False]


def test_a_word_has_the_rank_of_what_pretraining_counted(trained, tmp_path):
    """However it is cased; one that the tokenizer cuts into several has not that of its first part."""
    (tmp_path / "frequencies.tsv").write_text("".join(f"w{i}\t9\n" for i in range(60)) + "river\t8\ntown\t7\n")
    words = ("River", "town", "river-town", "TOWN")
    assert [len(trained.tokenizer.cut(word)) for word in words] == [1, 1, 3, 1]
    path = write_treebank(tmp_path / "a.conllu", *((word, "NN") for word in words))
    limits = Limits(trained.max_positions, tmp_path / "frequencies.tsv")
    data = RECONSTRUCTION.read(trained.tokenizer, limits, corpora.open_source(path))
    assert data.bands == ["rank 50-99", "rank 50-99", None, "rank 50-99"]


def test_possessive_pronouns_are_pronouns(trained, tmp_path):
    """Penn's PRP$ as well as PRP; possessive endings are not."""
    path = write_treebank(tmp_path / "a.conllu", ("she", "PRP"), ("her", "PRP$"), ("'s", "POS"))
    assert read(RECONSTRUCTION, trained, path).groups["pronoun"].tolist() == [True, True, False]


def test_without_counts_there_are_no_bands(own_run):
    """A run whose pretraining left no frequencies.tsv has all groups but the bands."""
    (own_run.path / "frequencies.tsv").unlink(missing_ok=True)
    groups = read(RECONSTRUCTION, load(runs.checkpoint(own_run, 0))).groups
    assert groups and not [group for group in groups if group.startswith("rank")]


def test_a_limit_takes_the_first_sentences(trained, sample):
    """And says so in the number of sentences."""
    data = read(RECONSTRUCTION, trained, limit=3)
    assert (len(data.sentences), data.summary["sentences"]) == (3, 3)
    first = corpora.read_treebank(sample / "treebank.conllu")[0]
    assert tuple(data.words[: len(first.targets)]) == first.words


def test_sentences_beyond_the_models_positions_are_left_out_and_counted(trained, tmp_path):
    """64 positions hold [CLS], [SEP] and 62 pieces; a sentence with one more is left out."""
    path = write_treebank(tmp_path / "long.conllu", *[("a", "DT")] * 62, None, *[("a", "DT")] * 63)
    data = read(RECONSTRUCTION, trained, path)
    assert [len(ids) for ids in data.sentences] == [64]
    assert data.summary["too_long"] == 1
    assert "1 longer than 64 pieces were left out" in data.summary["note"]


def test_a_word_without_pieces_is_not_judged(trained, tmp_path):
    """A zero-width space is a token of some treebanks, and nothing to the tokenizer."""
    path = write_treebank(tmp_path / "a.conllu", ("the", "DT"), ("\u200b", "NN"), ("river", "NN"))
    data = read(RECONSTRUCTION, trained, path)
    assert data.words == ["the", "river"]
    assert np.array_equal(data.end - data.start, [len(trained.tokenizer.encode_words([w]).ids) for w in data.words])


def test_a_sentence_has_a_piece_or_is_left_out(trained, tmp_path):
    """One is enough; nothing but [CLS] and [SEP] is no sentence, and is not counted as too long."""
    words = [("\u200b", "NN"), None, ("the", "DT"), None, ("a", "DT"), ("the", "DT")]
    path = write_treebank(tmp_path / "a.conllu", *words)
    data = read(RECONSTRUCTION, trained, path)
    assert [len(ids) for ids in data.sentences] == [3, 4]
    assert (data.summary["sentences"], data.summary["words"], data.summary["too_long"]) == (2, 3, 0)


def test_tags_of_another_kind_are_refused(trained, tmp_path):
    """The labels of another edge-probing task are no parts of speech, nor are German tags."""
    (tmp_path / "srl.jsonl").write_text('{"text": "It rained", "targets": [{"span1": [1, 2], "label": "ARG1"}]}\n')
    german = write_treebank(tmp_path / "a.conllu", ("ich", "PPER"), ("sehe", "VVFIN"), ("das", "ART"), ("Haus", "NN"))
    for path, tag in ((tmp_path / "srl.jsonl", "ARG1"), (german, "VVFIN")):
        with pytest.raises(CorpusError, match=f"neither Penn's nor universal .*{tag}"):
            read(RECONSTRUCTION, trained, path)


def test_universal_tags_have_groups_of_their_own(trained, tmp_path):
    """Named as the tags; no group of Penn's has these words."""
    path = write_treebank(tmp_path / "a.conllu", ("the", "DET"), ("river", "NOUN"), ("town", "NOUN"), (".", "PUNCT"))
    groups = read(RECONSTRUCTION, trained, path).groups
    assert {name: members.sum() for name, members in groups.items()} == {"DET": 1, "NOUN": 2} | BAND


def test_words_without_tags_cannot_be_scored_and_their_sentences_are_read(trained, tmp_path):
    """Attention and positions measure sentences, whatever their tags."""
    path = write_treebank(tmp_path / "a.conllu", *[("the", "_"), ("river", "_"), ("town", "_")])
    with pytest.raises(CorpusError, match="no part-of-speech tag"):
        read(RECONSTRUCTION, trained, path)
    for metric in metrics.get_metrics(["attention", "positions"]):
        assert read(metric, trained, path).summary["sentences"] == 1
