"""Tests of the WordPiece vocabulary: pieces as by BERT's tokenizer, "##" inside words, and where words begin."""

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer, BertTokenizer

from pretrain.tokenizer import is_word_start, load, split_words, train_tokenizer
from pretrain.vocabularies import CLS, MASK, PAD, SEP, UNK, WordPiece

TEXTS = [
    "I don't know, said Émile; it COSTS $1,000.50!",
    "The understatement of the [MASK] century -- in 東京?",
    "naïve\u00ad ﬁne\twell-known...",
]


@pytest.fixture(scope="module")
def lines(sample: Path) -> list[str]:
    """Return the lines of the sample text."""
    return (sample / "text.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def folder(lines: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a tokenizer of 700 pieces and return its folder."""
    path = tmp_path_factory.mktemp("run") / "tokenizer"
    train_tokenizer(lines, 700, path, "wordpiece")
    return path


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Tokenizer:
    """Load that tokenizer."""
    return load(folder)


def test_special_tokens_come_first(tokenizer: Tokenizer):
    """[PAD] [UNK] [CLS] [SEP] [MASK] are 0 to 4, and the vocabulary has the requested size."""
    ids = [tokenizer.token_to_id(token) for token in WordPiece.special_tokens]
    assert ids == [PAD, UNK, CLS, SEP, MASK] == [0, 1, 2, 3, 4]
    assert tokenizer.get_vocab_size() == 700


def test_transformers_reads_both_files_alike(folder: Path, tokenizer: Tokenizer):
    """AutoTokenizer with tokenizer.json and BertTokenizer with vocab.txt give the same ids as ours."""
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    by_file = BertTokenizer(vocab={piece: i for i, piece in enumerate(vocabulary)}, do_lower_case=True)
    for loaded in (AutoTokenizer.from_pretrained(folder), by_file):
        assert loaded.mask_token_id == MASK and len(loaded) == 700
        for text in TEXTS:
            assert loaded(text)["input_ids"] == tokenizer.encode(text).ids


def test_words_are_cut_greedily(tokenizer: Tokenizer, lines: list[str]):
    """Each piece is the longest prefix of the rest of the word; all but the first begin with "##"."""
    vocabulary = tokenizer.get_vocab()
    for word in {word for line in lines for word in split_words(tokenizer, line)}:
        expected, rest = [], word
        while rest:
            mark = "##" if expected else ""
            fitting = [n for n in range(1, len(rest) + 1) if mark + rest[:n] in vocabulary]
            if not fitting:
                expected = ["[UNK]"]
                break
            expected.append(mark + rest[: fitting[-1]])
            rest = rest[fitting[-1] :]
        assert tokenizer.encode(word, add_special_tokens=False).tokens == expected


def test_frequent_words_and_endings_are_pieces(tokenizer: Tokenizer):
    """The vocabulary is trained by byte-pair encoding, which joins frequent pairs of pieces."""
    assert {"the", "and", "##ing", "##ed"} <= set(tokenizer.get_vocab())


def test_only_the_first_piece_of_a_word_starts_a_word(tokenizer: Tokenizer, lines: list[str]):
    """[UNK] is a whole word; no other special token starts a word."""
    starts = is_word_start(tokenizer)
    assert starts[UNK] and not starts[[PAD, CLS, SEP, MASK]].any()
    for line in lines[:30]:
        words = [np.array(tokenizer.encode(w, add_special_tokens=False).ids) for w in split_words(tokenizer, line)]
        assert all(starts[word[0]] and not starts[word[1:]].any() for word in words)
