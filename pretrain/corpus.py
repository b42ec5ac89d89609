"""The pretraining corpus: text sources, cleaned, tokenized, and stored as ids with sentence and document bounds.

A corpus is prepared only once: its folder in the cache is named after a hash of its sources and settings.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from embryo_core.errors import CorpusError
from embryo_core.runs import locked, read_checksums, replacing, sha256, write_checksums, write_json
from pretrain import tokenizer as tokenizers
from pretrain.text_sources import (
    MIN_WORDS,
    Cleaner,
    Document,
    TextSource,
    batches_of_sentences,
    find_sources,
    find_training_and_heldout,
    read_all,
    sample_paragraphs,
)
from pretrain.vocabularies import VOCABULARIES

FORMAT_VERSION = 2  # version of the file format; incremented when the same sources would give other files
SAMPLE_CHARACTERS = 40_000_000  # length of the text to train the tokenizer on
SENTENCES_PER_BATCH = 20_000  # sentences encoded together
CHECKSUM_FILE = "checksums.sha256"  # lists the SHA-256 of every other file of a prepared corpus


@dataclass(frozen=True, eq=False)
class Text:
    """Token ids of consecutive documents, without special tokens; `tokens` is memory-mapped."""

    tokens: np.ndarray  # uint16 [T]
    sentences: np.ndarray  # int64 [S + 1], first token of each sentence, then T
    documents: np.ndarray  # int64 [D + 1], first sentence of each document, then S


@dataclass(frozen=True, eq=False)
class Corpus:
    """A prepared corpus in its cache folder."""

    folder: Path
    train: Text
    heldout: Text
    fingerprint: dict[str, Any]  # for run.json: sources, cleaning report, counts and sha256 of both parts

    @property
    def tokenizer_folder(self) -> Path:
        """Return the folder that becomes runs/<run>/tokenizer/."""
        return self.folder / "tokenizer"

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer in that folder."""
        return tokenizers.load(self.tokenizer_folder)


def prepare(
    sources: Iterable[str],
    heldout: Iterable[str],
    vocabulary_size: int,
    cache: Path,
    progress: Callable[[str], None] = lambda message: None,
    tokenizer: str = "unigram",
    vocabulary: Path | None = None,
) -> Corpus:
    """Clean, tokenize and store the text of `sources`, with a tokenizer trained on it; or open the stored result.

    `tokenizer` is the kind of vocabulary, a key of VOCABULARIES; `vocabulary` is the folder of a tokenizer to use in
    place of a new one. A single source may be the folder of a prepared corpus, which has a held-out text and a
    tokenizer already.

    Files and data sets that `heldout` also names are never trained on, nor are paragraphs that occur in them.
    `progress` gets a message for each part. An interrupted preparation continues with the part that was interrupted
    (tokenizer, held-out text or training text). If several processes prepare the same text, one works and the rest
    wait. Raises CorpusError.
    """
    if not len(VOCABULARIES[tokenizer].special_tokens) < vocabulary_size <= 1 << 16:
        raise CorpusError(
            f"A vocabulary of {vocabulary_size:,} pieces cannot be made; choose a size from 100 to 65,536."
        )
    sources, heldout = list(sources), list(heldout)
    if len(sources) == 1 and (Path(sources[0]) / "corpus.json").is_file():
        if heldout or vocabulary:
            raise CorpusError(f"{Path(sources[0])} is prepared text: it has its own held-out text and vocabulary.")
        return open_corpus(Path(sources[0]))
    train_sources, heldout_sources = find_training_and_heldout(sources, heldout)
    settings = _settings(train_sources, heldout_sources, vocabulary_size, tokenizer, vocabulary)
    with _preparing(cache, settings, progress) as folder:
        if not (folder / "corpus.json").is_file():
            if vocabulary:
                with replacing(folder / "tokenizer") as temporary:
                    shutil.copytree(vocabulary, temporary)
            _build(folder, train_sources, heldout_sources, settings, progress)
        return open_corpus(folder)


def _settings(
    train: list[TextSource], heldout: list[TextSource], vocabulary_size: int, tokenizer: str, vocabulary: Path | None
) -> dict[str, Any]:
    """Return the settings and sources by which a prepared corpus is named and described."""
    return {
        "format": FORMAT_VERSION,
        "vocabulary_size": vocabulary_size,
        "sources": [source.identity() for source in train],
        "heldout_sources": [source.identity() for source in heldout],
        **({} if tokenizer == "unigram" else {"tokenizer": tokenizer}),  # not written by earlier versions
        **({"tokenizer_sha256": sha256(vocabulary / "tokenizer.json")} if vocabulary else {}),
    }


def extended_vocabulary(
    sources: Iterable[str],
    heldout: Iterable[str],
    vocabulary: Path,
    count: int,
    cache: Path,
) -> Path:
    """Return the folder of a tokenizer with `count` more pieces than `vocabulary`, for words of the training text.

    Words are counted in the sample on which a new tokenizer would be trained (see `tokenizer.extend`). Raises
    CorpusError.
    """
    train_sources, _ = find_training_and_heldout(sources, heldout)
    settings = {
        "extend_vocabulary": count,
        "sources": [source.identity() for source in train_sources],
        "tokenizer_sha256": sha256(vocabulary / "tokenizer.json"),
    }
    with _preparing(cache, settings, print) as folder:
        if not (folder / "tokenizer").is_dir():
            print(f"finding {count:,} words for new pieces")
            sample = sample_paragraphs(train_sources, SAMPLE_CHARACTERS)
            tokenizers.extend(vocabulary, sample, count, folder / "tokenizer")
        return folder / "tokenizer"


@contextmanager
def _preparing(cache: Path, settings: dict[str, Any], progress: Callable[[str], None]) -> Iterator[Path]:
    """Yield the folder of the cache that is named after these settings, locked against other processes."""
    folder = Path(cache) / hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16]
    with locked(folder, waiting=lambda: progress("waiting for another process that prepares the same text")):
        yield folder


def open_corpus(folder: Path) -> Corpus:
    """Open the prepared corpus in a folder and verify every file. Raises CorpusError if it is unfinished or damaged."""
    folder = Path(folder)
    if not (folder / "corpus.json").is_file():
        raise CorpusError(f"{folder} holds no prepared corpus; python -m pretrain PRESET --corpus PATH prepares one.")
    _verify(folder)
    fingerprint = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    return Corpus(folder, _open(folder / "train"), _open(folder / "heldout"), fingerprint)


def encode_text(names: Iterable[str], tokenizer: Tokenizer, folder: Path) -> tuple[Text, str]:
    """Encode text files, folders or data sets into a new folder; return the text and the SHA-256 of its ids.

    The text is cleaned like held-out text, so it has the same ids as in `prepare` with `heldout`. Raises CorpusError.
    """
    sources = find_sources(names)
    _encode(Cleaner().clean(read_all(sources)), tokenizer, folder)
    text = _open(folder)
    if not len(text.tokens):
        source_names = ", ".join(source.name for source in sources)
        raise CorpusError(f"The text {source_names} has no document of at least {MIN_WORDS} words; give longer text.")
    return text, sha256(folder / "tokens.bin")


# === Verifying ===


def _verify(folder: Path) -> None:
    """Raise CorpusError if a file does not match its checksum; takes about a second for 100 million tokens."""
    checksums = read_checksums(folder / CHECKSUM_FILE, folder, CorpusError)
    if checksums is None:  # just prepared, or written by an earlier version
        write_checksums(folder / CHECKSUM_FILE, _checksums(folder))
    elif changed_files := sorted(name for _, name in checksums ^ _checksums(folder)):
        raise CorpusError(
            f"{folder / changed_files[0]} is not the file that was prepared; delete {folder} and start again."
        )


def _checksums(folder: Path) -> frozenset[tuple[str, str]]:
    files = (
        path for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and path.name != CHECKSUM_FILE
    )
    return frozenset((sha256(path), path.relative_to(folder).as_posix()) for path in files)


# === Building ===


def _build(
    folder: Path, train: list[TextSource], heldout: list[TextSource], settings: dict, progress: Callable[[str], None]
) -> None:
    """Build each part, renaming it when it is complete; corpus.json, written last, marks the corpus as complete."""
    names = ", ".join(source.name for source in train)
    empty = CorpusError(
        f"The corpus is empty: {names} has no document of at least {MIN_WORDS} words that is not held out; "
        "give longer text."
    )
    if not (folder / "tokenizer").is_dir():
        source_count = "1 source" if len(train) == 1 else f"{len(train):,} sources"
        progress(f"training the tokenizer on {source_count}")
        sample = list(sample_paragraphs(train, SAMPLE_CHARACTERS))
        if not sample:
            raise empty
        vocabulary_name = settings.get("tokenizer", "unigram")
        tokenizers.train_tokenizer(sample, settings["vocabulary_size"], folder / "tokenizer", vocabulary_name)
    tokenizer = tokenizers.load(folder / "tokenizer")
    cleaner = Cleaner()
    reports = {}
    for name, sources in (("heldout", heldout), ("train", train)):
        texts = cleaner.clean(read_all(sources, progress))
        if (folder / name).is_dir():  # complete already: read only so that the cleaner sees its paragraphs
            for _ in texts:
                pass
        else:
            _encode(texts, tokenizer, folder / name)
        reports[name] = cleaner.report
    if len(_open(folder / "train").tokens) == 0:
        shutil.rmtree(folder)
        raise empty
    if heldout and len(_open(folder / "heldout").tokens) == 0:
        shutil.rmtree(folder)
        names = ", ".join(source.name for source in heldout)
        raise CorpusError(
            f"The held-out text is empty: {names} has no document of at least {MIN_WORDS} words; give longer text."
        )
    reports_of_texts = {name: _counts(folder / name) | {"cleaning": reports[name]} for name in reports}
    tokenizer_sha256 = sha256(folder / "tokenizer" / "tokenizer.json")
    write_json(folder / "corpus.json", settings | {"tokenizer_sha256": tokenizer_sha256} | reports_of_texts)


def _encode(documents: Iterable[Document], tokenizer: Tokenizer, folder: Path) -> None:
    """Write the tokens, sentence bounds and document bounds of these documents to a folder, atomically."""
    lengths: list[np.ndarray] = []  # tokens of each sentence
    document_lengths: list[np.ndarray] = []  # sentences of each document
    with replacing(folder) as temporary:
        temporary.mkdir()
        with (temporary / "tokens.bin").open("wb") as file:
            for batch in batches_of_sentences(documents, SENTENCES_PER_BATCH):
                flat = [sentence for document in batch for sentence in document]
                ids = [encoding.ids for encoding in tokenizer.encode_batch_fast(flat, add_special_tokens=False)]
                np.fromiter(chain.from_iterable(ids), np.uint16).tofile(file)
                lengths.append(np.array([len(sentence) for sentence in ids], np.int64))
                document_lengths.append(np.array([len(document) for document in batch], np.int64))
        np.save(temporary / "sentences.npy", _offsets(lengths))
        np.save(temporary / "documents.npy", _offsets(document_lengths))


def _offsets(counts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate([np.empty(0, np.int64), *counts]))])


def _open(folder: Path) -> Text:
    path = folder / "tokens.bin"
    try:
        tokens = np.memmap(path, np.uint16, mode="r") if path.stat().st_size else np.empty(0, np.uint16)
        return Text(tokens, np.load(folder / "sentences.npy"), np.load(folder / "documents.npy"))
    except (OSError, EOFError, ValueError) as reason:
        raise CorpusError(f"{folder} cannot be read ({reason}); delete {folder.parent} and start again.") from None


def _counts(folder: Path) -> dict[str, Any]:
    text = _open(folder)
    return {
        "documents": len(text.documents) - 1,
        "sentences": len(text.sentences) - 1,
        "tokens": len(text.tokens),
        "tokens_sha256": sha256(folder / "tokens.bin"),
    }
