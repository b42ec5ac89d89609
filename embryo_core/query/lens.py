"""The lens: what each layer would answer to a [MASK], the masked-word head applied to every hidden state, at each step.

Layer 0 is the embeddings as they enter the first layer; the last layer's answer is the model's own. The head was
trained on the last layer alone, so that a lower layer's answer says how far its state already points to a word
(nostalgebraist 2020, "interpreting GPT: the logit lens"). In a text with several masks the others stay in place.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embryo_core.query.beam import logsumexp, top_k
from embryo_core.query.chunks import between_chunks
from embryo_core.query.question import check_text, find_mask, read_together, readable
from embryo_core.query.sweep import sweep
from embryo_core.types import Prediction, Run

if TYPE_CHECKING:
    from embryo_core.engine.model import Model

Layers = tuple[tuple[Prediction, ...], ...]  # [num_layers + 1][k]


@dataclass(frozen=True)
class Lens:
    """The k best pieces for one [MASK] by every layer at every step."""

    run: str
    text: str
    mask: int  # 1 is the first
    steps: tuple[int, ...]
    layers: tuple[int, ...]  # 0 (the embeddings) to the number of layers
    cells: tuple[Layers, ...]  # cells[i][l]: predictions at steps[i] of layers[l], best first
    skipped: tuple[str, ...]  # why a checkpoint was left out, one sentence each


def lens(run: Run, text: str, mask: int = 1, k: int = 10, steps: Iterable[int] | None = None) -> Lens:
    """Read every layer's answer for one mask of a text at every checkpoint of a run, or at the given steps.

    Raises QueryError, UnknownStep, MissingWeights where a given step, or every one, has lost them, TokenizerMismatch,
    and BrokenCheckpoint where no checkpoint can be read.
    """
    text = check_text(text)
    find_mask(text, mask)
    found = sweep(run, lambda models: _by_layer(models, text, mask, k), steps)
    layers = tuple(range(len(found.answers[0])))
    return Lens(run.name, text, mask, found.steps, layers, found.answers, found.skipped)


def _by_layer(models: "Sequence[Model]", text: str, mask: int, k: int) -> list[Layers]:
    """The answers of C models; what follows the passes is done for all at once: each call waits for Python's lock."""
    question = read_together(text, models)
    logits = np.stack([_logits(model, question.ids[None], question.masks[mask - 1]) for model in models])
    best = top_k(logits, k)  # [C, layers, k]
    probabilities = np.exp(np.take_along_axis(logits, best, axis=2) - logsumexp(logits)).tolist()
    words = np.array(readable(models[0].tokenizer, best.ravel()), dtype=object).reshape(best.shape).tolist()
    return [
        tuple(tuple(Prediction(*p) for p in zip(*layer, range(1, k + 1), strict=False)) for layer in zip(*of_model))
        for of_model in zip(words, probabilities, strict=True)
    ]


def _logits(model: "Model", ids: np.ndarray, position: int) -> np.ndarray:
    """Logits [layers, V] of the head on every layer's state at one position of ids [1, L]."""
    between_chunks()
    return model.mlm_head(model.words.hidden_states(ids, np.ones_like(ids))[:, 0, position])
