"""One head's attention maps over the steps, for the dashboard, the GIF and the HTML page."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from embryo_core import results
from embryo_core.errors import ResultsError
from embryo_core.results import AttentionHistory
from embryo_core.types import Run, SpecialTokens, StepUnit

METRIC = "attention"


@dataclass(frozen=True, eq=False)
class HeadHistory:
    """One head's maps: weights [S, L, L] at steps [S], row = from, column = to; layer and head count from 1."""

    run: str
    layer: int
    head: int
    note: str  # a sentence without its full stop: what the weights are, from which data, and n
    steps: np.ndarray
    weights: np.ndarray
    tokens: tuple[str, ...] = ()  # the L pieces of one sentence; empty for averaged maps
    opening: str | None = None  # the special token at position 0 of averaged maps, if there is one
    shared_end: float | None = None  # weight at which a colour scale shared by all heads ends; None for the head's own
    bar_steps: tuple[float, ...] = ()  # steps [S] of another run's time bar that shows the maps; empty for the own one
    step_unit: StepUnit = field(kw_only=True)

    @property
    def name(self) -> str:
        """Return the stem of the file names."""
        return f"{self.run}-{'sentence' if self.tokens else 'attention'}-layer{self.layer}-head{self.head}"

    @property
    def label(self) -> str:
        """Return the names of layer and head for a heading."""
        return f"Layer {self.layer}, head {self.head}"

    @property
    def title(self) -> str:
        """Return a title with the run, layer and head."""
        return f"{self.run}, layer {self.layer}, head {self.head}"

    @property
    def size(self) -> int:
        """Return the number of positions L of a map."""
        return self.weights.shape[-1]

    @property
    def maximum(self) -> float:
        """Return the largest weight over all steps; 1 if all weights are 0."""
        return float(self.weights.max()) or 1.0


def averaged(run: Run, layer: int, head: int, maps: AttentionHistory, source: dict[str, Any]) -> HeadHistory:
    """Return the history of a head's averaged maps; `source` is attention's entry of `results.read_sources`."""
    data = source.get("note", f"averaged over {maps.sentences:,} sentences")
    note = f"Attention weights, {data}"
    opening = (run.special_tokens or SpecialTokens()).cls
    return HeadHistory(run.name, layer, head, note, maps.steps, maps.weights, opening=opening, step_unit=run.step_unit)


def read_averaged(run: Run, layer: int, head: int) -> HeadHistory:
    """Read the history of a head's averaged maps. Raises ResultsError if the run has no maps, or no such head."""
    steps = results.steps_done(run, METRIC)
    if not steps:
        raise ResultsError(
            f"Run '{run.name}' has no attention maps yet; make them with: "
            f"python -m embryo_core evaluate {run.name} --metrics {METRIC} --treebank PATH"
        )
    layers, heads = results.read_attention_step(run, min(steps))[0].shape[:2]
    if not (1 <= layer <= layers and 1 <= head <= heads):
        raise ResultsError(
            f"Run '{run.name}' has no layer {layer}, head {head}: its layers are 1 to {layers}, its heads 1 to {heads}."
        )
    maps = results.read_attention(run, layer, head)
    return averaged(run, layer, head, maps, results.read_sources(run).get(METRIC, {}))
