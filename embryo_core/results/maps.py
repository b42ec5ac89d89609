"""Attention maps read back: one head over the steps, all heads at one step or at some."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embryo_core.errors import ResultsError
from embryo_core.results.rows import read_table
from embryo_core.results.tables import ATTENTION
from embryo_core.results.weights import to_numbers
from embryo_core.types import Run


@dataclass(frozen=True, eq=False)
class AttentionHistory:
    """One head at evaluated steps: steps [S] int, weights [S, L, L] float32, and the sentences averaged over."""

    steps: np.ndarray
    weights: np.ndarray
    sentences: int


def read_attention(run: Run, layer: int, head: int, steps: Iterable[int] | None = None) -> AttentionHistory:
    """One head's maps at every evaluated step, or at some (layer 1 is the lowest, head 1 the first); may be none."""
    of_head = (pc.field("layer") == layer) & (pc.field("head") == head)
    rows = read_table(run, ATTENTION, of_head, _set(steps))
    weights, sentences = _maps(run, rows)
    return AttentionHistory(rows["step"].to_numpy(), weights, sentences)


def read_attention_layers(run: Run, head: int, steps: Iterable[int]) -> tuple[np.ndarray, np.ndarray, int]:
    """The heads of one number in all layers at some steps: steps [S], weights [layers, S, L, L], sentences.

    Raises ResultsError.
    """
    rows = read_table(run, ATTENTION, pc.field("head") == head, _set(steps))
    steps, weights, sentences = _all_heads(run, rows)
    return steps, np.moveaxis(weights[:, :, 0], 0, 1), sentences


def read_attention_step(run: Run, step: int) -> tuple[np.ndarray, int]:
    """All heads at one step: weights [layers, heads, L, L] float32, and the sentences averaged over (0: no maps)."""
    _, weights, sentences = _all_heads(run, read_table(run, ATTENTION, step=step))
    return weights[0] if len(weights) else weights.reshape(weights.shape[1:]), sentences


def read_attention_steps(run: Run, steps: Iterable[int] | None = None) -> tuple[np.ndarray, np.ndarray, int]:
    """All heads at every evaluated step, or at some: steps [S], weights [S, layers, heads, L, L], sentences."""
    return _all_heads(run, read_table(run, ATTENTION, step=_set(steps)))


def _set(steps: Iterable[int] | None) -> set[int] | None:
    return None if steps is None else {*steps}


def _all_heads(run: Run, rows: pa.Table) -> tuple[np.ndarray, np.ndarray, int]:
    weights, sentences = _maps(run, rows)
    steps = np.unique(rows["step"].to_numpy())
    layers, heads = pc.max(rows["layer"]).as_py() or 0, len(pc.unique(rows["head"]))
    if len(weights) != layers * heads * len(steps):
        at = f"step {steps[0]}" if len(steps) == 1 else f"{len(steps)} steps"
        raise ResultsError(
            f"Attention of run '{run.name}' at {at} has {len(weights)} maps, not {layers} layers of {heads} heads; "
            f"run: python -m embryo_core evaluate {run.name} --metrics attention --overwrite"
        )
    return steps, weights.reshape(len(steps), layers, heads, *weights.shape[1:]), sentences  # rows are sorted by these


def _maps(run: Run, rows: pa.Table) -> tuple[np.ndarray, int]:
    lengths = set(pc.unique(rows["length"]).to_pylist())
    if len(lengths) > 1:
        raise ResultsError(
            f"Attention maps of run '{run.name}' differ in length ({', '.join(map(str, sorted(lengths)))}); "
            f"run: python -m embryo_core evaluate {run.name} --metrics attention --overwrite"
        )
    length = lengths.pop() if lengths else 0
    weights = to_numbers(rows["weights"]).reshape(rows.num_rows, length, length)
    if not np.isfinite([weights.min(initial=0), weights.max(initial=0)]).all():
        raise ResultsError(
            f"Attention maps of run '{run.name}' hold a weight that is not finite; "
            f"run: python -m embryo_core evaluate {run.name} --metrics attention --overwrite"
        )
    return weights, pc.min(rows["sentences"]).as_py() or 0
