"""The run's card says what run.json says, and nothing where run.json is silent."""

from dataclasses import replace

from app.views import card
from embryo_core.types import Run


def test_the_card_tells_sizes_batches_and_corpus(tiny_run: Run) -> None:
    """Settings and corpus are told in the field's own words."""
    config = {
        "num_hidden_layers": 6,
        "hidden_size": 192,
        "vocab_size": 8000,
        "batch_size": 8,
        "sequence_length": 128,
        "short_steps": 19_000,
        "short_batch_size": 16,
        "short_sequence_length": 64,
        "masked_share": 0.15,
        "max_ngram": 3,
    }
    corpus = {"sources": [{"name": "a.txt"}, {"name": "b.txt"}], "train": {"documents": 12_000, "tokens": 1_500_000}}
    rows = dict(card.describe(replace(tiny_run, config=config, corpus=corpus)))
    assert rows["Size"] == "6 layers · 192 hidden"
    assert rows["Batches"] == "16 × 64 tokens for 19,000 updates, then 8 × 128 tokens"
    assert rows["Corpus"] == "12 k documents, 1.5 M tokens, 2 files (a.txt, …)"
    assert rows["Masking"] == "15% of the tokens, whole words, n-grams up to 3"
    assert "Held out" not in rows


def test_single_pieces_and_notes_are_reported(tiny_run: Run) -> None:
    """A BERT masks single pieces; what run.json notes of the checkpoints is shown."""
    config = {"masked_share": 0.15, "whole_words": False, "max_ngram": 1}
    rows = dict(card.describe(replace(tiny_run, config=config, note="Weights are repeated.")))
    assert (rows["Masking"], rows["Note"]) == ("15% of the tokens, single pieces", "Weights are repeated.")


def test_a_run_with_few_facts_has_a_short_card(tiny_run: Run) -> None:
    """A card without settings still names model, tokenizer and code."""
    rows = dict(card.describe(replace(tiny_run, config={}, corpus={})))
    assert set(rows) == {"Model", "Tokenizer", "Code"}
