"""Cached reads of attention maps: at all steps, or at log-spaced steps of a long series."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from app.caching import cached_resource, results_state
from app.results import sources, steps_done
from embryo_core import results as store
from embryo_core import runs
from embryo_core.browser import head_maps as payloads
from embryo_core.browser.head_maps import MAX_MAPS
from embryo_core.curves import normalise_rows
from embryo_core.curves.step_scales import Scale, log_spaced
from embryo_core.figures.attention import METRIC, normalised_suffix
from embryo_core.results import AttentionHistory
from embryo_core.share import HeadHistory, all_heads_gif, averaged
from embryo_core.types import Run


def map_steps(run: Run) -> set[int]:
    """Return the steps that have averaged maps. Raises ResultsError."""
    return steps_done(run, METRIC)


def shown_steps(run: Run, chosen: Callable[[Iterable[int]], int]) -> tuple[int, ...]:
    """Return the steps whose maps a page shows: `grid_steps` and the one that `chosen` picks; empty without maps."""
    steps = map_steps(run)
    return tuple(sorted({*grid_steps(run), chosen(steps)})) if steps else ()


@runs.read_once
def grid_steps(run: Run) -> list[int]:
    """Return the steps whose maps are read together and set the colour scale: all, or log-spaced if there are many."""
    return log_spaced(sorted(map_steps(run)), MAX_MAPS)


def head_history(
    run: Run,
    layer: int,
    head: int,
    steps: tuple[int, ...],
    normalised: bool = False,
    shared: bool = False,
    bar_steps: tuple[float, ...] = (),
) -> HeadHistory:
    """Return a head's averaged maps at these steps; with `shared`, on the colour scale of all heads."""
    sentences = _maps_at_first(run)[2]
    maps = AttentionHistory(np.array(steps), _weights(run, steps, normalised, (layer - 1, head - 1)), sentences)
    history = averaged(run, layer, head, maps, sources(run).get(METRIC, {}))
    shared_end = _grid_at_first(run, normalised).shared_end if shared else None
    note = history.note + normalised_suffix(normalised)
    return replace(history, note=note, shared_end=shared_end, bar_steps=bar_steps)


@cached_resource(results_state, 4)
def at_step(run: Run, step: int, normalised: bool = False) -> np.ndarray:
    """Return the averaged maps of all heads at one step, [layers, heads, L, L]. Raises ResultsError."""
    weights, _ = store.read_attention_step(run, step)
    return normalise_rows(weights) if normalised else weights


def grid_size(run: Run, normalised: bool) -> tuple[int, int]:
    """Return the numbers of layers and heads."""
    layers, _, heads, _ = _grid_at_first(run, normalised).codes.shape[1:]
    return layers, heads


@cached_resource(results_state, 4, "Reading the attention maps")
def grid(run: Run, normalised: bool, bar_steps: tuple[float, ...]) -> bytes:
    """Return the small maps at `grid_steps`, packed for the browser."""
    maps = replace(_grid_at_first(run, normalised), bar_steps=bar_steps)
    return payloads.grid_payload(run.name, maps, run.step_unit)


@cached_resource(results_state, 16)
def added_to_grid(run: Run, steps: tuple[int, ...], normalised: bool, bar_steps: tuple[float, ...]) -> bytes:
    """Return the small maps of the one step that the grid lacks, packed for the browser; without maps if it has all."""
    of_grid = grid_steps(run)
    for step, bar_step in zip(steps, bar_steps or steps, strict=True):
        if step not in of_grid:
            return payloads.added_payload(run.name, step, at_step(run, step, normalised), bar_step)
    return payloads.added_payload(run.name)


def gif(run: Run, steps: tuple[int, ...], normalised: bool, scale: Scale, shared: bool, note: str) -> bytes:
    """Return the averaged maps of all heads at these steps as a GIF with this small print. Raises ResultsError."""
    weights = _weights(run, steps, normalised)
    return all_heads_gif(run.name, np.array(steps), weights, scale, shared, unit=run.step_unit, note=note)


def _weights(
    run: Run, steps: tuple[int, ...], normalised: bool, head: tuple[int | slice, ...] = (slice(None), slice(None))
) -> np.ndarray:
    """Return averaged maps at these steps: [S, layers, heads, L, L], or [S, L, L] of one `head` (indices from 0)."""
    together, weights, _ = _maps_at_first(run)
    place = {step: i for i, step in enumerate(together)}
    maps = [weights[(place[step], *head)] if step in place else at_step(run, step, False)[head] for step in steps]
    return normalise_rows(np.stack(maps)) if normalised else np.stack(maps)


@cached_resource(results_state, 2)
def _maps_at_first(run: Run) -> tuple[list[int], np.ndarray, int]:
    """Return `grid_steps` [S], their full maps [S, layers, heads, L, L], and the number of sentences behind them."""
    steps, weights, sentences = store.read_attention_steps(run, grid_steps(run))
    return steps.tolist(), weights, sentences


@cached_resource(results_state, 4, "Reading the attention maps")
def _grid_at_first(run: Run, normalised: bool) -> payloads.Grid:
    """Return the small maps of all heads at `grid_steps`."""
    steps, weights, _ = _maps_at_first(run)
    return payloads.grid(steps, normalise_rows(weights) if normalised else weights)
