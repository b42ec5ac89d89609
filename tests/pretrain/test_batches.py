"""Tests of batches from a prepared corpus: functions of (seed, step), in two phases, apart from held-out text."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from embryo_core import runs
from embryo_core.errors import CorpusError, TokenizerMismatch
from embryo_core.types import Run
from pretrain import word_counts
from pretrain.batches import Data, prefetch, prepare_data
from pretrain.collators import MaskedPairCollator
from pretrain.config import Config
from pretrain.examples import batch_of, example_order, in_order
from pretrain.masking import Batch, Masking
from pretrain.tokenizer import WordStarts

HIDDEN = "single pieces 15 %, all [MASK]"


def same(a: Batch, b: Batch) -> bool:
    """Return whether two batches are equal in every array."""
    arrays = a.inputs() | a.targets()
    return all(np.array_equal(array, (b.inputs() | b.targets())[name]) for name, array in arrays.items())


def with_collator(data: Data, config: Config, **changes: Any) -> Data:
    """Return the data with another configuration, and with these changes to its collator."""
    return replace(data, config=config, collator=replace(data.collator, config=config, **changes))


def original(batch: Batch) -> np.ndarray:
    """Return the token ids of a batch before masking."""
    ids, used = batch.ids.copy(), batch.weights > 0
    rows = np.broadcast_to(np.arange(len(ids))[:, None], used.shape)
    ids[rows[used], batch.positions[used]] = batch.labels[used]
    return ids


def passages(batches: list[Batch]) -> set[tuple[int, ...]]:
    """Return every sequence of eight tokens in the batches that contains no special token."""
    sequences = set()
    for ids in map(original, batches):
        windows = np.lib.stride_tricks.sliding_window_view(ids, 8, axis=1).reshape(-1, 8)
        sequences |= set(map(tuple, windows[(windows > 4).all(1)].tolist()))
    return sequences


def broken_words(data: Data, batch: Batch) -> int:
    """Return the number of predicted pieces inside a word whose preceding piece is not predicted."""
    ids = original(batch)
    chosen = [set(row[used].tolist()) for row, used in zip(batch.positions, batch.weights > 0, strict=True)]
    masking = data.collator.masking
    is_start = masking.begins_word.begins
    inside = ~is_start & ~np.isin(np.arange(len(is_start)), masking.special_ids)
    return sum(
        inside[ids[row, at]] and at - 1 not in chosen[row] and ids[row, at - 1] not in masking.special_ids
        for row in range(len(ids))
        for at in chosen[row]
    )


def test_batch_is_function_of_seed_and_step(config: Config, data: Data, texts, cache):
    """Data that are prepared again give the same batches in any order; another step or seed gives another batch."""
    again = prepare_data(config, [str(texts[0])], [str(texts[1])], cache)
    ahead = {step: data.training(step) for step in (9, 3, 0)}
    assert all(same(batch, again.training(step)) for step, batch in ahead.items())
    assert not same(ahead[0], ahead[3])
    other = replace(again, config=replace(config, seed=config.seed + 1))
    assert not same(ahead[0], other.training(0))


def test_prefetched_batches_equal_those_made_directly(data: Data):
    """Two processes make the batches of steps 2 to 8, which arrive in order."""
    batches = list(prefetch(data, 2, 9, processes=2))
    assert len(batches) == 7
    assert all(same(batch, data.training(step)) for step, batch in enumerate(batches, start=2))


def test_batch_shapes_follow_phases(config: Config, data: Data):
    """Before short_steps, every third batch has long sequences and the others short ones; later, all are long."""
    shapes = [data.training(step).ids.shape for step in range(config.short_steps + 2)]
    short, long = (config.short_batch_size, config.short_sequence_length), (config.batch_size, config.sequence_length)
    assert shapes == [short, short, long, short, short, long, short, long, long]
    assert data.training(config.short_steps).ids.shape == (config.batch_size, config.sequence_length)
    width = data.training(config.short_steps).positions.shape[1]
    assert data.collator.masking.predictions(config.sequence_length) == width


def test_each_length_continues_its_own_order(config: Config, data: Data):
    """Between batches of the other length, and into the second phase, no example is skipped or repeated."""
    made = {True: 0, False: 0}
    for step in range(config.steps):
        short = config.is_short(step)
        size, _ = config.batch_at(step)
        packing = data.short_packing if short else data.full_packing
        indices = example_order(len(packing.examples), config.seed, made[short], size)
        expected, *_ = batch_of(packing, indices, np.random.default_rng([config.seed, step]), data.collator.pairing)
        np.testing.assert_array_equal(original(data.training(step)), expected)
        made[short] += 1
    assert made == {True: 5, False: 7}


def test_masking_follows_schedule(config: Config, data: Data):
    """Single words are masked first, then n-grams; the share doubles to its final value in arrays of the same width."""
    changed = replace(config, short_steps=0, long_every=0, single_word_steps=4, masked_share_end=0.3)
    own = with_collator(data, changed, masking=replace(data.collator.masking, widest_share=0.3))
    assert changed.masking_at(0) == (0.15, 1) and changed.masking_at(4)[1] == 3
    assert changed.masking_at(config.steps - 1)[0] == pytest.approx(0.3)
    first, last = own.training(0), own.training(config.steps - 1)
    assert first.positions.shape == last.positions.shape == (config.batch_size, round(0.3 * config.sequence_length))
    assert last.weights.sum() == pytest.approx(2 * first.weights.sum(), rel=0.2)


def test_batch_masking_follows_settings_of_step(config: Config, data: Data):
    """The masked share and the longest n-gram are those that the configuration gives for the step."""
    noted = []

    class Noted(Masking):
        def __call__(self, *batch) -> Batch:
            noted.append((self.masked_share, self.max_ngram))
            return super().__call__(*batch)

    changed = replace(config, single_word_steps=4, masked_share_end=0.3)
    masking = Noted(*(getattr(data.collator.masking, field.name) for field in fields(Masking)))
    own = with_collator(data, changed, masking=masking)
    for step in range(config.steps):
        own.training(step)
    assert noted == [changed.masking_at(step) for step in range(config.steps)]


@pytest.mark.parametrize("end", [None, 0.1, 0.35])
def test_masking_takes_configured_shares(config: Config, end: float | None):
    """The arrays have room for the largest share of the run; without whole_words, every piece begins a word."""
    shares = {"masked_share": 0.2, "mask_token_share": 0.85, "random_token_share": 0.05}
    own = replace(config, **shares, masked_share_end=end, max_ngram=2, whole_words=False)
    begins_word = WordStarts(np.array([True, False]))
    masking = MaskedPairCollator.from_config(own, in_order, begins_word).masking
    assert {name: getattr(masking, name) for name in shares} == shares
    assert (masking.widest_share, masking.max_ngram) == (0.35 if end == 0.35 else 0.2, 2)
    whole = MaskedPairCollator.from_config(replace(own, whole_words=True), in_order, begins_word).masking
    assert masking.begins_word.begins.all() and whole.begins_word is begins_word


def test_heldout_sequences_fill_whole_batches(config: Config, data: Data, monkeypatch):
    """The settings count sequences of the shorter length, longer ones in proportion; too few make one smaller batch."""
    monkeypatch.setattr("pretrain.collators.MEASURED_BATCH_SIZE", 8)
    own = with_collator(data, replace(config, heldout_sequences=12, measured_sequences=20))
    counts = set()
    for part in own.heldout():
        asked = (12 if part.masking == "training" else 20) * config.lengths[0] // part.length
        assert part.sequences == (asked // 8 * 8 or asked)
        assert part.predictions == sum(weight > 0 for batch in part.batches for weight in batch.weights.flat)
        counts.add(part.sequences)
    assert counts == {16, 8, 6}


def test_sequences_hardly_repeat_within_epoch(config: Config, data: Data):
    """Of the short sequences of the first phase, at most one epoch, 98 % differ in more than the order of tokens."""
    count = len(data.short_packing.examples)
    alone = replace(data, config=replace(config, long_every=0))
    batches = [alone.training(step) for step in range(min(config.short_steps, count // config.short_batch_size))]
    rows = [tuple(np.sort(row)) for batch in batches for row in original(batch).tolist()]
    assert len(set(rows)) >= 0.98 * len(rows)


def test_heldout_batches_do_not_depend_on_seed(config: Config, data: Data):
    """Each part has one of the two lengths and one of four ways of masking, and holds every example once."""
    first, second = (list(each.heldout()) for each in (data, replace(data, config=replace(config, seed=1))))
    ways = ("training", "single pieces 15 %", "whole words 15 %", HIDDEN)
    assert [(part.length, part.masking) for part in first] == [(n, way) for n in config.lengths for way in ways]
    for ours, theirs in zip(first, second, strict=True):
        assert all(map(same, ours.batches, theirs.batches)) and len(ours.batches) == len(theirs.batches)
        rows = [tuple(row) for batch in ours.batches for row in original(batch).tolist()]
        assert {len(row) for row in rows} == {ours.length} and len(set(rows)) == len(rows)
        assert len(rows) == 16 * config.short_sequence_length // ours.length


def test_measures_at_15_percent_do_not_depend_on_recipe(config: Config, data: Data):
    """Runs that differ in masked share, n-grams and batch size are compared on the same masked sequences."""
    recipe = {"batch_size": 4, "short_batch_size": 2, "masked_share": 0.3, "max_ngram": 1}
    masking = replace(data.collator.masking, masked_share=0.3, max_ngram=1, widest_share=0.3)
    other = with_collator(data, replace(config, **recipe), masking=masking)
    for ours, theirs in zip(data.heldout(), other.heldout(), strict=True):
        equal = all(map(same, ours.batches, theirs.batches))
        assert equal == (ours.masking != "training")


def test_only_single_piece_masking_breaks_up_words(data: Data):
    """Both ways of masking choose 15 % of the tokens, to two percentage points."""
    parts = {part.masking: part.batches for part in data.heldout() if part.length == data.config.sequence_length}
    broken = {way: sum(broken_words(data, batch) for batch in parts[way]) for way in parts}
    assert broken["whole words 15 %"] == 0 < broken["single pieces 15 %"]
    shares = [sum(b.weights.sum() for b in parts[way]) / sum(b.attention_mask.sum() for b in parts[way])
              for way in ("single pieces 15 %", "whole words 15 %")]  # fmt: skip
    assert shares == pytest.approx([0.15, 0.15], abs=0.02)


def test_all_mask_batches_hide_same_single_pieces(data: Data):
    """Every chosen piece is [MASK], none random or unchanged: ELECTRA's generator is trained without random ones."""
    parts = {part.masking: part.batches for part in data.heldout() if part.length == data.config.sequence_length}
    for single, hidden in zip(parts["single pieces 15 %"], parts[HIDDEN], strict=True):
        for name in ("positions", "labels", "weights", "token_type_ids", "attention_mask", "pair"):
            np.testing.assert_array_equal(getattr(hidden, name), getattr(single, name))
        rows, used = np.arange(len(hidden.ids))[:, None], hidden.weights > 0
        shown, before = (batch.ids[rows, batch.positions][used] for batch in (hidden, single))
        mask_id = data.collator.masking.mask_id
        assert np.unique(shown).tolist() == [mask_id] and (before != mask_id).any()
        np.testing.assert_array_equal(original(hidden), original(single))


def test_heldout_text_is_not_trained_on(config: Config, data: Data):
    """Except for stock phrases (below 3 %), no eight tokens of the held-out batches occur in 60 training batches."""
    long = replace(data, config=replace(config, short_steps=0))
    training = passages([long.training(step) for step in range(60)])
    heldout = passages([batch for part in long.heldout() for batch in part.batches])
    assert len(heldout) > 100 and len(training & heldout) < 0.03 * len(heldout)


def test_data_without_heldout_text_have_no_heldout_batches(config: Config, texts, cache):
    """The option --heldout may be left out."""
    assert list(prepare_data(config, [str(texts[0])], [], cache).heldout()) == []


def test_run_keeps_its_tokenizer(config: Config, data: Data, tmp_path):
    """It is copied once; another tokenizer in its place raises an error and is not overwritten."""
    sha256 = data.corpus.fingerprint["tokenizer_sha256"]
    run = Run("own", tmp_path / "own", "albert", "both", {}, sha256, {}, (0,), "tests")
    runs.write_run(run)
    data.copy_to(run)
    assert runs.sha256(run.tokenizer / "tokenizer.json") == sha256 and (run.path / "frequencies.tsv").is_file()
    assert data.copy_to(run) == run
    (run.tokenizer / "tokenizer.json").write_text("{}")
    with pytest.raises(TokenizerMismatch, match=r"is not the tokenizer that run 'own' was started with; delete"):
        data.copy_to(run)
    assert (run.tokenizer / "tokenizer.json").read_text() == "{}"


def test_all_counted_words_are_recorded(data: Data, tmp_path, monkeypatch):
    """run.json has their number, with those that are too rare for frequencies.tsv."""
    monkeypatch.setattr(word_counts, "MAX_FREQUENCIES", 5)
    sha256 = data.corpus.fingerprint["tokenizer_sha256"]
    run = Run("own", tmp_path / "own", "albert", "both", {}, sha256, data.corpus.fingerprint, (0,), "tests")
    run_with_counts = data.copy_to(run)
    total = word_counts.count_words(data.corpus).total()
    assert run_with_counts == runs.read_run(run.path) and run_with_counts.corpus == run.corpus | {
        "counted_words": total
    }
    counts = runs.read_counts(run.frequencies)
    assert len(counts) == 5 and sum(counts.values()) < total == runs.counted_words(run_with_counts)
    assert runs.counted_words(run) == sum(counts.values())


def test_vocabulary_too_large_for_text_is_refused(config: Config, texts, cache):
    """The error names the number of pieces."""
    with pytest.raises(CorpusError, match="60,000 pieces"):
        prepare_data(replace(config, vocab_size=60_000), [str(texts[0])], [], cache)
