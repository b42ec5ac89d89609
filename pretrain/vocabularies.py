"""The kinds of vocabulary: how each splits text into words, and words into pieces."""

import tempfile
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from pretrain.pieces import MAX_WORD, train_pieces

PAD, UNK, CLS, SEP, MASK = range(5)  # ids of the special tokens, in the order of ALBERT's own vocabulary


class Vocabulary(ABC):
    """Base class of the kinds of vocabulary."""

    special_tokens: ClassVar[tuple[str, ...]]  # padding, unknown, [CLS], [SEP], [MASK]

    @abstractmethod
    def blank(self) -> Tokenizer:
        """Return a tokenizer with normaliser, pre-tokenizer and decoder, and no pieces yet."""

    @abstractmethod
    def train(self, counts: Counter[str], size: int) -> models.Model:
        """Return a model of `size` pieces, trained on these words. Raises CorpusError if there are too few words."""

    @abstractmethod
    def begins_word(self, piece: str) -> bool:
        """Return whether a piece begins a word."""

    @abstractmethod
    def word(self, pieces: Sequence[str]) -> str:
        """Return the word that these pieces spell."""


class Unigram(Vocabulary):
    """An uncased Unigram vocabulary, as in ALBERT, for words split as in the Penn treebank.

    Running text and treebank words give the same pieces: "don't" is always split into "do" and "n't", and the pieces of
    a word depend only on this word. Only the first piece of a word starts with "▁".
    """

    special_tokens = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    word_start = "▁"
    max_piece = 16  # characters, including the "▁", as in ALBERT's SentencePiece
    min_seed_count = 3  # words with fewer occurrences give no seed pieces
    max_seeds = 200_000  # seed pieces, from which the trainer selects

    # Contractions such as "n't" are words, "cannot" and "gonna" are two words each, and punctuation marks, "..." and
    # "--" are words; letters and digits stay together ("19th", "1980s").
    _end = r"(?![\p{L}\p{N}])"
    _start = r"(?<![\p{L}\p{N}])"
    _word = "|".join(
        (
            rf"n't{_end}",
            rf"'(?:s|re|ve|ll|d|m){_end}",
            rf"[\p{{L}}\p{{N}}]+?(?=n't{_end})",
            rf"{_start}(?:can(?=not{_end})|gon(?=na{_end})|wan(?=na{_end})|got(?=ta{_end}))",
            r"[\p{L}\p{N}]+",
            r"\.{3}",
            r"--",
            r"[^\s\p{L}\p{N}]",
        )
    )

    def blank(self) -> Tokenizer:
        """Return a tokenizer that normalises quotes, dashes and accents and splits words as the Penn treebank does."""
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
                pre_tokenizers.Split(Regex(self._word), behavior="removed", invert=True),
                pre_tokenizers.Metaspace(replacement=self.word_start, prepend_scheme="always", split=False),
            ]
        )
        tokenizer.decoder = decoders.Metaspace(replacement=self.word_start, prepend_scheme="always")
        return tokenizer

    def train(self, counts: Counter[str], size: int) -> models.Unigram:
        """Return pieces with their log probabilities, trained on words that begin with "▁"."""
        bare_counts = {word.removeprefix(self.word_start): n for word, n in counts.items() if len(word) <= MAX_WORD}
        with tempfile.TemporaryDirectory() as folder:
            seed_file = Path(folder) / "seeds.tsv"
            lines = [f"{piece}\t{score}\n" for piece, score in self._seed_pieces(counts)]
            seed_file.write_text("".join(lines), encoding="utf-8")
            options: dict[str, Any] = {"model_type": "unigram", "seed_sentencepieces_file": str(seed_file)}
            pieces = train_pieces(bare_counts, size, self.special_tokens, **options)
        return models.Unigram(pieces, unk_id=UNK)

    def begins_word(self, piece: str) -> bool:
        """Return whether a piece starts with "▁". A word whose first character is unknown is "▁", then <unk>."""
        return piece.startswith(self.word_start)

    def word(self, pieces: Sequence[str]) -> str:
        """Return the word without the "▁" at its start."""
        return "".join(pieces).removeprefix(self.word_start)

    def _seed_pieces(self, counts: Counter[str]) -> list[tuple[str, int]]:
        """Return substrings of words to start from, each scored by its count in the running text times its length.

        SentencePiece's own seeds count a substring once for each word that contains it; a word that is not part of
        other words, such as "," or "n't", would then never become a piece, however frequent it is.
        """
        seeds: Counter[str] = Counter()
        for word, n in counts.items():
            if n < self.min_seed_count or len(word) > MAX_WORD:
                continue
            for start in range(len(word)):
                for end in range(start + 2, min(start + self.max_piece, len(word)) + 1):
                    seeds[word[start:end]] += n
        scores = [(piece, n * len(piece)) for piece, n in seeds.items()]
        return sorted(scores, key=lambda item: (-item[1], item[0]))[: self.max_seeds]


class WordPiece(Vocabulary):
    """An uncased WordPiece vocabulary, as in BERT and ELECTRA, for words split at white space and punctuation marks.

    A piece inside a word begins with "##", and a word is split greedily, the longest piece first. The pieces are those
    of byte-pair encoding, which repeatedly merges the most frequent pair.
    """

    special_tokens = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    inside = "##"
    first_stand_in = 0xF0000  # a private-use character, which no text has

    def blank(self) -> Tokenizer:
        """Return the normaliser, pre-tokenizer and decoder of the original BERT."""
        tokenizer = Tokenizer(models.WordPiece(unk_token=self.special_tokens[UNK]))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece(prefix=self.inside)
        return tokenizer

    def train(self, counts: Counter[str], size: int) -> models.WordPiece:
        """Return the pieces of these words by byte-pair encoding.

        SentencePiece has no "##". It gets words in which each character after the first is replaced by a stand-in, so
        that a letter at the beginning of a word and the same letter inside one are different characters.
        """
        inner_characters = sorted({character for word in counts for character in word[1:]})
        stand_in = {character: chr(self.first_stand_in + i) for i, character in enumerate(inner_characters)}
        original = {ord(replacement): character for character, replacement in stand_in.items()}
        stand_in_counts = {word[0] + "".join(map(stand_in.__getitem__, word[1:])): n for word, n in counts.items()}
        options: dict[str, Any] = {"model_type": "bpe", "add_dummy_prefix": False, "max_sentencepiece_length": 100}
        pieces = train_pieces(stand_in_counts, size, self.special_tokens, **options)
        marked_pieces = (
            (self.inside if ord(piece[0]) in original else "") + piece.translate(original) for piece, _ in pieces
        )
        return models.WordPiece({piece: i for i, piece in enumerate(marked_pieces)}, unk_token=self.special_tokens[UNK])

    def begins_word(self, piece: str) -> bool:
        """Return whether a piece has no "##"; of the special tokens, only [UNK] begins a word, being a whole word."""
        is_unknown = piece == self.special_tokens[UNK]
        return not piece.startswith(self.inside) and (is_unknown or piece not in self.special_tokens)

    def word(self, pieces: Sequence[str]) -> str:
        """Return the word, with the "##" of its pieces removed."""
        return "".join(piece.removeprefix(self.inside) for piece in pieces)


class ByteBPE(Vocabulary):
    """A cased byte-level BPE vocabulary, as in GPT-2, which reads text as bytes, so that no character is unknown.

    A byte is written as a printable character, and a space as "Ġ" at the beginning of the word that follows it.
    """

    special_tokens = Unigram.special_tokens
    partial = "\ufffd"  # what bytes that are no whole character are decoded to

    def blank(self) -> Tokenizer:
        """Return the pre-tokenizer and decoder of GPT-2; a text begins as if after a space."""
        tokenizer = Tokenizer(models.BPE())
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.decoder = decoders.ByteLevel()
        return tokenizer

    def train(self, counts: Counter[str], size: int) -> models.BPE:
        """Return the pieces of these words, including every byte.

        SentencePiece returns pieces in the order of merging, without the merged pairs. Every split of a piece into two
        pieces becomes a merge with the rank of the whole piece, so that words are split as SentencePiece splits them.
        """
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        options: dict[str, Any] = {"model_type": "bpe", "add_dummy_prefix": False, "split_by_number": False}
        scored_pieces = train_pieces(counts, size, self.special_tokens, alphabet, **options)
        ids = {piece: i for i, (piece, _) in enumerate(scored_pieces)}
        merges = [
            (piece[:position], piece[position:])
            for piece in list(ids)[len(self.special_tokens) :]
            for position in range(1, len(piece))
            if piece[:position] in ids and piece[position:] in ids
        ]
        return models.BPE(ids, merges)

    def begins_word(self, piece: str) -> bool:
        """Return whether a piece follows a space or begins with a punctuation mark; `edges` show other starts."""
        first = decoders.ByteLevel().decode([piece])[0]
        return piece not in self.special_tokens and not first.isalnum() and first != self.partial

    def edges(self, piece: str) -> tuple[int, int]:
        """Return the classes of a piece's first and last character: 1 for a letter, 2 for a digit, 3 for a mark.

        A word begins between pieces whose classes differ, as at "born" in "(born". Class 0, of spaces, special tokens
        and bytes that are no whole character, differs from none.
        """
        if piece in self.special_tokens:
            return 0, 0
        text = decoders.ByteLevel().decode([piece])
        return self._character_class(text[0]), self._character_class(text[-1])

    def _character_class(self, character: str) -> int:
        if character.isspace() or character == self.partial:
            return 0
        return {"L": 1, "N": 2}.get(unicodedata.category(character)[0], 3)

    def word(self, pieces: Sequence[str]) -> str:
        """Return the word without the space before it."""
        return decoders.ByteLevel().decode(list(pieces)).strip()


VOCABULARIES: dict[str, Vocabulary] = {  # name of the model in tokenizer.json, in lower case -> vocabulary
    "unigram": Unigram(),
    "wordpiece": WordPiece(),
    "bpe": ByteBPE(),
}
