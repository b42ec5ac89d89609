"""Tests of examples: packed whole sentences, two segments whose edges do not reveal their order, and epochs."""

import itertools

import numpy as np
import pytest

from pretrain.corpus import Text
from pretrain.examples import MIN_TOKENS, Packing, batch_of, example_order, pack
from pretrain.examples import swapped as swap
from pretrain.tokenizer import WordStarts
from pretrain.vocabularies import CLS, PAD, SEP

VOCABULARY = 100
FULL_STOP, FIRST = 5, 7  # last and first piece of every sentence; neither occurs inside one
WORD_START = np.arange(VOCABULARY) % 10 >= 3  # 7 pieces in 10 begin a word
WORD_START[:5] = False
BEGINS_WORD = WordStarts(WORD_START)


def text_of(sentences_of: np.ndarray, tokens_of: np.ndarray, rng: np.random.Generator) -> Text:
    """Return documents with these numbers of sentences, of these numbers of random tokens."""
    bounds = np.concatenate([[0], np.cumsum(tokens_of)])
    tokens = rng.integers(8, VOCABULARY, bounds[-1]).astype(np.uint16)
    tokens[bounds[1:] - 1] = FULL_STOP
    tokens[bounds[:-1]] = FIRST
    return Text(tokens, bounds, np.concatenate([[0], np.cumsum(sentences_of)]))


@pytest.fixture(scope="module")
def text() -> Text:
    """Return 280 documents of 1 to 59 sentences of 2 to 69 tokens, and 20 documents of one token."""
    rng = np.random.default_rng(0)
    sentences_of = np.concatenate([rng.integers(1, 60, 280), np.ones(20, int)])
    tokens_of = np.concatenate([rng.integers(2, 70, sentences_of.sum() - 20), np.ones(20, int)])
    return text_of(sentences_of, tokens_of, rng)


@pytest.fixture(scope="module", params=[16, 32, 64, 128])
def packing(text: Text, request: pytest.FixtureRequest) -> Packing:
    """Return the examples of this text."""
    return pack(text, request.param, BEGINS_WORD)


def segments(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the two segments of one row of a batch."""
    middle, last = np.flatnonzero(ids == SEP)
    return ids[1:middle], ids[middle + 1 : last]


# === Packing ===


def test_examples_are_whole_sentences_of_one_document(packing: Packing) -> None:
    """They have at least two sentences, no more than fill the space; only whole documents fill less than half of it."""
    begin, end = packing.examples.T
    first, last = (np.searchsorted(packing.text.sentences, edge) for edge in (begin, end))
    np.testing.assert_array_equal(packing.text.sentences[np.stack([first, last])], [begin, end])
    document = np.searchsorted(packing.text.documents, first, "right") - 1
    low, high = packing.text.documents[document], packing.text.documents[document + 1]
    assert ((low <= first) & (last <= high)).all()
    assert ((last - first >= 2) | (high - low == 1)).all()
    assert ((end - begin >= packing.space // 2) | ((first == low) & (last == high))).all()
    spare = np.minimum(
        packing.text.sentences[last - 1] - begin, end - packing.text.sentences[first + 1]
    )  # without the shorter sentence at an end
    assert ((spare < packing.space) | (last - first == 2)).all()


def test_every_sentence_is_in_an_example(packing: Packing) -> None:
    """Examples cover all documents but the shortest without gaps, and overlap at most once in a document."""
    bounds = packing.text.sentences[packing.text.documents]
    begin, end = packing.examples.T
    for low, high in itertools.pairwise(bounds):
        inside = (begin >= low) & (end <= high)
        if high - low < MIN_TOKENS:
            assert not inside.any()
            continue
        starts, stops = begin[inside], np.maximum.accumulate(end[inside])
        assert starts[0] == low and stops[-1] == high
        gaps = starts[1:] - stops[:-1]
        assert (gaps <= 0).all() and (gaps < 0).sum() <= 1


def test_examples_need_little_padding(packing: Packing) -> None:
    """On average, less than 5 % of a sequence is padding."""
    assert packing.fill > 0.95


def test_packing_is_deterministic(packing: Packing) -> None:
    """The same text gives the same examples."""
    again = pack(packing.text, packing.sequence_length, BEGINS_WORD)
    np.testing.assert_array_equal(again.examples, packing.examples)


def test_text_without_documents_has_no_examples() -> None:
    """Held-out text may be empty; its fill is 0."""
    empty = Text(np.empty(0, np.uint16), np.zeros(1, np.int64), np.zeros(1, np.int64))
    packing = pack(empty, 64, BEGINS_WORD)
    assert packing.examples.shape == (0, 2) and packing.fill == 0.0


# === Batches ===


def test_batch_has_two_segments_in_either_order(packing: Packing) -> None:
    """Each row is [CLS] A [SEP] B [SEP] and padding, where A B, or B A if swapped, are cut out of the example."""
    indices = np.arange(len(packing.examples))
    ids, token_type_ids, attention_mask, swapped = batch_of(packing, indices, np.random.default_rng(1), swap)
    assert ids.shape == token_type_ids.shape == attention_mask.shape == (len(indices), packing.sequence_length)
    assert {array.dtype for array in (ids, token_type_ids, attention_mask, swapped)} == {np.dtype(np.int32)}
    assert 0.4 < swapped.mean() < 0.6
    for row in range(len(indices)):
        begin, end = packing.examples[row]
        length = min(end - begin, packing.space) + 3
        assert attention_mask[row].tolist() == [1] * length + [0] * (packing.sequence_length - length)
        assert ids[row, 0] == CLS and (ids[row, length:] == PAD).all()
        middle, last = np.flatnonzero(ids[row] == SEP)
        assert last == length - 1
        assert token_type_ids[row].tolist() == [int(middle < i <= last) for i in range(packing.sequence_length)]
        a, b = segments(ids[row])[:: -1 if swapped[row] else 1]
        whole = packing.text.tokens[begin:end].astype(np.int32)
        places_of_a, places_of_b = occurrences(whole, a), occurrences(whole, b)
        assert len(places_of_a) and len(places_of_b) and places_of_a.min() + len(a) <= places_of_b.max()


def occurrences(tokens: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Return the positions at which `part` occurs in `tokens`."""
    return np.flatnonzero((np.lib.stride_tricks.sliding_window_view(tokens, len(part)) == part).all(axis=1))


def test_segments_meet_at_any_sentence_end(packing: Packing) -> None:
    """If nothing is cut, A and B together are the example, and any inner sentence end may divide them."""
    begin, end = packing.examples.T
    uncut = np.flatnonzero(end - begin <= packing.space)
    met: dict[int, set[int]] = {row: set() for row in uncut.tolist()}
    for seed in range(60):
        ids, _, _, swapped = batch_of(packing, uncut, np.random.default_rng(seed), swap)
        for row, content, order_of_row in zip(uncut.tolist(), ids, swapped, strict=True):
            a, b = segments(content)[:: -1 if order_of_row else 1]
            np.testing.assert_array_equal(np.concatenate([a, b]), packing.text.tokens[begin[row] : end[row]])
            met[row].add(int(begin[row]) + len(a))
    sentences = packing.text.sentences
    for row, boundaries in met.items():
        inner = set(sentences[(sentences > begin[row]) & (sentences < end[row])].tolist())
        if inner:
            assert boundaries <= inner and len(boundaries) >= min(len(inner), 3)
        else:  # a document of one sentence
            words = np.flatnonzero(WORD_START[packing.text.tokens[: end[row]]][begin[row] :])[1:] + begin[row]
            assert len(boundaries) > 1 and boundaries <= set(words.tolist()) | set(range(begin[row] + 1, words[0]))


def test_uncut_examples_join_to_text() -> None:
    """If sentences fill the space exactly, the unswapped examples of a document follow one another as its text."""
    rng = np.random.default_rng(3)
    text = text_of(np.array([24, 6, 12, 5]), np.full(47, 10), rng)  # 5: a short document
    packing = pack(text, 63, BEGINS_WORD)
    assert len(packing.examples) == 4 + 1 + 2 + 1
    joined_tokens = []
    for row in range(len(packing.examples)):
        ids, swapped = None, [1]
        while swapped[0]:
            ids, _, _, swapped = batch_of(packing, np.array([row]), rng, swap)
        joined_tokens.extend(segments(ids[0]))
    np.testing.assert_array_equal(np.concatenate(joined_tokens), text.tokens)


@pytest.mark.parametrize(("length", "mean", "most"), [(64, 30, 40), (128, 30, 40), (64, 8, 40), (64, 30, 5)])
def test_segment_edges_do_not_reveal_order(length: int, mean: int, most: int) -> None:
    """Swapped and unswapped examples start and end their segments alike, and have segments of the same lengths."""
    rng = np.random.default_rng(4)
    sentences_of = rng.integers(2, most, 60_000 // most)
    tokens_of = 2 + rng.poisson(rng.gamma(2, mean / 2, sentences_of.sum()))  # as uneven as real sentences
    packing = pack(text_of(sentences_of, tokens_of, rng), length, BEGINS_WORD)
    ids, _, attention_mask, swapped = batch_of(packing, np.arange(len(packing.examples)), rng, swap)
    rows = np.arange(len(ids))
    middle, last = (ids == SEP).argmax(axis=1), attention_mask.sum(axis=1) - 1
    observed = {
        "the first begins a sentence": ids[:, 1] == FIRST,
        "the first ends a sentence": ids[rows, middle - 1] == FULL_STOP,
        "the second begins a sentence": ids[rows, middle + 1] == FIRST,
        "the second ends a sentence": ids[rows, last - 1] == FULL_STOP,
        "the first is the longer": middle - 1 > last - middle - 1,
        "length of the first": middle - 1,
        "length of the second": last - middle - 1,
    }
    for name, values in observed.items():
        one, other = values[swapped == 0].astype(float), values[swapped == 1].astype(float)
        error = np.sqrt(one.var() / len(one) + other.var() / len(other))
        assert abs(one.mean() - other.mean()) < 4 * error, f"{name}: {one.mean():.3f}, swapped {other.mean():.3f}"
        assert one.std() > 0  # the feature varies


def test_cuts_match_original_loop() -> None:
    """The longer segment loses one token at a time; long segments are cut at both ends, and start with a whole word."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(2, 60, (500, 2))
    text = text_of(np.full(500, 2), sizes.ravel(), rng)
    packing = pack(text, 40, BEGINS_WORD)
    size_of = dict(zip(text.sentences[:-1:2].tolist(), sizes.tolist(), strict=True))
    sizes = np.array([size_of[begin] for begin in packing.examples[:, 0].tolist()])
    ids, _, _, swapped = batch_of(packing, np.arange(len(sizes)), rng, swap)
    starts, stops = [], []
    for row, size, order_of_row in zip(ids, sizes.tolist(), swapped, strict=True):
        lengths = size[:: -1 if order_of_row else 1]
        expected = list(lengths)
        while sum(expected) > 37:
            expected[0 if expected[0] > expected[1] else 1] -= 1
        segments_after = segments(row)
        assert [len(segment) for segment in segments_after] == expected
        for segment, before in zip(segments_after, lengths, strict=True):
            assert WORD_START[segment[0]]
            if before - len(segment) >= 10:
                starts.append(segment[0] == FIRST)
                stops.append(segment[-1] == FULL_STOP)
    assert len(starts) > 100 and np.mean(starts) < 0.05 and np.mean(stops) < 0.05


def test_batch_is_function_of_random_state(packing: Packing) -> None:
    """The same seed gives the same batch, and another seed a different one."""
    indices = example_order(len(packing.examples), seed=3, step=7, batch_size=32)
    one, same, other = (batch_of(packing, indices, np.random.default_rng([seed, 7]), swap) for seed in (3, 3, 4))
    for left, right in zip(one, same, strict=True):
        np.testing.assert_array_equal(left, right)
    assert (one[0] != other[0]).any()


# === Order ===


def test_every_example_is_seen_once_per_epoch() -> None:
    """Every epoch is a new permutation, and a batch may span the end of an epoch."""
    seen = np.concatenate([example_order(10, seed=5, step=step, batch_size=4) for step in range(10)])
    epochs = seen.reshape(4, 10)
    assert (np.sort(epochs, axis=1) == np.arange(10)).all()
    assert len({tuple(epoch) for epoch in epochs.tolist()}) == 4
    assert example_order(10, seed=6, step=0, batch_size=40).tolist() != seen.tolist()


def test_order_does_not_depend_on_earlier_steps() -> None:
    """A step that is requested first has the same examples as later; a batch may be larger than an epoch."""
    later = example_order(50, seed=0, step=1000, batch_size=8)
    for step in range(20):
        example_order(50, seed=0, step=step, batch_size=8)
    np.testing.assert_array_equal(example_order(50, seed=0, step=1000, batch_size=8), later)
    assert sorted(example_order(3, seed=0, step=0, batch_size=9).tolist()) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
