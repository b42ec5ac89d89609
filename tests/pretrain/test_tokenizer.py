"""Tests of the tokenizer's folder for every kind of vocabulary: reproducible files, whole words, and refusals."""

from pathlib import Path

import numpy as np
import pytest

from embryo_core.errors import CorpusError
from pretrain.tokenizer import load, split_words, train_tokenizer, word_of, word_starts
from pretrain.vocabularies import VOCABULARIES


@pytest.fixture(scope="module")
def lines(sample: Path) -> list[str]:
    """Return the lines of the sample text."""
    return (sample / "text.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_same_text_gives_the_same_files(kind: str, lines: list[str], tmp_path: Path):
    """After two trainings, all files are equal byte for byte."""
    for name in ("once", "again"):
        train_tokenizer(iter(lines), 600, tmp_path / name, kind)
    for path in (tmp_path / "once").iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_pieces_are_joined_into_their_word(kind: str, lines: list[str], tmp_path: Path):
    """A word with an unknown character gives None, except for BPE, whose bytes can spell every character."""
    train_tokenizer(iter(lines), 600, tmp_path / "tokenizer", kind)
    tokenizer = load(tmp_path / "tokenizer")
    ids = tokenizer.encode("Understatement", add_special_tokens=False).ids
    assert len(ids) > 1 and word_of(tokenizer, ids) == ("Understatement" if kind == "bpe" else "understatement")
    unknown = word_of(tokenizer, tokenizer.encode("宗", add_special_tokens=False).ids)
    assert unknown == ("宗" if kind == "bpe" else None)


def test_byte_level_word_begins_at_a_space_or_a_mark():
    """Marks outside ASCII begin a word too: a space, a dash, a quotation mark; bytes of "é" and of a dash do not."""
    pieces = ["Ġthe", "(", "âĢĶ", "âĢľ", "the", "Ã©", "âĢ", "[CLS]"]
    assert [VOCABULARIES["bpe"].begins_word(piece) for piece in pieces] == [True] * 4 + [False] * 4


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_words_of_the_pieces_are_those_of_the_text(kind: str, lines: list[str], tmp_path: Path):
    """In bytes, "(born" and "1980s" are two words each, although no piece shows that "born" and "s" begin one."""
    text = "She (born in the 1980s) read a naïve e-mail 3.14 times"
    train_tokenizer([*lines, *[text] * 30], 600, tmp_path / "tokenizer", kind)
    tokenizer = load(tmp_path / "tokenizer")
    ids = np.array(tokenizer.encode(text, add_special_tokens=False).ids)
    starts = word_starts(tokenizer)(ids, np.roll(ids, 1))
    words = [word_of(tokenizer, word.tolist()) for word in np.split(ids, np.flatnonzero(starts))[1:]]
    assert words == [VOCABULARIES[kind].word([word]) for word in split_words(tokenizer, text)]


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_more_characters_than_pieces_are_refused(kind: str, tmp_path: Path):
    """Chinese, for example, needs a larger vocabulary; the message does not ask for more text or a smaller one."""
    signs = [chr(0x4E00 + i) for i in range(500)]
    text = [" ".join(one + other for one, other in zip(signs, signs[i:] + signs[:i], strict=True)) for i in (1, 7)]
    with pytest.raises(CorpusError, match=r"characters for [\d,]+ pieces, and a vocabulary of 200 .* a larger one"):
        train_tokenizer(text, 200, tmp_path / "tokenizer", kind)


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_too_little_text_for_the_vocabulary_is_refused(kind: str, tmp_path: Path):
    """Neither a short nor an empty text leaves a folder behind."""
    with pytest.raises(CorpusError, match="too small for a vocabulary of 5,000 pieces"):
        train_tokenizer(["one two three"] * 5, 5000, tmp_path / "tokenizer", kind)
    with pytest.raises(CorpusError, match="0 different words"):
        train_tokenizer([], 100, tmp_path / "tokenizer", kind)
    assert not (tmp_path / "tokenizer").exists()


def test_folder_without_tokenizer_is_refused(tmp_path: Path):
    """The message names the missing file."""
    with pytest.raises(CorpusError, match=r"tokenizer.json does not exist"):
        load(tmp_path)
