"""The question: a text with [MASK] as a run's models read it, or one sentence on why it cannot be asked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from embryo_core.errors import QueryError

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer

MAX_MASKS = 8
MAX_CHARACTERS = 20_000  # longer text is refused before it is tokenized
EXAMPLE = "The capital of France is [MASK] ."


@dataclass(frozen=True, eq=False)
class Question:
    """A text as a run's models read it."""

    text: str
    ids: np.ndarray  # [L] int64, with [CLS] and [SEP]
    masks: tuple[int, ...]  # positions of the masks in ids

    def filled(self, words: np.ndarray) -> np.ndarray:
        """Ids [..., L] with the first masks filled by `words` [..., n] (n at most the number of masks)."""
        ids = np.broadcast_to(self.ids, (*words.shape[:-1], len(self.ids))).copy()
        ids[..., list(self.masks[: words.shape[-1]])] = words
        return ids


def normalise_masks(text: str) -> str:
    """The text without surrounding blanks, its masks written "[MASK]" however they were cased ("[mask]", "[ Mask ]").

    Nothing else is touched: the run's tokenizer does the rest.
    """
    return re.sub(r"\[\s*mask\s*\]", "[MASK]", text.strip(), flags=re.IGNORECASE)


def count_masks(text: str) -> int:
    """How many masks a text has, however they are cased."""
    return normalise_masks(text).count("[MASK]")


def check_text(text: str) -> str:
    """The text with its masks as in `normalise_masks`; this needs no model.

    Raises QueryError where the text is empty, too long for any model, or has no mask or too many.
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


def find_mask(text: str, mask: int) -> int:
    """Where in a normalised text its mask of this number begins, in characters. Raises QueryError for no such mask."""
    starts = [match.start() for match in re.finditer(re.escape("[MASK]"), text)]
    if not 1 <= mask <= len(starts):
        raise QueryError(f"There is no [MASK] {mask}: the text has {len(starts)}, counted from 1. Choose one of them.")
    return starts[mask - 1]


@lru_cache(maxsize=64)  # every checkpoint of a run is asked the same
def read_question(text: str, tokenizer: "Tokenizer", max_positions: int) -> Question:
    """Tokenize a text.

    Raises QueryError as `check_text` does, where the text is longer than the model's positions, and where it has the
    tokenizer's own mask, which would be counted as another.
    """
    text = check_text(text)
    ids = encode(text, tokenizer, max_positions)
    places = tuple(int(i) for i in np.flatnonzero(ids == tokenizer.mask_id))
    if len(places) != count_masks(text):
        (own,) = tokenizer.pieces([tokenizer.mask_id])
        raise QueryError(f"The text has {own}, as this tokenizer writes its mask; write [MASK] for every mask.")
    return Question(text, ids, places)


def encode(text: str, tokenizer: "Tokenizer", max_positions: int) -> np.ndarray:
    """Ids [L] of a text between [CLS] and [SEP]. Raises QueryError where it is longer than the model's positions."""
    ids = tokenizer.encode_text(text)
    if len(ids) > max_positions:
        raise QueryError(
            f"The text is {len(ids):,} pieces long ([CLS] and [SEP] counted), "
            f"but this model reads at most {max_positions:,}. Shorten it."
        )
    return ids


def read_together(text: str, models: Sequence["Model"]) -> Question:
    """The question as several checkpoints of a run read it; its length is within the positions of each."""
    return read_question(text, models[0].tokenizer, min(model.max_positions for model in models))


def readable(tokenizer: "Tokenizer", ids: Sequence[int]) -> list[str]:
    """Pieces as they are read: a word's first piece without its mark, a piece inside a word after "##"."""
    pieces, mark = tokenizer.pieces(ids), tokenizer.word_start
    if not mark:
        return pieces  # WordPiece: "##" already marks the pieces inside words
    special = (tokenizer.mask_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id, tokenizer.unk_id)
    return [
        piece if i in special or piece == mark else ("" if piece.startswith(mark) else "##") + tokenizer.spell(piece)
        for i, piece in zip(ids, pieces, strict=True)
    ]
