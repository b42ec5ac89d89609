"""Pieces of a vocabulary out of words and their counts, trained by SentencePiece; the ids of the special tokens.

The same words give the same pieces on every machine: the trainers of the tokenizers library take words in an order that
changes from process to process.
"""

import io
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from embryo_core.errors import CorpusError

PAD, UNK, CLS, SEP, MASK = range(5)  # the order of ALBERT's own vocabulary
CHARACTER_COVERAGE = 0.9998  # share of the text whose characters get into the vocabulary; the rest is unknown
REQUIRED = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")  # in what SentencePiece says of a small vocabulary
MAX_WORD = 64  # characters; longer words (web addresses, tables) teach nothing about pieces


def train_pieces(
    counts: Mapping[str, int],
    vocabulary_size: int,
    special_tokens: tuple[str, ...],
    alphabet: Sequence[str] = (),
    **options: Any,
) -> list[tuple[str, float]]:
    """Return pieces with their scores, special tokens first. `options` are further settings of SentencePiece's trainer.

    The characters of `alphabet` are pieces even if no word has them, and then no character is left out. Raises
    CorpusError if the words are too few for a vocabulary of that size, or their characters too many.
    """
    import sentencepiece  # a requirement of pretraining alone

    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "words.tsv"
        every = Counter(alphabet) + Counter(counts)
        words = sorted((word, n) for word, n in every.items() if 0 < len(word) <= MAX_WORD)
        table.write_text("".join(f"{word}\t{n}\n" for word, n in words), encoding="utf-8")
        try:
            sentencepiece.SentencePieceTrainer.train(
                input=str(table),
                input_format="tsv",
                model_writer=model,
                vocab_size=vocabulary_size,
                character_coverage=1.0 if alphabet else CHARACTER_COVERAGE,
                normalization_rule_name="identity",
                split_by_unicode_script=False,
                num_threads=2,  # fixed, for sums in the same order on every machine
                pad_id=PAD,
                pad_piece=special_tokens[PAD],
                unk_id=UNK,
                unk_piece=special_tokens[UNK],
                bos_id=-1,
                eos_id=-1,
                control_symbols=list(special_tokens[CLS:]),
                minloglevel=2,
                **options,
            )
        except RuntimeError as reason:
            text = f"A text of {len(counts):,} different words"
            if needed := REQUIRED.search(str(reason)):
                raise CorpusError(
                    f"{text} has characters for {int(needed[1]):,} pieces, and a vocabulary of {vocabulary_size:,} was "
                    "asked for; ask for a larger one."
                ) from None
            raise CorpusError(
                f"{text} is too small for a vocabulary of {vocabulary_size:,} pieces; give more text or ask for a "
                "smaller vocabulary."
            ) from None
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [(pieces.id_to_piece(i), pieces.get_score(i)) for i in range(pieces.get_piece_size())]
