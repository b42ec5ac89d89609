"""Tests of pretrain.shards."""

import numpy as np
import pytest

from pretrain.corpus import Text
from pretrain.shards import MIN_TOKENS, Packing, batch_of, order, pack
from pretrain.tokenizer import CLS, PAD, SEP

VOCABULARY = 100
WORD_START = np.arange(VOCABULARY) % 10 >= 3  # 7 pieces in 10 begin a word
WORD_START[:5] = False


@pytest.fixture(scope="module")
def text() -> Text:
    """300 documents of 1 to 60 sentences of 3 to 70 tokens, some of one token; every sentence begins a word."""
    rng = np.random.default_rng(0)
    sizes = np.concatenate([rng.integers(1, 60, 280), np.ones(20, int)])
    lengths = np.concatenate([rng.integers(3, 70, sizes.sum() - 20), np.ones(20, int)])
    tokens = rng.integers(5, VOCABULARY, lengths.sum()).astype(np.uint16)
    sentences = np.concatenate([[0], np.cumsum(lengths)])
    tokens[sentences[:-1]] = 7
    return Text(tokens, sentences, np.concatenate([[0], np.cumsum(sizes)]))


@pytest.fixture(scope="module", params=[32, 64, 128])
def packing(text: Text, request: pytest.FixtureRequest) -> Packing:
    """Examples of that text."""
    return pack(text, request.param, WORD_START)


def test_examples_stay_inside_a_document_and_a_sequence(packing: Packing) -> None:
    """No example crosses documents, is longer than the space, or begins or ends inside a word."""
    begin, end = packing.examples.T
    bounds = packing.text.sentences[packing.text.documents]
    assert (np.searchsorted(bounds, begin, "right") == np.searchsorted(bounds, end - 1, "right")).all()
    assert (end - begin).min() >= MIN_TOKENS and (end - begin).max() <= packing.sequence_length - 3
    assert WORD_START[packing.text.tokens[begin]].all()
    assert WORD_START[packing.text.tokens[end[end < len(packing.text.tokens)]]].all()


def test_there_is_little_padding_and_little_is_lost(packing: Packing) -> None:
    """Long documents fill their sequences by more than 95 %, and nearly all of their tokens are in an example."""
    assert packing.fill > 0.95
    covered = np.zeros(len(packing.text.tokens), bool)
    for begin, end in packing.examples:
        covered[begin:end] = True
    assert covered.mean() > 0.95


def test_packing_is_the_same_every_time(packing: Packing) -> None:
    """The same text gives the same examples."""
    again = pack(packing.text, packing.sequence_length, WORD_START)
    np.testing.assert_array_equal(again.examples, packing.examples)


def test_a_text_without_documents_has_no_examples() -> None:
    """An empty held-out part packs to nothing."""
    empty = Text(np.empty(0, np.uint16), np.zeros(1, np.int64), np.zeros(1, np.int64))
    packing = pack(empty, 64, WORD_START)
    assert packing.examples.shape == (0, 2) and packing.fill == 0.0


def test_a_batch_is_two_segments_in_either_order(packing: Packing) -> None:
    """Row by row: [CLS] A [SEP] B [SEP] and padding, where A B, or B A if swapped, are the tokens of the example."""
    indices = np.arange(len(packing.examples))
    ids, token_type_ids, attention_mask, swapped = batch_of(packing, indices, np.random.default_rng(1))
    assert ids.shape == token_type_ids.shape == attention_mask.shape == (len(indices), packing.sequence_length)
    assert {array.dtype for array in (ids, token_type_ids, attention_mask, swapped)} == {np.dtype(np.int32)}
    assert 0.4 < swapped.mean() < 0.6
    for row in range(len(indices)):
        begin, end = packing.examples[row]
        length = end - begin + 3
        assert attention_mask[row].tolist() == [1] * length + [0] * (packing.sequence_length - length)
        assert ids[row, 0] == CLS and (ids[row, length:] == PAD).all()
        middle, last = np.flatnonzero(ids[row] == SEP)
        assert last == length - 1
        assert token_type_ids[row].tolist() == [int(middle < i <= last) for i in range(packing.sequence_length)]
        first, second = ids[row, 1:middle], ids[row, middle + 1 : last]
        joined = np.concatenate([second, first] if swapped[row] else [first, second])
        np.testing.assert_array_equal(joined, packing.text.tokens[begin:end])


def test_segments_meet_where_a_sentence_ends(packing: Packing) -> None:
    """The boundary is a sentence's if the example has one away from its rim, any of them; else before a word."""
    begin, end = packing.examples.T
    margin = np.maximum(1, (end - begin) // 8)
    sentences = set(packing.text.sentences.tolist())
    met: dict[int, set[int]] = {}
    for seed in range(30):
        ids, _, _, swapped = batch_of(packing, np.arange(len(begin)), np.random.default_rng(seed))
        middle = (ids == SEP).argmax(axis=1) - 1
        boundary = np.where(swapped, end - middle, begin + middle)
        for row in range(0, len(begin), 50):
            met.setdefault(row, set()).add(int(boundary[row]))
    for row, found in met.items():
        inside = set(range(begin[row] + margin[row], end[row] - margin[row] + 1)) & sentences
        if inside:
            assert found <= inside and (len(inside) == 1 or len(found) > 1)
        else:
            assert len(found) == 1 and WORD_START[packing.text.tokens[found.pop()]]


def test_a_batch_is_a_function_of_its_random_state(packing: Packing) -> None:
    """The same seed gives the same batch, another seed another one."""
    indices = np.arange(32)
    one, same, other = (batch_of(packing, indices, np.random.default_rng(seed)) for seed in (3, 3, 4))
    for left, right in zip(one, same, strict=True):
        np.testing.assert_array_equal(left, right)
    assert (one[0] != other[0]).any()


def test_every_example_is_seen_once_an_epoch() -> None:
    """Steps walk through a permutation, a new one each epoch, across its end."""
    seen = np.concatenate([order(10, seed=5, step=step, batch_size=4) for step in range(10)])
    epochs = seen.reshape(4, 10)
    assert (np.sort(epochs, axis=1) == np.arange(10)).all()
    assert len({tuple(epoch) for epoch in epochs.tolist()}) == 4
    assert order(10, seed=6, step=0, batch_size=40).tolist() != seen.tolist()


def test_order_does_not_depend_on_the_steps_before() -> None:
    """A step asked for first, or alone, has the same examples; a batch may be larger than an epoch."""
    later = order(50, seed=0, step=1000, batch_size=8)
    for step in range(20):
        order(50, seed=0, step=step, batch_size=8)
    np.testing.assert_array_equal(order(50, seed=0, step=1000, batch_size=8), later)
    assert sorted(order(3, seed=0, step=0, batch_size=9).tolist()) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
