"""Tests of prepared corpora: stored tokens, fingerprints, interrupted preparation, and damaged caches."""

import json
import lzma
import os
import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from embryo_core import runs
from embryo_core.errors import CorpusError
from pretrain import corpus as corpora
from pretrain.corpus import CHECKSUM_FILE, Corpus, open_corpus, prepare
from pretrain.text_sources import split_sentences
from pretrain.tokenizer import load, split_words
from pretrain.vocabularies import Unigram
from pretrain.word_counts import count_words, write_frequencies


@pytest.fixture(scope="module")
def texts(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write documents of the sample text to a file for training and a held-out file; return their folder."""
    lines = [line for line in (sample / "text.txt").read_text(encoding="utf-8").splitlines() if line]
    folder = tmp_path_factory.mktemp("texts")
    documents = ["\n".join(lines[i : i + 4]) for i in range(0, len(lines), 4)]
    (folder / "train.txt").write_text("\n\n".join(documents[5:]) + "\n\n" + lines[0], encoding="utf-8")
    (folder / "zheldout.txt").write_text("\n\n".join(documents[:5]), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def corpus(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Prepare this folder with 500 pieces and its second file held out; return the corpus."""
    return prepare([str(texts)], [str(texts / "zheldout.txt")], 500, tmp_path_factory.mktemp("cache"))


def files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a folder, by its path there."""
    return {str(path.relative_to(folder)): runs.sha256(path) for path in folder.rglob("*") if path.is_file()}


def test_stored_tokens_equal_tokenized_text(corpus: Corpus, texts: Path) -> None:
    """The stored arrays have the sentences and documents of the held-out file, token for token."""
    tokenizer = load(corpus.tokenizer_folder)
    text = corpus.heldout
    documents = (texts / "zheldout.txt").read_text(encoding="utf-8").split("\n\n")
    assert len(text.documents) == len(documents) + 1 and text.tokens.dtype == np.uint16
    for number, document in enumerate(documents):
        first, last = text.documents[number : number + 2]
        sentences = [sentence for line in document.splitlines() for sentence in split_sentences(line)]
        assert last - first == len(sentences)
        for sentence, begin, end in zip(sentences, text.sentences[first:], text.sentences[first + 1 :], strict=False):
            assert text.tokens[begin:end].tolist() == tokenizer.encode(sentence, add_special_tokens=False).ids
    assert text.sentences[-1] == len(text.tokens) and text.documents[-1] == len(text.sentences) - 1


def test_heldout_text_is_not_trained_on(corpus: Corpus) -> None:
    """A held-out file inside a folder of sources is left out, and so is a held-out paragraph in another file."""
    assert [source["name"] for source in corpus.fingerprint["sources"]] == ["train.txt"]
    assert corpus.fingerprint["train"]["cleaning"]["repeated_paragraphs"] == 1
    assert corpus.fingerprint["train"]["cleaning"]["short_documents"] == 1


def test_fingerprint_contains_counts_and_no_path(corpus: Corpus, texts: Path) -> None:
    """It also has the hashes of the files on disk."""
    fingerprint = corpus.fingerprint
    assert fingerprint["train"]["tokens"] == len(corpus.train.tokens) > 1000
    assert fingerprint["train"]["documents"] == len(corpus.train.documents) - 1
    assert fingerprint["train"]["tokens_sha256"] == runs.sha256(corpus.folder / "train" / "tokens.bin")
    assert fingerprint["tokenizer_sha256"] == runs.sha256(corpus.tokenizer_folder / "tokenizer.json")
    assert str(texts.parent) not in json.dumps(fingerprint)


def test_corpus_is_prepared_once(corpus: Corpus, texts: Path) -> None:
    """The same sources open the same folder without further work; other settings make another folder."""
    messages: list[str] = []
    arguments = [str(texts)], [str(texts / "zheldout.txt")]
    again = prepare(*arguments, 500, corpus.folder.parent, messages.append)
    assert again.folder == corpus.folder and messages == [] and again.fingerprint == corpus.fingerprint
    assert prepare(*arguments, 400, corpus.folder.parent, messages.append).folder != corpus.folder and messages


@pytest.mark.parametrize("part", ["tokenizer", "heldout", "train"])
def test_interrupted_preparation_is_completed(
    corpus: Corpus, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Wherever it was interrupted, the same call ends with the files of an uninterrupted preparation."""
    arguments = [str(texts)], [str(texts / "zheldout.txt")], 500, tmp_path
    replace = os.replace

    def stop(source: Path, target: Path) -> None:
        if Path(target).name == part:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            prepare(*arguments)
    folder = tmp_path / corpus.folder.name
    assert not (folder / part).exists()
    with pytest.raises(CorpusError, match="holds no prepared corpus"):
        open_corpus(folder)
    prepare(*arguments)
    assert files(folder) == files(corpus.folder)


@pytest.mark.parametrize(("files", "counted"), [(1, "1 source"), (2, "2 sources")])
def test_number_of_sources_is_reported(corpus: Corpus, texts: Path, tmp_path: Path, files, counted) -> None:
    """The first message says that the tokenizer is trained on them."""
    messages = []
    prepare([str(texts / "train.txt"), str(texts / "zheldout.txt")][:files], [], 500, tmp_path, messages.append)
    assert messages[0] == f"training the tokenizer on {counted}"


def test_second_training_waits_for_preparation(corpus: Corpus, texts: Path, tmp_path: Path) -> None:
    """It says that it waits, writes nothing meanwhile, and opens the corpus that the first has prepared."""
    folder = tmp_path / corpus.folder.name
    waits, messages = Event(), []

    def progress(message: str) -> None:
        messages.append(message)
        waits.set()

    with ThreadPoolExecutor(1) as second:
        with runs.locked(folder):
            prepared = second.submit(prepare, [str(texts)], [str(texts / "zheldout.txt")], 500, tmp_path, progress)
            assert waits.wait(60) and not any(folder.iterdir())
            shutil.copytree(corpus.folder, folder, dirs_exist_ok=True)
        assert prepared.result(60).fingerprint == corpus.fingerprint
    assert messages == ["waiting for another process that prepares the same text"]


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES = {"flipped": _flip, "cut short": lambda path: os.truncate(path, 7), "removed": Path.unlink}
FILES = ("corpus.json", "train/tokens.bin", "train/sentences.npy", "heldout/documents.npy", "tokenizer/tokenizer.json")


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize("name", FILES)
def test_error_names_damaged_folder_to_delete(
    corpus: Corpus, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    """A flipped bit, a truncated file and a missing file each raise an error of one line."""
    folder = Path(shutil.copytree(corpus.folder, tmp_path / "cache"))
    assert open_corpus(folder).fingerprint == corpus.fingerprint
    damage(folder / name)
    with pytest.raises(CorpusError, match=rf"{folder}.*(delete {folder} and|holds no prepared corpus)") as error:
        open_corpus(folder)
    assert "\n" not in str(error.value)


def test_corpus_of_earlier_version_gets_checksums(corpus: Corpus, tmp_path: Path) -> None:
    """They are written when it is first opened; a part that cannot be read is reported then."""
    folder = Path(shutil.copytree(corpus.folder, tmp_path / "cache"))
    (folder / CHECKSUM_FILE).unlink()
    open_corpus(folder)
    assert files(folder) == files(corpus.folder)
    (folder / CHECKSUM_FILE).unlink()
    (folder / "train" / "sentences.npy").write_bytes(b"x")
    with pytest.raises(CorpusError, match=f"train cannot be read .*; delete {folder} and start again"):
        open_corpus(folder)


def test_empty_corpus_is_refused(texts: Path, tmp_path: Path) -> None:
    """Each cause has a message: no source left, no usable document, too many pieces; no empty corpus is kept."""
    train = str(texts / "train.txt")
    with pytest.raises(CorpusError, match="No text is left to train on"):
        prepare([train], [train], 500, tmp_path)
    (tmp_path / "empty.txt").write_text("\n\ntoo short\n")
    with pytest.raises(CorpusError, match=r"corpus is empty: empty.txt has no document"):
        prepare([str(tmp_path / "empty.txt")], [], 500, tmp_path / "cache")
    (tmp_path / "copy.txt").write_bytes((texts / "train.txt").read_bytes())
    with pytest.raises(CorpusError, match=r"corpus is empty: copy.txt has no document"):
        prepare([str(tmp_path / "copy.txt")], [train], 500, tmp_path / "cache")
    with pytest.raises(CorpusError, match=r"held-out text is empty: empty.txt has no document of at least 8 words"):
        prepare([train], [str(tmp_path / "empty.txt")], 500, tmp_path / "cache")
    assert not files(tmp_path / "cache")
    with pytest.raises(CorpusError, match="100,000 pieces"):
        prepare([train], [], 100_000, tmp_path)


def test_frequencies_equal_word_counts_of_text(corpus: Corpus, texts: Path, tmp_path: Path) -> None:
    """Words are counted in the token ids and written by rank; words with an unknown piece are left out."""
    tokenizer = load(corpus.tokenizer_folder)
    lines = (texts / "train.txt").read_text(encoding="utf-8").splitlines()[:-1]  # the last is held out
    words = Counter(word.removeprefix(Unigram.word_start) for line in lines for word in split_words(tokenizer, line))
    unknown = {word for word in words if 1 in tokenizer.encode(word).ids}
    assert count_words(corpus) == Counter({word: n for word, n in words.items() if word not in unknown})
    write_frequencies(count_words(corpus), tmp_path / "frequencies.tsv")
    rows = [line.split("\t") for line in (tmp_path / "frequencies.tsv").read_text(encoding="utf-8").splitlines()]
    assert rows == sorted(rows, key=lambda row: (-int(row[1]), row[0])) and dict(rows)["the"] == str(words["the"])


def test_byte_level_words_are_split_at_marks(tmp_path: Path) -> None:
    """Words after a quotation mark, a bracket or a dash are counted alone, as the tokenizer was trained on them."""
    text = "“The old man (born here) wrote—as before—that he isn't well?! She read it (the letter) aloud.\n\n"
    (tmp_path / "text.txt").write_text(text * 40, encoding="utf-8")
    corpus = prepare([str(tmp_path / "text.txt")], [], 300, tmp_path / "cache", tokenizer="bpe")
    words = "“ The old man ( born here ) wrote — as before — that he isn 't well ?! She read it ( the letter ) aloud ."
    sentences = len(corpus.train.documents) - 1
    assert count_words(corpus) == Counter({word: n * sentences for word, n in Counter(words.split()).items()})


def test_real_text_has_few_unknown_tokens(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 1,000 pieces, less than 0.2 % of the tokens in 600,000 characters of Wikipedia are unknown."""
    monkeypatch.setattr(corpora, "SAMPLE_CHARACTERS", 500_000)
    with lzma.open(shared_data / "corpus" / "wikipedia" / "wikipedia-013.txt.xz", "rt", encoding="utf-8") as shard:
        (tmp_path / "part.txt").write_text(shard.read(600_000), encoding="utf-8")
    corpus = prepare([str(tmp_path / "part.txt")], [], 1000, tmp_path)
    assert corpus.fingerprint["train"]["documents"] > 200
    assert (corpus.train.tokens == 1).mean() < 0.002
