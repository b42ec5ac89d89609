"""A run's tokenizer gives the ids that pretraining and transformers give, and another one is refused."""

import pytest
from transformers import AutoTokenizer

from embryo_core import runs
from embryo_core.engine.model import load
from embryo_core.engine.tokenizer import load_tokenizer
from embryo_core.errors import BrokenRun, TokenizerMismatch

TEXTS = ["The river runs through the old town.", "She was born in [MASK]."]



def test_another_tokenizer_is_refused(own_run):
    """A tokenizer.json that is not the one of pretraining is known by its hash."""
    path = own_run.tokenizer / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    with pytest.raises(TokenizerMismatch, match="not the tokenizer that run 'tiny' was pretrained with"):
        load(runs.checkpoint(own_run, 8))


def test_a_missing_tokenizer_is_named(own_run):
    """The error names the file that has to come back."""
    (own_run.tokenizer / "tokenizer.json").unlink()
    with pytest.raises(BrokenRun, match=r"tokenizer.json does not exist"):
        load_tokenizer(own_run)


def test_the_tokenizer_is_that_of_auto_tokenizer(tiny_run):
    """Running text with [MASK] gives the ids that transformers' AutoTokenizer gives."""
    ours, theirs = load_tokenizer(tiny_run), AutoTokenizer.from_pretrained(tiny_run.tokenizer)
    for text in TEXTS:
        assert ours.encode_text(text).tolist() == theirs(text)["input_ids"]
    assert ours.pieces([ours.mask_id, ours.cls_id, ours.sep_id]) == ["[MASK]", "[CLS]", "[SEP]"]


def test_words_are_tokenized_on_their_own(tiny_run):
    """The pieces of a sentence are those of its words in turn, each with the number of its word."""
    tokenizer = load_tokenizer(tiny_run)
    words = ["Unforgettable", "rivers", "do", "n't", "run"]
    encoding = tokenizer.encode_words(words)
    for i, word in enumerate(words):
        own = tokenizer.encode_text(word)[1:-1]
        assert encoding.ids[encoding.word_of_piece == i].tolist() == own.tolist()
    assert encoding.word_of_piece.tolist() == sorted(encoding.word_of_piece)


def test_a_single_piece_is_a_known_word(tiny_run):
    """A word of several pieces, and one that is unknown, have no single piece."""
    tokenizer = load_tokenizer(tiny_run)
    assert tokenizer.pieces([tokenizer.single_piece("the")]) == ["▁the"]
    assert tokenizer.single_piece("unforgettable") is None
    assert tokenizer.single_piece("☃") is None
