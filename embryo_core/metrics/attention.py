"""Attention: the maps of every head, averaged over the sentences of a treebank (Figure 4).

Entry [i, j] of a map is the mean weight from position i to position j over the sentences that have both; position 1 is
[CLS], and [SEP] ends each sentence wherever that is. A longer sentence counts in more entries than a shorter one, none
is padded, and a row sums to 1 only nearly, as its entries average over different sentences. The map ends where fewer
than MINIMUM sentences reach, or at LENGTH.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embryo_core.corpora import TREEBANK, read_treebank
from embryo_core.errors import CorpusError
from embryo_core.metrics import batches
from embryo_core.types import AttentionMap, Findings, Limits, Metric, Source

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.engine.tokenizer import Tokenizer

LENGTH = 64
MINIMUM = 10  # sentences behind an entry, or all of them where there are fewer


@dataclass(frozen=True, eq=False)
class Sentences:
    """Encoded sentences, and the side L of the maps they give."""

    sentences: list[np.ndarray]  # ids with [CLS] and [SEP]
    length: int
    summary: dict[str, Any]


class Attention(Metric):
    """One map per layer and head, from the sentences that fit the model's positions."""

    name = "attention"
    page = "attention"
    source = "treebank"
    form = TREEBANK
    needs = frozenset({"attentions"})

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> Sentences:
        encoded = []
        for example in read_treebank(source.path)[: source.limit]:
            ids = tokenizer.encode_words(example.words).ids
            if len(ids) + 2 <= limits.positions:
                encoded.append(np.concatenate([[tokenizer.cls_id], ids, [tokenizer.sep_id]]))
        if not encoded:
            raise CorpusError(
                f"{source.path} has no sentence of at most {limits.positions} pieces; "
                "give another treebank or a higher --limit."
            )
        longest = sorted((len(ids) for ids in encoded), reverse=True)
        length = min(longest[min(MINIMUM, len(longest)) - 1], LENGTH)
        note = f"averaged over {len(encoded):,} sentences of {source.path.name}"
        return Sentences(encoded, length, {"sentences": len(encoded), "length": length, "note": note})

    def compute(self, model: "Model", data: Sentences) -> Findings:
        side = data.length
        total = np.zeros((model.num_layers, model.num_heads, side, side))
        reached = np.zeros((side, side), np.int64)  # sentences that have both positions
        for batch in batches.of_one_length(np.array([len(ids) for ids in data.sentences])):
            ids = np.stack([data.sentences[i] for i in batch])  # [b, L]
            weights = model.attentions(ids, np.ones_like(ids))  # [layers, b, heads, L, L]
            end = min(side, ids.shape[1])
            total[:, :, :end, :end] += weights[..., :end, :end].sum(axis=1, dtype=np.float64)
            reached[:end, :end] += len(batch)
        mean = (total / reached).astype(np.float32)
        return Findings(
            attention=[
                AttentionMap(layer + 1, head + 1, mean[layer, head], len(data.sentences))
                for layer in range(model.num_layers)
                for head in range(model.num_heads)
            ]
        )
