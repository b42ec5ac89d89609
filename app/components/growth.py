"""Three tiles that play with the time bar: a sentence that is completed, a head that forms, curves that rise.

They follow `embryo:step` (see time_bar.py); their button plays the time bar by `embryo:play`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.components import head_maps
from app.components.messages import member
from embryo_core.curves.step_scales import Scale, axis_shares
from embryo_core.figures import style
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.share import map_style, shrink

KEY = "growth"
TILES = ("sentence", "head", "curves")

_component = st.components.v2.component(
    "embryo.growth",
    html=head_maps.read("growth.html"),
    css=head_maps.read("growth.css"),
    js=head_maps.script("growth.js"),
)


def growth(payload: bytes, on_open: Callable[[str], None]) -> None:
    """Draw the tiles of a payload (`growth_payload`); `on_open` gets the name of a tile that was clicked, of TILES."""

    def clicked() -> None:
        if name := member(st.session_state[KEY].open, TILES, str):
            on_open(name)

    _component(key=KEY, data=payload, on_open_change=clicked)


def growth_payload(sentence: dict[str, Any], head: tuple[dict[str, Any], bytes], curves: dict[str, Any]) -> bytes:
    """Pack what `of_sentence`, `of_head` and `of_curves` returned for the browser; a tile without data is empty."""
    about, codes = head
    found = {"sentence": sentence, "head": about, "curves": curves}
    tiles = {name: tile for name, tile in found.items() if tile}
    return head_maps.pack(tiles, np.frombuffer(codes, np.uint8))


def of_sentence(example: ExampleQuestion) -> dict[str, Any]:
    """Return an example's best answers at each step."""
    before, _, after = example.text.partition("[MASK]")
    answers = example.answers
    return {
        "label": f"Best answers to {example.text} Opens Query.",
        "before": before,
        "after": after,
        "steps": [one.step for one in answers],
        "answers": [one.words for one in answers],
    }


def of_head(
    title: str, pattern: str, steps: Sequence[int], weights: np.ndarray, values: Sequence[float]
) -> tuple[dict[str, Any], bytes]:
    """Return a head's weights [S, L, L] as colours, and how strong its pattern is [S]."""
    small = shrink(weights, head_maps.GRID_SIZE)
    levels = np.rint(255 * np.minimum(small / map_style.colour_end(small), 1)).astype(np.uint8)
    about = {
        "label": f"{title}, {pattern}. Opens Attention.",
        "title": title,
        "pattern": pattern,
        "steps": [*map(int, steps)],
        "values": [*map(float, values)],
        "size": small.shape[-1],
        "colours": map_style.colours().tolist(),
    }
    return about, levels.tobytes()


def of_curves(table: pd.DataFrame, scale: Scale) -> dict[str, Any]:
    """Return curves (group, step, accuracy) at their places on an axis of steps; empty without any."""
    if table.empty:
        return {}
    steps = sorted(table["step"].unique().tolist())
    by_group = table.pivot(index="step", columns="group", values="accuracy").loc[steps, table["group"].unique()]
    names = [str(name) for name in by_group]
    return {
        "label": f"Accuracy on {', '.join(names)}. Opens Tokens.",
        "steps": steps,
        "places": axis_shares(steps, scale).tolist(),
        "curves": [
            {"name": name, "colour": style.colour(name), "values": by_group[name].fillna(0).tolist()} for name in names
        ],
    }
