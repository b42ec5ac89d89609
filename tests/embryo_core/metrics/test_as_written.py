"""Tests of words in running text, masked one at a time by plain transformers, and of words tokenized on their own."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, ModernBertConfig, ModernBertForMaskedLM, PreTrainedTokenizerFast

from embryo_core import corpora, metrics, results, runs
from embryo_core.engine.model import Model, load
from embryo_core.errors import CorpusError, DatasetMismatch
from embryo_core.evaluation import evaluate
from embryo_core.figures.figure import describe_datasets, describe_readings
from embryo_core.metrics.treebank_words import AS_WRITTEN
from embryo_core.sources import add
from tests.conftest import SAMPLE_DATA, copy_run
from tests.embryo_core.metrics.conftest import read, write_treebank
from tests.embryo_core.sources.conftest import write_byte_level

(MASK_PREDICTION,) = metrics.get_metrics(["mask_prediction"])


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Path]:
    """Return a ModernBERT with a byte-level tokenizer, trained on the sample's sentences as written, and its folder."""
    folder = write_byte_level(tmp_path_factory.mktemp("modernbert"))
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    rows = tokenizer([text_of(example)[0] for example in sentences()], padding=True, return_tensors="pt")
    torch.manual_seed(0)
    sizes = {"vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    more = {"num_attention_heads": 2, "max_position_embeddings": 64, "pad_token_id": tokenizer.pad_token_id}
    model = ModernBertForMaskedLM(ModernBertConfig(**sizes, **more, initializer_range=0.1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(60):
        masked = torch.where(torch.rand(rows.input_ids.shape) < 0.4, tokenizer.mask_token_id, rows.input_ids)
        logits = model(masked, attention_mask=rows.attention_mask).logits
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), rows.input_ids.flatten(), ignore_index=tokenizer.pad_token_id
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EMBRYO_DATA", str(folder / "data"))
        patch.setenv("XDG_CONFIG_HOME", str(folder / "settings"))
        return load(runs.checkpoint(add([f"5:{folder}"], "modern", copy=True).run, 5)), folder


def sentences() -> list:
    """Return the sample's sentences."""
    return corpora.read_treebank(SAMPLE_DATA["treebank"])


def text_of(example) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of a sentence and the (start, end) characters of each word."""
    text, places = "", []
    for word, blank in zip(example.words, example.blanks or [True] * len(example.words), strict=True):
        places.append((len(text), len(text) + len(word)))
        text += word + " " * blank
    return text.rstrip(), places


def slow_counts(folder: Path) -> dict[str, list[int]]:
    """Return [n, hits] of each word form, masking one word at a time in the running text."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), ModernBertForMaskedLM.from_pretrained(folder).eval()
    counts: dict[str, list[int]] = {}
    for example in sentences():
        text, places = text_of(example)
        encoded = tokenizer(text, return_offsets_mapping=True)
        for word, (start, end) in zip(example.words, places, strict=True):
            pieces = [i for i, (a, b) in enumerate(encoded.offset_mapping) if a < end and b > start]
            ids = torch.tensor([encoded.input_ids])
            ids[0, pieces] = tokenizer.mask_token_id
            with torch.no_grad():
                best = model(ids).logits[0].argmax(-1)
            count = counts.setdefault(word, [0, 0])
            count[0] += 1
            count[1] += all(best[i] == encoded.input_ids[i] for i in pieces)
    return counts


def test_running_text_counts_equal_a_slow_loop(byte_level):
    """Hits and misses of every word are compared; "." is predicted in running text only, never as a word on its own."""
    model, folder = byte_level
    metric_counts: dict[bool, dict[str, list[int]]] = {}
    for as_written in (True, False):
        data = read(MASK_PREDICTION, model, **{AS_WRITTEN.name: as_written})
        counts = metric_counts.setdefault(as_written, {})
        for row in MASK_PREDICTION.compute(model, data).words:
            count = counts.setdefault(row.word, [0, 0])
            count[0] += row.n
            count[1] += row.correct
    assert metric_counts[True] == slow_counts(folder)
    assert metric_counts[True]["."][1] > 0 and metric_counts[False]["."][1] == 0
    assert metric_counts[True]["."][0] == metric_counts[False]["."][0]


def test_word_has_every_piece_that_overlaps_it(byte_level):
    """A piece across two words belongs to both, and the blank before a word to that word."""
    tokenizer = byte_level[0].tokenizer
    words, blanks = ("The", "riv", "er", "runs", "."), (True, False, True, False, True)
    encoding = tokenizer.encode_written(words, blanks)
    assert encoding.ids.tolist() == tokenizer.encode_text("The river runs.")[1:-1].tolist()
    pieces = [tokenizer.pieces(encoding.ids[start:end]) for start, end in encoding.spans]
    assert ["".join(own).replace("Ġ", " ") for own in pieces] == ["The", " river", " river", " runs", "."]


@pytest.mark.parametrize("words", [("The", "old", "baker"), ("Ａ", "\u200b", "ﬁne", "town"), ("\u200b",)])
def test_sentencepiece_words_have_the_same_pieces_in_running_text(tiny_run, words):
    """The normaliser changes or drops some characters; pieces equal those of words encoded on their own."""
    from embryo_core.tokenizers.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(tiny_run)
    together, apart = tokenizer.encode_written(words), tokenizer.encode_words(words)
    assert np.array_equal(together.ids, apart.ids) and np.array_equal(together.word_of_piece, apart.word_of_piece)
    assert np.array_equal(np.diff(together.spans), np.diff(apart.spans))


def test_treebank_without_blanks_has_no_running_text(trained_model, tmp_path):
    """The results would be those of words on their own under another name."""
    path = write_treebank(tmp_path / "a.conllu", ("the", "DT"), ("river", "NN"))
    with pytest.raises(CorpusError, match=r"SpaceAfter=No.*--as-written"):
        read(MASK_PREDICTION, trained_model, path, **{AS_WRITTEN.name: True})


def test_results_of_both_tokenizations_do_not_mix(tiny_run, tmp_path):
    """The note names running text, a comparison warns, and results older than the option are of single words."""
    alone, written = (copy_run(tiny_run, tmp_path / name) for name in ("a", "b"))
    for run, options in ((alone, None), (written, {AS_WRITTEN.name: True})):
        evaluate(run, SAMPLE_DATA, ["mask_prediction"], [16], limit=3, options=options)
    notes = [results.read_sources(run)["mask_prediction"]["note"] for run in (alone, written)]
    assert ["running text" in note for note in notes] == [False, True]
    with pytest.raises(DatasetMismatch, match="as-written"):
        evaluate(written, SAMPLE_DATA, ["mask_prediction"], [8], limit=3)
    path = alone.results / "sources.json"
    path.write_text(path.read_text().replace('"as-written": false', '"other": false'))
    assert AS_WRITTEN.name not in results.read_sources(alone)["mask_prediction"]
    assert evaluate(alone, SAMPLE_DATA, ["mask_prediction"], [8], limit=3).computed == 1
    assert describe_readings([alone], "mask_prediction") == describe_readings([written], "mask_prediction") == ""
    renamed = runs.read_run(alone.path.rename(alone.path.with_name("alone")))
    assert "tiny read" in describe_readings([renamed, written], "mask_prediction")
    assert not describe_datasets([renamed, written], "mask_prediction")
