"""Surprisals of words are those of plain transformers: piece by piece, masked or from the left."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForPreTraining, PreTrainedTokenizerFast

from embryo_core import runs
from embryo_core.corpora.word_list import find_occurrences, read_sentences, read_word_list
from embryo_core.engine.model import Model, load
from embryo_core.metrics.word_surprisal import WordSurprisal
from tests.conftest import SAMPLE_DATA
from tests.decoders import add_series
from tests.embryo_core.metrics.conftest import read


def plain_surprisal(model: Model, sentence: str, start: int, end: int) -> float | None:
    """Compute the surprisal of the characters of a sentence by transformers, a pass for each piece."""
    checkpoint, decoder = model.checkpoint, "next_words" in model.gives
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(checkpoint.run.tokenizer / "tokenizer.json"))
    encoding = tokenizer(sentence, add_special_tokens=False, return_offsets_mapping=True)
    offsets = [(e - len(sentence[s:e].lstrip()), e) for s, e in encoding.offset_mapping]
    own = [i for i, (first, last) in enumerate(offsets) if first < end and max(last, first + 1) > start]
    begin, finish = model.tokenizer.begin.tolist(), model.tokenizer.end.tolist()
    ids, total = torch.tensor([[*begin, *encoding.input_ids, *finish]]), 0.0
    made = AutoModelForCausalLM if decoder else AutoModelForPreTraining
    network = made.from_pretrained(checkpoint.path, dtype=torch.float32).eval()
    for i in own:
        place = len(begin) + i
        seen = ids[:, :place] if decoder else ids.clone()
        if not seen.shape[1]:
            return None
        if not decoder:
            seen[0, [len(begin) + j for j in own if j >= i]] = model.tokenizer.mask_id
        with torch.inference_mode():
            found = network(seen)
        logits = found.logits[0, -1] if decoder else found.prediction_logits[0, place]
        total -= torch.log_softmax(logits.double(), -1)[ids[0, place]].item() / np.log(2)
    return total


def check_against_transformers(model: Model) -> None:
    """Compare every word of the sample's list: its mean, and each occurrence."""
    metric = WordSurprisal()
    found = {one.word: one for one in metric.compute(model, read(metric, model)).surprisals}
    sentences, words = read_sentences(SAMPLE_DATA["text"]), read_word_list(SAMPLE_DATA["words"])
    assert {"the", "river", "opened"} <= found.keys() and "ice cream" not in found
    for word, places in find_occurrences(words, sentences).items():
        values = [plain_surprisal(model, sentences[number], start, end) for number, start, end in places]
        values = [value for value in values if value is not None]
        if word in found:
            own = np.frombuffer(found[word].occurrences, np.float16)
            assert found[word].n == len(values) == len(own)
            assert found[word].surprisal == pytest.approx(np.mean(values), abs=1e-3)
            assert sorted(own) == pytest.approx(sorted(values), rel=1e-3)
        else:
            assert not values


def test_surprisals_of_an_albert_are_those_of_transformers(trained):
    check_against_transformers(trained)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_surprisals_of_a_decoder_are_those_of_transformers(tmp_path, family):
    """Of the GPT-2, without a token before a text, words at its start are left out."""
    run = add_series(tmp_path, family, (5,), family == "llama", vocabulary=600)
    check_against_transformers(load(runs.checkpoint(run, 5)))
