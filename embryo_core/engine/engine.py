"""The base of all engines: the sizes of a checkpoint's model, and the passes that a Model calls on tensors."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from embryo_core import runs
from embryo_core.engine.capabilities import heads
from embryo_core.engine.device import CPU, CPU_TOKENS, Device, use_one_core_per_pass
from embryo_core.tokenizers.checks import check_vocabulary
from embryo_core.types import Checkpoint


class Engine:
    """A loaded checkpoint, with the passes of its capabilities (see capabilities.py). Ids have no padding."""

    mapped = False  # whether the weights stay in their file
    nbytes: int  # memory of the weights
    max_batch_tokens = CPU_TOKENS

    # C engines of one class, ids [C, B, L], n positions (rows, columns) -> word logits [n, V] of each engine, which are
    # those of masked words, or of the piece after each piece
    logits: Callable[[Sequence[Any], Tensor, tuple[Tensor, Tensor]], list[Tensor]]
    # word embeddings [V, E], and position embeddings [P, E], if any
    embeddings: Callable[[], tuple[Tensor, Tensor | None]]
    # ids [B, L] -> states [layers + 1, B, L, H]
    hidden_states: Callable[[Tensor], Tensor]
    # ids [B, L] -> attention weights [layers, B, heads, L, L]
    attentions: Callable[[Tensor], Tensor]
    # ids [B, L] -> logits [B, L] that each token was replaced
    detect: Callable[[Tensor], Tensor]
    # ids [1, L], position -> masked-word logits [layers + 1, V] of every layer's state there, through the final norm,
    # if the model has one, and the head
    layer_logits: Callable[[Tensor, int], Tensor]
    # states [n, H] below the last layer -> next-piece logits [n, V], through the final norm and the head
    head: Callable[[Tensor], Tensor]
    # ids [B, n], past [..., P, x] or None, last -> next-piece logits [B, last, V] at the `last` pieces, and the past
    # including these ids. The past is the engine's cache of the P pieces before the ids, one row for all or for each
    forward_with_past: Callable[[Tensor, Tensor | None, int], tuple[Tensor, Tensor]]

    def __init__(self, checkpoint: Checkpoint, pieces: int, device: Device = CPU):
        """Read the sizes of a model whose tokenizer has `pieces` pieces. Raises BrokenCheckpoint, TokenizerMismatch."""
        use_one_core_per_pass()
        check_vocabulary(checkpoint, pieces)
        self.heads = heads(checkpoint)  # capabilities of the heads in the checkpoint's own folder
        self.architecture = runs.read_config(checkpoint, runs.Architecture)
        self.max_positions = self.architecture.max_position_embeddings
        self.num_layers = self.architecture.num_hidden_layers
        self.num_heads = self.architecture.num_attention_heads
        self.hidden_size = self.architecture.hidden_size
        self.parallel_passes = device.parallel_passes()  # each in one thread
