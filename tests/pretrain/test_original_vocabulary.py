"""Tests that an original vocabulary cuts text into the same pieces as the original code."""

import unicodedata
from pathlib import Path

import pytest
import sentencepiece
from tokenizers import Tokenizer

from embryo_core.errors import ConfigError
from pretrain.originals import write_tokenizer

TEXT = [
    "The river runs, slowly, to the sea.",
    'In 2008, some 1,250 people (and 12, or 13, dogs) came -- "all of them" -- on foot.',
    "Café   naïve ÉCOLE, Ångström; it's 5£ or 7€ – not more…",
    "don't can't U.S.A. e-mail 3.14 100% №5 ½ ﬁne",
    "日本 and Ελλάδα, ١٢٣ and a\ttab\u00a0here",
    "[CLS-like] words, a\u200bb and 'quotes' ``here''",
    "",
]


@pytest.fixture(scope="module")
def spiece(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a SentencePiece model with ALBERT's special tokens and user-defined symbols on the sample and numbers."""
    folder = tmp_path_factory.mktemp("spiece")
    text = (sample / "text.txt").read_text(encoding="utf-8").lower()
    numbers = "\n".join(f"in {year}, {n},{year} came ({n})" for year in range(1990, 2010) for n in (1, 12, 250))
    (folder / "text.txt").write_text(f"{text}\n{numbers}\n" * 3, encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text.txt"), model_prefix=str(folder / "spiece"), vocab_size=400, pad_id=0, unk_id=1,
        bos_id=-1, eos_id=-1, control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        user_defined_symbols=["(", ")", '"', "-", ".", "–", "£", "€"], split_by_number=False, minloglevel=2,
    )  # fmt: skip
    return folder / "spiece.model"


def albert_pieces(model: sentencepiece.SentencePieceProcessor, text: str) -> list[int]:
    """Return the ids of albert's tokenization.py: normalised, lower-cased, with the comma after a digit cut off."""
    text = unicodedata.normalize("NFKD", " ".join(text.split()))
    text = "".join(character for character in text if not unicodedata.combining(character)).lower()
    pieces = []
    for piece in model.encode(text, out_type=str):
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            number = model.encode(piece[:-1].replace("▁", ""), out_type=str)
            if not piece.startswith("▁"):
                number = [number[0][1:], *number[1:]] if len(number[0]) > 1 else number[1:]
            pieces += [*number, ","]
        else:
            pieces.append(piece)
    return [model.piece_to_id(piece) for piece in pieces]


def test_sentencepiece_ids_equal_those_of_albert(spiece: Path, sample: Path, tmp_path: Path):
    """The text is the whole sample, and lines with numbers, accents, symbols and unknown characters."""
    model = sentencepiece.SentencePieceProcessor(model_file=str(spiece))
    assert any(model.id_to_piece(i).endswith("0,") for i in range(400)), "no piece tries the rule of the comma"
    write_tokenizer(spiece, tmp_path / "tokenizer")
    ours = Tokenizer.from_file(str(tmp_path / "tokenizer" / "tokenizer.json"))
    for line in [*TEXT, *(sample / "text.txt").read_text(encoding="utf-8").splitlines()]:
        assert ours.encode(line, add_special_tokens=False).ids == albert_pieces(model, line), line


def test_sentencepiece_bpe_model_is_refused(sample: Path, tmp_path: Path):
    """The scores of BPE pieces are ranks, with which a Unigram model would cut text differently."""
    sentencepiece.SentencePieceTrainer.train(
        input=str(sample / "text.txt"), model_prefix=str(tmp_path / "spiece"), vocab_size=300, model_type="bpe",
        pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols=["[CLS]", "[SEP]", "[MASK]"], minloglevel=2,
    )  # fmt: skip
    with pytest.raises(ConfigError, match="not those of a Unigram model"):
        write_tokenizer(tmp_path / "spiece.model", tmp_path / "tokenizer")


@pytest.fixture(scope="module")
def vocabulary(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a vocab.txt in BERT's layout: special tokens around unused pieces, then letters, words and endings."""
    words = sorted({word for word in (sample / "text.txt").read_text().lower().split() if word.isalpha()})[:200]
    letters = [chr(ord("a") + i) for i in range(26)]
    marks = [*",.()-'\"£%`;[]0123456789", "café", "日"]
    pieces = ["[PAD]", *(f"[unused{i}]" for i in range(9)), "[UNK]", "[CLS]", "[SEP]", "[MASK]", *marks, *letters]
    pieces += [*words, *(f"##{piece}" for piece in (*letters, *"0123456789", "ing", "ed", "s"))]
    path = tmp_path_factory.mktemp("bert") / "vocab.txt"
    path.write_text("\n".join(dict.fromkeys(pieces)) + "\n", encoding="utf-8")
    return path


def bert_pieces(pieces: dict[str, int], text: str, cased: bool) -> list[int]:
    """Return the ids of bert's tokenization.py: cleaned, cut at white space and punctuation, greedily into pieces."""
    ids = []
    for word in _basic_words(text, cased):
        start, cut = 0, []
        while start < len(word):
            ends = [end for end in range(len(word), start, -1) if ("##" if start else "") + word[start:end] in pieces]
            if not ends:
                cut = [pieces["[UNK]"]]
                break
            cut.append(pieces[("##" if start else "") + word[start : ends[0]]])
            start = ends[0]
        ids += cut if len(word) <= 200 else [pieces["[UNK]"]]
    return ids


def _basic_words(text: str, cased: bool) -> list[str]:
    cleaned = ""
    for character in text:
        if character in "\t\n\r" or unicodedata.category(character) == "Zs":
            cleaned += " "
        elif unicodedata.category(character) not in ("Cc", "Cf"):
            cleaned += f" {character} " if 0x4E00 <= ord(character) <= 0x9FFF else character
    words = []
    for word in cleaned.split():
        if not cased:
            word = unicodedata.normalize("NFD", word.lower())
            word = "".join(character for character in word if unicodedata.category(character) != "Mn")
        spaced = (f" {c} " if unicodedata.category(c)[0] == "P" or c in "$+<=>^`|~" else c for c in word)
        words += "".join(spaced).split()
    return words


@pytest.mark.parametrize("cased", [False, True])
def test_wordpiece_ids_equal_those_of_bert(vocabulary: Path, sample: Path, tmp_path: Path, cased: bool):
    """Special tokens keep their ids from the file; accents are kept only if capitals are."""
    pieces = {piece: i for i, piece in enumerate(vocabulary.read_text(encoding="utf-8").splitlines())}
    write_tokenizer(vocabulary, tmp_path / "tokenizer", cased)
    ours = Tokenizer.from_file(str(tmp_path / "tokenizer" / "tokenizer.json"))
    for line in [*TEXT, "a" * 201, *(sample / "text.txt").read_text(encoding="utf-8").splitlines()]:
        assert ours.encode(line, add_special_tokens=False).ids == bert_pieces(pieces, line, cased), line
    assert ours.encode("a").ids == [pieces["[CLS]"], pieces["a"], pieces["[SEP]"]]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_vocabulary_is_split_only_at_line_ends(tmp_path: Path, end: str):
    """As in the original, a piece may contain other characters that separate lines in Unicode."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a\u2028b", "c\x85d", "e\rf", "last"]
    (tmp_path / "vocab.txt").write_bytes((end.join(pieces) + end).encode())
    assert write_tokenizer(tmp_path / "vocab.txt", tmp_path / "tokenizer") == len(pieces)
    ours = Tokenizer.from_file(str(tmp_path / "tokenizer" / "tokenizer.json"))
    assert [ours.token_to_id(piece) for piece in pieces] == list(range(len(pieces)))


def test_same_vocabulary_gives_the_same_tokenizer(vocabulary: Path, tmp_path: Path):
    """Both tokenizer files are equal byte for byte, so a second import can add to the run of the first."""
    for name in ("one", "two"):
        write_tokenizer(vocabulary, tmp_path / name)
    files = [(tmp_path / name / "tokenizer.json").read_bytes() for name in ("one", "two")]
    assert files[0] == files[1]
