"""More pieces for a vocabulary: frequent words that were cut into several get pieces of their own, begun as means.

Each word is an added token of tokenizer.json that matches whole words alone (`single_word`), so that every other word,
"walkers" beside "walker", is cut as before. As a piece of the model, WordPiece (the longest piece first) and Unigram
(the most probable pieces) would use it inside longer words too.
"""

import re
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Tokenizer

from embryo_core import runs
from embryo_core.errors import CorpusError
from embryo_core.types import Checkpoint, Run
from pretrain import tokenizer as tokenizers
from pretrain.config import Config
from pretrain.export import StoredTensor, write_grown
from pretrain.vocabularies import MAX_WORD, UNK

WORD = re.compile(rf"\w{{2,{MAX_WORD}}}")


def extend_tokenizer(folder: Path, texts: Iterable[str], count: int, target: Path) -> None:
    """Write the tokenizer of a folder with `count` pieces more: the most frequent words of the texts that it cuts.

    Left out are words with a piece that is unknown, and words that are a piece inside others. Raises CorpusError if the
    texts have fewer.
    """
    tokenizer = tokenizers.load(folder)
    counts = Counter(word for text in texts for word in tokenizers.cut(tokenizer, text))
    words = [word for word, _ in sorted(counts.items(), key=lambda row: (-row[1], row[0]))]
    chosen = [word for word in map(tokenizers.bare, words) if _is_cut(tokenizer, word)][:count]
    if len(chosen) < count:
        raise CorpusError(
            f"The text has {len(chosen):,} different words that the vocabulary cuts into several pieces, and "
            f"{count:,} new pieces were asked for; ask for fewer or give more text."
        )
    tokenizer.add_tokens([AddedToken(word, single_word=True, normalized=True) for word in chosen])
    with runs.replacing(target) as temporary:
        shutil.copytree(folder, temporary, ignore=shutil.ignore_patterns("vocab.txt"))  # it has no such tokens
        tokenizer.save(str(temporary / "tokenizer.json"))


def _is_cut(tokenizer: Tokenizer, word: str) -> bool:
    """Return whether a word is of several known pieces, and its letters are no piece."""
    if not WORD.fullmatch(word) or tokenizer.token_to_id(word) is not None:
        return False
    ids = tokenizer.encode(word, add_special_tokens=False).ids
    return len(ids) > 1 and UNK not in ids


def write_extended(run: Run, config: Config, start: Checkpoint) -> None:
    """Write the first checkpoint of a run: the model of `start` with the new pieces of the run's tokenizer.

    Old pieces have the logits that they had; a new one has the mean of its pieces'. Raises MissingWeights,
    BrokenCheckpoint.
    """
    old, new = (tokenizers.load(one.tokenizer) for one in (start.run, run))
    added = range(old.get_vocab_size(), new.get_vocab_size())
    cuts = [old.encode(new.id_to_token(i), add_special_tokens=False).ids for i in added]
    write_grown(run, config, start, lambda arrays, stored: extended(arrays, stored, cuts))


def extended(
    arrays: dict[str, np.ndarray], stored: dict[str, StoredTensor], cuts: list[list[int]]
) -> dict[str, np.ndarray]:
    """Return tensors with a row more for each of `cuts`, the mean of those rows, where `stored` has as many more."""
    found = dict(arrays)
    for name, array in arrays.items():
        if name in stored and stored[name].shape[0] == len(array) + len(cuts):
            rows = np.stack([array[ids].astype(np.float64).mean(axis=0) for ids in cuts])
            found[name] = np.concatenate([array, rows.astype(array.dtype)])
    return found
