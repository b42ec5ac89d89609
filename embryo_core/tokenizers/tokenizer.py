"""The tokenizer of a run, from words or running text to the ids of pieces."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import tokenizers

from embryo_core import runs
from embryo_core.errors import BrokenRun, EmbryoError, TokenizerMismatch, first_line, printable
from embryo_core.tokenizers.checks import check_tokenizer
from embryo_core.tokenizers.encodings import Encoding, Frame, Pieces
from embryo_core.types import Run, SpecialTokens

MASK = "[MASK]"  # the mask in a user's text, for any tokenizer
SENTENCEPIECE, BYTE_LEVEL = "▁", "Ġ"  # prefixes of the first piece of a word
DECODER = tokenizers.decoders.ByteLevel()
UNDECODED = "\ufffd"


class Tokenizer:
    """A run's tokenizer, from the same tokenizer.json as in pretraining; all steps share it.

    The run defines the special tokens, and the file how a word begins: byte-level BPE tokenizes a word together with
    the space before it; other tokenizers drop the space or replace it by a prefix.
    """

    def __init__(self, path: Path, special: SpecialTokens | None = None):
        """Read a tokenizer.json; without `special`, its special tokens are named as by pretrain."""
        self.path = path
        self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.mask = special.mask if special else MASK
        self.mask_id = self._find(self.mask)
        self.cls_id = self._find(special.cls if special else "[CLS]")
        self.sep_id = self._find(special.sep if special else "[SEP]")
        self.begin, self.end = (  # [0 or 1] int64: ids before and after every text
            np.array([] if token_id is None else [token_id], np.int64) for token_id in (self.cls_id, self.sep_id)
        )
        self.pad_id = self._find(special.pad) if special else self._find("[PAD]", "<pad>")
        self.unk_id = self._find(special.unk) if special else self._find("[UNK]", "<unk>")
        highest = max(self._tokenizer.get_vocab(with_added_tokens=True).values())
        if highest >= self.vocabulary_size:
            raise BrokenRun(f"{path} gives a piece the id {highest}, but has {self.vocabulary_size} pieces; repair it.")
        # Cached, since words repeat. The cache must not refer to this object: that would delay freeing its megabytes.
        self._word_ids = lru_cache(maxsize=100_000)(partial(_ids_of, self._tokenizer, path))
        added_tokens = self._tokenizer.get_added_tokens_decoder().items()
        self.new_words = {
            i: token.content for i, token in added_tokens if token.single_word
        }  # whole words that were added to an extended vocabulary
        # the space before a word in a text, if the tokenizer uses it
        self.blank = " " if self._ids("a b") != self._ids("a") + self._ids("b") else ""
        self.word_start = self._find_word_start()
        self._splits_at_spaces = len(self._words_of("a b")) > 1  # not in Gemma, whose normaliser writes "▁" for a space

    @property
    def vocabulary_size(self) -> int:
        """Return the number of pieces, including special tokens."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    @property
    def kind(self) -> str:
        """Return the algorithm: unigram, WordPiece, BPE or WordLevel."""
        return type(self._tokenizer.model).__name__.replace("Unigram", "unigram")

    @property
    def cased(self) -> bool:
        """Return whether the tokenizer distinguishes upper from lower case."""
        return self.split_words("A") != self.split_words("a")

    def encode_words(self, words: Sequence[str]) -> Encoding:
        """Tokenize each word separately and join the pieces, as the paper's evaluation does; no special tokens."""
        return Encoding.of_words([self._word_ids(self.blank + word if i else word) for i, word in enumerate(words)])

    def encode_written(self, words: Sequence[str], blanks: Sequence[bool] = ()) -> Encoding:
        """Tokenize words as one running text, with `blanks` after some (default: all); no special tokens.

        A word has every piece with one of its characters, so a piece across two words belongs to both, like GPT-2's
        "'t" for "did" and "n't". The space before a word counts as its character.
        """
        gaps = [" " if blank else "" for blank in blanks or [True] * len(words)]
        ends = np.cumsum([len(word) + len(gap) for word, gap in zip(words, gaps, strict=True)]) - [*map(len, gaps)]
        encoding = self._tokenizer.encode("".join(map("".join, zip(words, gaps))).rstrip(" "), add_special_tokens=False)
        return Encoding.of_text(encoding, ends)

    def surround(self, ids: np.ndarray) -> np.ndarray:
        """Return ids with the special tokens before and after a text, such as [CLS] and [SEP], if there are any."""
        return np.concatenate([self.begin, ids, self.end])

    def encode_text(self, text: str) -> np.ndarray:
        """Tokenize running text; return ids [L] from [CLS] to [SEP]. "[MASK]" in the text becomes the mask token."""
        return self.surround(np.array(self._ids(self._masked(text)), np.int64))

    def encode_start(self, text: str) -> np.ndarray:
        """Tokenize the start of a text that a decoder continues; return ids [L], without a token that ends a text."""
        return np.concatenate([self.begin, np.array(self._ids(text), np.int64)])

    def encode_word(self, word: str) -> np.ndarray:
        """Tokenize a word as it appears inside a text; return ids [pieces] without special tokens."""
        return np.array(self._ids(self.blank + self._masked(word)), np.int64)

    def encode_at_mask(self, text: str, word: str, mask: int = 1) -> np.ndarray | None:
        """Tokenize a word at a mask of a text, counted from 1; return ids [pieces], None if the word alters the rest.

        A word may have other pieces at the start of a text, or after a hyphen or a quotation mark, than after a space.
        For a tokenizer that has no mask, or drops the space before a word, only the text before the mask counts.
        """
        if not self.blank or self.mask_id is None:
            start = MASK.join(text.split(MASK)[:mask])
            is_joined = self.word_start and start and not start[-1].isspace()
            return self._encode_after(start, word) if is_joined else self.encode_word(word)
        parts, ids = text.split(MASK), self.encode_text(text)
        masks = np.flatnonzero(ids == self.mask_id)
        if len(masks) != len(parts) - 1:
            return None
        filled_text = self.encode_text(MASK.join(parts[:mask]) + word + MASK.join(parts[mask:]))
        before, after = ids[: masks[mask - 1]], ids[masks[mask - 1] + 1 :]
        word_ids = filled_text[len(before) : len(filled_text) - len(after)]
        return word_ids if np.array_equal(filled_text, np.concatenate([before, word_ids, after])) else None

    def _encode_after(self, start: str, word: str) -> np.ndarray | None:
        """Tokenize a word that directly follows the start of a text; return ids [pieces], None if the two merge."""
        before, ids = self._ids(self._masked(start)), self._ids(self._masked(start + word))
        return np.array(ids[len(before) :], np.int64) if ids[: len(before)] == before else None

    def encode_inside(self, text: str) -> np.ndarray:
        """Tokenize a text inside a word, without a space before it; return ids [pieces], one if it is a piece.

        Other texts have the pieces that they have after a letter which does not merge with them.
        """
        piece_id = self._tokenizer.token_to_id(text if self.word_start else f"##{text}")
        if piece_id is not None and piece_id not in self.new_words:
            return np.array([piece_id], np.int64)
        ids_after_letters = (self._encode_after(letter, text) for letter in ascii_lowercase)
        separate_ids = next((ids for ids in ids_after_letters if ids is not None and len(ids)), None)
        return np.array(self._ids(self._masked(text)), np.int64) if separate_ids is None else separate_ids

    def encode_texts(self, texts: Sequence[str]) -> list[Pieces]:
        """Tokenize running texts on all cores, without special tokens."""
        with _explained(self.path):
            encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [
            Pieces(np.array(encoding.ids, np.int32), np.array(encoding.offsets, np.int32).reshape(-1, 2))
            for encoding in encodings
        ]

    def encode_sentences(self, texts: Sequence[str]) -> list[Encoding]:
        """Tokenize running texts on all cores, without special tokens, with the tokenizer's own words."""
        with _explained(self.path):
            encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [Encoding.from_starts(encoding.ids, self._begin_words(encoding)) for encoding in encodings]

    def _begin_words(self, encoding: tokenizers.Encoding) -> list[bool]:
        """Return whether each piece begins a word, by its prefix if no pre-tokenizer splits at spaces."""
        if not self._splits_at_spaces:
            return [i == 0 or piece.startswith(self.word_start) for i, piece in enumerate(encoding.tokens)]
        words = encoding.word_ids
        return [i == 0 or words[i] != words[i - 1] for i in range(len(words))]

    def frame(self, texts: int) -> Frame:
        """Return the special tokens around one text or a pair of `texts`; by default [CLS] first [SEP] second [SEP]."""
        return Frame.of(self._tokenizer.encode("a", "a" if texts == 2 else None), texts, self.begin, self.end)

    def single_piece(self, word: str, text: str | None = None) -> int | None:
        """Return the id of a word that is a single known piece inside a text, at the mask of `text` if it is given.

        None for other words.
        """
        ids = self.encode_word(word) if text is None else self.encode_at_mask(text, word)
        return int(ids[0]) if ids is not None and len(ids) == 1 and ids[0] != self.unk_id else None

    def split_words(self, text: str) -> list[str]:
        """Return the normalised words into which the tokenizer splits a text, before splitting words into pieces."""
        return [self.spell(word) for word in self._words_of(text)]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the piece of each id as in the vocabulary, with its word-boundary prefix."""
        return [
            self.word_start + self.new_words[i] if i in self.new_words else self._tokenizer.id_to_token(i) or ""
            for i in map(int, ids)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """Return pieces as running text, special tokens included."""
        if self.new_words and self._tokenizer.decoder:  # the decoder needs the prefix of words
            return str(self._tokenizer.decoder.decode(self.pieces(ids)))
        return self._tokenizer.decode([*ids], skip_special_tokens=False)

    def spell(self, piece: str) -> str:
        """Return a piece as text without the prefix of a first piece; incomplete UTF-8 is unchanged."""
        if self.word_start == BYTE_LEVEL:
            text = DECODER.decode([piece])
            return piece if UNDECODED in text else text.removeprefix(" ")
        return piece.removeprefix(self.word_start)

    def readable(self, ids: Iterable[int] | np.ndarray) -> list[str]:
        """Return pieces in readable form: a word's first piece without the tokenizer's mark, later pieces after "##".

        A piece of spaces stays as in the vocabulary, and a line break is written "\\n".
        """
        ids = [*map(int, ids)]
        pieces, mark = self.pieces(ids), self.word_start
        if not mark:
            return pieces  # WordPiece: "##" already marks the pieces inside words
        special = (self.mask_id, self.cls_id, self.sep_id, self.pad_id, self.unk_id)
        spelled = [printable(self.spell(piece)) for piece in pieces]
        return [
            piece if i in special or not word.strip() else ("" if piece.startswith(mark) else "##") + word
            for i, piece, word in zip(ids, pieces, spelled, strict=True)
        ]

    def _masked(self, text: str) -> str:
        """Return a text with the tokenizer's own mask in place of "[MASK]" and the space before it, as in training."""
        return text if self.mask is None else text.replace(f" {MASK}", self.mask).replace(MASK, self.mask)

    def _ids(self, text: str) -> list[int]:
        return _ids_of(self._tokenizer, self.path, text)

    def _find(self, name: str | None, *others: str) -> Any:
        """Return the id of the first of these tokens in the vocabulary; None without a name. Raises BrokenRun."""
        if name is None:
            return None
        for token in (name, *others):
            if (id_of_token := self._tokenizer.token_to_id(token)) is not None:
                return id_of_token
        names = " or ".join((name, *others))
        raise BrokenRun(f"{self.path} has no token {names}; it is not the tokenizer of this run.")

    def _find_word_start(self) -> str:
        """Return the prefix of a word's first piece: "▁" (SentencePiece), "Ġ" (byte-level BPE) or ""."""
        # words show it without Latin pieces, pieces show it if no pre-tokenizer splits the text into words
        texts = [*self._words_of("a a")[-1:], *self._tokenizer.encode("a a", add_special_tokens=False).tokens[-1:]]
        return next((mark for mark in (SENTENCEPIECE, BYTE_LEVEL) if any(text.startswith(mark) for text in texts)), "")

    def _words_of(self, text: str) -> list[str]:
        """Return the normalised words of a text, each with the prefix of its first piece."""
        normalizer, cutter = self._tokenizer.normalizer, self._tokenizer.pre_tokenizer
        with _explained(self.path):
            normalised_text = normalizer.normalize_str(text) if normalizer else text
            return [word for word, _ in cutter.pre_tokenize_str(normalised_text)] if cutter else [normalised_text]


def load_tokenizer(run: Run) -> Tokenizer:
    """Load the tokenizer of a run. Raises BrokenRun if it cannot be used, TokenizerMismatch if it has changed."""
    path = run.tokenizer / "tokenizer.json"
    digest = runs.digest(path, run.path, BrokenRun)
    if digest != run.tokenizer_sha256:
        raise TokenizerMismatch(
            f"{path} (sha256 {digest[:12]}...) is not the tokenizer that run '{run.name}' was pretrained with "
            f"(sha256 {run.tokenizer_sha256[:12]}...); put that file back."
        )
    return _read_tokenizer(_File(digest, path, run.path), run.special_tokens)


@dataclass(frozen=True)
class _File:
    """A tokenizer.json; files with the same content are equal, so that runs with the same tokenizer share it."""

    sha256: str
    path: Path = field(compare=False)
    root: Path = field(compare=False)


@lru_cache(maxsize=8)
def _read_tokenizer(file: _File, special: SpecialTokens | None) -> Tokenizer:
    """Read a tokenizer, and test it on a text. Raises BrokenRun."""
    check_tokenizer(file.path, file.root, BrokenRun)
    with _explained(file.path):
        tokenizer = Tokenizer(file.path, special)
        tokenizer.encode_words(tokenizer.split_words("Fail here, on this text, rather than later."))
        return tokenizer


def _ids_of(tokenizer: tokenizers.Tokenizer, path: Path, text: str) -> list[int]:
    with _explained(path):
        return tokenizer.encode(text, add_special_tokens=False).ids


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raise BrokenRun for any error of the library in the block."""
    try:
        yield
    except (EmbryoError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as reason:  # noqa: BLE001, a panic in the library's Rust code is no Exception
        raise BrokenRun(f"{path} cannot be read as a tokenizer: {first_line(reason)}.") from None
