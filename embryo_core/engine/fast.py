"""The fast engine: ALBERT, BERT and ELECTRA on a CPU, without transformers."""

from collections.abc import Sequence

from torch import Tensor

from embryo_core.engine import cpu, network
from embryo_core.engine.device import CPU_TOKENS
from embryo_core.engine.weights import nbytes, read_network
from embryo_core.types import Checkpoint


class FastEngine:
    """One loaded checkpoint as an `Engine` (see model.py)."""

    def __init__(self, checkpoint: Checkpoint, pieces: int):
        """Read a checkpoint for a tokenizer of so many pieces. Raises BrokenCheckpoint, TokenizerMismatch."""
        cpu.use_one_core_per_pass()
        sizes, self._network = read_network(checkpoint, pieces)
        self.max_positions = sizes.positions
        self.num_layers = sizes.layers
        self.num_heads = sizes.heads
        self.hidden_size = sizes.hidden
        self.nbytes = nbytes(self._network)
        self.tokens_at_once = CPU_TOKENS

    def embeddings(self) -> tuple[Tensor, Tensor | None]:
        return self._network.embeddings.words.float(), self._network.embeddings.positions

    def head(self, states: Tensor) -> Tensor:
        return network.head_logits(states, self._network.head)

    def detect(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        return network.detect(self._network, ids, mask)

    def hidden_states(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        return network.hidden_states(self._network, ids, mask)

    def attentions(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        return network.attentions(self._network, ids, mask)

    @staticmethod
    def logits(
        engines: "Sequence[FastEngine]", ids: Tensor, mask: Tensor | None, at: tuple[Tensor, Tensor]
    ) -> list[Tensor]:
        return network.logits([engine._network for engine in engines], ids, mask, at)

    def passes_at_once(self) -> int:
        return cpu.passes_at_once()
