"""The question: a text whose masks are filled or which is continued, parsed once for all checkpoints of a run.

A model that predicts masked words fills the [MASK]s of a text. A model that predicts next words continues a text: it is
asked for the word after the end, a position that is treated like a mask.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from embryo_core.engine.capabilities import MASKED_LANGUAGE_MODEL, run_capabilities
from embryo_core.errors import QueryError, printable
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run

if TYPE_CHECKING:
    from embryo_core.tokenizers.tokenizer import Tokenizer

MASK = "[MASK]"
MAX_MASKS = 8  # largest number of masks in a text, and of pieces in a tracked word
MAX_CHARACTERS = 20_000  # a longer text is refused before it is tokenized
EXAMPLE = "The capital of France is [MASK] ."  # an example of a text to fill
START = "The capital of France is"  # an example of a text to continue


@dataclass(frozen=True, eq=False)
class TrackedWord:
    """A word whose probability is asked for, at one mask of a text."""

    text: str
    mask: int  # counted from 1
    ids: np.ndarray  # [m] ids of its pieces
    pieces: tuple[str, ...]  # in readable form: "##" marks a later piece of a word

    @property
    def token(self) -> str:
        """Return the token of the word in a table of answers: its piece if it is a single one, else the word itself."""
        return self.pieces[0] if len(self.pieces) == 1 else self.text


@dataclass(frozen=True, eq=False)
class Question:
    """A text as ids, and the positions whose words are asked for: its masks, or the position after its end.

    With a `word`, its mask is widened to one mask for each piece of the word.
    """

    text: str
    tokenizer: "Tokenizer"
    ids: np.ndarray  # [L] int64, with [CLS] and [SEP]; a continued text has no end token
    masks: tuple[int, ...]  # positions in ids that are answered; the one after the end is L
    word: TrackedWord | None = None

    @property
    def continues(self) -> bool:
        """Return whether the text is continued, rather than its masks filled."""
        return self.masks[0] == len(self.ids)

    @property
    def kind(self) -> str:
        """Return what the models do with the text, for a heading."""
        return "text continued" if self.continues else "[MASK] filled"

    @property
    def tracked(self) -> TrackedWord:
        """Return the tracked word. Raises ValueError if the question has none."""
        if self.word is None:
            raise ValueError(f"No word is tracked in '{self.text}'.")
        return self.word

    def filled(self, words: np.ndarray) -> np.ndarray:
        """Return ids [..., L] with the first masks filled by `words` [..., n]; [..., L + n] for a continued text."""
        ids = np.broadcast_to(self.ids, (*words.shape[:-1], len(self.ids))).copy()
        if self.continues:
            return np.concatenate([ids, words], axis=-1)
        ids[..., list(self.masks[: words.shape[-1]])] = words
        return ids

    def decode_continuation(self, words: np.ndarray) -> str:
        """Return pieces [n] that continue the text as running text; "##" comes first if they continue its last word."""
        text = printable(self.tokenizer.decode(words.tolist()).strip(" "))
        first_piece = self.tokenizer.readable(words[:1])[0]
        return "##" + text if first_piece.startswith("##") and not text.startswith("##") else text

    def check_length(self, max_positions: int) -> None:
        """Raise QueryError if the question has more pieces than a model has positions."""
        length = max(len(self.ids), self.masks[-1])  # the last piece of a continuation is not read
        check_length(length, max_positions, len(self.masks) if self.word else 1)

    def mask_position(self, mask: int) -> int:
        """Return the position in ids of a mask, which is counted from 1. Raises QueryError if there is no such mask."""
        if self.continues and mask != 1:
            raise QueryError(
                f"There is no [MASK] {mask}: the text has none and is continued at its end. Leave the mask out."
            )
        if not 1 <= mask <= len(self.masks):
            count = len(self.masks)
            raise QueryError(f"There is no [MASK] {mask}: the text has {count}, counted from 1. Choose one of them.")
        return self.masks[mask - 1]

    def track(self, word: str, mask: int = 1) -> "Question":
        """Return the question for a word's probability at one mask, counted from 1; the other masks stay in place.

        Raises QueryError for an empty word, a word that the vocabulary cannot encode, and a mask that the text lacks.
        """
        position = self.mask_position(mask)
        pieces = read_word(word, self.tokenizer, None if self.continues else self.text, mask)
        tracked_word = TrackedWord(word.strip(), mask, pieces, tuple(self.tokenizer.readable(pieces)))
        positions, ids = tuple(range(position, position + len(pieces))), self.ids
        if not self.continues:
            masks = [self.tokenizer.mask_id] * len(pieces)
            ids = np.concatenate([ids[:position], masks, ids[position + 1 :]])
        return replace(self, ids=ids, masks=positions, word=tracked_word)

    @property
    def widened(self) -> str:
        """Return the text as a model reads it: with one mask for each piece of the tracked word."""
        if self.word is None or self.continues:
            return self.text
        texts = self.text.split(MASK)
        text_before, text_after = MASK.join(texts[: self.word.mask]), MASK.join(texts[self.word.mask :])
        return text_before + " ".join([MASK] * len(self.word.pieces)) + text_after


# === Texts and words ===


def normalise_masks(text: str) -> str:
    """Return the text without surrounding spaces, with every mask ("[mask]", "[ Mask ]") written "[MASK]"."""
    return re.sub(r"\[\s*mask\s*\]", MASK, text.strip(), flags=re.IGNORECASE)


def count_masks(text: str) -> int:
    """Count the masks of a text, in upper or lower case."""
    return normalise_masks(text).count(MASK)


def before_mask(text: str) -> str:
    """Return the part of a text before its first [MASK]; the whole text if it has none."""
    return normalise_masks(text).partition(MASK)[0].strip()


def reword(text: str, capabilities: Collection[str]) -> str:
    """Adapt the end of a text to models with these capabilities.

    Models that only continue a text get the part before a final [MASK]; models that only fill masks get a [MASK] after
    a text that has none. Any other text is returned unchanged.
    """
    text, final_mask = text.strip(), re.fullmatch(r"(.*\S)\s*\[MASK\]\s*[.!?]?", normalise_masks(text))
    if "masked_words" not in capabilities and "next_words" in capabilities:
        return final_mask[1] if final_mask and MASK not in final_mask[1] else text
    if "next_words" not in capabilities and text and not count_masks(text):
        return f"{text} {MASK} ."
    return text


def check_text(text: str, capabilities: Collection[str] = MASKED_LANGUAGE_MODEL) -> str:
    """Check a text against the capabilities of models, without loading one; return it as `normalise_masks` does.

    Raises QueryError if the text is empty or too long for any model, if it has no mask or too many, and if it has a
    mask although the models only continue texts.
    """
    text, continues = normalise_masks(text), "next_words" in capabilities
    masks = count_masks(text)
    if not text:
        example = (
            f"the beginning of a sentence, which is continued: {START}"
            if continues
            else f"a sentence with [MASK] for the word to be predicted: {EXAMPLE}"
        )
        raise QueryError(f"The text is empty; write {example}")
    if len(text) > MAX_CHARACTERS:
        raise QueryError(f"The text has {len(text):,} characters; the maximum is {MAX_CHARACTERS:,}. Shorten it.")
    if masks == 0 and not continues:
        raise QueryError(f"The text has no [MASK]; write [MASK] for the word to be predicted: {EXAMPLE}")
    if masks and continues and "masked_words" not in capabilities:
        raise QueryError(f"The text has a [MASK], but this model continues a text; end it before the word: {START}")
    if masks > MAX_MASKS:
        raise QueryError(
            f"The text has {masks} [MASK]s; at most {MAX_MASKS} can be answered together. Mask fewer words."
        )
    return text


def read_question(text: str, tokenizer: "Tokenizer", capabilities: Collection[str] = MASKED_LANGUAGE_MODEL) -> Question:
    """Tokenize a text for models with these capabilities: its masks are filled, or it is continued if it has none.

    Raises QueryError as `check_text` does, and if the text contains the tokenizer's own mask, which would count too.
    """
    text = check_text(text, capabilities)
    if not count_masks(text):
        ids = tokenizer.encode_start(text)
        if not len(ids):
            raise QueryError("The text has no character that this run's tokenizer reads; write another.")
        return Question(text, tokenizer, ids, (len(ids),))
    ids = tokenizer.encode_text(text)
    masks = tuple(int(i) for i in np.flatnonzero(ids == tokenizer.mask_id))
    if len(masks) != count_masks(text):
        mask = tokenizer.mask
        raise QueryError(f"The text has {mask}, as this tokenizer writes its mask; write [MASK] for every mask.")
    return Question(text, tokenizer, ids, masks)


def parse(run: Run, question: Question | str) -> Question:
    """Return a text as a question to the models of a run; a question is returned as it is.

    Raises as `read_question` and `load_tokenizer` do.
    """
    return (
        read_question(question, load_tokenizer(run), run_capabilities(run)) if isinstance(question, str) else question
    )


def read_word(word: str, tokenizer: "Tokenizer", text: str | None = None, mask: int = 1) -> np.ndarray:
    """Return the ids [m] of a word's pieces, at a mask of `text` if it is given. Raises QueryError.

    "##" before a word means that it continues another.
    """
    word = word.strip()
    if not word:
        raise QueryError("The word to track is empty; write a word, such as Paris.")
    is_inside = word.startswith("##") and len(word) > len("##")
    if is_inside:
        ids = tokenizer.encode_inside(word[len("##") :])
    else:
        at_mask = None if text is None else tokenizer.encode_at_mask(text, word, mask)
        ids = tokenizer.encode_word(word) if at_mask is None else at_mask
    special = {tokenizer.mask_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id}
    if not len(ids) or special & set(ids.tolist()):
        raise QueryError(f"'{word}' is not a word to track; write one without [MASK] and other special tokens.")
    if tokenizer.unk_id in ids:
        raise QueryError(f"'{word}' has characters that are not in the vocabulary of this run; track another word.")
    if len(ids) > MAX_MASKS:
        raise QueryError(f"'{word}' has {len(ids)} pieces; at most {MAX_MASKS} can be tracked. Track a shorter word.")
    return ids


def check_length(length: int, max_positions: int, pieces: int = 1) -> None:
    """Raise QueryError if a text is longer than a model's positions; `pieces` counts the pieces of a tracked word."""
    if length > max_positions:
        subject = f"With {pieces} pieces of the word the text" if pieces > 1 else "The text"
        raise QueryError(
            f"{subject} is {length:,} pieces long (special tokens counted), "
            f"but this model reads at most {max_positions:,}. Shorten it."
        )
