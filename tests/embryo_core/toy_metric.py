"""A metric with its own data in one file: does the model guess the last piece of a proverb?"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from embryo_core.measurements import Findings, Score
from embryo_core.metric import Metric


@dataclass(frozen=True)
class Proverbs:
    """Proverbs as `LastPiece.read` returns them."""

    ids: list[np.ndarray]  # with [CLS] and [SEP]
    summary: dict[str, Any]


class LastPiece(Metric):
    """Share of proverbs whose masked last piece is the model's best guess."""

    name = "last_piece"
    page = "knowledge"
    source = "proverbs"
    form = "text file with a proverb a line"
    needs = frozenset({"masked_words"})

    def read(self, tokenizer, limits, source) -> Proverbs:
        lines = source.path.read_text(encoding="utf-8").splitlines()[: source.limit]
        ids = [tokenizer.encode_text(line) for line in lines]
        return Proverbs(ids, {"sentences": len(ids), "note": f"{len(ids)} proverbs of {source.path.name}"})

    def compute(self, model, data: Proverbs) -> Findings:
        hits = []
        for ids in data.ids:
            visible_ids = ids.copy()
            visible_ids[-2] = model.tokenizer.mask_id
            logits = model.mlm_logits(visible_ids[None], np.array([0]), np.array([len(ids) - 2]))
            hits.append(logits[0].argmax() == ids[-2])
        return Findings(scores=[Score(self.name, float(np.mean(hits)), len(hits), "all")])
