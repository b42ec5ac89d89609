"""Two components that keep attention maps in the browser and redraw them at every step without asking the server.

`head_history` shows one head at every checkpoint; `head_grid` shows all heads of all layers as small multiples. Both
follow the page's time bar through the window event `embryo:step`, and the grid follows the other's head through
`embryo:head`. Maps travel as bytes: a JSON header, its length before it, then the maps.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from app.components.messages import field, member
from embryo_core.curves.step_scales import Scale
from embryo_core.share import HeadHistory, colour_ends, map_style, shrink
from embryo_core.share.map_style import DECADES

GRID_SIZE = 32  # longer maps are averaged over square blocks, so that no small multiple has more positions than this

FOLDER = Path(__file__).parent


def head_history(history: HeadHistory, scale: Scale, name: str, key: str, at: Sequence[float] = ()) -> None:
    """Show one head's maps at the time bar's step; `name` begins the names of its files (see `map_files`).

    Of a run beside the one of the time bar, `at` has the steps of the bar [S] at which its own steps are shown.
    """
    _history(key=key, data=history_payload(history, scale, name, at))


def head_grid(
    payload: bytes, layers: int, heads: int, on_head: Callable[[int, int], None], key: str
) -> None:
    """Show the small multiples made by `grid_payload`; `on_head` gets layer and head, from 1, that were clicked."""

    def clicked() -> None:
        message = st.session_state[key].head
        layer = member(field(message, "layer"), range(1, layers + 1))
        head = member(field(message, "head"), range(1, heads + 1))
        if layer and head:
            on_head(layer, head)

    _grid(key=key, data=payload, on_head_change=clicked)


# === What travels ===


def history_payload(history: HeadHistory, scale: Scale, name: str, at: Sequence[float] = ()) -> bytes:
    """One head's history as float32: what is stored, to the digit."""
    shown = {"run": history.run, "layer": history.layer, "head": history.head, "name": name}
    shown |= {"shared": history.shared_end is not None, "at": [*at] or [*map(int, history.steps)]}
    return pack(map_style.drawing(history, scale) | shown, history.weights.astype("<f4"))


def grid_name(run: str) -> str:
    """What the names of the files of a run's small multiples begin with."""
    return f"{run}-attention-all-heads"


def grid_payload(run: str, steps: np.ndarray, weights: np.ndarray, at: Sequence[float] = ()) -> bytes:
    """All heads' histories, weights [S, layers, heads, L, L], as one byte per weight (see `quantise`).

    The maps of a step lie beside each other as in the picture: [S, layers * M, heads * M], with M = min(L, GRID_SIZE)
    or a little less. `at` as in `head_history`.
    """
    small = shrink(weights, GRID_SIZE)
    count, layers, heads, size, _ = small.shape
    peaks = small.max(axis=(0, 3, 4))  # [layers, heads]
    codes = quantise(small / np.maximum(peaks, np.finfo(np.float32).tiny)[:, :, None, None])
    picture = codes.transpose(0, 1, 3, 2, 4).reshape(count, layers * size, heads * size)
    header = {"run": run, "name": grid_name(run), "steps": steps.tolist(), "edge": map_style.EDGE}
    header |= {"layers": layers, "heads": heads, "size": size, "at": [*at] or steps.tolist()}
    header["maxima"] = weights.max(axis=(0, 3, 4)).astype(float).round(6).tolist()
    header |= {"peaks": peaks.astype(float).tolist(), "ends": colour_ends(weights).tolist()}
    header |= {"shared_end": map_style.colour_end(weights)}
    return pack(header | {"decades": DECADES, "colours": map_style.colours().tolist()}, picture)


def pack(header: dict[str, Any], array: np.ndarray) -> bytes:
    """Length of the header (uint32, little-endian), the header as JSON, and the array's bytes."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(4, "little") + text + array.tobytes()


def quantise(share: np.ndarray) -> np.ndarray:
    """Shares of the largest weight, in [0, 1], as uint8: code c > 0 stands for 10 ** (DECADES * ((c - 1) / 254 - 1)).

    Neighbouring codes differ by 2.8 %, so no share of 0.001 or more is off by over 1.4 %; code 0 is anything less.
    """
    exponent = np.log10(np.maximum(share, 1e-12))
    return np.clip(np.rint(255 + 254 * exponent / DECADES), 0, 255).astype(np.uint8)


# === Registration ===


def _read(*names: str) -> str:
    return "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in names)


def _script(name: str) -> str:
    """A component's script after what it calls."""
    return map_style.SCRIPT.read_text(encoding="utf-8") + _read("map_svg.js", "maps.js", name)


_history = st.components.v2.component(
    "embryo.head_history", html=_read("head_history.html"), css=_read("maps.css"), js=_script("head_history.js")
)
_grid = st.components.v2.component(
    "embryo.head_grid", html=_read("head_grid.html"), css=_read("maps.css"), js=_script("head_grid.js")
)
