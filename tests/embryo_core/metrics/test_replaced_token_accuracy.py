"""Tests of replaced-token accuracy: counts equal those of transformers' generator and discriminator, word by word."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from transformers import ElectraForMaskedLM, ElectraForPreTraining

from embryo_core import runs
from embryo_core.engine.capabilities import checkpoint_capabilities
from embryo_core.engine.model import Model, load
from embryo_core.engine.transformers_engine import TransformersEngine
from embryo_core.metrics.replaced_token_accuracy import SEED, ReplacedTokenAccuracy, sample_others
from embryo_core.types import Checkpoint
from tests.conftest import copy_run
from tests.embryo_core.metrics.conftest import read

METRIC = ReplacedTokenAccuracy()


def slowly(checkpoint: Checkpoint, data) -> Iterator[bool]:
    """Yield whether each word is right, by transformers alone."""
    discriminator = ElectraForPreTraining.from_pretrained(checkpoint.path).eval()
    generator = ElectraForMaskedLM.from_pretrained(checkpoint.path / "generator").eval()
    mask, rng = load(checkpoint).tokenizer.mask_id, np.random.default_rng(SEED)
    pieces = load(checkpoint).vocabulary_size
    for sentence, start, end in zip(data.sentence, data.start, data.end, strict=True):
        ids = torch.tensor(data.sentences[sentence])[None]
        masked, filled = ids.clone(), ids.clone()
        masked[0, start:end] = mask
        with torch.inference_mode():
            logits = generator(masked).logits[0, :, :pieces].double()
            for position in range(start, end):
                logits[position, ids[0, position]] = -torch.inf
                passed = logits[position].softmax(0).cumsum(0) <= rng.random()
                filled[0, position] = int(passed.sum())
            original, replaced = (discriminator(row).logits[0, start:end] for row in (ids, filled))
        yield bool((original <= 0).all() and (replaced > 0).all())


def test_counts_equal_plain_transformers(electra: Checkpoint):
    """Every word is compared, with both engines."""
    fast = load(electra)
    data = read(METRIC, fast)
    expected = list(slowly(electra, data))
    assert 10 < sum(expected) < len(expected) - 10
    assert METRIC.judge(fast, data).tolist() == expected
    parts = [TransformersEngine(checkpoint, fast.vocabulary_size) for checkpoint in (electra, runs.generator(electra))]
    generator = Model(runs.generator(electra), fast.tokenizer, parts[1])
    assert METRIC.judge(Model(electra, fast.tokenizer, parts[0], generator), data).tolist() == expected


def test_discriminator_without_generator_lacks_masked_words(electra: Checkpoint, tmp_path: Path):
    """Replacements are sampled from the generator; other families detect no replaced tokens."""
    assert checkpoint_capabilities(electra) >= METRIC.needs
    alone = runs.checkpoint(copy_run(electra.run, tmp_path), 16)
    (alone.path / "generator").rename(tmp_path / "generator")
    assert METRIC.needs - checkpoint_capabilities(alone) == {"masked_words"}
    assert METRIC.needs - checkpoint_capabilities(runs.checkpoint(electra.run, 8)) == {"replaced_tokens"}


def test_samples_follow_the_probabilities_of_other_pieces():
    """A random number picks a piece by cumulative probability in the order of pieces, without the word's own piece."""
    logits = np.log(np.array([[0.5, 0.3, 0.1, 0.1]] * 4))
    chances = np.array([0.0, 0.59, 0.61, 0.99])
    assert sample_others(logits, np.zeros(4, int), chances).tolist() == [1, 1, 2, 3]
