"""Batches from a prepared corpus: the examples of a step and their masks, a function of (seed, step)."""

import os
import shutil
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from embryo_core import runs
from embryo_core.errors import ConfigError, TokenizerMismatch
from embryo_core.types import Run
from pretrain import corpus as corpora
from pretrain import tokenizer as tokenizers
from pretrain.collators import Collator, HeldoutBatches, heldout_batches
from pretrain.config import Config
from pretrain.examples import Packing, example_order
from pretrain.families import FAMILIES
from pretrain.masking import Batch
from pretrain.vocabularies import CLS, MASK, SEP
from pretrain.word_counts import count_words, write_frequencies

MIN_AHEAD = 8  # minimum number of batches made in advance


@dataclass(frozen=True)
class Data:
    """The data of a run, split into examples for training and for measurements."""

    corpus: corpora.Corpus
    config: Config
    collator: Collator
    short_packing: Packing | None  # examples of the first phase, if there is one
    full_packing: Packing

    def training(self, step: int) -> Batch:
        """Return the batch of the update from `step` to `step + 1`, a function of (seed, step) only."""
        config = self.config
        packing = self.short_packing if self.short_packing and config.is_short(step) else self.full_packing
        batch_size, _ = config.batch_at(step)
        indices = example_order(len(packing.examples), config.seed, config.earlier_updates(step), batch_size)
        return self.collator.batch(packing, indices, step, np.random.default_rng([config.seed, step]))

    def heldout(self) -> Iterator[HeldoutBatches]:
        """Yield batches of the held-out text at each length of the run; see `collators.heldout_batches`."""
        return heldout_batches(self.corpus.heldout, self.config, self.collator)

    def copy_to(self, run: Run) -> Run:
        """Write the tokenizer and the word frequencies of the training text to a run's folder, unless it has them.

        Return the run with the number of counted words. Raises TokenizerMismatch if the folder's tokenizer is not the
        one recorded in run.json.
        """
        if not run.tokenizer.is_dir():
            with runs.replacing(run.tokenizer) as temporary:
                shutil.copytree(self.corpus.tokenizer_folder, temporary)
                if not FAMILIES[self.config.family].reads_segments:
                    tokenizers.leave_out_segments(temporary)
        path = run.tokenizer / "tokenizer.json"
        if not path.is_file() or runs.sha256(path) != run.tokenizer_sha256:
            raise TokenizerMismatch(
                f"{path} is not the tokenizer that run '{run.name}' was started with; "
                f"delete {run.tokenizer} and give the same command again to have it restored."
            )
        if not run.frequencies.is_file():
            counts = count_words(self.corpus)
            run = runs.record_counted_words(run, counts.total())  # first: an interrupted run writes both again
            write_frequencies(counts, run.frequencies)
        return run


def prepare_data(
    config: Config, sources: list[str], heldout: list[str], cache: Path, vocabulary: Path | None = None
) -> Data:
    """Prepare the corpus (see `corpus.prepare`) and split it into examples. Raises CorpusError, ConfigError."""
    corpus = corpora.prepare(
        sources,
        heldout,
        config.vocab_size,
        cache,
        progress=print,
        tokenizer=config.tokenizer,
        vocabulary=vocabulary,
    )
    if (pieces := corpus.tokenizer.get_vocab_size()) != config.vocab_size:
        raise ConfigError(
            f"The corpus gives {pieces} pieces, the configuration asks for {config.vocab_size}; "
            f"use --set vocab_size={pieces}, or give more text."
        )
    if [corpus.tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]", "[MASK]")] != [CLS, SEP, MASK]:
        raise ConfigError(
            f"{corpus.tokenizer_folder} has other ids for [CLS], [SEP] and [MASK] than {CLS}, {SEP} and {MASK}; "
            "text can be prepared only with Embryo's vocabularies and with ALBERT's."
        )
    return _split(corpus, config)


def _split(corpus: corpora.Corpus, config: Config) -> Data:
    """Split a prepared corpus into examples."""
    collator = FAMILIES[config.family].collator(config, tokenizers.word_starts(corpus.tokenizer))
    for name, text in (("training", corpus.train), ("held-out", corpus.heldout)):
        collator.check(name, text)
    short_packing = collator.pack(corpus.train, config.short_sequence_length) if config.short_steps else None
    return Data(corpus, config, collator, short_packing, collator.pack(corpus.train, config.sequence_length))


# === Prefetched batches ===


def prefetch(data: Data, first_step: int, end_step: int, processes: int = 0) -> Iterator[Batch]:
    """Yield the batches of the steps from `first_step` to `end_step` - 1, making at least MIN_AHEAD of them in advance.

    Two threads make the batches. If `processes` is above 0, that number of processes does, each with the corpus
    reopened, since two threads cannot keep up with a GPU.
    """
    min_ahead = max(MIN_AHEAD, 2 * processes)
    with _pool(data, processes) as pool:
        make = _batch if processes else data.training
        futures = deque(pool.submit(make, step) for step in range(first_step, min(first_step + min_ahead, end_step)))
        try:
            for step in range(first_step, end_step):
                batch = futures.popleft().result()
                if step + min_ahead < end_step:
                    futures.append(pool.submit(make, step + min_ahead))
                yield batch
        finally:
            pool.shutdown(cancel_futures=True)


def spare_cores() -> int:
    """Return how many processes can make batches next to the training process: the cores minus two, at most 8."""
    return max(0, min(8, len(os.sched_getaffinity(0)) - 2)) if hasattr(os, "sched_getaffinity") else 0


def _pool(data: Data, processes: int) -> Executor:
    if not processes:
        return ThreadPoolExecutor(2, thread_name_prefix="batches")
    context = get_context("spawn")  # a fork would copy the locks of the backend's threads
    return ProcessPoolExecutor(processes, context, _reopen, (data.corpus.folder, data.config))


_reopened: list[Data] = []  # the data of a process that makes batches; empty in the training process


def _reopen(folder: Path, config: Config) -> None:
    _reopened.append(_split(corpora.open_corpus(folder), config))


def _batch(step: int) -> Batch:
    return _reopened[0].training(step)
