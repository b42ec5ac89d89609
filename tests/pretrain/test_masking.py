"""Tests of masking n-grams and single pieces: invariants of every batch, and shares over many batches."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from pretrain.masking import DRAWS, Masking
from pretrain.tokenizer import WordStarts

VOCABULARY, MASK = 100, 4
SPECIAL = (0, 1, 2, 3, 4)


@pytest.fixture(scope="module")
def masking() -> Masking:
    """Return a masking for a vocabulary in which odd pieces begin a word and even ones continue it."""
    starts = np.arange(VOCABULARY) % 2 == 1
    starts[list(SPECIAL)] = False
    return Masking(WordStarts(starts), MASK, SPECIAL, 0.15, 3)


def batch(rng: np.random.Generator, rows: int = 64, length: int = 60):
    """Return the arrays of rows [CLS] A [SEP] B [SEP] with random pieces; every fourth row is padded."""
    ids = rng.integers(5, VOCABULARY, (rows, length))
    ids[:, 0], ids[:, length // 2], ids[:, -1] = 2, 3, 3
    attention_mask = np.ones((rows, length), int)
    ids[::4, -10:], attention_mask[::4, -10:], ids[::4, -11] = 0, 0, 3
    return ids, np.zeros_like(ids), attention_mask, rng.integers(0, 2, rows)


def test_words_are_masked_whole_and_special_tokens_never(masking):
    """Every run of chosen positions begins where a word or segment begins, and ends where a word ends."""
    rng = np.random.default_rng(1)
    ids, *rest = batch(rng)
    result = masking(ids, *rest, rng)
    for row in range(len(ids)):
        chosen = set(result.positions[row][result.weights[row] > 0].tolist())
        assert not chosen & set(np.flatnonzero(np.isin(ids[row], SPECIAL)).tolist())
        for at in chosen:
            follows_special = ids[row, at - 1] in SPECIAL
            assert masking.begins_word.begins[ids[row, at]] or follows_special or at - 1 in chosen
            after = at + 1
            continues = (
                after < ids.shape[1]
                and ids[row, after] not in SPECIAL
                and not masking.begins_word.begins[ids[row, after]]
            )
            assert not continues or after in chosen


def test_labels_are_original_tokens_and_only_chosen_positions_change(masking):
    """Within a sequence, no position is chosen twice."""
    rng = np.random.default_rng(2)
    ids, *rest = batch(rng)
    result = masking(ids, *rest, rng)
    used = result.weights > 0
    assert (np.take_along_axis(ids, result.positions, 1)[used] == result.labels[used]).all()
    rows, columns = np.nonzero(result.ids != ids)
    chosen = {(row, int(at)) for row in range(len(ids)) for at in result.positions[row][used[row]]}
    assert set(zip(rows.tolist(), columns.tolist(), strict=True)) <= chosen
    assert all(len(set(result.positions[row][used[row]])) == used[row].sum() for row in range(len(ids)))


def test_shares_follow_the_recipe_of_bert(masking):
    """15 % of the tokens are chosen; of these, 80 % become [MASK], 10 % a random piece, and 10 % stay unchanged."""
    rng = np.random.default_rng(3)
    masked = same = total = tokens = 0
    for _ in range(40):
        ids, kinds, attention_mask, swapped = batch(rng)
        result = masking(ids, kinds, attention_mask, swapped, rng)
        used = result.weights > 0
        now = np.take_along_axis(result.ids, result.positions, 1)[used]
        masked += (now == MASK).sum()
        same += (now == result.labels[used]).sum()
        total += used.sum()
        tokens += attention_mask.sum()
    assert total / tokens == pytest.approx(0.15, abs=0.005)
    assert masked / total == pytest.approx(0.8, abs=0.01)
    assert same / total == pytest.approx(0.1 + 0.1 / (VOCABULARY - 5), abs=0.01)


def test_ngram_sizes_have_probabilities_proportional_to_one_over_n():
    """If every n-gram fits, 6/11 of them are single words, 3/11 pairs and 2/11 triples; triples are counted here."""
    starts = np.ones(VOCABULARY, bool)
    wide = Masking(WordStarts(starts), MASK, SPECIAL, 0.005, 3)
    rng = np.random.default_rng(4)
    ids = rng.integers(5, VOCABULARY, 700)
    ids[0] = ids[-1] = 3
    maskable = ~np.isin(ids, SPECIAL)
    sizes: Counter[int] = Counter()
    for _ in range(3000):  # the budget of 3 tokens always has room for the first n-gram
        order = np.random.default_rng(rng.integers(1 << 31))
        chosen = wide.choose(ids, maskable, 600, order)
        assert 1 <= len(chosen) <= 3
        sizes[int(len(chosen) == 3 and chosen[2] - chosen[0] == 2)] += 1
    # 3 adjacent tokens are a triple (2/11), or smaller n-grams that happen to be neighbours (rare here)
    assert sizes[1] / 3000 == pytest.approx(2 / 11, abs=0.03)


def test_word_with_unknown_piece_is_masked_whole():
    """<unk> belongs to its word, whether it is inside the word or at its end."""
    unknown, special = 1, (0, 2, 3, 4)
    starts = np.arange(VOCABULARY) % 2 == 1
    starts[[*special, unknown]] = False
    masking = Masking(WordStarts(starts), MASK, special, 0.3, 1)
    ids = np.array([2, 7, unknown, 8, 9, unknown, 11, 13, unknown, unknown, 6, 3])
    words = [{1, 2, 3}, {4, 5}, {6}, {7, 8, 9, 10}]
    rng = np.random.default_rng(6)
    seen = set()
    for _ in range(50):
        chosen = set(masking.choose(ids, ~np.isin(ids, special), len(ids), rng).tolist())
        for word in words:
            assert not word & chosen or word <= chosen
        seen |= chosen
    assert seen == set(range(1, 11))


def test_letters_after_a_mark_are_a_word_of_their_own():
    """Piece 7 is a mark, and 8 has letters, which begin a word after a mark but not after letters."""
    edges = np.zeros((VOCABULARY, 2), np.int8)
    edges[7], edges[8] = 3, 1
    masking = Masking(WordStarts(np.arange(VOCABULARY) == 7, edges), MASK, SPECIAL, 0.3, 1)
    ids = np.array([2, 7, 8, 8, 7, 8, 3])
    words = [{1}, {2, 3}, {4}, {5}]
    rng = np.random.default_rng(6)
    chosen = [set(masking.choose(ids, ~np.isin(ids, SPECIAL), len(ids), rng).tolist()) for _ in range(50)]
    assert all(not word & places or word <= places for places in chosen for word in words)
    assert all(word in chosen for word in ({2, 3}, {1, 4}, {1, 5}))


def test_number_of_masked_tokens_is_rounded(masking):
    """15 % of 57 tokens are 8.55, so 9 are masked; of 3 tokens, 1 is. If each piece is a word, exactly 9 are chosen."""
    assert [masking.predictions(tokens) for tokens in (57, 56, 3)] == [9, 8, 1]
    single = replace(masking, begins_word=masking.begins_word.at_every_piece())
    rng = np.random.default_rng(7)
    ids = rng.integers(5, VOCABULARY, 57)
    assert len(single.choose(ids, np.ones(57, bool), 57, rng)) == 9


def test_random_pieces_are_ordinary_pieces():
    """Random replacements include every other ordinary piece, but never a special token or <unk>."""
    masking = Masking(WordStarts(np.ones(12, bool)), MASK, (0, 2, 3, 4), 0.9, 1)
    rng = np.random.default_rng(8)
    ids = np.full((400, 30), 5)
    result = masking(ids, np.zeros_like(ids), np.ones_like(ids), np.zeros(400), rng)
    replaced = result.ids[(result.ids != 5) & (result.ids != MASK)]
    assert set(replaced.tolist()) == {6, 7, 8, 9, 10, 11}


def test_arrays_have_room_for_the_largest_share(masking):
    """If the masked share changes during a run, the number of used positions changes, but not the batch's shape."""
    growing = replace(masking, masked_share=0.2, widest_share=0.4)
    rng = np.random.default_rng(9)
    result = growing(*batch(rng), rng)
    assert result.positions.shape == (64, 24) and result.weights.sum(1).max() == 12


def test_array_width_is_rounded(masking):
    """35 % of 57 tokens are 19.95, so the arrays have 20 columns, whatever share is masked now."""
    rng = np.random.default_rng(12)
    ids = rng.integers(5, VOCABULARY, (4, 57))
    one = np.ones_like(ids)
    now = replace(masking, masked_share=0.2, widest_share=0.35)
    last = replace(masking, masked_share=0.35, widest_share=0.35)
    for each in (now, last):
        assert each(ids, 0 * one, one, np.zeros(4), rng).positions.shape == (4, 20)


def test_piece_after_special_token_begins_a_word(masking):
    """A segment that was cut inside a word can therefore be masked from its first piece on."""
    is_start = masking.begins_word.begins
    inside, begins = np.flatnonzero(~is_start)[-1], np.flatnonzero(is_start)[-1]
    assert inside not in SPECIAL
    ids = np.array([2, inside, inside, begins, 3, inside, 3])
    chosen = [
        masking.choose(ids, ~np.isin(ids, SPECIAL), 20, np.random.default_rng(seed)).tolist() for seed in range(50)
    ]
    assert {place for places in chosen for place in places} == {1, 2, 3, 5}
    assert all((1 in places) == (2 in places) for places in chosen)


def test_draws_do_not_advance_the_random_generator(masking):
    """Otherwise the masks of later held-out batches would depend on the draws, which only ELECTRA's generator uses."""
    one, other = np.random.default_rng(13), np.random.default_rng(13)
    ids, token_type_ids, attention_mask, pair = batch(np.random.default_rng(14))
    masked_batch = masking(ids, token_type_ids, attention_mask, pair, one)
    for row, mask in zip(ids, attention_mask, strict=True):
        masking.choose(row, mask.astype(bool) & ~np.isin(row, SPECIAL), int(mask.sum()), other)
    masking._replace(ids, masked_batch.positions, masked_batch.weights > 0, other)
    assert one.bit_generator.state == other.bit_generator.state


def test_same_seed_gives_the_same_masking(masking):
    """Every array of both batches is equal, including the draws."""
    ids, *rest = batch(np.random.default_rng(5))
    first, second = (masking(ids, *rest, np.random.default_rng([7, 9])) for _ in range(2))
    for name, array in vars(first).items():
        assert (array == getattr(second, name)).all()


def test_shares_of_masks_and_random_pieces_can_be_set(masking):
    """ELECTRA, for example, replaces 85 % by [MASK] and none by a random piece, and leaves the rest unchanged."""
    electra = replace(masking, mask_token_share=0.85, random_token_share=0.0)
    rng = np.random.default_rng(10)
    result = electra(*batch(rng, rows=2000), rng)
    used = result.weights > 0
    now = np.take_along_axis(result.ids, result.positions, 1)[used]
    assert set(np.unique((now == MASK) | (now == result.labels[used]))) == {True}
    assert (now == MASK).mean() == pytest.approx(0.85, abs=5 * np.sqrt(0.85 * 0.15 / used.sum()))


def test_draws_are_uniform(masking):
    """They range from 0 to below DRAWS, and their mean is within five standard errors of the middle."""
    rng = np.random.default_rng(11)
    draws = masking(*batch(rng, rows=2000), rng).draws / DRAWS
    assert draws.min() >= 0 and draws.max() < 1
    assert draws.mean() == pytest.approx(0.5, abs=5 * np.sqrt(1 / 12 / draws.size))
