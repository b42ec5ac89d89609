"""The data of the components that draw attention maps in the browser: one head's history, and a grid of all heads.

Maps are sent as bytes: the length of a JSON header, the header, then the maps (see `unpack` in maps.js).
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from embryo_core.curves.step_scales import Scale
from embryo_core.share import HeadHistory, map_style
from embryo_core.share.map_style import DECADES
from embryo_core.types import StepUnit

MAX_MAPS = 32  # at most this number of steps' maps are read together
GRID_SIZE = 32  # positions: larger maps are averaged over square blocks, so that small multiples stay small


def history_payload(history: HeadHistory, scale: Scale, compact: bool = False) -> bytes:
    """Pack one head's history for the browser: weights as float32, or with `compact` as one byte each (`quantise`)."""
    shown = {"layer": history.layer, "head": history.head, "name": history.name}
    shown |= {"shared": history.shared_end is not None, "at": [*history.bar_steps] or [*map(int, history.steps)]}
    header = map_style.drawing(history, scale) | shown
    if compact:
        codes = quantise(history.weights / history.maximum)
        return pack(header | {"coded": DECADES}, codes)
    return pack(header, history.weights.astype("<f4"))


def grid_name(run: str) -> str:
    """Return the prefix of the file names of a run's small multiples."""
    return f"{run}-attention-all-heads"


@dataclass(frozen=True, eq=False)
class Grid:
    """Small maps of all heads at some steps; their side M is at most GRID_SIZE (see `map_style.shrink`)."""

    steps: tuple[int, ...]
    codes: np.ndarray  # [S, layers, M, heads, M], as in the picture: shares of each head's largest weight (`quantise`)
    peaks: np.ndarray  # [layers, heads] largest weights of the small maps
    maxima: np.ndarray  # [layers, heads] largest weights of the full maps
    ends: np.ndarray  # [layers, heads] weights at which each head's colour scale ends
    shared_end: float  # weight at which a common colour scale ends
    bar_steps: tuple[float, ...] = ()  # as in HeadHistory


def grid(steps: Iterable[int], weights: np.ndarray) -> Grid:
    """Make small maps of all heads from weights [S, layers, heads, L, L], with one byte per weight."""
    codes, peaks = _codes(_in_picture(weights))
    ends = map_style.colour_ends(weights), map_style.colour_end(weights)
    return Grid(tuple(map(int, steps)), codes, peaks, weights.max(axis=(0, 3, 4)), *ends)


def grid_payload(run: str, grid: Grid, unit: StepUnit) -> bytes:
    """Pack a grid for the browser, as pictures [S, layers * M, heads * M]."""
    layers, size, heads, _ = grid.codes.shape[1:]
    header = {"run": run, "name": grid_name(run), "steps": [*grid.steps], "edge": map_style.EDGE}
    header |= {"countedIn": unit}
    header |= {"layers": layers, "heads": heads, "size": size, "at": [*grid.bar_steps] or [*grid.steps]}
    header |= _largest(grid.peaks, grid.maxima)
    header |= {"ends": grid.ends.tolist(), "shared_end": grid.shared_end}
    header |= {"decades": DECADES, "colours": map_style.colours().tolist()}
    return pack(header, grid.codes)


def added_payload(
    run: str, step: int | None = None, weights: np.ndarray | None = None, bar_step: float | None = None
) -> bytes:
    """Pack the maps [layers, heads, L, L] of a step that a grid lacks; without weights, only a header."""
    header = {"name": grid_name(run), "step": step, "at": step if bar_step is None else bar_step}
    if weights is None:
        return pack(header)
    codes, peaks = _codes(_in_picture(weights)[None])
    return pack(header | _largest(peaks, weights.max(axis=(2, 3))), codes)


def _largest(peaks: np.ndarray, maxima: np.ndarray) -> dict[str, list]:
    """Return the header's entries on each head's largest weight [layers, heads], in the small and in the full maps."""
    return {"peaks": peaks.astype(float).tolist(), "maxima": maxima.astype(float).round(6).tolist()}


def pack(header: dict[str, Any], *arrays: np.ndarray) -> bytes:
    """Return the length of the header (uint32, little-endian), the header as JSON, and the bytes of the arrays."""
    text = json.dumps(header).encode()
    return b"".join((len(text).to_bytes(4, "little"), text, *(array.tobytes() for array in arrays)))


def _in_picture(weights: np.ndarray) -> np.ndarray:
    """Shrink maps [..., layers, heads, L, L] and return them in the layout of a picture, [..., layers, M, heads, M]."""
    return np.ascontiguousarray(map_style.shrink(weights, GRID_SIZE).swapaxes(-3, -2))


def _codes(small: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return small maps [S, layers, M, heads, M] as coded shares of each head's largest weight, and these weights."""
    peaks = small.max(axis=(0, 2, 4))
    return quantise(small / np.maximum(peaks, np.finfo(np.float32).tiny)[:, None, :, None]), peaks


def quantise(share: np.ndarray) -> np.ndarray:
    """Encode shares in [0, 1] as uint8 on a log scale: code c > 0 means 10 ** (DECADES * ((c - 1) / 254 - 1)).

    Neighbouring codes differ by 2.8 %, so the error of shares of 0.001 and more is at most 1.4 %. Code 0 means less.
    """
    exponent = np.log10(np.maximum(share, 1e-12))
    return np.clip(np.rint(255 + 254 * exponent / DECADES), 0, 255).astype(np.uint8)
