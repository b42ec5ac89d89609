"""The tokenizer of a run: train, write, read and extend it, and find where words begin."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Tokenizer, processors

from embryo_core import runs
from embryo_core.errors import CorpusError
from pretrain.pieces import MAX_WORD
from pretrain.vocabularies import UNK, VOCABULARIES, ByteBPE, Unigram, Vocabulary, WordPiece

WORD_PATTERN = re.compile(rf"\w{{2,{MAX_WORD}}}")  # words that `extend` may make a piece


def train_tokenizer(texts: Iterable[str], vocabulary_size: int, folder: Path, kind: str = "unigram") -> None:
    """Train a tokenizer on these texts and write its folder for AutoTokenizer.from_pretrained and `load`.

    `vocabulary_size` counts the special tokens. The same texts give the same files, byte for byte. Raises CorpusError
    if the texts are too few for a vocabulary of that size.
    """
    vocabulary = VOCABULARIES[kind]
    tokenizer = vocabulary.blank()
    counts = Counter(word for text in texts for word in split_words(tokenizer, text))
    tokenizer.model = vocabulary.train(counts, vocabulary_size)
    write(tokenizer, vocabulary.special_tokens, folder)


def write(tokenizer: Tokenizer, special_tokens: tuple[str, ...], folder: Path) -> None:
    """Write a tokenizer whose pieces include these special tokens, atomically.

    A WordPiece vocabulary is also written as vocab.txt, which BERT's tokenizers read.
    """
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special_tokens])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special_tokens, strict=True))
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
        if isinstance(_kind(tokenizer), WordPiece):
            lines = [f"{piece}\n" for piece in _pieces(tokenizer)]
            (temporary / "vocab.txt").write_text("".join(lines), encoding="utf-8")


def extend(folder: Path, texts: Iterable[str], count: int, target: Path) -> None:
    """Write the tokenizer of a folder with `count` more pieces: the most frequent words of the texts that it splits.

    Each is an added token of tokenizer.json that matches only whole words (`single_word`), so that every other word is
    split as before, such as "walkers" after "walker" is added. If it were a piece of the model, WordPiece (the longest
    piece first) and Unigram (the most probable pieces) would use it inside longer words too. Words with an unknown
    piece, and words whose letters are already a piece, are left out. Raises CorpusError if fewer than `count` remain.
    """
    tokenizer = load(folder)
    counts = Counter(word for text in texts for word in split_words(tokenizer, text))
    words = [word for word, _ in sorted(counts.items(), key=lambda row: (-row[1], row[0]))]
    new_words = [word for word in map(without_prefix, words) if _is_cut(tokenizer, word)][:count]
    if len(new_words) < count:
        raise CorpusError(
            f"The text has {len(new_words):,} different words that the vocabulary splits into several pieces, and "
            f"{count:,} new pieces were requested; request fewer, or give more text."
        )
    tokenizer.add_tokens([AddedToken(word, single_word=True, normalized=True) for word in new_words])
    with runs.replacing(target) as temporary:
        # vocab.txt cannot contain such tokens
        shutil.copytree(folder, temporary, ignore=shutil.ignore_patterns("vocab.txt"))
        tokenizer.save(str(temporary / "tokenizer.json"))


def _is_cut(tokenizer: Tokenizer, word: str) -> bool:
    """Return whether a word is split into several known pieces and its letters are not yet a piece."""
    if not WORD_PATTERN.fullmatch(word) or tokenizer.token_to_id(word) is not None:
        return False
    ids = tokenizer.encode(word, add_special_tokens=False).ids
    return len(ids) > 1 and UNK not in ids


def leave_out_segments(folder: Path) -> None:
    """Make the tokenizer in transformers return no token_type_ids, since GPT-2 would add word embeddings for them."""
    path = folder / "tokenizer_config.json"
    configuration = json.loads(path.read_text(encoding="utf-8"))
    runs.write_json(path, configuration | {"model_input_names": ["input_ids", "attention_mask"]})


def load(folder: Path) -> Tokenizer:
    """Read the tokenizer in this folder. Raises CorpusError if it has none."""
    path = Path(folder) / "tokenizer.json"
    if not path.is_file():
        raise CorpusError(f"{path} does not exist; python -m pretrain writes it when it prepares the corpus.")
    return Tokenizer.from_file(str(path))


def is_word_start(tokenizer: Tokenizer) -> np.ndarray:
    """Return whether each id's piece begins a word: bool [V], false for special tokens except WordPiece's [UNK]."""
    vocabulary, added_tokens = _kind(tokenizer), tokenizer.get_added_tokens_decoder()
    words = {i for i, token in added_tokens.items() if token.single_word}  # see `extend`
    return np.array(
        [i in words or vocabulary.begins_word(piece) for i, piece in enumerate(_pieces(tokenizer))], dtype=bool
    )


@dataclass(frozen=True, eq=False)
class WordStarts:
    """Where words begin: at some pieces, and for byte-level BPE also where letters, digits and marks meet."""

    begins: np.ndarray  # bool [V]: pieces that begin a word, whatever is before them
    edges: np.ndarray | None = None  # int8 [V, 2]: `ByteBPE.edges` of each piece

    def __call__(self, ids: np.ndarray, previous: np.ndarray) -> np.ndarray:
        """Return whether each of `ids` begins a word after the piece before it, given by `previous`: bool, as `ids`."""
        if self.edges is None:
            return self.begins[ids]
        first, last = self.edges[ids, 0], self.edges[previous, 1]
        return self.begins[ids] | ((first != last) & (first > 0) & (last > 0))

    def at_every_piece(self) -> "WordStarts":
        """Return the word starts if each piece is a word."""
        return replace(self, begins=np.ones_like(self.begins))


def word_starts(tokenizer: Tokenizer) -> WordStarts:
    """Return where words begin in the ids of a tokenizer."""
    vocabulary, begins = _kind(tokenizer), is_word_start(tokenizer)
    if not isinstance(vocabulary, ByteBPE):
        return WordStarts(begins)
    return WordStarts(begins, np.array([vocabulary.edges(piece) for piece in _pieces(tokenizer)], np.int8))


def is_byte_level(tokenizer: Tokenizer) -> bool:
    """Return whether the vocabulary is byte-level BPE."""
    return isinstance(_kind(tokenizer), ByteBPE)


def word_of(tokenizer: Tokenizer, ids: Sequence[int]) -> str | None:
    """Return the normalised word of these pieces; None if one of them is unknown."""
    return None if UNK in ids else _kind(tokenizer).word([str(tokenizer.id_to_token(i)) for i in ids])


def split_words(tokenizer: Tokenizer, text: str) -> list[str]:
    """Return the normalised words of a text; the text's pieces are the concatenated pieces of these words."""
    return [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text))]


def without_prefix(word: str) -> str:
    """Return a word of `split_words` without the "▁" that Unigram puts before it."""
    return word.removeprefix(Unigram.word_start)


def _pieces(tokenizer: Tokenizer) -> list[str]:
    return [str(tokenizer.id_to_token(i)) for i in range(tokenizer.get_vocab_size())]


def _kind(tokenizer: Tokenizer) -> Vocabulary:
    return VOCABULARIES[type(tokenizer.model).__name__.lower()]
