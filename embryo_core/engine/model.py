"""The facade of the torch room: load a checkpoint, token ids in, numpy arrays out; float32 whatever was stored.

The room's other files: model_weights.py reads a checkpoint in Hugging Face layout, and model_forward.py is the pass
from ids to logits. transformers is needed for neither.

A pass runs on one core, and metrics and queries run as many as there are cores: on two cores that is faster than
sharing each small matrix product, and the numbers do not depend on how many cores there are.
"""

from collections.abc import Sequence

import numpy as np
import torch

from embryo_core import runs
from embryo_core.engine import cpu as forward
from embryo_core.engine.tokenizer import Tokenizer, load_tokenizer
from embryo_core.engine.weights import Weights, read_weights
from embryo_core.errors import TokenizerMismatch
from embryo_core.types import Checkpoint

CORES = torch.get_num_threads()  # OMP_NUM_THREADS, or all
torch.set_num_threads(1)


class Model:
    """One loaded checkpoint. Arrays of ids are [B, L]; attention_mask is 1 at tokens and 0 at padding."""

    def __init__(self, checkpoint: Checkpoint, tokenizer: Tokenizer, weights: Weights):
        self.checkpoint = checkpoint
        self.tokenizer = tokenizer
        self._weights = weights
        self.vocabulary_size = weights.sizes.vocabulary
        self.max_positions = weights.sizes.positions
        self.num_layers = weights.sizes.layers
        self.num_heads = weights.sizes.heads
        self.hidden_size = weights.sizes.hidden
        self.nbytes = weights.nbytes  # of memory
        self.cores = CORES  # passes that may run at once, each in a thread of its own

    def mlm_logits(
        self, ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        """Masked-word logits [n, V] at the n positions (rows[i], columns[i]); the head is applied nowhere else."""
        return mlm_logits([self], ids[None], attention_mask, rows, columns)[0]

    @torch.inference_mode()
    def mlm_head(self, states: np.ndarray) -> np.ndarray:
        """Masked-word logits [n, V] of hidden states [n, H], such as those of a lower layer."""
        return forward.apply_head(torch.as_tensor(states), self._weights.network.head).numpy()

    @torch.inference_mode()
    def hidden_states(self, ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """States [num_layers + 1, B, L, H]; the first are the embeddings, for ALBERT after their projection to H."""
        states, mask = [forward.embed(torch.as_tensor(ids), self._weights.network.embeddings)], _mask(attention_mask)
        for layer in self._weights.layers:
            states.append(forward.apply_layer(states[-1], layer, mask, None))
        return torch.stack(states).numpy()

    @torch.inference_mode()
    def attentions(self, ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Attention weights [num_layers, B, heads, L, L], row = from, column = to."""
        states, mask = forward.embed(torch.as_tensor(ids), self._weights.network.embeddings), _mask(attention_mask)
        weights = []
        for layer in self._weights.layers:
            weights.append(forward.attend(states, layer, mask))
            states = forward.apply_layer(states, layer, mask, None)
        return torch.stack(weights).numpy()


@torch.inference_mode()
def mlm_logits(
    models: Sequence[Model], ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> list[np.ndarray]:
    """Masked-word logits [n, V] by each of C models as by `Model.mlm_logits`, for its own part of ids [C, B, L].

    Attention mask and positions are the same for all. Between models no time is lost to Python or to its lock.
    """
    networks, at = [model._weights.network for model in models], (torch.as_tensor(rows), torch.as_tensor(columns))
    with torch.jit.optimized_execution(False):  # a first pass would wait for it, and later ones gain nothing
        found = forward.logits(networks, torch.as_tensor(ids), _mask(attention_mask), at)
    return [logits.numpy() for logits in found]


def load(checkpoint: Checkpoint) -> Model:
    """Read a checkpoint. Raises BrokenCheckpoint, TokenizerMismatch, BrokenRun."""
    runs.verify(checkpoint)
    tokenizer = load_tokenizer(checkpoint.run)
    weights = read_weights(checkpoint)
    if weights.sizes.vocabulary < tokenizer.vocabulary_size:
        raise TokenizerMismatch(
            f"The tokenizer of run '{checkpoint.run.name}' has {tokenizer.vocabulary_size} pieces, "
            f"but {checkpoint.path} has {weights.sizes.vocabulary}; put the tokenizer of its pretraining back."
        )
    return Model(checkpoint, tokenizer, weights)


def _mask(attention_mask: np.ndarray) -> torch.Tensor | None:
    """True at tokens, [B, 1, 1, L]; None without padding."""
    return None if attention_mask.all() else torch.as_tensor(attention_mask, dtype=torch.bool)[:, None, None]
