"""Batches out of a prepared corpus: functions of (seed, step), in two phases, held-out text kept apart."""

from dataclasses import replace

import numpy as np
import pytest

from embryo_core import runs
from embryo_core.errors import CorpusError, TokenizerMismatch
from embryo_core.types import Run
from pretrain.config import Config
from pretrain.data import Data, prepare_data
from pretrain.masking import MaskedBatch


def same(a: MaskedBatch, b: MaskedBatch) -> bool:
    """Whether two batches are equal in every array."""
    arrays = a.inputs() | a.targets()
    return all(np.array_equal(array, (b.inputs() | b.targets())[name]) for name, array in arrays.items())


def original(batch: MaskedBatch) -> np.ndarray:
    """The token ids of a batch before they were masked."""
    ids, used = batch.ids.copy(), batch.weights > 0
    rows = np.broadcast_to(np.arange(len(ids))[:, None], used.shape)
    ids[rows[used], batch.positions[used]] = batch.labels[used]
    return ids


def passages(batches: list[MaskedBatch]) -> set[tuple[int, ...]]:
    """Every eight tokens in a row without a special token among them."""
    found = set()
    for ids in map(original, batches):
        windows = np.lib.stride_tricks.sliding_window_view(ids, 8, axis=1).reshape(-1, 8)
        found |= set(map(tuple, windows[(windows > 4).all(1)].tolist()))
    return found


def test_a_batch_is_a_function_of_seed_and_step(config: Config, data: Data, texts, cache):
    """In any order, and in another process's place: the same step gives the same batch, another step another."""
    again = prepare_data(config, [str(texts[0])], [str(texts[1])], cache)
    ahead = {step: data.training(step) for step in (9, 3, 0)}
    assert all(same(batch, again.training(step)) for step, batch in ahead.items())
    assert not same(ahead[0], ahead[3])
    other = replace(again, config=replace(config, seed=config.seed + 1))
    assert not same(ahead[0], other.training(0))


def test_phases_have_their_own_batches(config: Config, data: Data):
    """Short sequences before short_steps, the long ones from there, the second phase beginning its data anew."""
    assert data.training(config.short_steps - 1).ids.shape == (config.short_batch_size, config.short_sequence_length)
    assert data.training(config.short_steps).ids.shape == (config.batch_size, config.sequence_length)
    assert data.masking.predictions(config.sequence_length) == data.training(config.short_steps).positions.shape[1]


def test_an_epoch_shows_every_example_once(config: Config, data: Data):
    """Over one epoch's tokens no two sequences are alike, and all the text that was cut into examples is seen."""
    count = len(data.short.examples)
    batches = [data.training(step) for step in range(min(config.short_steps, count // config.short_batch_size))]
    rows = [tuple(np.sort(row)) for batch in batches for row in original(batch).tolist()]
    assert len(set(rows)) >= 0.98 * len(rows)


def test_heldout_batches_are_the_same_every_time(config: Config, data: Data):
    """For every call, and for runs with another seed; each example once, as long as the first phase's sequences."""
    first, second = data.heldout(), replace(data, config=replace(config, seed=1)).heldout()
    assert len(first) == config.heldout_sequences // config.short_batch_size
    assert all(map(same, first, second)) and first[0].ids.shape[1] == config.short_sequence_length
    rows = [tuple(row) for batch in first for row in original(batch).tolist()]
    assert len(set(rows)) == len(rows)


def test_heldout_text_is_not_trained_on(config: Config, data: Data):
    """But for a stock phrase, no eight tokens in a row of the held-out batches occur in any batch of training."""
    long = replace(data, config=replace(config, short_steps=0))
    training = passages([long.training(step) for step in range(60)])
    heldout = passages(long.heldout())
    assert len(heldout) > 100 and len(training & heldout) < 0.03 * len(heldout)


def test_without_heldout_text_there_are_no_heldout_batches(config: Config, texts, cache):
    """A run without --heldout trains all the same."""
    assert prepare_data(config, [str(texts[0])], [], cache).heldout() == []


def test_a_run_gets_its_tokenizer_and_keeps_it(config: Config, data: Data, tmp_path):
    """Copied once, checked ever after: another tokenizer in its place is an error, and stays as it is."""
    sha256 = data.corpus.fingerprint["tokenizer_sha256"]
    run = Run("own", tmp_path / "own", "albert", "both", {}, sha256, {}, (0,), "tests")
    runs.write_run(run)
    data.copy_to(run)
    assert runs.sha256(run.tokenizer / "tokenizer.json") == sha256 and (run.path / "frequencies.tsv").is_file()
    data.copy_to(run)
    (run.tokenizer / "tokenizer.json").write_text("{}")
    with pytest.raises(TokenizerMismatch, match=r"is not the tokenizer that run 'own' was started with; delete"):
        data.copy_to(run)
    assert (run.tokenizer / "tokenizer.json").read_text() == "{}"


def test_a_vocabulary_that_the_text_cannot_fill_is_said(config: Config, texts, cache):
    """One sentence that names the number of pieces."""
    with pytest.raises(CorpusError, match="60,000 pieces"):
        prepare_data(replace(config, vocab_size=60_000), [str(texts[0])], [], cache)
