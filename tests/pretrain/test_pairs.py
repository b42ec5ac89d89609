"""Tests of pairs of segments: in the order of the text, swapped, or with the second from another document."""

import numpy as np
import pytest

from pretrain.corpus import Text
from pretrain.examples import Packing, batch_of, from_another_document, in_order, pack, swapped
from pretrain.tokenizer import WordStarts
from pretrain.vocabularies import CLS, SEP

DOCUMENTS = 60
BEGINS_WORD = WordStarts(np.ones(2**16, bool))


@pytest.fixture(scope="module", params=[32, 64, 128])
def packing(request: pytest.FixtureRequest) -> Packing:
    """Pack documents of 1 to 39 sentences into examples; every token is unique, so its place in the text is known."""
    rng = np.random.default_rng(0)
    sentences_of = rng.integers(1, 40, DOCUMENTS)
    tokens_of = 2 + rng.poisson(20, sentences_of.sum())
    bounds = np.concatenate([[0], np.cumsum(tokens_of)])
    text = Text(np.arange(5, 5 + bounds[-1], dtype=np.uint16), bounds, np.concatenate([[0], np.cumsum(sentences_of)]))
    return pack(text, request.param, BEGINS_WORD)


def segments(packing: Packing, pairing) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Return the places in the text of both segments' tokens, for every example and five seeds, and the labels."""
    places, labels = [], []
    for seed in range(5):
        ids, _, _, pair = batch_of(packing, np.arange(len(packing.examples)), np.random.default_rng(seed), pairing)
        labels += pair.tolist()
        for row in ids.tolist():
            middle = row.index(SEP)
            assert row[0] == CLS
            a, b = row[1:middle], row[middle + 1 : row.index(SEP, middle + 1)]
            places.append((np.array(a) - 5, np.array(b) - 5))
    return places, np.array(labels)


def document_of(packing: Packing, place: int) -> int:
    """Return the index of the document that contains this token."""
    return int(np.searchsorted(packing.text.sentences[packing.text.documents], place, side="right") - 1)


def test_in_order_pairs_follow_the_text(packing: Packing):
    """Both segments are from one document, the second after the first, and all labels are 0."""
    token_places, labels = segments(packing, in_order)
    assert not labels.any()
    assert all(document_of(packing, a[0]) == document_of(packing, b[-1]) and a[-1] < b[0] for a, b in token_places)


def test_half_of_the_pairs_are_swapped(packing: Packing):
    """The label is 1 exactly if the second segment comes before the first in the text."""
    token_places, labels = segments(packing, swapped)
    assert labels.mean() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(len(labels)))
    assert [bool(b[0] < a[0]) for a, b in token_places] == labels.astype(bool).tolist()


def test_half_of_the_second_segments_are_from_another_document(packing: Packing):
    """They have label 1, and each is consecutive text of one document, drawn from the whole corpus."""
    token_places, labels = segments(packing, from_another_document)
    assert labels.mean() == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(len(labels)))
    sources = set()
    for (a, b), label in zip(token_places, labels, strict=True):
        own, other = document_of(packing, a[0]), document_of(packing, b[0])
        assert (own != other) == label and document_of(packing, b[-1]) == other
        assert (np.diff(b) == 1).all()
        sources.add((own, other))
    others = {other for own, other in sources if own != other}
    assert len(others) > DOCUMENTS // 2 and min(others) < DOCUMENTS // 6 and max(others) > DOCUMENTS - DOCUMENTS // 6
    assert {other > own for own, other in sources if own != other} == {True, False}


def test_segment_from_another_document_has_no_needless_sentences(packing: Packing):
    """B fills the space that A leaves, or is as long as the original B; a document that is too short is used whole."""
    text, rng = packing.text, np.random.default_rng(1)
    begin, end = packing.examples.T
    first = text.sentences[np.searchsorted(text.sentences, begin, side="right")]  # A has one sentence
    starts, stops = np.stack([begin, first], axis=1), np.stack([first, end], axis=1)
    long = first < end
    own = np.diff(np.stack([starts[long], stops[long]], axis=2), axis=2)[..., 0]  # lengths of A and B
    paired = from_another_document(packing, starts[long], stops[long], rng)
    for (_, b), (_, stop), label, (length_a, length_b) in zip(*paired, own, strict=True):
        if not label:
            assert stop - b == length_b
            continue
        document = document_of(packing, b)
        low, high = text.sentences[text.documents[document : document + 2]]
        bounds = text.sentences[(text.sentences >= b) & (text.sentences <= high)].tolist()
        needed = max(1, min(packing.space - length_a, length_b))
        assert b in bounds and stop == next((end for end in bounds if end - b >= needed), high)
        assert stop - b >= needed or (b, stop) == (low, high)
    assert paired[2].sum() > 30


def test_lengths_hardly_reveal_the_label(packing: Packing):
    """If the text fills examples, mean lengths of B differ by at most 10 %, and over 90 % of them are full."""
    token_places, labels = segments(packing, from_another_document)
    lengths = np.array([(len(a), len(b)) for a, b in token_places])
    begin, end = packing.examples.T
    long = np.tile(end - begin >= packing.space, 5)
    full = [(lengths[long & (labels == label)].sum(1) == packing.space).mean() for label in (0, 1)]
    assert full[0] == 1 and full[1] > 0.9
    means = [lengths[long & (labels == label), 1].mean() for label in (0, 1)]
    assert means[1] == pytest.approx(means[0], rel=0.1)
