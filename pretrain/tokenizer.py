"""The tokenizer of a run, of either kind of vocabulary: trained, written and read, and where its words begin.

A kind is a module that brings special tokens, a tokenizer without pieces (`blank`), their training (`train`), and which
pieces begin a word, by which whole-word masking finds the words.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
from tokenizers import AddedToken, Tokenizer, processors

from embryo_core import runs
from embryo_core.errors import CorpusError
from pretrain import bytelevel, unigram, wordpiece
from pretrain.pieces import UNK

KINDS = {"unigram": unigram, "wordpiece": wordpiece, "bpe": bytelevel}  # as a tokenizer.json calls its model


def train_tokenizer(texts: Iterable[str], vocabulary_size: int, folder: Path, kind: str = "unigram") -> None:
    """Train on these texts and write the folder that AutoTokenizer.from_pretrained and `load` read.

    `vocabulary_size` counts the special tokens. The same texts give the same files, byte for byte. Raises CorpusError
    where the texts are too few for a vocabulary of that size.
    """
    vocabulary = KINDS[kind]
    tokenizer = vocabulary.blank()
    counts = Counter(word for text in texts for word in cut(tokenizer, text))
    tokenizer.model = vocabulary.train(counts, vocabulary_size)
    write(tokenizer, vocabulary.SPECIAL_TOKENS, folder)


def write(tokenizer: Tokenizer, special: tuple[str, ...], folder: Path) -> None:
    """Write a tokenizer whose pieces hold these special tokens, as the folder that is read by `load` and others."""
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")],
    )
    _save(tokenizer, special, folder)


def load(folder: Path) -> Tokenizer:
    """The tokenizer in this folder. Raises CorpusError where there is none."""
    path = Path(folder) / "tokenizer.json"
    if not path.is_file():
        raise CorpusError(f"{path} does not exist; python -m pretrain writes it when it prepares the corpus.")
    return Tokenizer.from_file(str(path))


def is_word_start(tokenizer: Tokenizer) -> np.ndarray:
    """For each id whether that piece begins a word: bool [V], false for the special tokens but WordPiece's [UNK]."""
    kind = _kind(tokenizer)
    pieces = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    return np.array([kind.begins_word(piece) for piece in pieces], dtype=bool)


def word_of(tokenizer: Tokenizer, ids: Sequence[int]) -> str | None:
    """The word, normalised, that these pieces are; None where one of them is unknown."""
    return None if UNK in ids else _kind(tokenizer).word([tokenizer.id_to_token(i) for i in ids])


def cut(tokenizer: Tokenizer, text: str) -> list[str]:
    """The words of a text, normalised: the pieces of the text are those of its words in turn."""
    return [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text))]


def _kind(tokenizer: Tokenizer) -> ModuleType:
    return KINDS[type(tokenizer.model).__name__.lower()]


def leave_out_segments(folder: Path) -> None:
    """Make transformers return no token_type_ids: GPT-2 would add the embeddings of the words of these ids."""
    path = folder / "tokenizer_config.json"
    configuration = json.loads(path.read_text(encoding="utf-8"))
    runs.write_json(path, configuration | {"model_input_names": ["input_ids", "attention_mask"]})


def _save(tokenizer: Tokenizer, special_tokens: tuple[str, ...], folder: Path) -> None:
    """Write the folder, whole or not at all; a WordPiece vocabulary also as vocab.txt, which BERT's tokenizers read."""
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
        if _kind(tokenizer) is wordpiece:
            pieces = map(tokenizer.id_to_token, range(tokenizer.get_vocab_size()))
            (temporary / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
