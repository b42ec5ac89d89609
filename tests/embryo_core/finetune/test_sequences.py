"""Tests of sequences, which are cut where necessary, and of batches with every row once and little padding."""

from itertools import islice

import numpy as np
import pytest

from embryo_core.finetune.sequences import batches_by_length, encode, training_batches
from embryo_core.tokenizers.tokenizer import load_tokenizer
from tests.embryo_core.finetune.conftest import sentences

PAIRS = list(zip(sentences(9, 1)[0], sentences(9, 2)[0], strict=True))


@pytest.fixture(scope="module")
def tokenizer(tiny_run):
    """Return the tiny run's tokenizer."""
    return load_tokenizer(tiny_run)


def test_pair_is_encoded_between_special_tokens(tokenizer):
    """A pair is [CLS] first [SEP] second [SEP]; segment 1 begins with the second text, and padding is masked."""
    ids, segments, mask = encode(PAIRS, tokenizer, 128).batch(np.arange(9))
    for row, (first, second) in enumerate(PAIRS):
        a, b = (tokenizer.encode_text(text)[1:-1].tolist() for text in (first, second))
        expected = [tokenizer.cls_id, *a, tokenizer.sep_id, *b, tokenizer.sep_id]
        padding = ids.shape[1] - len(expected)
        assert ids[row].tolist() == expected + [tokenizer.pad_id] * padding
        assert mask[row].tolist() == [1] * len(expected) + [0] * padding
        assert segments[row].tolist() == [0] * (len(a) + 2) + [1] * (len(b) + 1) + [0] * padding


def test_batch_is_as_long_as_its_longest_sequence(tokenizer):
    sequences = encode([(text,) for text, _ in PAIRS], tokenizer, 128)
    shortest = np.argsort(sequences.lengths)[:2]
    assert sequences.batch(shortest)[0].shape == (2, sequences.lengths[shortest].max())


@pytest.mark.parametrize(
    ("first", "second", "kept"), [(20, 3, (8, 3)), (3, 20, (3, 8)), (20, 20, (6, 5)), (5, 6, (5, 6)), (4, 4, (4, 4))]
)
def test_longer_text_of_a_pair_is_cut_first(tokenizer, first: int, second: int, kept: tuple[int, int]):
    """A pair is cut to 14 tokens, including the 3 special ones."""
    word = next(word for word in "a the of and in".split() if tokenizer.single_piece(word) is not None)
    sequences = encode([(" ".join([word] * first), " ".join([word] * second))], tokenizer, 14)
    assert sequences.lengths.tolist() == [sum(kept) + 3]
    assert sequences.second.tolist() == [kept[0] + 2]


def test_epoch_has_every_row_once():
    """All batches but one have the given size; the order differs between epochs and is reproducible by seed."""
    lengths = np.random.default_rng(0).integers(3, 60, 70)
    batches = list(islice(training_batches(lengths, 8, np.random.default_rng(1)), 18))
    for epoch in (batches[:9], batches[9:]):
        assert sorted(np.concatenate(epoch).tolist()) == list(range(70))
        assert sorted(map(len, epoch)) == [6] + [8] * 8
    assert not all(np.array_equal(a, b) for a, b in zip(batches[:9], batches[9:], strict=True))
    again = islice(training_batches(lengths, 8, np.random.default_rng(1)), 18)
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))


def test_batches_need_little_padding():
    """Over 100 batches there is less than a tenth of the padding to the maximal length."""
    lengths = np.random.default_rng(0).integers(3, 60, 800)
    batches = list(islice(training_batches(lengths, 8, np.random.default_rng(1)), 100))
    padding = sum(len(rows) * lengths[rows].max() - lengths[rows].sum() for rows in batches)
    assert padding < (800 * 60 - lengths.sum()) / 10
    assert [len(rows) for rows in batches_by_length(lengths, 300)] == [300, 300, 200]
