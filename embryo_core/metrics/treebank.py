"""A treebank as a run's models read it, encoded once per evaluation for all metrics that read the same source.

As in the paper's evaluation, each word is tokenized on its own and its pieces are joined between [CLS] and [SEP].
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from embryo_core.corpora import read_treebank
from embryo_core.errors import CorpusError
from embryo_core.metric import Limits, Source
from embryo_core.types import Example

if TYPE_CHECKING:
    from embryo_core.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class Sentence:
    """One encoded sentence of P pieces, at least one."""

    example: Example
    ids: np.ndarray  # [P + 2] with [CLS] and [SEP]
    word_of_piece: np.ndarray  # [P] index of the word that a piece belongs to, never decreasing


@dataclass(frozen=True, eq=False)
class Encoded:
    """The sentences that fit the models' positions; how many do not."""

    sentences: tuple[Sentence, ...]
    too_long: int


@lru_cache(maxsize=1)
def encode(tokenizer: "Tokenizer", limits: Limits, source: Source) -> Encoded:
    """Read and encode a treebank, or its first `source.limit` sentences. Raises CorpusError."""
    sentences, too_long = [], 0
    for example in read_treebank(source.path)[: source.limit]:
        encoding = tokenizer.encode_words(example.words)
        ids = np.concatenate([[tokenizer.cls_id], encoding.ids, [tokenizer.sep_id]])
        if len(ids) > limits.positions:
            too_long += 1
        elif len(ids) > 2:
            sentences.append(Sentence(example, ids, encoding.word_of_piece))
    if not sentences:
        raise CorpusError(
            f"{source.path} has no sentence of at most {limits.positions} pieces; "
            "give another treebank or a higher --limit."
        )
    return Encoded(tuple(sentences), too_long)
