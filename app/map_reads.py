"""Cached reads of averaged attention maps: of a long series, a log-spaced part of the steps and the chosen one."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from app.caching import cached, results_state
from app.charts import attention
from app.components.head_maps import grid_payload
from app.results import done, sources
from embryo_core import results as store
from embryo_core.curves import normalise_rows
from embryo_core.curves.step_scales import Scale, log_spaced
from embryo_core.share import HeadHistory, all_heads_gif, averaged
from embryo_core.share.map_style import colour_end
from embryo_core.types import Run

MAPS = 64  # steps whose maps are read together


def steps_of(run: Run, chosen: Callable[[Iterable[int]], int]) -> tuple[int, ...]:
    """The steps whose averaged maps a page has: all, of many a log-spaced part and the one `chosen` of all."""
    known = sorted(done(run)["attention"])
    return tuple(sorted({*log_spaced(known, MAPS), chosen(known)})) if known else ()


@cached(results_state, 64)
def head_history(
    run: Run, layer: int, head: int, steps: tuple[int, ...], normalised: bool = False, shared: bool = False
) -> HeadHistory:
    """The averaged maps of a head at these steps, or the same with `normalised` rows. Raises ResultsError.

    Where colours are `shared`, they end at one weight for all heads.
    """
    maps = store.read_attention(run, layer, head, steps)
    history = averaged(run.name, layer, head, maps, sources(run).get("attention", {}))
    if shared:
        history = replace(history, shared_end=colour_end(_all_weights(run, steps, normalised)))
    if not normalised:
        return history
    note = f"{history.note}, each row divided by its sum"
    return replace(history, note=note, weights=normalise_rows(history.weights))


@cached(results_state, 64)
def position_weights(run: Run, layer: int, head: int, normalised: bool) -> pd.DataFrame:
    """How much a head attends to fixed positions, at every step (see `charts.attention.position_weights`)."""
    maps = store.read_attention(run, layer, head)
    return attention.position_weights(maps.steps, normalise_rows(maps.weights) if normalised else maps.weights)


@cached(results_state, 32)
def layers_over_steps(run: Run, head: int, steps: tuple[int, ...], normalised: bool = False) -> tuple[np.ndarray, int]:
    """The maps of a head in all layers at these steps, [layers, S, L, L], and the sentences. Raises ResultsError."""
    _, weights, sentences = store.read_attention_layers(run, head, steps)
    return normalise_rows(weights) if normalised else weights, sentences


@cached(results_state, 16)
def at_step(run: Run, step: int, normalised: bool = False) -> np.ndarray:
    """The averaged maps of all heads at one step, [layers, heads, L, L]. Raises ResultsError."""
    weights, _ = store.read_attention_step(run, step)
    return normalise_rows(weights) if normalised else weights


@cached(results_state, 4, "Reading the attention maps")
def grid(
    run: Run, steps: tuple[int, ...], normalised: bool = False, at: tuple[float, ...] = ()
) -> tuple[int, int, bytes]:
    """Layers and heads that have maps, and the maps of them all at these steps as the browser takes them.

    `at` as in `head_maps.head_history`. Raises ResultsError.
    """
    weights = _all_weights(run, steps, normalised)
    return weights.shape[1], weights.shape[2], grid_payload(run.name, np.array(steps), weights, at)


def gif(run: Run, steps: tuple[int, ...], normalised: bool, scale: Scale, shared: bool) -> bytes:
    """The averaged maps of all heads at these steps as a GIF (see `share.all_heads_gif`). Raises ResultsError."""
    return all_heads_gif(run.name, np.array(steps), _all_weights(run, steps, normalised), scale, shared)


def _all_weights(run: Run, steps: tuple[int, ...], normalised: bool) -> np.ndarray:
    """Averaged maps [S, layers, heads, L, L] at these steps; those of `steps_of` are read together, others alone."""
    together, weights = _weights_at_first(run)
    alone = [step for step in steps if step not in together]
    weights = np.concatenate([weights, *(at_step(run, step)[None] for step in alone)])
    weights = weights[[[*together, *alone].index(step) for step in steps]]
    return normalise_rows(weights) if normalised else weights


@cached(results_state, 2)
def _weights_at_first(run: Run) -> tuple[list[int], np.ndarray]:
    steps, weights, _ = store.read_attention_steps(run, log_spaced(sorted(done(run)["attention"]), MAPS))
    return steps.tolist(), weights
