"""An uncased WordPiece vocabulary, as BERT's and ELECTRA's: words are cut at white space and at every punctuation mark.

A piece inside a word is written after "##", and a word is cut greedily, the longest piece first. The pieces are those
of byte-pair encoding: the pair that is most frequent in the text is joined, again and again.
"""

from collections import Counter
from collections.abc import Sequence

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from pretrain.pieces import UNK, train_pieces

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
INSIDE = "##"
FIRST_STAND_IN = 0xF0000  # of the characters for private use, which no text has


def blank() -> Tokenizer:
    """Normaliser, word cutter and decoder of the original BERT, with no pieces yet."""
    tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIAL_TOKENS[UNK]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=INSIDE)
    return tokenizer


def train(counts: Counter[str], vocabulary_size: int) -> models.WordPiece:
    """The pieces of these words by byte-pair encoding. Raises CorpusError for too few words.

    SentencePiece knows no "##". It is given words in which another character stands in for each character that is not
    the first, so that a letter at the beginning of a word and the same letter inside one are two from the start.
    """
    inside = sorted({character for word in counts for character in word[1:]})
    stand_in = {character: chr(FIRST_STAND_IN + i) for i, character in enumerate(inside)}
    original = {ord(other): character for character, other in stand_in.items()}
    shown = {word[0] + "".join(map(stand_in.__getitem__, word[1:])): n for word, n in counts.items()}
    pieces = train_pieces(
        shown, vocabulary_size, SPECIAL_TOKENS, model_type="bpe", add_dummy_prefix=False, max_sentencepiece_length=100
    )
    marked = ((INSIDE if ord(piece[0]) in original else "") + piece.translate(original) for piece, _ in pieces)
    return models.WordPiece({piece: i for i, piece in enumerate(marked)}, unk_token=SPECIAL_TOKENS[UNK])


def begins_word(piece: str) -> bool:
    """Whether a piece begins a word; [UNK] does, since it is a whole word."""
    return not piece.startswith(INSIDE) and (piece == SPECIAL_TOKENS[UNK] or piece not in SPECIAL_TOKENS)


def word(pieces: Sequence[str]) -> str:
    """The word that these pieces are."""
    return "".join(piece.removeprefix(INSIDE) for piece in pieces)
