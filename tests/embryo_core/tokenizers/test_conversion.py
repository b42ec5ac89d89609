"""Tests of converting other tokenizers to a tokenizer.json that cuts text as transformers does."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import tokenizers
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer
from transformers import (
    AlbertConfig,
    AlbertTokenizer,
    AutoTokenizer,
    BertConfig,
    BertTokenizer,
    DebertaV2Config,
    RobertaConfig,
    RobertaTokenizer,
)

from embryo_core.errors import BrokenRun, BrokenTokenizer
from embryo_core.finetune.sequences import encode
from embryo_core.query.question import read_question
from embryo_core.tokenizers.conversion import convert_tokenizer, has_tokenizer
from embryo_core.tokenizers.tokenizer import Tokenizer
from tests.conftest import SAMPLE

TEXT = "The river runs to the sea ."


def wordpiece(folder: Path) -> None:
    """Write a WordPiece tokenizer with BERT's vocab.txt."""
    trained = BertWordPieceTokenizer()
    trained.train([str(SAMPLE / "text.txt")], vocab_size=500, show_progress=False)
    trained.save_model(str(folder))
    BertTokenizer.from_pretrained(folder).save_pretrained(folder)
    BertConfig().save_pretrained(folder)


def sentence_piece(folder: Path) -> None:
    """Write ALBERT's spiece.model and no other file that transformers would prefer."""
    special = "--pad_id=0 --unk_id=1 --bos_id=-1 --eos_id=-1 --control_symbols=[CLS],[SEP] "
    special += "--user_defined_symbols=[MASK]"
    sentencepiece.SentencePieceTrainer.train(
        f"--input={SAMPLE / 'text.txt'} --model_prefix={folder / 'spiece'} --vocab_size=400 --minloglevel=2 {special}"
    )
    AlbertConfig().save_pretrained(folder)
    AlbertTokenizer.from_pretrained(folder).save_pretrained(folder)


def byte_level(folder: Path) -> None:
    """Write a byte-level BPE tokenizer with RoBERTa's vocab.json and merges.txt."""
    trained = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained.train([str(SAMPLE / "text.txt")], vocab_size=600, special_tokens=special, show_progress=False)
    trained.save_model(str(folder))
    RobertaTokenizer.from_pretrained(folder).save_pretrained(folder)
    RobertaConfig().save_pretrained(folder)


@pytest.fixture(params=[wordpiece, sentence_piece, byte_level], ids=lambda make: make.__name__)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a folder with a tokenizer of one kind."""
    request.param(tmp_path)
    return tmp_path


def read(folder: Path) -> Tokenizer:
    """Return the converted tokenizer as a run reads it."""
    text, special, _ = convert_tokenizer(folder)
    path = folder / "kept.json"
    path.write_text(text, encoding="utf-8")
    return Tokenizer(path, special)


def test_text_is_cut_as_by_transformers(folder):
    """Ids agree for words joined to running text, and for a mask in place of a word and its space."""
    own, theirs = read(folder), AutoTokenizer.from_pretrained(folder)
    masked = TEXT.replace("river", "[MASK]")
    assert own.encode_text(masked).tolist() == theirs(masked.replace(" [MASK]", theirs.mask_token)).input_ids
    assert own.encode_words(TEXT.split()).ids.tolist() == theirs(TEXT, add_special_tokens=False).input_ids
    assert (own.mask_id, own.cls_id, own.sep_id) == (theirs.mask_token_id, *theirs("").input_ids)
    assert own.vocabulary_size == len(theirs)


def test_pairs_are_framed_as_by_transformers(folder):
    """Ids, segments and mask agree for padded texts and pairs; RoBERTa has two separators."""
    own, theirs = read(folder), AutoTokenizer.from_pretrained(folder)
    pairs = [(TEXT, "The king sat ."), ("A house", TEXT)]
    for texts in (pairs, [(TEXT,), ("A house",)]):
        expected = theirs(*map(list, zip(*texts, strict=True)), padding=True, return_token_type_ids=True)
        ids, segments, mask = encode(texts, own, 64).batch(np.arange(2))
        assert ids.tolist() == expected["input_ids"] and mask.tolist() == expected["attention_mask"]
        assert segments.tolist() == expected["token_type_ids"]
    cut = theirs(*map(list, zip(*pairs, strict=True)), truncation="longest_first", max_length=12)["input_ids"]
    assert list(map(len, cut)) == encode(pairs, own, 12).lengths.tolist() == [12, 12]


def test_pairs_without_post_processor_get_the_special_tokens(folder):
    """The frame is [CLS] first [SEP] second [SEP], with segment 1 for the second text."""
    tokenizer = read(folder)
    tokenizer._tokenizer.post_processor = None
    one, two = tokenizer.frame(1), tokenizer.frame(2)
    assert [part.tolist() for part in two.ids] == [[tokenizer.cls_id], [tokenizer.sep_id], [tokenizer.sep_id]]
    assert (len(one.ids), one.first, two.first) == (2, None, 1)


def test_pieces_inside_words_are_marked_in_every_kind(folder):
    """The first piece of a word is shown plain, later ones after "##", whatever marks them in the vocabulary."""
    tokenizer = read(folder)
    shown = tokenizer.readable(tokenizer.encode_text("a riverside")[2:-1])
    assert not shown[0].startswith("##") and all(piece.startswith("##") for piece in shown[1:])
    assert "".join(piece.removeprefix("##") for piece in shown) == "riverside"
    assert tokenizer.single_piece("the") == tokenizer.encode_text("a the")[-2]
    assert tokenizer.single_piece("riverside") is None


def test_text_inside_a_word_has_no_piece_that_begins_one(folder):
    """SentencePiece would put its mark of a space before the text, and WordPiece no "##"."""
    tokenizer = read(folder)
    shown = tokenizer.readable(tokenizer.encode_inside("riverside"))
    assert len(shown) > 1 and all(piece.startswith("##") for piece in shown)
    assert "".join(piece.removeprefix("##") for piece in shown) == "riverside"


def change(folder: Path, **members: object) -> Path:
    """Change members of a folder's tokenizer.json and return its path."""
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | members))
    return path


def test_tokenizer_file_takes_precedence_over_its_class(tmp_path):
    """Transformers would rebuild this WordPiece, with NFKC and splits at blanks, as BERT's; the remark names a text."""
    wordpiece(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizerFast"}')
    path = change(tmp_path, normalizer={"type": "NFKC"}, pre_tokenizer={"type": "WhitespaceSplit"})
    content = json.loads(path.read_text())
    content["model"]["vocab"]["closed."] = len(content["model"]["vocab"])
    path.write_text(json.dumps(content))
    plain, own = tokenizers.Tokenizer.from_file(str(path)), read(tmp_path)
    for text in ("It is closed. Ｗｅ ﬁnd a river.", "The River"):
        assert own.encode_text(text)[1:-1].tolist() == plain.encode(text, add_special_tokens=False).ids
    assert "closed." in own.pieces(own.encode_text("closed."))
    remark = convert_tokenizer(tmp_path).remark
    assert "'closed.' into 'closed.', " in remark and "BertTokenizer" in remark


def test_no_remark_if_transformers_agrees(folder):
    assert convert_tokenizer(folder).remark == ""


@pytest.mark.parametrize("with_file", [True, False])
def test_sentencepiece_keeps_its_normalisation(tmp_path, with_file):
    """DeBERTa's spm.model normalises by NFKC, with or without a tokenizer.json made from it."""
    special = "--pad_id=0 --bos_id=1 --eos_id=2 --unk_id=3 --user_defined_symbols=[MASK] --bos_piece=[CLS]"
    sentencepiece.SentencePieceTrainer.train(
        f"--input={SAMPLE / 'text.txt'} --model_prefix={tmp_path / 'spm'} --vocab_size=400 --minloglevel=2 {special} "
        "--eos_piece=[SEP] --pad_piece=[PAD] --unk_piece=[UNK]"
    )
    DebertaV2Config().save_pretrained(tmp_path)
    if with_file:
        (tmp_path / "tokenizer.json").write_text(convert_tokenizer(tmp_path).text)
        (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "DebertaV2TokenizerFast"}')
    plain = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spm.model"))
    own, text = read(tmp_path), "Ｔhe ﬁne river № 2"
    assert own.encode_text(text)[1:-1].tolist() == plain.encode(text)
    remark = convert_tokenizer(tmp_path).remark
    assert ("ﬁne" in remark and "DebertaV2Tokenizer" in remark) == with_file


@pytest.mark.parametrize(
    ("text", "word", "pieces"),
    [
        ("[MASK] river is near .", "The", ["The"]),
        ('The "[MASK]" is near .', "The", ["The"]),
        ("The river is near [MASK] .", "The", ["ĠThe"]),
        ("[MASK] run .", "rivers", ["ri", "ver", "s"]),
        ("The [MASK]", "rivers", ["Ġriver", "s"]),
    ],
)
def test_word_at_a_mask_has_the_pieces_of_the_written_text(tmp_path: Path, text: str, word: str, pieces: list[str]):
    """A byte-level tokenizer has other pieces for a word at the start than after a space."""
    byte_level(tmp_path)
    tokenizer = read(tmp_path)
    assert tokenizer.pieces(tokenizer.encode_at_mask(text, word)) == pieces
    assert tokenizer.pieces(read_question(text, tokenizer).track(word).tracked.ids) == pieces
    single = tokenizer.single_piece(word, text)
    assert (single is None) if len(pieces) > 1 else (tokenizer.pieces([single]) == pieces)


def test_word_of_sentencepiece_at_a_mask_has_the_pieces_of_the_written_text(tmp_path: Path):
    """Its first piece has the mark of a space only after one, and at the start."""
    sentence_piece(tmp_path)
    tokenizer = read(tmp_path)
    for before in ("", "The ", 'The "', "The old-"):
        written = tokenizer.pieces(tokenizer.encode_at_mask(f"{before}[MASK] .", "town"))
        assert written == tokenizer.pieces(tokenizer.encode_text(f"{before}town"))[-1 - len(written) : -1]
        assert (written[0] == "▁town") == (not before.strip() or before.endswith(" "))


def test_tracked_word_at_a_later_mask_has_its_pieces(tmp_path: Path):
    """The other masks stay."""
    byte_level(tmp_path)
    tokenizer = read(tmp_path)
    first, second = (read_question("[MASK] near [MASK]", tokenizer).track("river", mask).tracked for mask in (1, 2))
    assert tokenizer.pieces(second.ids) == ["Ġriver"] and tokenizer.pieces(first.ids) == ["ri", "ver"]


@pytest.mark.parametrize("make", [wordpiece, byte_level])
@pytest.mark.parametrize("kind", ["Bert", "Roberta", "PreTrained"])
def test_missing_frame_is_made_of_the_special_tokens(tmp_path, make, kind):
    """The file has no post-processor, or one that adds nothing around a text, under any class."""
    make(tmp_path)
    ends = ("[CLS]", "[SEP]", "[MASK]") if make is wordpiece else ("<s>", "</s>", "<mask>")
    tokens = dict(zip(("cls_token", "sep_token", "mask_token"), ends, strict=True))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": f"{kind}TokenizerFast"} | tokens))
    expected = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode(TEXT).tokens
    for processor in (None, {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}):
        change(tmp_path, post_processor=processor)
        own = read(tmp_path)
        assert own.pieces(own.encode_text(TEXT)) == expected
        assert [own.pieces(ids) for ids in own.frame(2).ids] == [[ends[0]], [ends[1]], [ends[1]]]


def test_folder_without_tokenizer_is_reported(tmp_path):
    assert not has_tokenizer(tmp_path)
    with pytest.raises(BrokenRun, match="has no tokenizer that transformers reads"):
        convert_tokenizer(tmp_path)


def other(**members: object) -> Callable[[bytes], bytes]:
    """Return a function that changes members of a JSON file."""
    return lambda content: json.dumps(json.loads(content) | members).encode()


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("tokenizer.json", lambda content: b"{}", "missing required field `model`"),
        ("tokenizer.json", lambda content: b"[]", "Expected `object`, got `array`"),
        ("tokenizer.json", lambda content: content[: len(content) // 2], "Input data was truncated"),
        ("tokenizer.json", lambda content: b"\xff\xfe" + content, "JSON is malformed"),
        ("tokenizer.json", other(model={"type": "Nonsense"}), "is not valid: .*vocab"),
        ("tokenizer_config.json", lambda content: b"{", r"\(JSONDecodeError: Expecting"),
        ("tokenizer_config.json", other(tokenizer_class=5), r"\(AttributeError: "),
        ("tokenizer_config.json", other(tokenizer_class="CanineTokenizer"), "CanineTokenizer, which cannot be saved"),
    ],
)
def test_damaged_tokenizer_is_reported(tmp_path, name, damage, message):
    """The error names the folder, the damage and the remedy, whatever exception the libraries raise."""
    wordpiece(tmp_path)
    path = tmp_path / name
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BrokenTokenizer, match=message) as raised:
        convert_tokenizer(tmp_path)
    assert str(tmp_path) in str(raised.value) and "\n" not in str(raised.value)
    assert str(raised.value).endswith(
        "copy it again from where it came, or name the folder of another with --tokenizer."
    )


@pytest.mark.parametrize("name", ["vocab.txt", "tokenizer_config.json"])
def test_size_of_every_file_is_bounded(tmp_path, name):
    """Transformers would read a sparse file of any size into memory."""
    with (tmp_path / name).open("wb") as file:
        file.truncate(2**26 + 1)
    with pytest.raises(BrokenTokenizer, match=rf"{name} has 67,108,865 bytes .*67,108,864"):
        convert_tokenizer(tmp_path)


def test_gaps_in_the_ids_are_reported(tmp_path):
    """The conversion reports them before a run with an unusable tokenizer is written."""
    wordpiece(tmp_path)
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text())
    vocabulary = content["model"]["vocab"]
    vocabulary[max(vocabulary, key=vocabulary.get)] += 7
    path.write_text(json.dumps(content))
    with pytest.raises(BrokenRun, match=rf"gives its {len(vocabulary)} pieces ids up to {len(vocabulary) + 6};"):
        convert_tokenizer(tmp_path)


def test_unknown_tokenizer_class_is_ignored(tmp_path):
    """The file itself is read, and it names no mask token."""
    wordpiece(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "NoSuchTokenizer"}')
    with pytest.raises(BrokenRun, match=r"has no mask token; .* --tokenizer"):
        convert_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("config", "name", "content", "message"),
    [
        (BertConfig, "vocab.txt", b"", r"in vocab.txt \(no pieces but the special tokens\)"),
        (BertConfig, "vocab.txt", b"\xff\xfe\n", r"in vocab.txt \(.* valid UTF-8"),
        (AlbertConfig, "spiece.model", bytes(range(256)) * 8, r"in spiece.model \(no SentencePiece model\)"),
        (AlbertConfig, "spiece.model", b"", r"in spiece.model \(.*vocabulary is empty"),
        (AlbertConfig, "spm.model", b"anything", r"in spm.model \(no pieces but the special tokens\)"),
        (RobertaConfig, "vocab.json", b"{", r"in vocab.json \(.*EOF"),
        (RobertaConfig, "vocab.json", b"{}", r"in vocab.json \(no pieces but the special tokens\)"),
    ],
)
def test_damaged_vocabulary_is_reported(tmp_path, config, name, content, message):
    """The vocabulary that transformers invents if it finds no pieces is refused too."""
    config().save_pretrained(tmp_path)
    (tmp_path / name).write_bytes(content)
    if name == "vocab.json":
        (tmp_path / "merges.txt").touch()
    with pytest.raises(BrokenTokenizer, match=message) as raised:
        convert_tokenizer(tmp_path)
    assert "\n" not in str(raised.value)
