"""Tests of minimal pairs: scores equal those of plain transformers, one masked piece at a time or from the left."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForPreTraining, PreTrainedTokenizerFast

from embryo_core import corpora, results, runs
from embryo_core.corpora.minimal_pairs import read_pairs
from embryo_core.engine.model import Model, load
from embryo_core.errors import CorpusError
from embryo_core.evaluation import evaluate
from embryo_core.metric import Limits
from embryo_core.metrics.minimal_pairs import MinimalPairs
from tests.conftest import SAMPLE_DATA
from tests.decoders import add_series
from tests.embryo_core.metrics.conftest import read


def plain_score(model: Model, sentence: str, whole_words: bool) -> float:
    """Compute the score of a sentence with the tokenizer and model of transformers, one pass per piece."""
    checkpoint = model.checkpoint
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(checkpoint.run.tokenizer / "tokenizer.json"))
    encoding = tokenizer(sentence, add_special_tokens=False)
    words, mask = encoding.word_ids(), tokenizer.convert_tokens_to_ids("[MASK]")
    cls, sep = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
    ids = torch.tensor([[cls, *encoding.input_ids, sep]])
    network = AutoModelForPreTraining.from_pretrained(checkpoint.path, dtype=torch.float32).eval()
    total = 0.0
    for i, word in enumerate(words):
        visible_ids = ids.clone()
        hidden = [j for j, other in enumerate(words) if j == i or (whole_words and j > i and other == word)]
        visible_ids[0, [1 + j for j in hidden]] = mask
        with torch.inference_mode():
            logits = network(visible_ids).prediction_logits[0, 1 + i]
        total += torch.log_softmax(logits.double(), -1)[ids[0, 1 + i]].item()
    return total


@pytest.mark.parametrize("pll", ["word-l2r", "plain"])
def test_scores_equal_one_masked_piece_at_a_time(trained_model, pll):
    """Every sentence of the sample is compared; some words have several pieces, so the forms of the score differ."""
    metric = MinimalPairs()
    scored_pairs = metric.compute(trained_model, read(metric, trained_model, pll=pll)).pairs
    pairs = read_pairs(SAMPLE_DATA["pairs"])
    assert [(pair.paradigm, pair.pair) for pair in scored_pairs] == [(pair.paradigm, pair.number) for pair in pairs]
    for one, pair in zip(scored_pairs, pairs, strict=True):
        expected = [plain_score(trained_model, text, pll == "word-l2r") for text in (pair.good, pair.bad)]
        assert [one.good, one.bad] == pytest.approx(expected, abs=1e-3)
        assert (one.good > one.bad) == (expected[0] > expected[1])


def test_score_forms_differ_only_for_words_of_several_pieces(trained_model):
    metric = MinimalPairs()
    data = read(metric, trained_model)
    by_word, plain = (
        metric.compute(trained_model, read(metric, trained_model, pll=pll)).pairs for pll in ("word-l2r", "plain")
    )
    single = [np.unique(data.sentences[i].words).size == data.sentences[i].words.size for i in data.good]
    assert 0 < sum(single) < len(single)
    for one, other, same in zip(by_word, plain, single, strict=True):
        assert (one.good == pytest.approx(other.good, abs=1e-4)) == same


def test_accuracy_counts_pairs_by_paradigm_phenomenon_and_set(trained_model):
    """Accuracy is the share of pairs whose good sentence has the higher score."""
    metric = MinimalPairs()
    findings = metric.compute(trained_model, read(metric, trained_model))
    scores = {score.group: score for score in findings.scores if score.metric == metric.name}
    assert {"nouns", "nouns/agreement", "nouns/agreement/subject_verb", "pairs/word_order/word_order"} <= scores.keys()
    for group, score in scores.items():
        own = [pair.good > pair.bad for pair in findings.pairs if f"{pair.paradigm}/".startswith(f"{group}/")]
        assert (score.n, score.value) == (len(own), pytest.approx(np.mean(own)))
    assert scores["nouns"].n == 10 and scores["nouns/agreement"].n == 7


def write(path: Path, *pairs: tuple[str, str]) -> Path:
    """Write pairs of one paradigm as JSON lines."""
    rows = [json.dumps({"sentence_good": good, "sentence_bad": bad}) + "\n" for good, bad in pairs]
    path.write_text("".join(rows), encoding="utf-8")
    return path


def test_tie_counts_half(trained_model, tmp_path):
    """The tokenizer does not distinguish the two sentences, so their scores are equal."""
    path = write(tmp_path / "case.jsonl", ("Rome is old.", "rome is old."))
    metric = MinimalPairs()
    findings = metric.compute(trained_model, read(metric, trained_model, path))
    (pair,) = findings.pairs
    assert pair.good == pair.bad
    values = {(score.metric, score.group.count("/")): (score.value, score.n) for score in findings.scores}
    assert values[metric.name, 2] == (0.5, 1) and values["minimal_pairs_ties", 2] == (1.0, 1)


def test_unscorable_pairs_are_left_out_and_counted(trained_model, tmp_path):
    """Their sentences are equal, longer than the model reads, or have words that the tokenizer cannot encode."""
    good = ("Rome is old.", "Rome are old.")
    pairs = [good, ("Rome.", "Rome."), ("Rome 中.", "Rome."), ("Rome " * 40 + ".", "Rome.")]
    source = corpora.open_source(write(tmp_path / "a.jsonl", *pairs), pll="word-l2r")
    data = MinimalPairs().read(trained_model.tokenizer, Limits(32), source)
    assert [pair.number for pair in data.pairs] == [0]
    assert sorted(data.summary["left_out"].values()) == [1, 1, 1] and "32 pieces" in data.summary["note"]
    assert "1 pair of 1 paradigm" in data.summary["note"] and "fewer than 10" in data.summary["note"]


def test_data_without_a_usable_pair_are_reported(trained_model, tmp_path):
    with pytest.raises(CorpusError, match="equal sentences"):
        read(MinimalPairs(), trained_model, write(tmp_path / "a.jsonl", ("Rome.", "Rome.")))


def test_limit_takes_first_pairs_of_each_paradigm(trained_model):
    data = read(MinimalPairs(), trained_model, limit=2)
    assert [pair.number for pair in data.pairs] == [0, 1] * 4


# === Decoders ===


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_decoder_scores_equal_plain_transformers(tmp_path, family):
    """Each piece is scored after those before it; without a token that opens a text, the first piece is not scored."""
    opened = family == "llama"
    run = add_series(tmp_path, family, (5,), opened, vocabulary=600)
    model = load(runs.checkpoint(run, 5))
    pairs = MinimalPairs().compute(model, read(MinimalPairs(), model)).pairs
    network = AutoModelForCausalLM.from_pretrained(model.checkpoint.path, dtype=torch.float32).eval()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(run.tokenizer / "tokenizer.json"))
    for one, pair in zip(pairs, read_pairs(SAMPLE_DATA["pairs"]), strict=True):
        expected = []
        for text in (pair.good, pair.bad):
            ids = tokenizer(text, add_special_tokens=False).input_ids
            ids = torch.tensor([[0] * opened + ids])  # 0 is the token that opens a text
            with torch.inference_mode():
                logits = network(ids).logits[0].double().log_softmax(-1)
            expected.append(sum(logits[i - 1, ids[0, i]].item() for i in range(1, ids.shape[1])))
        assert [one.good, one.bad] == pytest.approx(expected, abs=1e-3)


def test_decoder_is_evaluated_on_pairs(tmp_path):
    run = add_series(tmp_path, "gpt2", (5,), vocabulary=600)
    assert evaluate(run, {"pairs": SAMPLE_DATA["pairs"]}).computed == 1
    assert results.steps_by_metric(run)["minimal_pairs"] == {5}
