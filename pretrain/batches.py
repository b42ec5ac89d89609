"""From a prepared corpus to batches: which examples a step sees and how they are masked, from (seed, step) alone."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from embryo_core import runs
from embryo_core.errors import ConfigError, TokenizerMismatch
from embryo_core.types import Run
from pretrain import corpus as corpora
from pretrain import tokenizer as tokenizers
from pretrain.config import Config
from pretrain.examples import Packing, Pairing, batch_of, order, pack
from pretrain.families import FAMILIES
from pretrain.heldout import HeldOut, heldout_batches
from pretrain.masking import MaskedBatch, Masking
from pretrain.pairs import from_another_document
from pretrain.pieces import CLS, MASK, PAD, SEP


@dataclass(frozen=True)
class Data:
    """Everything a run trains on and is measured on."""

    corpus: corpora.Corpus
    config: Config
    masking: Masking
    pairing: Pairing
    word_start: np.ndarray  # bool [V]: pieces that begin a word; `masking` may take every piece for a word
    short: Packing | None  # examples of the first phase, where there is one
    full: Packing

    def training(self, step: int) -> MaskedBatch:
        """The batch of the update that leads from `step` to `step + 1`: a function of (seed, step) alone."""
        config = self.config
        packing = self.short if config.is_short(step) else self.full
        batch_size, _ = config.batch_at(step)
        share, max_ngram = config.masking_at(step)
        masking = replace(self.masking, masked_share=share, max_ngram=max_ngram)
        indices = order(len(packing.examples), config.seed, config.earlier_updates(step), batch_size)
        rng = np.random.default_rng([config.seed, step])
        return masking(*batch_of(packing, indices, rng, self.pairing), rng)

    def heldout(self) -> Iterator[HeldOut]:
        """Batches of the held-out text at each length of the run; see `heldout.heldout_batches`."""
        return heldout_batches(self.corpus.heldout, self.config, self.masking, self.pairing, self.word_start)

    def copy_to(self, run: Run) -> None:
        """Put the tokenizer and the word frequencies of the training text into a run's folder, where they are absent.

        Raises TokenizerMismatch where the folder holds another tokenizer than the one in run.json.
        """
        if not run.tokenizer.is_dir():
            with runs.replacing(run.tokenizer) as temporary:
                shutil.copytree(self.corpus.tokenizer_folder, temporary)
        path = run.tokenizer / "tokenizer.json"
        if not path.is_file() or runs.sha256(path) != run.tokenizer_sha256:
            raise TokenizerMismatch(
                f"{path} is not the tokenizer that run '{run.name}' was started with; "
                f"delete {run.tokenizer} and give the same command again to have it restored."
            )
        if not run.frequencies.is_file():
            corpora.write_frequencies(self.corpus, run.frequencies)


def prepare_data(
    config: Config, sources: list[str], heldout: list[str], cache: Path, vocabulary: Path | None = None
) -> Data:
    """Prepare the corpus (or open it in the cache) and cut it into examples; see `corpus.prepare` for `vocabulary`.

    Raises CorpusError, ConfigError.
    """
    corpus = corpora.prepare(
        sources,
        heldout,
        config.vocab_size,
        cache,
        progress=print,
        tokenizer=config.tokenizer,
        vocabulary=vocabulary,
    )
    tokenizer = tokenizers.load(corpus.tokenizer_folder)
    if tokenizer.get_vocab_size() != config.vocab_size:
        raise ConfigError(
            f"The corpus gives {tokenizer.get_vocab_size()} pieces, the configuration asks for {config.vocab_size}; "
            f"use --set vocab_size={tokenizer.get_vocab_size()}, or give more text."
        )
    if [tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]", "[MASK]")] != [CLS, SEP, MASK]:
        raise ConfigError(
            f"{corpus.tokenizer_folder} has other ids for [CLS], [SEP] and [MASK] than {CLS}, {SEP} and {MASK}; "
            "text can be prepared with vocabularies of ours, and of ALBERT."
        )
    pairing = FAMILIES[config.family].pairing(config)
    check_documents({"training": corpus.train, "held-out": corpus.heldout}, pairing)
    word_start = tokenizers.is_word_start(tokenizer)
    short = pack(corpus.train, config.short_sequence_length, word_start) if config.short_steps else None
    full = pack(corpus.train, config.sequence_length, word_start)
    return Data(corpus, config, masking_of(config, word_start), pairing, word_start, short, full)


def masking_of(config: Config, word_start: np.ndarray) -> Masking:
    """The masking of a configuration. As in the originals, an unknown piece is masked like any other."""
    return Masking(
        word_start if config.whole_words else np.ones_like(word_start),
        MASK,
        (PAD, CLS, SEP, MASK),
        config.masked_share,
        config.max_ngram,
        max(config.masked_share, config.masked_share_end or 0.0),
        config.mask_token_share,
        config.random_token_share,
    )


def check_documents(texts: dict[str, corpora.Text], pairing: Pairing) -> None:
    """Raise ConfigError where a segment of another document is asked for and one of these texts is one document."""
    if pairing is not from_another_document:
        return
    for name, text in texts.items():
        if len(text.documents) - 1 == 1:
            raise ConfigError(
                f"Next-sentence prediction takes segments from other documents, and the {name} text is one document; "
                "put blank lines between documents, or choose --sentence-loss sop."
            )
