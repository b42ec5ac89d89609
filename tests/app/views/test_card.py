"""Tests of the run's card, which shows the facts of run.json and has no row for facts that it lacks."""

from dataclasses import replace

import pandas as pd
import pytest

from app.view import View
from app.views import card
from embryo_core import runs
from embryo_core.types import Run


def test_card_describes_sizes_batches_and_corpus(tiny_run: Run) -> None:
    """The rows use the terms of the field, and there is no row for held-out text, which run.json does not mention."""
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
def test_card_describes_mixed_sequence_lengths(tiny_run: Run, more: dict, batches: str) -> None:
    """Long sequences between short ones are described, and phases that the run does not reach are left out."""
    sizes = {"batch_size": 16, "sequence_length": 128, "short_batch_size": 32, "short_sequence_length": 64}
    rows = dict(card.describe(replace(tiny_run, config=sizes | {"short_steps": 900, "steps": 1000} | more)))
    assert rows["Batches"] == batches


def test_recipe_describes_optimizer_and_schedule(tiny_run: Run) -> None:
    """Settings that the run lacks and an optimizer of an unknown kind are left out."""
    config = {"optimizer": "adamw", "steps": 110_000, "warmup_steps": 1000, "constant_steps": 88_000}
    rows = dict(card.describe(replace(tiny_run, config=config)))
    assert rows["Recipe"] == "AdamW, 110,000 updates, warm-up 1,000, constant rate until 88,000"
    rows = dict(card.describe(replace(tiny_run, config={"optimizer": ["x"], "steps": 10, "constant_steps": 0})))
    assert rows["Recipe"] == "10 updates"


def test_card_describes_single_piece_masking_and_note(tiny_run: Run) -> None:
    """BERT masks single pieces; the note of run.json on the checkpoints is shown as it is."""
    config = {"masked_share": 0.15, "whole_words": False, "max_ngram": 1}
    rows = dict(card.describe(replace(tiny_run, config=config, note="Weights are repeated.")))
    assert (rows["Masking"], rows["Note"]) == ("15 % of the tokens, single pieces", "Weights are repeated.")


def test_card_without_settings_is_short(tiny_run: Run) -> None:
    """Model, tokenizer and code are named even if run.json has neither settings nor a corpus."""
    rows = dict(card.describe(replace(tiny_run, config={}, corpus={})))
    assert set(rows) == {"Model", "Tokenizer", "Code"}


def test_checkpoint_counts_have_thousands_separators(tiny_run: Run) -> None:
    """Both the existing and the planned checkpoints are counted."""
    run = replace(tiny_run, planned_steps=tuple(range(2000)))
    view = View(run, (runs.checkpoints(tiny_run)[0],) * 1000, 0, "linear")
    assert card._numbers(view, pd.DataFrame())["Checkpoints"] == "1,000 of 2,000 planned"
