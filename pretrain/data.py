"""From a prepared corpus to batches: which examples a step sees and how they are masked, from (seed, step) alone."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embryo_core import runs
from embryo_core.errors import ConfigError, TokenizerMismatch
from embryo_core.types import Run
from pretrain import corpus as corpora
from pretrain import tokenizer as tokenizers
from pretrain.config import Config
from pretrain.masking import MaskedBatch, Masking
from pretrain.shards import Packing, batch_of, order, pack

HELDOUT_SEED = 0  # the held-out examples and their masks are the same for every run with the same settings


@dataclass(frozen=True)
class Data:
    """Everything a run trains on and is measured on."""

    corpus: corpora.Corpus
    config: Config
    masking: Masking
    short: Packing | None  # examples of the first phase, where there is one
    full: Packing

    def training(self, step: int) -> MaskedBatch:
        """The batch of the update that leads from `step` to `step + 1`: a function of (seed, step) alone."""
        packing, first = (self.short, 0) if step < self.config.short_steps else (self.full, self.config.short_steps)
        batch_size, _ = self.config.batch_at(step)
        indices = order(len(packing.examples), self.config.seed, step - first, batch_size)
        return self._masked(packing, indices, np.random.default_rng([self.config.seed, step]))

    def heldout(self) -> list[MaskedBatch]:
        """Batches of the held-out text, each example once and with the same masks every time.

        They are as long as the sequences of the first phase, so that one curve over all steps measures one thing.
        """
        size, length = self.config.batch_at(0)
        packing = pack(self.corpus.heldout, length, self.masking.word_start)
        size = min(size, max(len(packing.examples), 1))
        count = min(self.config.heldout_sequences, len(packing.examples)) // size
        rng = np.random.default_rng(HELDOUT_SEED)
        chosen = rng.permutation(len(packing.examples))[: count * size].reshape(count, size)
        return [self._masked(packing, indices, rng) for indices in chosen]

    def copy_to(self, run: Run) -> None:
        """Put the tokenizer and the word frequencies of the training text into a run's folder, where they are absent.

        Raises TokenizerMismatch where the folder holds another tokenizer than the one in run.json.
        """
        if not run.tokenizer.is_dir():
            temporary = run.tokenizer.with_name("tokenizer.tmp")
            shutil.rmtree(temporary, ignore_errors=True)
            shutil.copytree(self.corpus.tokenizer_folder, temporary)
            temporary.rename(run.tokenizer)
        path = run.tokenizer / "tokenizer.json"
        if not path.is_file() or runs.sha256(path) != run.tokenizer_sha256:
            raise TokenizerMismatch(
                f"{path} is not the tokenizer that run '{run.name}' was started with; "
                f"delete {run.tokenizer} and give the same command again to have it restored."
            )
        if not (run.path / "frequencies.tsv").is_file():
            corpora.write_frequencies(self.corpus, run.path / "frequencies.tsv")

    def _masked(self, packing: Packing, indices: np.ndarray, rng: np.random.Generator) -> MaskedBatch:
        ids, token_type_ids, attention_mask, swapped = batch_of(packing, indices, rng)
        return self.masking(ids, token_type_ids, attention_mask, swapped, rng)


def prepare_data(config: Config, sources: list[str], heldout: list[str], cache: Path) -> Data:
    """Prepare the corpus (or open it in the cache) and cut it into examples. Raises CorpusError, ConfigError."""
    corpus = corpora.prepare(sources, heldout, config.vocab_size, cache, progress=print)
    tokenizer = tokenizers.load(corpus.tokenizer_folder)
    if tokenizer.get_vocab_size() != config.vocab_size:
        raise ConfigError(
            f"The corpus gives {tokenizer.get_vocab_size()} pieces, the configuration asks for {config.vocab_size}; "
            f"use --set vocab_size={tokenizer.get_vocab_size()}, or give more text."
        )
    word_start = tokenizers.is_word_start(tokenizer)
    special = (tokenizers.PAD, tokenizers.UNK, tokenizers.CLS, tokenizers.SEP, tokenizers.MASK)
    masking = Masking(word_start, tokenizers.MASK, special, config.masked_share, config.max_ngram)
    short = pack(corpus.train, config.short_sequence_length, word_start) if config.short_steps else None
    return Data(corpus, config, masking, short, pack(corpus.train, config.sequence_length, word_start))
