"""The paper's edge probing (Section 4), plain and slow: the reference for speed and F1.

Written from the paper with only transformers and torch. For every task and every layer, a forward pass reads all
examples of the task in padded batches and pickles the features of their spans; then Adam trains one linear classifier
on them, in batches of 1,024. F1 on the development set decides when the learning rate is halved and when training
stops. The settings are from the authors' code (https://github.com/d223302/albert-embryology, Sec-3:Edge-Probing).
"""

import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM, PreTrainedTokenizerFast

from embryo_core.corpora import read_probing
from embryo_core.types import Example

SPLITS = ("train", "dev", "test")
EXAMPLES_PER_PASS = 32  # examples per batch of the forward pass
BATCH_SIZE = 1024  # targets per training batch
MAX_BATCHES = 30_000  # largest number of training batches
EVALUATE_EVERY = 1_000  # batches between evaluations on the development set
# evaluations in a row without a better F1: from HALVE_AFTER on, each halves the learning rate; STOP_AFTER end training
HALVE_AFTER, STOP_AFTER = 5, 20
MAX_NORM = 5.0  # norm to which gradients are clipped


@dataclass(frozen=True)
class PaperProbe:
    """The result of one probe: its F1, training batches, and seconds of features and of training."""

    f1: float
    batches: int
    features_seconds: float
    training_seconds: float


class PaperProbing:
    """Probes of one checkpoint, by the paper's procedure."""

    def __init__(self, checkpoint: Path, tokenizer: Path):
        self.tokenizer = PreTrainedTokenizerFast(
            tokenizer_file=str(tokenizer / "tokenizer.json"), cls_token="[CLS]", sep_token="[SEP]", unk_token="<unk>"
        )
        self.model = AutoModelForMaskedLM.from_pretrained(checkpoint, dtype=torch.float32).base_model.eval()

    def probe(self, folder: Path, layer: int, scratch: Path) -> PaperProbe:
        """Probe the states of a layer (0: embeddings) for the task in `folder`; pickled features go to `scratch`."""
        start = time.perf_counter()
        pickle_paths = {}
        for split in SPLITS:
            pickle_paths[split] = scratch / f"{folder.name}-{layer}-{split}.pickle"
            pickle_paths[split].write_bytes(pickle.dumps(self.features(read_probing(folder, split), layer), protocol=5))
        middle = time.perf_counter()
        torch.manual_seed(0)
        f1, batches = _train(*(pickle.loads(pickle_paths[split].read_bytes()) for split in SPLITS))
        return PaperProbe(f1, batches, middle - start, time.perf_counter() - middle)

    def features(self, examples: Sequence[Example], layer: int) -> tuple[Tensor, list[str]]:
        """Return features [n, D], or [n, 2D] of pairs of spans, of targets in sentences that fit, and their labels."""
        features, labels = [], []
        fitting = [(example, *self._pieces(example.words)) for example in examples]
        fitting = [row for row in fitting if len(row[1]) <= self.model.config.max_position_embeddings]
        for first in range(0, len(fitting), EXAMPLES_PER_PASS):
            rows = fitting[first : first + EXAMPLES_PER_PASS]
            states = self._states([ids for _, ids, _ in rows], layer)
            for (example, _, positions), state in zip(rows, states, strict=True):
                for target in example.targets:
                    spans = (target.span1,) if target.span2 is None else (target.span1, target.span2)
                    pieces = [[p for word in range(*span) for p in positions[word]] for span in spans]
                    if all(pieces):
                        features.append(torch.cat([state[span_positions].mean(0) for span_positions in pieces]))
                        labels.append(target.label)
        return torch.stack(features), labels

    def _pieces(self, words: Sequence[str]) -> tuple[list[int], list[list[int]]]:
        """Tokenize each word separately; return ids with [CLS] and [SEP], and the positions of each word."""
        ids, positions = [self.tokenizer.cls_token_id], []
        for word in words:
            word_ids = self.tokenizer.convert_tokens_to_ids(self.tokenizer.tokenize(word))
            positions.append(list(range(len(ids), len(ids) + len(word_ids))))
            ids.extend(word_ids)
        return [*ids, self.tokenizer.sep_token_id], positions

    def _states(self, batch: list[list[int]], layer: int) -> Tensor:
        """Return the states [B, L, D] of a layer for a batch of ids, padded."""
        length = max(map(len, batch))
        ids = torch.tensor([sentence_ids + [0] * (length - len(sentence_ids)) for sentence_ids in batch])
        mask = torch.tensor([[1] * len(sentence_ids) + [0] * (length - len(sentence_ids)) for sentence_ids in batch])
        with torch.no_grad():
            return self.model(ids, attention_mask=mask, output_hidden_states=True).hidden_states[layer]


def _train(train: tuple, dev: tuple, test: tuple) -> tuple[float, int]:
    """Return F1 on the test set of the weights that are best in development, and the number of training batches."""
    names = {label: i for i, label in enumerate(sorted(set(train[1])))}
    train, dev, test = ((x, torch.tensor([names.get(label, -1) for label in y])) for x, y in (train, dev, test))
    probe = nn.Linear(train[0].shape[1], len(names))
    rate = 1e-4
    optimizer = torch.optim.Adam(probe.parameters(), lr=rate)
    best, evaluations_without_gain, weights, order = -1.0, 0, probe.state_dict(), torch.zeros(0, dtype=torch.long)
    for batch in range(1, MAX_BATCHES + 1):
        if not len(order):
            order = torch.randperm(len(train[1]))
        rows, order = order[:BATCH_SIZE], order[BATCH_SIZE:]
        loss = nn.functional.cross_entropy(probe(train[0][rows]), train[1][rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(probe.parameters(), MAX_NORM)
        optimizer.step()
        if batch % EVALUATE_EVERY == 0:
            f1 = _f1(probe, *dev)
            evaluations_without_gain += 1
            if f1 > best:
                best, evaluations_without_gain = f1, 0
                weights = {name: value.clone() for name, value in probe.state_dict().items()}
            if evaluations_without_gain >= HALVE_AFTER:
                rate /= 2
                optimizer = torch.optim.Adam(probe.parameters(), lr=rate)
            if evaluations_without_gain == STOP_AFTER:
                break
    probe.load_state_dict(weights)
    return _f1(probe, *test), batch


def _f1(probe: nn.Linear, features: Tensor, labels: Tensor) -> float:
    """Return the micro-averaged F1: with one label per target, the share that is right."""
    with torch.no_grad():
        return float((probe(features).argmax(-1) == labels).double().mean())
