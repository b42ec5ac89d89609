"""An uncased Unigram vocabulary, as ALBERT's, over words cut as the Penn treebank cuts them.

Running text and treebank words give the same pieces: "don't" is cut into "do" and "n't" wherever it stands, and the
pieces of a word depend on that word alone. The first piece of a word, and no other, starts with "▁".
"""

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from pretrain.pieces import MAX_WORD, UNK, train_pieces

SPECIAL_TOKENS = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
WORD_START = "▁"
MAX_PIECE = 16  # characters, with the "▁", as in ALBERT's SentencePiece
MIN_SEED_COUNT = 3  # occurrences of a word before its substrings are tried as pieces
MAX_SEEDS = 200_000

# Words as in the Penn treebank: contractions are words of their own, "can not" and "gon na" are two, punctuation marks
# are words, and so are "..." and "--"; letters and digits stay together ("19th", "1980s").
_END = r"(?![\p{L}\p{N}])"
_START = r"(?<![\p{L}\p{N}])"
_WORD = "|".join(
    (
        rf"n't{_END}",
        rf"'(?:s|re|ve|ll|d|m){_END}",
        rf"[\p{{L}}\p{{N}}]+?(?=n't{_END})",
        rf"{_START}(?:can(?=not{_END})|gon(?=na{_END})|wan(?=na{_END})|got(?=ta{_END}))",
        r"[\p{L}\p{N}]+",
        r"\.{3}",
        r"--",
        r"[^\s\p{L}\p{N}]",
    )
)


def blank() -> Tokenizer:
    """Normaliser, word cutter and decoder, with no pieces yet."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(r"\p{Cf}"), ""),  # soft hyphens, zero-width characters
            normalizers.Replace(Regex("``|''|[“”„‟«»″]"), '"'),
            normalizers.Replace(Regex("[‘’‚‛´`′]"), "'"),
            normalizers.Replace(Regex("[‐‑–−]"), "-"),
            normalizers.Replace(Regex("[—―]"), "--"),
            normalizers.NFKD(),
            normalizers.Lowercase(),
            normalizers.StripAccents(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORD), behavior="removed", invert=True),
            pre_tokenizers.Metaspace(replacement=WORD_START, prepend_scheme="always", split=False),
        ]
    )
    tokenizer.decoder = decoders.Metaspace(replacement=WORD_START, prepend_scheme="always")
    return tokenizer


def train(counts: Counter[str], vocabulary_size: int) -> models.Unigram:
    """Pieces with their log probabilities, of words that begin with "▁". Raises CorpusError for too few words."""
    bare = {word.removeprefix(WORD_START): n for word, n in counts.items() if len(word) <= MAX_WORD}
    with tempfile.TemporaryDirectory() as folder:
        seeds = Path(folder) / "seeds.tsv"
        seeds.write_text("".join(f"{piece}\t{score}\n" for piece, score in _seed_pieces(counts)), encoding="utf-8")
        pieces = train_pieces(
            bare, vocabulary_size, SPECIAL_TOKENS, model_type="unigram", seed_sentencepieces_file=str(seeds)
        )
    return models.Unigram(pieces, unk_id=UNK)


def begins_word(piece: str) -> bool:
    """Whether a piece begins a word. <unk> does not: a word whose first character is unknown is "▁", then <unk>."""
    return piece.startswith(WORD_START)


def word(pieces: Sequence[str]) -> str:
    """The word that these pieces are."""
    return "".join(pieces).removeprefix(WORD_START)


def _seed_pieces(counts: Counter[str]) -> list[tuple[str, int]]:
    """Substrings of words to start from, each scored by its count in the running text times its length.

    SentencePiece's own seeds count a substring once for each word that holds it; a word that is part of no other, such
    as "," or "n't", would then never become a piece, however frequent.
    """
    seeds: Counter[str] = Counter()
    for word, n in counts.items():
        if n < MIN_SEED_COUNT or len(word) > MAX_WORD:
            continue
        for start in range(len(word)):
            for end in range(start + 2, min(start + MAX_PIECE, len(word)) + 1):
                seeds[word[start:end]] += n
    scored = [(piece, n * len(piece)) for piece, n in seeds.items()]
    return sorted(scored, key=lambda seed: (-seed[1], seed[0]))[:MAX_SEEDS]
