"""The question: a text with [MASK], or a word to be tracked in it, parsed once for all checkpoints of a run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embryo_core.errors import QueryError

if TYPE_CHECKING:
    from embryo_core.tokenizers.tokenizer import Tokenizer

MASK = "[MASK]"
MAX_MASKS = 8
MAX_CHARACTERS = 20_000  # longer text is refused before it is tokenized
EXAMPLE = "The capital of France is [MASK] ."


@dataclass(frozen=True, eq=False)
class Word:
    """A word whose probability is asked, at one mask of a text."""

    text: str
    mask: int  # 1 is the first
    ids: np.ndarray  # [m] of its pieces
    pieces: tuple[str, ...]  # as a reader sees them: "##" marks a piece inside a word

    @property
    def token(self) -> str:
        """The name of the word in a table of answers: its piece if it has only one, else the word as written."""
        return self.pieces[0] if len(self.pieces) == 1 else self.text


@dataclass(frozen=True, eq=False)
class Question:
    """A text in ids; with a `word`, its mask is widened to a mask for each piece of the word."""

    text: str
    tokenizer: "Tokenizer"
    ids: np.ndarray  # [L] int64, with [CLS] and [SEP]
    masks: tuple[int, ...]  # positions in ids of the masks that are answered
    word: Word | None = None

    @property
    def tracked(self) -> Word:
        """The tracked word. Raises ValueError for the question of a whole text."""
        if self.word is None:
            raise ValueError(f"No word is tracked in '{self.text}'.")
        return self.word

    def filled(self, words: np.ndarray) -> np.ndarray:
        """Return ids [..., L] with the first masks filled by `words` [..., n] (n at most the number of masks)."""
        ids = np.broadcast_to(self.ids, (*words.shape[:-1], len(self.ids))).copy()
        ids[..., list(self.masks[: words.shape[-1]])] = words
        return ids

    def check_length(self, max_positions: int) -> None:
        """Raise QueryError if the question is longer than the positions of a model."""
        check_length(self.ids, max_positions, len(self.masks) if self.word and len(self.masks) > 1 else 0)

    def mask_position(self, mask: int) -> int:
        """Return the position in ids of a mask, counted from 1. Raises QueryError if there is no such mask."""
        if not 1 <= mask <= len(self.masks):
            count = len(self.masks)
            raise QueryError(f"There is no [MASK] {mask}: the text has {count}, counted from 1. Choose one of them.")
        return self.masks[mask - 1]

    def track(self, word: str, mask: int = 1) -> "Question":
        """Return the question how probable a word is at one mask, counted from 1; the other masks stay in place.

        Raises QueryError for an empty word, a word that the vocabulary cannot write, and a mask that the text lacks.
        """
        position = self.mask_position(mask)
        pieces = read_word(word, self.tokenizer)
        masks = [self.tokenizer.mask_id] * len(pieces)
        ids = np.concatenate([self.ids[:position], masks, self.ids[position + 1 :]])
        tracked = Word(word.strip(), mask, pieces, tuple(readable(self.tokenizer, pieces)))
        positions = tuple(range(position, position + len(pieces)))
        return Question(self.text, self.tokenizer, ids, positions, tracked)

    @property
    def widened(self) -> str:
        """The text as a model reads it: the mask of the tracked word is written once for each piece."""
        if self.word is None:
            return self.text
        parts = self.text.split(MASK)
        before, after = MASK.join(parts[: self.word.mask]), MASK.join(parts[self.word.mask :])
        return before + " ".join([MASK] * len(self.word.pieces)) + after


# === Texts and words ===


def normalise_masks(text: str) -> str:
    """Return the text without surrounding blanks, with every mask ("[mask]", "[ Mask ]") written "[MASK]".

    The rest is left to the run's tokenizer.
    """
    return re.sub(r"\[\s*mask\s*\]", MASK, text.strip(), flags=re.IGNORECASE)


def count_masks(text: str) -> int:
    """Count the masks of a text, in upper or lower case."""
    return normalise_masks(text).count(MASK)


def check_text(text: str) -> str:
    """Return the text as `normalise_masks` does; no model is needed.

    Raises QueryError if the text is empty, too long for any model, or has no mask or too many.
    """
    text = normalise_masks(text)
    masks = count_masks(text)
    if not text:
        raise QueryError(f"The text is empty; write a sentence with [MASK] for the word to be predicted: {EXAMPLE}")
    if len(text) > MAX_CHARACTERS:
        raise QueryError(
            f"The text has {len(text):,} characters; at most {MAX_CHARACTERS:,} can be queried. Shorten it."
        )
    if masks == 0:
        raise QueryError(f"The text has no [MASK]; write [MASK] for the word to be predicted: {EXAMPLE}")
    if masks > MAX_MASKS:
        raise QueryError(
            f"The text has {masks} [MASK]s; at most {MAX_MASKS} can be answered together. Mask fewer words."
        )
    return text


def read_question(text: str, tokenizer: "Tokenizer") -> Question:
    """Tokenize a text.

    Raises QueryError as `check_text` does, and if the text has the tokenizer's own mask, which would count as another.
    """
    text = check_text(text)
    ids = tokenizer.encode_text(text)
    places = tuple(int(i) for i in np.flatnonzero(ids == tokenizer.mask_id))
    if len(places) != count_masks(text):
        own = tokenizer.mask
        raise QueryError(f"The text has {own}, as this tokenizer writes its mask; write [MASK] for every mask.")
    return Question(text, tokenizer, ids, places)


def read_word(word: str, tokenizer: "Tokenizer") -> np.ndarray:
    """Return the ids [m] of a word's pieces. Raises QueryError for a word that is empty or cannot be written."""
    word = word.strip()
    if not word:
        raise QueryError("The word to track is empty; write a word, such as Paris.")
    ids = tokenizer.encode_word(word)
    special = {tokenizer.mask_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id}
    if not len(ids) or special & set(ids.tolist()):
        raise QueryError(f"'{word}' is not a word to track; write one without [MASK] and other special tokens.")
    if tokenizer.unk_id in ids:
        raise QueryError(f"'{word}' has characters that are not in the vocabulary of this run; track another word.")
    if len(ids) > MAX_MASKS:
        raise QueryError(f"'{word}' has {len(ids)} pieces; at most {MAX_MASKS} can be tracked. Track a shorter word.")
    return ids


def check_length(ids: np.ndarray, max_positions: int, widened: int = 0) -> None:
    """Raise QueryError if ids [L] exceed a model's positions; `widened`: the masks of a word of several pieces."""
    if len(ids) > max_positions:
        subject = f"With {widened} masks for the pieces of the word the text" if widened else "The text"
        raise QueryError(
            f"{subject} is {len(ids):,} pieces long ([CLS] and [SEP] counted), "
            f"but this model reads at most {max_positions:,}. Shorten it."
        )


def readable(tokenizer: "Tokenizer", ids: Sequence[int] | np.ndarray) -> list[str]:
    """Return pieces as a reader sees them: the first of a word without its mark, a later one after "##"."""
    pieces, mark = tokenizer.pieces([*map(int, ids)]), tokenizer.word_start
    if not mark:
        return pieces  # WordPiece: "##" already marks the pieces inside words
    special = (tokenizer.mask_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id, tokenizer.unk_id)
    return [
        piece if i in special or piece == mark else ("" if piece.startswith(mark) else "##") + tokenizer.spell(piece)
        for i, piece in zip(ids, pieces, strict=True)
    ]
