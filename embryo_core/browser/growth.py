"""The data of three tiles that play with the time bar: a completed sentence, a head that forms, and rising curves.

The tiles follow the event `embryo:step` (see time_bar.js); their button starts the time bar with `embryo:play`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from embryo_core import results
from embryo_core.browser import head_maps
from embryo_core.curves.step_scales import Scale, axis_shares, log_spaced
from embryo_core.figures import growth, patterns, style
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.share import map_style, shrink
from embryo_core.types import Run
from embryo_core.words import without_treebank_spaces

TILES = {"sentence": "query", "head": "attention", "curves": "tokens"}  # tile -> page that it opens


def make_tiles(run: Run, scale: Scale) -> tuple[bytes, dict[str, dict[str, str]]]:
    """Return the tiles of a run, made from stored results, and the state of the page that each tile opens, by tile."""
    sentence, curves = growth.best_example(results.read_examples(run)), growth.changed_most(run)
    head, places = _clearest_head_tile(run)
    if sentence:
        places["sentence"] = {"text": sentence.text, "subject": ""}
    if len(curves):
        places["curves"] = {}
    return growth_payload(sentence_tile(sentence) if sentence else {}, head, curves_tile(curves, scale)), places


def _clearest_head_tile(run: Run) -> tuple[tuple[dict, bytes], dict[str, dict[str, str]]]:
    """Return the tile of the clearest head, at the steps with both its map and its pattern, and its page's state."""
    frame = patterns.read_behaviour(run)
    pattern, layer, head = patterns.clearest_head(frame)
    rows = patterns.select_pattern(frame, pattern)
    rows = rows[(rows["layer"] == layer) & (rows["head"] == head)].set_index("step")["value"]
    steps = log_spaced(sorted(results.steps_done(run, "attention") & set(rows.index)), head_maps.MAX_MAPS)
    if not steps:
        return ({}, b""), {}
    maps = results.read_attention(run, layer, head, steps)
    title, label = f"Layer {layer}, head {head}", patterns.PATTERNS[pattern].label.lower()
    tile = head_tile(title, label, steps, maps.weights, rows.loc[steps].tolist())
    return tile, {"head": {"layer": str(layer), "head": str(head), "section": "maps"}}


def growth_payload(sentence: dict[str, Any], head: tuple[dict[str, Any], bytes], curves: dict[str, Any]) -> bytes:
    """Pack the results of `sentence_tile`, `head_tile` and `curves_tile` for the browser; empty tiles are left out."""
    about, codes = head
    tiles = {"sentence": sentence, "head": about, "curves": curves}
    tiles = {name: tile for name, tile in tiles.items() if tile}
    return head_maps.pack(tiles, np.frombuffer(codes, np.uint8))


def sentence_tile(example: ExampleQuestion) -> dict[str, Any]:
    """Return the sentence tile: an example's best answers at each step."""
    text = without_treebank_spaces(example.text)
    before, mask, after = text.partition("[MASK]")
    answers = example.answers
    return {
        "label": f"Best answers to {text} Opens Query.",
        "before": before if mask else f"{before} ",
        "after": after,
        "steps": [one.step for one in answers],
        "answers": [[*one.words.items()] for one in answers],
    }


def head_tile(
    title: str, pattern: str, steps: Sequence[int], weights: np.ndarray, values: Sequence[float]
) -> tuple[dict[str, Any], bytes]:
    """Return the head tile's data: a head's weights [S, L, L] as colour levels, and the strength of its pattern [S]."""
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


def curves_tile(table: pd.DataFrame, scale: Scale) -> dict[str, Any]:
    """Return the tile of curves (group, step, accuracy) with their positions on an axis of steps; {} without curves."""
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
