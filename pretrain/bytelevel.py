"""A cased byte-level BPE vocabulary, as GPT-2's: text of any kind as bytes, so that no character is unknown.

A byte is written as a printable character, and a space as "Ġ" at the beginning of the word that follows it.
"""

from collections import Counter
from collections.abc import Sequence

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from pretrain.pieces import train_pieces

SPECIAL_TOKENS = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
SPACE = "Ġ"
BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())  # 256 characters


def blank() -> Tokenizer:
    """Return the word cutter and decoder of GPT-2, with no pieces yet; a text begins as if after a space."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def train(counts: Counter[str], vocabulary_size: int) -> models.BPE:
    """Return the pieces of these words, every byte among them. Raises CorpusError for too few words.

    SentencePiece gives pieces in the order in which they were joined, and not of which two. Every cut of a piece into
    two others is a merge with the piece's rank, so that words are cut as SentencePiece would.
    """
    pieces = [
        piece
        for piece, _ in train_pieces(
            counts,
            vocabulary_size,
            SPECIAL_TOKENS,
            alphabet=BYTES,
            model_type="bpe",
            add_dummy_prefix=False,
            split_by_number=False,
        )
    ]
    known = set(pieces)
    merges = [
        (piece[:cut], piece[cut:])
        for piece in pieces[len(SPECIAL_TOKENS) :]
        for cut in range(1, len(piece))
        if piece[:cut] in known and piece[cut:] in known
    ]
    return models.BPE({piece: i for i, piece in enumerate(pieces)}, merges)


def begins_word(piece: str) -> bool:
    """Return whether a piece begins a word: after a space, or with a punctuation mark."""
    return piece not in SPECIAL_TOKENS and (piece.startswith(SPACE) or (piece[0] < "\x7f" and not piece[0].isalnum()))


def word(pieces: Sequence[str]) -> str:
    """Return the word that these pieces are."""
    return decoders.ByteLevel().decode(list(pieces)).strip()
