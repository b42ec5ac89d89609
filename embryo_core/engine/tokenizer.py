"""The tokenizer of a run, from pretraining to query: words or running text in, ids of pieces out."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import numpy as np
import tokenizers

from embryo_core import runs
from embryo_core.errors import BrokenRun, TokenizerMismatch, first_line
from embryo_core.types import Checkpoint, Run, SpecialTokens

MASK = "[MASK]"  # how a text has its mask, whatever the tokenizer calls it
SENTENCEPIECE, BYTE_LEVEL = "▁", "Ġ"  # mark the first piece of a word
DECODER = tokenizers.decoders.ByteLevel()
UNDECODED = "\ufffd"


@dataclass(frozen=True)
class Encoding:
    """Pieces of a sequence of words, without special tokens."""

    ids: np.ndarray  # [pieces] int64
    word_of_piece: np.ndarray  # [pieces] int64: index of the word that a piece belongs to, never decreasing


@dataclass(frozen=True)
class Frame:
    """Special tokens around one text or a pair, ids [.] int32 before the first text, after it, and after the second."""

    ids: tuple[np.ndarray, ...]
    first: int | None  # of those after the first text, how many are in its segment; None: all pieces are in one


@dataclass(frozen=True)
class Pieces:
    """Pieces of a running text, without special tokens."""

    ids: np.ndarray  # [pieces] int32
    characters: np.ndarray  # [pieces, 2] int32: where each begins and ends in the text, blanks before a word included


class Tokenizer:
    """A run's tokenizer.json, the same bytes that pretraining used; cheap to build and shared by all steps.

    Special tokens are those of the run, and so is how a word begins: byte-level BPE cuts a word inside a text together
    with the blank before it, where other tokenizers drop the blank or put a mark of their own.
    """

    def __init__(self, path: Path, special: SpecialTokens | None = None):
        """`special` are the special tokens; None: those of a tokenizer that pretrain made."""
        self.path = path
        self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.mask = special.mask if special else MASK
        self.mask_id = self._special(self.mask)
        self.cls_id = self._special(special.cls if special else "[CLS]")
        self.sep_id = self._special(special.sep if special else "[SEP]")
        self.pad_id = self._special(*([special.pad] if special else ["[PAD]", "<pad>"]))
        self.unk_id = self._special(*([special.unk] if special else ["[UNK]", "<unk>"]))
        highest = max(self._tokenizer.get_vocab(with_added_tokens=True).values())
        if highest >= self.vocabulary_size:
            raise BrokenRun(f"{path} gives a piece the id {highest}, but has {self.vocabulary_size} pieces; repair it.")
        self._word_ids = lru_cache(maxsize=100_000)(self._ids)  # words recur
        self._blank = " " if self._ids("a b") != self._ids("a") + self._ids("b") else ""  # before a word in a text
        self.word_start = self._find_word_start()

    @property
    def vocabulary_size(self) -> int:
        """Number of pieces, special tokens included."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    @property
    def kind(self) -> str:
        """How it finds pieces: unigram, WordPiece, BPE or WordLevel."""
        return type(self._tokenizer.model).__name__.replace("Unigram", "unigram")

    @property
    def cased(self) -> bool:
        """Whether the model tells capital letters from small ones."""
        return self.cut("A") != self.cut("a")

    def encode_words(self, words: Sequence[str]) -> Encoding:
        """Tokenize each word on its own and join the pieces, as the paper's evaluation does; no special tokens."""
        pieces = [self._word_ids(self._blank + word if i else word) for i, word in enumerate(words)]
        word_of_piece = np.repeat(np.arange(len(pieces)), [len(ids) for ids in pieces])
        return Encoding(np.array([i for ids in pieces for i in ids], np.int64), word_of_piece)

    def encode_text(self, text: str) -> np.ndarray:
        """Ids [L] of running text between [CLS] and [SEP], or what the run has for them; "[MASK]" is the mask."""
        return np.array([self.cls_id, *self._ids(text.replace(MASK, self.mask)), self.sep_id], np.int64)

    def encode_word(self, word: str) -> np.ndarray:
        """Ids [pieces] of a word as it stands inside a text; no special tokens."""
        return np.array(self._ids(self._blank + word.replace(MASK, self.mask)), np.int64)

    def encode_texts(self, texts: Sequence[str]) -> list[Pieces]:
        """Pieces of each running text, without special tokens; on all cores."""
        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [Pieces(np.array(one.ids, np.int32), np.array(one.offsets, np.int32).reshape(-1, 2)) for one in found]

    def frame(self, texts: int) -> Frame:
        """How the tokenizer itself frames one text or a pair; [CLS] first [SEP] second [SEP] where it does not say."""
        found = self._tokenizer.encode(*["a"] * texts)
        places = [[*inside] for _, inside in groupby(range(len(found)), key=found.sequence_ids.__getitem__)]
        owners = [found.sequence_ids[inside[0]] for inside in places]
        ids = tuple(np.array([found.ids[i] for i in inside], np.int32) for inside in places[::2])
        whole = owners == [None, 0, None, 1, None][: 2 * texts + 1]
        if not whole or ids[0][0] != self.cls_id or ids[-1][-1] != self.sep_id:
            cls, sep = (np.array([one], np.int32) for one in (self.cls_id, self.sep_id))
            return Frame((cls, *[sep] * texts), None if texts == 1 else 1)
        if texts == 1 or found.type_ids[places[3][0]] == 0:
            return Frame(ids, None)
        return Frame(ids, sum(found.type_ids[i] == 0 for i in places[2]))

    def single_piece(self, word: str) -> int | None:
        """The id of a word that, inside a text, is one known piece of the vocabulary, else None."""
        ids = self.encode_word(word).tolist()
        return ids[0] if len(ids) == 1 and ids[0] != self.unk_id else None

    def cut(self, text: str) -> list[str]:
        """The normalised words into which the tokenizer cuts a text before it looks for pieces."""
        return [word.removeprefix("▁") for word in self._cut(text)]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The piece of each id, as it stands in the vocabulary (with its word-boundary mark)."""
        return [self._tokenizer.id_to_token(int(i)) for i in ids]

    def spell(self, piece: str) -> str:
        """A piece as text, without the mark of a word's first piece; bytes that are no text by themselves stay."""
        if self.word_start == BYTE_LEVEL:
            text = DECODER.decode([piece])
            return piece if UNDECODED in text else text.removeprefix(" ")
        return piece.removeprefix(self.word_start)

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def _special(self, *names: str | None) -> int | None:
        """The id of the first of these tokens that is there; None where the tokenizer has no such token."""
        for name in names:
            if name is None:
                return None
            if (found := self._tokenizer.token_to_id(name)) is not None:
                return found
        raise BrokenRun(f"{self.path} has no token {' or '.join(names)}; it is not the tokenizer of this run.")

    def _find_word_start(self) -> str:
        """What marks the first piece of a word: "▁" (SentencePiece), "Ġ" (byte-level BPE), "" where nothing does."""
        last = self._cut("a a")[-1:]
        if self._tokenizer.pre_tokenizer is None:  # then pieces alone can tell
            last = self._tokenizer.encode("a a", add_special_tokens=False).tokens[-1:]
        return next((mark for mark in (SENTENCEPIECE, BYTE_LEVEL) if last and last[0].startswith(mark)), "")

    def _cut(self, text: str) -> list[str]:
        """The normalised words in which the tokenizer looks for pieces, with the mark of a word's start."""
        normalizer, cutter = self._tokenizer.normalizer, self._tokenizer.pre_tokenizer
        normalised = normalizer.normalize_str(text) if normalizer else text
        return [word for word, _ in cutter.pre_tokenize_str(normalised)] if cutter else [normalised]


def load_tokenizer(run: Run) -> Tokenizer:
    """The run's tokenizer. Raises BrokenRun where it cannot be used, TokenizerMismatch where it is another."""
    path, found = run.tokenizer / "tokenizer.json", runs.check_tokenizer(run)
    if found != run.tokenizer_sha256:
        raise TokenizerMismatch(
            f"{path} (sha256 {found[:12]}...) is not the tokenizer that run '{run.name}' was pretrained with "
            f"(sha256 {run.tokenizer_sha256[:12]}...); put that file back."
        )
    return _read_tokenizer(path, found, run.special_tokens)


def check_vocabulary(checkpoint: Checkpoint, pieces: int) -> None:
    """Raise TokenizerMismatch where the model has fewer pieces than its tokenizer, whose number is given."""
    found = runs.read_config(checkpoint, runs.Architecture).vocab_size
    if found < pieces:
        raise TokenizerMismatch(
            f"The tokenizer of run '{checkpoint.run.name}' has {pieces} pieces, but {checkpoint.path} has {found}; put "
            "the tokenizer of its pretraining back."
        )


@lru_cache(maxsize=8)
def _read_tokenizer(path: Path, sha256: str, special: SpecialTokens | None) -> Tokenizer:
    try:
        tokenizer = Tokenizer(path, special)
        tokenizer.encode_words(tokenizer.cut("Tried once, so that what fails fails here."))
        return tokenizer
    except (BrokenRun, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as reason:  # noqa: BLE001, a panic of the library's Rust code is no Exception
        raise BrokenRun(f"{path} cannot be read as a tokenizer: {first_line(reason)}.") from None
