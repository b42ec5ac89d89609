"""Tests of a run's tokenizer: it gives the ids of pretraining and of transformers, and another file is refused."""

import json
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import pre_tokenizers
from transformers import AutoTokenizer

from embryo_core import runs
from embryo_core.engine.model import load
from embryo_core.errors import BrokenRun, TokenizerMismatch
from embryo_core.tokenizers.tokenizer import Tokenizer, load_tokenizer
from embryo_core.types import Run
from pretrain.tokenizer import extend, train_tokenizer
from tests.conftest import SAMPLE

TEXTS = ["The river runs through the old town.", "She was born in [MASK]."]


def test_another_tokenizer_is_refused(own_run):
    """The hash shows that tokenizer.json is not the one of pretraining."""
    path = own_run.tokenizer / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    with pytest.raises(TokenizerMismatch, match="not the tokenizer that run 'tiny' was pretrained with"):
        load(runs.checkpoint(own_run, 8))


def test_missing_tokenizer_is_named(own_run):
    """The error names the missing file."""
    (own_run.tokenizer / "tokenizer.json").unlink()
    with pytest.raises(BrokenRun, match=r"tokenizer.json does not exist"):
        load_tokenizer(own_run)


def test_runs_with_equal_tokenizers_share_one_object(own_run: Run, tiny_run: Run):
    """A tokenizer takes megabytes, and a dashboard shows many runs of one design."""
    assert own_run.tokenizer != tiny_run.tokenizer and load_tokenizer(own_run) is load_tokenizer(tiny_run)


def test_tokenizer_is_freed_with_its_last_reference(tiny_run: Run):
    """The memory does not wait for garbage collection, which a server postpones."""
    reference = weakref.ref(Tokenizer(tiny_run.tokenizer / "tokenizer.json", tiny_run.special_tokens))
    assert reference() is None


def test_ids_equal_those_of_auto_tokenizer(tiny_run):
    """Running text with [MASK] gives the ids of transformers' AutoTokenizer."""
    ours, theirs = load_tokenizer(tiny_run), AutoTokenizer.from_pretrained(tiny_run.tokenizer)
    for text in TEXTS:
        assert ours.encode_text(text).tolist() == theirs(text)["input_ids"]
    assert ours.pieces([ours.mask_id, ours.cls_id, ours.sep_id]) == ["[MASK]", "[CLS]", "[SEP]"]


def test_words_are_tokenized_separately(tiny_run):
    """The pieces of a sentence are those of its words in order, each with the index of its word."""
    tokenizer = load_tokenizer(tiny_run)
    words = ["Unforgettable", "rivers", "do", "n't", "run"]
    encoding = tokenizer.encode_words(words)
    for i, word in enumerate(words):
        own = tokenizer.encode_text(word)[1:-1]
        assert encoding.ids[encoding.word_of_piece == i].tolist() == own.tolist()
    assert encoding.word_of_piece.tolist() == sorted(encoding.word_of_piece)


def test_only_known_single_pieces_have_an_id(tiny_run):
    """A word of several pieces and an unknown word have no single piece."""
    tokenizer = load_tokenizer(tiny_run)
    assert tokenizer.pieces([tokenizer.single_piece("the")]) == ["▁the"]
    assert tokenizer.single_piece("unforgettable") is None
    assert tokenizer.single_piece("☃") is None and tokenizer.single_piece("<unk>") is None


def test_word_added_to_the_vocabulary_is_not_a_piece_inside_words(tiny_run: Run, tmp_path: Path):
    """It is one piece as a word; inside another word the text has the pieces that it had before."""
    extend(tiny_run.tokenizer, ["walker"], 1, tmp_path / "extended")
    tokenizer, before = Tokenizer(tmp_path / "extended" / "tokenizer.json"), load_tokenizer(tiny_run)
    assert tokenizer.encode_word("walker").tolist() == [700]
    assert tokenizer.encode_inside("walker").tolist() == before.encode_inside("walker").tolist()


# === Byte-level BPE ===


@pytest.fixture
def byte_level(tmp_path: Path) -> Tokenizer:
    """Return a byte-level BPE tokenizer as pretrain writes it."""
    train_tokenizer((SAMPLE / "text.txt").read_text(encoding="utf-8").splitlines(), 600, tmp_path / "bpe", "bpe")
    return Tokenizer(tmp_path / "bpe" / "tokenizer.json")


@pytest.mark.parametrize("text", ["the [MASK] was", "[MASK] was old .", "the  [MASK] was", "in the [MASK] [MASK] ."])
def test_mask_replaces_a_word_with_the_space_before_it(byte_level: Tokenizer, text: str):
    """As in pretraining, which masks pieces such as "Ġriver"."""
    filled, mask = byte_level.encode_text(text.replace("[MASK]", "river")).tolist(), byte_level.mask_id
    (river,) = byte_level.encode_word("river").tolist()
    assert byte_level.encode_text(text).tolist() == [mask if one == river else one for one in filled]
    assert byte_level.encode_at_mask(text, "river").tolist() == [river]


def test_words_are_split_as_text(byte_level: Tokenizer):
    """Pretraining counts words in this form, without the space before them."""
    assert byte_level.split_words("The café, (naïve)") == ["The", "café", ",", "(", "naïve", ")"]


# === Tokenizers of other projects ===


def with_tokenizer(run: Run, change: Callable[[dict[str, Any]], object]) -> Run:
    """Change the tokenizer.json of a run as if the run had been pretrained with it."""
    path = run.tokenizer / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    runs.write_json(path, content)
    return replace(run, tokenizer_sha256=runs.sha256(path))


def rename(old: str, new: str) -> Callable[[dict[str, Any]], object]:
    """Return a function that renames one special token."""

    def change(content: dict[str, Any]) -> None:
        text = json.dumps(content)
        content |= json.loads(text.replace(json.dumps(old), json.dumps(new)))

    return change


def spread_ids(content: dict[str, Any]) -> None:
    """Reduce the vocabulary to five pieces whose ids leave gaps."""
    pieces = {token["content"]: 1000 * token["id"] for token in content["added_tokens"]}
    content["model"] = {"type": "WordLevel", "unk_token": "<unk>", "vocab": pieces}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (rename("[MASK]", "[mask]"), r"no token \[MASK\]"),
        (spread_ids, "the id 4000, but has 5 pieces"),
        (lambda content: content["normalizer"]["normalizers"][0]["pattern"].update(Regex="(("), "cannot be read as"),
        (lambda content: content.update(pre_tokenizer={"type": "FixedLength", "length": 0}), "cannot be read as"),
        (lambda content: content.update(model={"type": "Unigram", "unk_id": 9, "vocab": []}), "cannot be read as"),
    ],
    ids=("no mask", "id beyond the pieces", "bad pattern", "panic", "no pieces"),
)
def test_unusable_tokenizer_raises_broken_run(own_run: Run, change: Callable, message: str):
    """The error names the file, even if the library's Rust code panics, which raises no subclass of Exception."""
    with pytest.raises(BrokenRun, match=rf"tokenizer\.json .*{message}"):
        load_tokenizer(with_tokenizer(own_run, change))


@pytest.mark.parametrize(("part", "words"), [("normalizer", ["The", "end"]), ("pre_tokenizer", ["the end"])])
def test_normaliser_and_pre_tokenizer_are_optional(own_run: Run, part: str, words: list[str]):
    """Without a normaliser capitals are kept, and without a pre-tokenizer the text stays whole."""
    tokenizer = load_tokenizer(with_tokenizer(own_run, lambda content: content.update({part: None})))
    assert tokenizer.split_words("The end") == words


@pytest.mark.parametrize(
    ("cutter", "mark"),
    [
        (pre_tokenizers.ByteLevel(add_prefix_space=False), "Ġ"),
        (pre_tokenizers.Metaspace(), "▁"),
        (pre_tokenizers.BertPreTokenizer(), ""),
    ],
    ids=("byte-level", "SentencePiece", "WordPiece"),
)
def test_word_start_is_known_without_latin_pieces(own_run: Run, cutter, mark: str):
    """In a vocabulary of another script, no piece begins a word with "a"."""

    def change(content: dict[str, Any]) -> None:
        pieces = [token["content"] for token in content["added_tokens"]] + ["α", "Ġ", "▁", "a"]
        content["model"] = {"type": "WordLevel", "unk_token": "<unk>", "vocab": {p: i for i, p in enumerate(pieces)}}
        content["pre_tokenizer"] = json.loads(cutter.__getstate__())

    assert load_tokenizer(with_tokenizer(own_run, change)).word_start == mark


def test_word_start_of_gemma_is_known(own_run: Run):
    """Its normaliser writes "▁" for a space, so that its pre-tokenizer, which splits at spaces, never splits."""

    def change(content: dict[str, Any]) -> None:
        pieces = [token["content"] for token in content["added_tokens"]] + ["a", "▁", "▁a"]
        vocabulary = {piece: i for i, piece in enumerate(pieces)}
        content["model"] = {"type": "BPE", "unk_token": "<unk>", "vocab": vocabulary, "merges": ["▁ a"]}
        content["normalizer"] = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
        splitter = pre_tokenizers.Split(" ", "merged_with_previous")
        content["pre_tokenizer"] = json.loads(splitter.__getstate__())

    tokenizer = load_tokenizer(with_tokenizer(own_run, change))
    assert tokenizer.word_start == "▁" and tokenizer.readable(tokenizer.encode_text("a a")[1:-1]) == ["##a", "a"]
    (encoding,) = tokenizer.encode_sentences(["a aa a"])
    assert encoding.word_of_piece.tolist() == [0, 1, 1, 2] and encoding.spans.tolist() == [[0, 1], [1, 3], [3, 4]]
