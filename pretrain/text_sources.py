"""Sources of pretraining text (text files, folders and Hugging Face data sets), read as clean documents.

A text file has one paragraph per line and a blank line between documents.
"""

import gzip
import hashlib
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from embryo_core import runs
from embryo_core.errors import CorpusError

# end of a file's name -> function that opens it
OPENERS: dict[str, Callable[..., Any]] = {".txt": open, ".txt.xz": lzma.open, ".txt.gz": gzip.open}
MIN_WORDS = 8  # words; shorter documents are dropped

Document = list[str]  # the paragraphs of a document


@dataclass(frozen=True)
class TextSource:
    """One text file, or one Hugging Face data set, named "hf:NAME[:CONFIG[:SPLIT]]" and without a path."""

    name: str
    path: Path | None

    def identity(self) -> dict[str, Any]:
        """Return what identifies the text, whatever its path: file name, bytes and sha256, or the data set's name."""
        if self.path is None:
            return {"name": self.name}
        return {"name": self.name, "bytes": self.path.stat().st_size, "sha256": runs.sha256(self.path)}


def find_sources(names: Iterable[str], excluded: Iterable[TextSource] = ()) -> list[TextSource]:
    """Return the sources with these names, each once, except those `excluded`; a folder means the text files below it.

    Raises CorpusError for a path that does not exist or a folder without text files.
    """
    sources: dict[str, TextSource] = {}
    for name in names:
        for source in _expand(str(name)):
            sources.setdefault(_key(source), source)
    for source in excluded:
        sources.pop(_key(source), None)
    return list(sources.values())


def _key(source: TextSource) -> str:
    return source.name if source.path is None else str(source.path.resolve())


def _expand(name: str) -> list[TextSource]:
    if name.startswith("hf:"):
        return [TextSource(name, None)]
    path = Path(name).expanduser()
    if path.is_file():
        return [TextSource(path.name, path)]
    if not path.is_dir():
        raise CorpusError(f"{path} does not exist; name a text file, a folder of them, or hf:NAME:CONFIG.")
    files = sorted(p for p in path.rglob("*.txt*") if p.is_file() and p.name.endswith(tuple(OPENERS)))
    if not files:
        raise CorpusError(f"{path} holds no text files; files that end in {' or '.join(OPENERS)} are read.")
    return [TextSource(p.name, p) for p in files]


# === Reading ===


def read_documents(source: TextSource) -> Iterator[Document]:
    """Read the documents of a source. Raises CorpusError if it is not UTF-8 text, or a damaged archive."""
    if source.path is None:
        yield from _read_dataset(source.name)
        return
    opener = next((open_file for end, open_file in OPENERS.items() if source.path.name.endswith(end)), open)
    try:
        with opener(source.path, "rt", encoding="utf-8-sig") as lines:
            yield from _split_documents(lines)
    except UnicodeDecodeError as error:
        raise CorpusError(f"{source.path} is not UTF-8 text ({error.reason}); convert it to UTF-8 first.") from None
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise CorpusError(f"{source.path} is a damaged archive ({error}); fetch or compress it again.") from None


def _split_documents(lines: Iterable[str]) -> Iterator[Document]:
    paragraphs: Document = []
    for line in lines:
        if line.strip():
            paragraphs.append(line)
        elif paragraphs:
            yield paragraphs
            paragraphs = []
    if paragraphs:
        yield paragraphs


def _read_dataset(name: str) -> Iterator[Document]:
    """Stream a Hugging Face data set: the "text" of a row is a document, and its lines are paragraphs."""
    try:
        import datasets
    except ImportError:
        raise CorpusError(f"{name} needs the package datasets; install it with pip install datasets.") from None
    path, _, config_and_split = name.removeprefix("hf:").partition(":")
    config, _, split = config_and_split.partition(":")
    if not path:
        raise CorpusError(f"'{name}' names no data set; write hf:NAME, hf:NAME:CONFIG or hf:NAME:CONFIG:SPLIT.")
    try:
        rows = datasets.load_dataset(path, config or None, split=split or "train", streaming=True)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise CorpusError(f"{name} cannot be read as a Hugging Face data set: {reason[:300]}") from None
    for row in rows:
        if "text" not in row:
            raise CorpusError(f"{name} has no column 'text'; its columns are {', '.join(row)}.")
        yield row["text"].splitlines()


# === Cleaning ===

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffd]")


@dataclass
class Cleaner:
    """A cleaner of documents, which drops repeated paragraphs; `report` counts what the last `clean` read and dropped.

    Using one cleaner for the held-out text and then for the training text removes held-out paragraphs from training.
    """

    seen: set[bytes] = field(default_factory=set)
    report: dict[str, int] = field(default_factory=dict)

    def clean(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield documents with single spaces and without control characters, except those shorter than MIN_WORDS."""
        counts = dict.fromkeys(("documents_read", "short_documents", "paragraphs_read", "repeated_paragraphs"), 0)
        self.report = counts
        for document in documents:
            paragraphs = [" ".join(_CONTROL.sub("", paragraph).split()) for paragraph in document]
            paragraphs = [paragraph for paragraph in paragraphs if paragraph]
            new_paragraphs = [paragraph for paragraph in paragraphs if self._is_new(paragraph)]
            counts["documents_read"] += 1
            counts["paragraphs_read"] += len(paragraphs)
            counts["repeated_paragraphs"] += len(paragraphs) - len(new_paragraphs)
            if sum(paragraph.count(" ") + 1 for paragraph in new_paragraphs) >= MIN_WORDS:
                yield new_paragraphs
            else:
                counts["short_documents"] += 1

    def _is_new(self, paragraph: str) -> bool:
        digest = hashlib.blake2b(paragraph.encode(), digest_size=8).digest()
        if digest in self.seen:
            return False
        self.seen.add(digest)
        return True


# === Sentences ===

_STOP = re.compile(r"""[.!?]+["'”’)\]]*\s+(?=["'“‘(\[]*[^\W\d_a-z])""")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“‘])(?:[^\W\d_]|Mr|Mrs|Ms|Dr|St|Prof|Rev|Gen|Col|Capt|Lt|Sgt|Gov|Sen|Hon|Jr|Sr|Mt|vs|cf|ca|"
    r"Inc|Ltd|Co|Corp|(?:[A-Za-z]\.)+[A-Za-z])$"
)


def split_sentences(paragraph: str) -> list[str]:
    """Split a paragraph into sentences: after . ! or ? (with closing quotes) before white space and a capital.

    It does not split after an initial ("J. Smith"), "U.S." or a common abbreviation ("Mr.", "St.", "Inc.").
    """
    sentences, start = [], 0
    for stop in _STOP.finditer(paragraph):
        mark = paragraph[stop.start() : stop.end()].rstrip()
        if mark == "." and _ABBREVIATION.search(paragraph, max(start, stop.start() - 12), stop.start()):
            continue
        sentences.append(paragraph[start : stop.end()].rstrip())
        start = stop.end()
    sentences.append(paragraph[start:])
    return sentences


# === Several sources ===


def find_training_and_heldout(
    sources: Iterable[str], heldout: Iterable[str]
) -> tuple[list[TextSource], list[TextSource]]:
    """Return the training sources and the held-out ones. Raises CorpusError if no training source is left."""
    heldout_sources = find_sources(heldout)
    train_sources = find_sources(sources, excluded=heldout_sources)
    if not train_sources:
        raise CorpusError("No text is left to train on; name a source that is not held out.")
    return train_sources, heldout_sources


def read_all(sources: list[TextSource], progress: Callable[[str], None] = lambda message: None) -> Iterator[Document]:
    """Read the documents of every source, with a message for each. Raises as `read_documents` does."""
    for source in sources:
        progress(f"reading {source.name}")
        yield from read_documents(source)


def sample_paragraphs(sources: list[TextSource], size: int) -> Iterator[str]:
    """Yield the first paragraphs of every source, equal shares of each: about `size` characters in all."""
    characters_each = size // len(sources)
    for source in sources:
        character_count = 0
        for paragraph in chain.from_iterable(Cleaner().clean(read_documents(source))):
            yield paragraph
            character_count += len(paragraph)
            if character_count >= characters_each:
                break


def batches_of_sentences(documents: Iterable[Document], count: int) -> Iterator[list[Document]]:
    """Yield batches of documents split into sentences, about `count` sentences each."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append([sentence for paragraph in document for sentence in split_sentences(paragraph)])
        size += len(batch[-1])
        if size >= count:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
