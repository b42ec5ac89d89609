"""Tests of word surprisal: values equal those of plain transformers, piece by piece, masked or from the left."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForPreTraining, PreTrainedTokenizerFast

from embryo_core import corpora, results, runs
from embryo_core.corpora.word_list import find_occurrences, read_sentences, read_word_list
from embryo_core.engine.model import Model, load
from embryo_core.errors import CorpusError, DatasetMismatch
from embryo_core.evaluation import evaluate
from embryo_core.metric import Limits, Source
from embryo_core.metrics.word_surprisal import ABSENT_REASON, WordSurprisal
from tests.conftest import SAMPLE_DATA
from tests.decoders import add_series
from tests.embryo_core.metrics.conftest import read


def plain_surprisal(model: Model, sentence: str, start: int, end: int) -> float | None:
    """Return the surprisal in bits of characters start to end, one pass per piece; None without a context."""
    checkpoint, decoder = model.checkpoint, "next_words" in model.capabilities
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(checkpoint.run.tokenizer / "tokenizer.json"))
    encoding = tokenizer(sentence, add_special_tokens=False, return_offsets_mapping=True)
    offsets = [(e - len(sentence[s:e].lstrip()), e) for s, e in encoding.offset_mapping]
    own = [i for i, (first, last) in enumerate(offsets) if first < end and max(last, first + 1) > start]
    begin, finish = model.tokenizer.begin.tolist(), model.tokenizer.end.tolist()
    ids, total = torch.tensor([[*begin, *encoding.input_ids, *finish]]), 0.0
    model_class = AutoModelForCausalLM if decoder else AutoModelForPreTraining
    network = model_class.from_pretrained(checkpoint.path, dtype=torch.float32).eval()
    for i in own:
        place = len(begin) + i
        visible_ids = ids[:, :place] if decoder else ids.clone()
        if not visible_ids.shape[1]:
            return None
        if not decoder:
            visible_ids[0, [len(begin) + j for j in own if j >= i]] = model.tokenizer.mask_id
        with torch.inference_mode():
            output = network(visible_ids)
        logits = output.logits[0, -1] if decoder else output.prediction_logits[0, place]
        total -= torch.log_softmax(logits.double(), -1)[ids[0, place]].item() / np.log(2)
    return total


def check_against_transformers(model: Model) -> None:
    """Check the mean and each occurrence of every word of the sample's list."""
    metric = WordSurprisal()
    surprisals = {word.word: word for word in metric.compute(model, read(metric, model)).surprisals}
    sentences, words = read_sentences(SAMPLE_DATA["text"]), read_word_list(SAMPLE_DATA["words"])
    assert {"the", "river", "opened"} <= surprisals.keys() and "ice cream" not in surprisals
    for word, places in find_occurrences(words, sentences).items():
        values = [plain_surprisal(model, sentences[number], start, end) for number, start, end in places]
        values = [value for value in values if value is not None]
        if word in surprisals:
            own = np.frombuffer(surprisals[word].occurrences, np.float16)
            assert surprisals[word].n == len(values) == len(own)
            assert surprisals[word].surprisal == pytest.approx(np.mean(values), abs=1e-3)
            assert sorted(own) == pytest.approx(sorted(values), rel=1e-3)
        else:
            assert not values


def test_albert_surprisals_equal_plain_transformers(trained_model):
    check_against_transformers(trained_model)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_decoder_surprisals_equal_plain_transformers(tmp_path, family):
    """GPT-2 has no token before a text, so words at its start are left out."""
    run = add_series(tmp_path, family, (5,), family == "llama", vocabulary=600)
    check_against_transformers(load(runs.checkpoint(run, 5)))


def test_bert_surprisals_equal_plain_transformers(bert):
    check_against_transformers(bert)


# === Selection of occurrences ===


def word_source(tmp_path: Path, words: str, text: str, occurrences: int = 64) -> Source:
    """Return a list of words and a text as the metric receives them."""
    (tmp_path / "list.txt").write_text(words.replace(" ", "\n"), encoding="utf-8")
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    source = corpora.open_source(tmp_path / "list.txt", occurrences=occurrences)
    return replace(source, second=corpora.open_source(tmp_path / "text.txt"))


def test_drawn_occurrences_do_not_depend_on_other_words(trained_model, tmp_path):
    """Eight occurrences of a word are drawn from the whole text, the same ones if the list has a second word."""
    text = "".join(f"Rome is {'very ' * (i % 7)}old.\n" for i in range(70))
    one = WordSurprisal().read(trained_model.tokenizer, Limits(64), word_source(tmp_path, "is", text, occurrences=8))
    two = WordSurprisal().read(
        trained_model.tokenizer, Limits(64), word_source(tmp_path, "old is", text, occurrences=8)
    )
    own = np.repeat([word.word == "is" for word in two.words], two.counts)
    lengths = [
        [len(data.sentences[i]) for i in which] for data, which in ((one, one.sentence), (two, two.sentence[own]))
    ]
    assert one.counts.tolist() == [8] and two.counts.tolist() == [8, 8]
    assert lengths[0] == lengths[1] and len(set(lengths[0])) > 2


def test_unmeasurable_words_are_left_out_and_counted(trained_model, tmp_path):
    """They never occur, occur in sentences that are too long, or cannot be encoded by the tokenizer."""
    text = "The river is old.\nThe river 中.\nThe door" + " is old" * 40 + ".\n"
    data = WordSurprisal().read(
        trained_model.tokenizer, Limits(32), word_source(tmp_path, "river door zoo 中 old", text)
    )
    assert {word.word: n for word, n in zip(data.words, data.counts.tolist(), strict=True)} == {"river": 2, "old": 1}
    left_out = data.summary["left_out"]
    assert left_out[ABSENT_REASON] == ["zoo"] and sorted(chain(*left_out.values())) == ["door", "zoo", "中"]
    assert "32 pieces" in data.summary["note"] and "41 occurrences" in data.summary["note"]
    assert [word.word for word in data.words] == ["river", "old"]


@pytest.mark.parametrize("text", ["The river is  old.", "The river is    old.", "The river is \t old."])
def test_only_the_last_of_several_spaces_belongs_to_a_word(tmp_path, text):
    """GPT-2's tokenizer has a piece "Ġ" for each space before the last one, and pieces for a tab or no-break space."""
    tokenizer = load(runs.checkpoint(add_series(tmp_path, "gpt2", (5,), vocabulary=600), 5)).tokenizer
    (tmp_path / "words").mkdir()
    pieces = []
    for sentence in (text, "The river is old.", "The river is\u00a0old."):
        data = WordSurprisal().read(
            tokenizer, Limits(64, decoder=True), word_source(tmp_path / "words", "old", sentence)
        )
        pieces.append(tokenizer.pieces(data.sentences[0][data.first[0] : data.end[0]]))
    assert pieces[0] == pieces[1] and "Ġ" in tokenizer.pieces(tokenizer.encode_start(text))
    assert "".join(pieces[2]) == "old"


def test_text_without_any_listed_word_is_reported(trained_model, tmp_path):
    with pytest.raises(CorpusError, match="1 word never in the text"):
        WordSurprisal().read(trained_model.tokenizer, Limits(32), word_source(tmp_path, "zoo", "Rome is old.\n"))


def test_word_list_without_a_text_is_refused(own_run):
    """The error names the option that gives a text."""
    with pytest.raises(CorpusError, match="--text PATH"):
        evaluate(own_run, {"words": SAMPLE_DATA["words"]}, ["word_surprisal"])


def test_limit_applies_to_pairs_and_not_to_the_text(own_run):
    """Pairs and words can therefore be evaluated at once, and surprisals do not depend on --limit."""
    data = {name: SAMPLE_DATA[name] for name in ("pairs", "words", "text")}
    assert evaluate(own_run, data, ["minimal_pairs", "word_surprisal"], [8], limit=1).computed == 2
    noted = results.read_sources(own_run)
    assert noted["word_surprisal"]["limit"] is None and noted["minimal_pairs"]["limit"] == 1
    assert f"{len(read_sentences(data['text'])):,} sentences" in noted["word_surprisal"]["note"]
    assert evaluate(own_run, data, ["word_surprisal"], [16]).computed == 1


def test_results_of_another_text_are_refused(own_run, tmp_path):
    """Stored results hold the words of the list and no other text; their score is the mean surprisal."""
    data = {name: SAMPLE_DATA[name] for name in ("words", "text")}
    assert evaluate(own_run, data, ["word_surprisal"], [8]).computed == 1
    (tmp_path / "other.txt").write_text("The river is old.\n", encoding="utf-8")
    with pytest.raises(DatasetMismatch):
        evaluate(own_run, data | {"text": tmp_path / "other.txt"}, ["word_surprisal"], [16])
    stored = b"".join(file.read_bytes() for file in own_run.results.rglob("*") if file.is_file())
    assert b"capital of France" not in stored
    table = results.read_surprisals(own_run)
    assert set(table["word"]) <= {word.word for word in read_word_list(SAMPLE_DATA["words"])}
    scores = results.read_scores(own_run, "word_surprisal").set_index("group")["value"]
    assert scores["all"] == pytest.approx(table["surprisal"].mean())
