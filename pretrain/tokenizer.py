"""The tokenizer of a run: an uncased Unigram vocabulary, as ALBERT's, over words cut as the Penn treebank cuts them.

Running text and treebank words give the same pieces: "don't" is cut into "do" and "n't" wherever it stands, and the
pieces of a word depend on that word alone. The first piece of a word, and no other, starts with "▁"; that is how
whole-word masking finds the words.
"""

import io
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from embryo_core import runs
from embryo_core.errors import CorpusError

SPECIAL_TOKENS = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")  # ids 0 to 4, the order of ALBERT's own vocabulary
PAD, UNK, CLS, SEP, MASK = range(5)
WORD_START = "▁"
CHARACTER_COVERAGE = 0.9998  # share of the text whose characters get into the vocabulary; the rest is <unk>
MAX_WORD = 64  # characters; longer words (web addresses, tables) teach nothing about pieces
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


def train_tokenizer(texts: Iterable[str], vocabulary_size: int, folder: Path) -> None:
    """Train on these texts and write the folder that AutoTokenizer.from_pretrained and `load` read.

    `vocabulary_size` counts the special tokens. The same texts give the same files, byte for byte: SentencePiece trains
    the pieces, because the order of words in the trainer of the tokenizers library changes from process to process.
    Raises CorpusError where the texts are too few for a vocabulary of that size.
    """
    tokenizer = _blank()
    counts = Counter(word for text in texts for word in cut(tokenizer, text))
    tokenizer.model = models.Unigram(_train_pieces(counts, vocabulary_size), unk_id=UNK)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )
    _save(tokenizer, folder)


def load(folder: Path) -> Tokenizer:
    """The tokenizer in this folder. Raises CorpusError where there is none."""
    path = Path(folder) / "tokenizer.json"
    if not path.is_file():
        raise CorpusError(f"{path} does not exist; python -m pretrain writes it when it prepares the corpus.")
    return Tokenizer.from_file(str(path))


def is_word_start(tokenizer: Tokenizer) -> np.ndarray:
    """For each id whether that piece begins a word: bool [V], false for the special tokens.

    False for <unk> too: a word that begins with an unknown character is "▁" followed by <unk>.
    """
    pieces = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    return np.array([piece.startswith(WORD_START) for piece in pieces], dtype=bool)


def _blank() -> Tokenizer:
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


def cut(tokenizer: Tokenizer, text: str) -> list[str]:
    """The words of a text, normalised, each with its "▁": the pieces of the text are those of its words in turn."""
    return [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text))]


def _train_pieces(counts: Counter[str], vocabulary_size: int) -> list[tuple[str, float]]:
    """Pieces with their log probabilities, special tokens first, trained by SentencePiece on words and their counts."""
    import sentencepiece  # a requirement of pretraining alone

    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        table, seeds = Path(folder) / "words.tsv", Path(folder) / "seeds.tsv"
        words = sorted((word.removeprefix(WORD_START), n) for word, n in counts.items() if len(word) <= MAX_WORD)
        table.write_text("".join(f"{word}\t{n}\n" for word, n in words if word), encoding="utf-8")
        seeds.write_text("".join(f"{piece}\t{score}\n" for piece, score in _seed_pieces(counts)), encoding="utf-8")
        try:
            sentencepiece.SentencePieceTrainer.train(
                input=str(table),
                input_format="tsv",
                seed_sentencepieces_file=str(seeds),
                model_writer=model,
                model_type="unigram",
                vocab_size=vocabulary_size,
                character_coverage=CHARACTER_COVERAGE,
                normalization_rule_name="identity",
                split_by_unicode_script=False,
                num_threads=2,  # fixed, for sums in the same order on every machine
                pad_id=PAD,
                pad_piece=SPECIAL_TOKENS[PAD],
                unk_id=UNK,
                unk_piece=SPECIAL_TOKENS[UNK],
                bos_id=-1,
                eos_id=-1,
                control_symbols=list(SPECIAL_TOKENS[CLS:]),
                minloglevel=2,
            )
        except RuntimeError:
            raise CorpusError(
                f"A text of {len(counts):,} different words is too small for a vocabulary of {vocabulary_size:,} "
                "pieces; give more text or ask for a smaller vocabulary."
            ) from None
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [(pieces.id_to_piece(i), pieces.get_score(i)) for i in range(pieces.get_piece_size())]


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


def _save(tokenizer: Tokenizer, folder: Path) -> None:
    """Write the folder, whole or not at all."""
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL_TOKENS, strict=True))
    configuration = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 512,
        "padding_side": "right",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **names,
    }
    with runs.replacing(folder) as temporary:
        temporary.mkdir()
        tokenizer.save(str(temporary / "tokenizer.json"))
        runs.write_json(temporary / "tokenizer_config.json", configuration)
        runs.write_json(temporary / "special_tokens_map.json", names)
