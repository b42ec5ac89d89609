"""The run's card says what run.json says, and nothing where run.json is silent."""

from dataclasses import replace

import pandas as pd
import pytest

from app.view import View
from app.views import card
from embryo_core import runs
from embryo_core.types import Run


def test_the_card_tells_sizes_batches_and_corpus(tiny_run: Run) -> None:
    """Settings and corpus are described in the field's own words."""
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
    assert rows["Masking"] == "15 % of the tokens, whole words, n-grams up to 3"
    assert "Held out" not in rows


@pytest.mark.parametrize(
    ("more", "batches"),
    [
        ({}, "32 × 64 tokens for 900 updates, then 16 × 128 tokens"),
        (
            {"long_every": 8},
            "32 × 64 tokens, one update in 8 of 16 × 128 tokens, for 900 updates, then 16 × 128 tokens",
        ),
        ({"long_every": 8, "steps": 900}, "32 × 64 tokens, one update in 8 of 16 × 128 tokens"),
        ({"steps": 900}, "32 × 64 tokens"),
        ({"short_steps": 0}, "16 × 128 tokens"),
    ],
)
def test_the_card_names_lengths_that_are_mixed(tiny_run: Run, more: dict, batches: str) -> None:
    """No phase is described that the run does not come to, and long sequences between short ones are."""
    sizes = {"batch_size": 16, "sequence_length": 128, "short_batch_size": 32, "short_sequence_length": 64}
    rows = dict(card.describe(replace(tiny_run, config=sizes | {"short_steps": 900, "steps": 1000} | more)))
    assert rows["Batches"] == batches


def test_the_recipe_tells_optimizer_and_schedule(tiny_run: Run) -> None:
    """In the field's names, and without words of what the run does not have; a stranger's optimizer is left out."""
    config = {"optimizer": "adamw", "steps": 110_000, "warmup_steps": 1000, "constant_steps": 88_000}
    rows = dict(card.describe(replace(tiny_run, config=config)))
    assert rows["Recipe"] == "AdamW, 110,000 updates, warm-up 1,000, constant rate until 88,000"
    rows = dict(card.describe(replace(tiny_run, config={"optimizer": ["x"], "steps": 10, "constant_steps": 0})))
    assert rows["Recipe"] == "10 updates"


def test_single_pieces_and_notes_are_reported(tiny_run: Run) -> None:
    """A BERT masks single pieces; what run.json notes of the checkpoints is shown."""
    config = {"masked_share": 0.15, "whole_words": False, "max_ngram": 1}
    rows = dict(card.describe(replace(tiny_run, config=config, note="Weights are repeated.")))
    assert (rows["Masking"], rows["Note"]) == ("15 % of the tokens, single pieces", "Weights are repeated.")


def test_a_run_with_few_facts_has_a_short_card(tiny_run: Run) -> None:
    """A card without settings still names model, tokenizer and code."""
    rows = dict(card.describe(replace(tiny_run, config={}, corpus={})))
    assert set(rows) == {"Model", "Tokenizer", "Code"}


def test_many_checkpoints_have_commas(tiny_run: Run) -> None:
    """Those there are and those that were planned."""
    run = replace(tiny_run, planned_steps=tuple(range(2000)))
    view = View(run, (runs.checkpoints(tiny_run)[0],) * 1000, 0, "linear")
    assert card._numbers(view, pd.DataFrame())["Checkpoints"] == "1,000 of 2,000 planned"
