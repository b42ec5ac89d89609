"""Every family learns: its loss falls below that of guessing by frequency, on a text in which context tells the words."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pretrain.batches import Data, prepare_data
from pretrain.config import Config
from pretrain.families import FAMILIES, preset
from pretrain.train import build

TOPICS, WORDS = 12, 5  # each document keeps to the words of one topic
UPDATES, LAST = 240, 20


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 documents of six sentences, each of eight words of the document's topic."""
    rng = np.random.default_rng(0)
    syllables = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
    words = [first + second for first, second in zip(syllables, np.roll(syllables, 7), strict=True)]
    lines = []
    for _ in range(300):
        topic = words[(start := WORDS * rng.integers(TOPICS)) : start + WORDS]
        sentences = [" ".join(rng.choice(topic, 8)).capitalize() + "." for _ in range(6)]
        lines += [" ".join(sentences), ""]
    path = tmp_path_factory.mktemp("topics") / "text.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def guess_by_frequency(data: Data) -> float:
    """Cross-entropy in nats of a piece, if every guess is made by how frequent the pieces are."""
    counts = np.bincount(data.corpus.train.tokens).astype(float)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "pieces"), [("tiny", 80), ("bert-tiny", 120), ("electra-tiny", 120)])
def test_the_loss_falls_below_that_of_guessing_by_frequency(name: str, pieces: int, topics: Path, cache: Path):
    """Masked words are told by their context; a discriminator, by the topic, which tokens are not the text's own."""
    config: Config = replace(
        preset(name), vocab_size=pieces, short_steps=0, steps=UPDATES, warmup_steps=20, batch_size=16, max_ngram=1
    )
    data = prepare_data(config, [str(topics)], [], cache)
    model, family = build(config, data.training(0)), FAMILIES[config.family]
    losses = [model.train(data.training(step), family.loss_weights(config, step)) for step in range(UPDATES)]
    first, last = losses[0]["masked_lm_loss"], np.mean([row["masked_lm_loss"] for row in losses[-LAST:]])
    assert first == pytest.approx(np.log(config.vocab_size), abs=0.1)
    assert last < guess_by_frequency(data) - 0.2
