"""Train the pieces of a vocabulary by SentencePiece.

SentencePiece makes the same pieces of the same words on every machine; the trainers of the tokenizers library do not,
since they take words in an order that changes from process to process.
"""

import io
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from embryo_core.errors import CorpusError

CHARACTER_COVERAGE = 0.9998  # share of the text whose characters are in the vocabulary; other characters are unknown
REQUIRED = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")  # in SentencePiece's error for a small vocabulary
MAX_WORD = 64  # characters; longer words (URLs, tables) are useless for training pieces


def train_pieces(
    counts: Mapping[str, int], size: int, special_tokens: tuple[str, ...], alphabet: Sequence[str] = (), **options: Any
) -> list[tuple[str, float]]:
    """Train SentencePiece on words and return the pieces with their scores, special tokens first.

    The characters of `alphabet` are pieces even if no word has them; with it, no character is left out. `options` are
    further settings of the trainer. Raises CorpusError if there are too few words for a vocabulary of that size, or too
    many characters.
    """
    import sentencepiece  # a requirement only of pretraining

    model = io.BytesIO()
    pad, unk, *control_symbols = special_tokens
    with tempfile.TemporaryDirectory() as folder:
        table = _write_words(Counter(alphabet) + Counter(counts), Path(folder) / "words.tsv")
        try:
            sentencepiece.SentencePieceTrainer.train(
                input=str(table),
                input_format="tsv",
                model_writer=model,
                vocab_size=size,
                character_coverage=1.0 if alphabet else CHARACTER_COVERAGE,
                normalization_rule_name="identity",
                split_by_unicode_script=False,
                num_threads=2,  # fixed, so that sums have the same order on every machine
                pad_id=0,
                pad_piece=pad,
                unk_id=1,
                unk_piece=unk,
                bos_id=-1,
                eos_id=-1,
                control_symbols=control_symbols,
                minloglevel=2,
                **options,
            )
        except RuntimeError as reason:
            raise _wrong_size(len(counts), size, str(reason)) from None
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [(pieces.id_to_piece(i), pieces.get_score(i)) for i in range(pieces.get_piece_size())]


def _write_words(counts: Mapping[str, int], path: Path) -> Path:
    """Write the words and their counts as SentencePiece reads them, without long words; return the path."""
    words = sorted((word, n) for word, n in counts.items() if 0 < len(word) <= MAX_WORD)
    path.write_text("".join(f"{word}\t{n}\n" for word, n in words), encoding="utf-8")
    return path


def _wrong_size(words: int, size: int, reason: str) -> CorpusError:
    """Return the error for a vocabulary too small (by SentencePiece's `reason`) or too large for the text."""
    text = f"A text of {words:,} different words"
    if match := REQUIRED.search(reason):
        return CorpusError(
            f"{text} has characters for {int(match[1]):,} pieces, and a vocabulary of {size:,} was asked for; "
            "ask for a larger one."
        )
    return CorpusError(
        f"{text} is too small for a vocabulary of {size:,} pieces; give more text or ask for a smaller vocabulary."
    )
