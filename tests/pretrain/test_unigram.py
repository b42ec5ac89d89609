"""Tests of the Unigram vocabulary: words as in the Penn treebank, their pieces, and where words begin."""

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from pretrain.tokenizer import is_word_start, load, split_words, train_tokenizer
from pretrain.vocabularies import CLS, MASK, PAD, SEP, UNK, Unigram

CONTRACTIONS = ["do", "not", "n't", "it", "'s", "we", "'ll", "you", "'re", "i", "'ve", "he", "'d", "'m", ",", "."]


@pytest.fixture(scope="module")
def lines(sample: Path) -> list[str]:
    """Return the lines of the sample text, and contractions that are frequent enough to become pieces."""
    text = (sample / "text.txt").read_text(encoding="utf-8").splitlines()
    return text + ["I don't think it's so, we'll see; you're right, I've said he'd go and I'm sure."] * 20


@pytest.fixture(scope="module")
def folder(lines: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a tokenizer of 600 pieces and return its folder."""
    path = tmp_path_factory.mktemp("run") / "tokenizer"
    train_tokenizer(lines, 600, path)
    return path


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Tokenizer:
    """Load that tokenizer."""
    return load(folder)


def pieces_of_words(tokenizer: Tokenizer, words: list[str]) -> list[int]:
    """Return the ids of words, each of which is tokenized alone."""
    return [i for word in words for i in tokenizer.encode(word, add_special_tokens=False).ids]


def test_special_tokens_have_the_ids_of_albert(tokenizer: Tokenizer) -> None:
    """<pad> <unk> [CLS] [SEP] [MASK] are 0 to 4, and the vocabulary has the requested size."""
    ids = [tokenizer.token_to_id(token) for token in Unigram.special_tokens]
    assert ids == [PAD, UNK, CLS, SEP, MASK] == [0, 1, 2, 3, 4]
    assert tokenizer.get_vocab_size() == 600


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't know.", ["I", "do", "n't", "know", "."]),
        ("He can’t, she WON'T", ["He", "ca", "n’t", ",", "she", "WO", "N'T"]),
        ("It's we'll you're I've he'd I'm", ["It", "'s", "we", "'ll", "you", "'re", "I", "'ve", "he", "'d", "I", "'m"]),
        ("“Smith’s” (dogs') food", ["“", "Smith", "’s", "”", "(", "dogs", "'", ")", "food"]),
        ("We cannot; I'm gonna, cannots", ["We", "can", "not", ";", "I", "'m", "gon", "na", ",", "cannots"]),
        ("the 19th century, $1,000.50 in 1980s", ["the", "19th", "century", ",", "$1,000.50", "in", "1980s"]),
        ("wait... the U.S. -- no—yes well-known", ["wait", "...", "the", "U.S.", "--", "no", "—", "yes", "well-known"]),
        ("``so''", ["``", "so", "''"]),
        ("Café naïve\u00ad ﬁne", ["cafe", "naive", "fine"]),
    ],
)
def test_running_text_and_treebank_words_give_the_same_pieces(
    tokenizer: Tokenizer, text: str, words: list[str]
) -> None:
    """A text has the same pieces as its Penn treebank words, each of which is tokenized alone."""
    assert tokenizer.encode(text, add_special_tokens=False).ids == pieces_of_words(tokenizer, words)


def test_contractions_are_single_pieces(tokenizer: Tokenizer) -> None:
    """Frequent words that are part of no other word, such as "n't" and ",", become pieces."""
    assert [tokenizer.encode(word, add_special_tokens=False).tokens for word in CONTRACTIONS] == [
        ["▁" + word] for word in CONTRACTIONS
    ]


def test_only_the_first_piece_of_a_word_starts_a_word(tokenizer: Tokenizer, lines: list[str]) -> None:
    """is_word_start marks no other piece of a word and no special token."""
    starts = is_word_start(tokenizer)
    assert starts.dtype == bool and starts.shape == (600,) and not starts[:5].any()
    for line in lines[:30]:
        words = split_words(tokenizer, line)
        ids = [tokenizer.encode(word.removeprefix("▁"), add_special_tokens=False).ids for word in words]
        assert all(starts[word[0]] and not starts[word[1:]].any() for word in map(np.array, ids))


def test_unknown_character_still_begins_a_word(tokenizer: Tokenizer) -> None:
    """A word in an unknown script has the pieces "▁" and <unk>."""
    assert tokenizer.encode("宗瑞", add_special_tokens=False).ids == [tokenizer.token_to_id("▁"), UNK]


@pytest.mark.parametrize("text", ["It is [MASK].", "(it is [MASK])", "it is[MASK], so", "'[MASK]'s"])
def test_mask_is_one_token_next_to_punctuation(tokenizer: Tokenizer, text: str) -> None:
    """The text before and after [MASK] has the pieces that it has alone."""
    before, after = text.split("[MASK]")
    expected = [*pieces_of_words(tokenizer, [before]), MASK, *pieces_of_words(tokenizer, [after])]
    assert tokenizer.encode(text, add_special_tokens=False).ids == expected


def test_transformers_reads_the_tokenizer_folder(folder: Path, tokenizer: Tokenizer) -> None:
    """AutoTokenizer gives the same ids and segment types, knows the special tokens, and accepts lists of words."""
    loaded = AutoTokenizer.from_pretrained(folder)
    special = (loaded.pad_token, loaded.unk_token, loaded.cls_token, loaded.sep_token, loaded.mask_token)
    assert special == Unigram.special_tokens
    assert (loaded.mask_token_id, loaded.model_max_length, len(loaded)) == (MASK, 512, 600)
    pair = loaded("I don't.", "Yes [MASK]!")
    encoding = tokenizer.encode("I don't.", "Yes [MASK]!")
    assert pair["input_ids"] == encoding.ids
    assert pair["token_type_ids"] == encoding.type_ids == [0] * 6 + [1] * (len(encoding.ids) - 6)
    words = loaded(["I", "do", "n't", "[MASK]", "."], is_split_into_words=True)
    assert words.word_ids() == [None, 0, 1, 2, 3, 4, None]
    assert words["input_ids"] == tokenizer.encode("I don't [MASK].").ids
    assert loaded.decode(loaded("We see it.")["input_ids"], skip_special_tokens=True) == "we see it ."
