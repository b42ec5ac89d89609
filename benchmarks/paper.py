"""The paper's evaluation procedure, plain and slow: the reference for speed and for tests.

It follows the paper and its published code, with transformers only, without models or metrics of embryo_core: one
sentence at a time; for mask prediction, batches of up to 16 variants of a sentence, each with one masked word; logits
of the whole vocabulary at every position; one LAMA question at a time.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForMaskedLM, PreTrainedTokenizerFast

from embryo_core.types import Example, Fact

Counts = Counter[tuple[str, str, bool]]  # (tag, word, whether correct) -> number of occurrences


class PaperEvaluation:
    """An evaluation of one checkpoint by the paper's procedure."""

    def __init__(self, checkpoint: Path, tokenizer: Path):
        self.tokenizer = PreTrainedTokenizerFast(
            tokenizer_file=str(tokenizer / "tokenizer.json"),
            mask_token="[MASK]",
            cls_token="[CLS]",
            sep_token="[SEP]",
            unk_token="<unk>",
        )
        self.model = AutoModelForMaskedLM.from_pretrained(checkpoint, dtype=torch.float32).eval()

    def token_reconstruction(self, examples: Iterable[Example]) -> Counts:
        """Count how often each word with each tag is reproduced from the unmasked sentence."""
        counts: Counts = Counter()
        for example in examples:
            pieces, positions = self._pieces(example.words)
            best = self._best([pieces])[0]
            for target in example.targets:
                span = [p for word in range(*target.span1) for p in positions[word]]
                hit = [best[p] for p in span] == [pieces[p] for p in span]
                counts[target.label, " ".join(example.words[slice(*target.span1)]), hit] += 1
        return counts

    def mask_prediction(self, examples: Iterable[Example]) -> Counts:
        """Count how often each word with each tag is predicted when only that word is masked."""
        counts: Counts = Counter()
        for example in examples:
            pieces, positions = self._pieces(example.words)
            spans = [[p for word in range(*target.span1) for p in positions[word]] for target in example.targets]
            variants = []
            for span in spans:
                variant = list(pieces)
                for p in span:
                    variant[p] = self.tokenizer.mask_token_id
                variants.append(variant)
            best = [row for i in range(0, len(variants), 16) for row in self._best(variants[i : i + 16])]
            for target, span, row in zip(example.targets, spans, best, strict=True):
                hit = [row[p] for p in span] == [pieces[p] for p in span]
                counts[target.label, " ".join(example.words[slice(*target.span1)]), hit] += 1
        return counts

    def world_knowledge(self, facts: Iterable[Fact]) -> dict[str, tuple[int, float, int]]:
        """Return {fact id: (rank of the object from 1, its probability, id of the best piece)}.

        Facts whose object is not a single piece of the vocabulary are left out.
        """
        answers = {}
        for fact in facts:
            object_ids = self._ids(fact.object)
            if len(object_ids) != 1 or object_ids[0] == self.tokenizer.unk_token_id:
                continue
            text = fact.template.replace("[Y]", self.tokenizer.mask_token).replace("[X]", fact.subject)
            ids = self._with_ends(self._ids(text))
            logits = self._logits([ids])[0, ids.index(self.tokenizer.mask_token_id)]
            order = torch.sort(logits, descending=True, stable=True).indices.tolist()
            answers[fact.id] = (order.index(object_ids[0]) + 1, float(logits.softmax(-1)[object_ids[0]]), order[0])
        return answers

    def _pieces(self, words: Sequence[str]) -> tuple[list[int], list[list[int]]]:
        """Tokenize each word separately; return ids with [CLS] and [SEP], and the positions of each word."""
        ids: list[int] = []
        positions: list[list[int]] = []
        for word in words:
            word_ids = self._ids(word)
            positions.append(list(range(1 + len(ids), 1 + len(ids) + len(word_ids))))
            ids.extend(word_ids)
        return self._with_ends(ids), positions

    def _ids(self, text: str) -> list[int]:
        ids: Any = self.tokenizer.convert_tokens_to_ids(self.tokenizer.tokenize(text))
        return ids

    def _with_ends(self, ids: list[int]) -> list[int]:
        return [self.tokenizer.cls_token_id, *ids, self.tokenizer.sep_token_id]

    def _best(self, batch: list[list[int]]) -> list[list[int]]:
        """Return the id of the best piece at every position, [B, L]."""
        return self._logits(batch).argmax(-1).tolist()

    def _logits(self, batch: list[list[int]]) -> torch.Tensor:
        """Return logits [B, L, V] of a batch of equally long id lists."""
        with torch.no_grad():
            return self.model(torch.tensor(batch)).logits
