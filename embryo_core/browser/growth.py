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
from embryo_core.share import map_style
from embryo_core.types import Run
from embryo_core.words import without_treebank_spaces

TILES = {"sentence": "query", "head": "attention", "curves": "tokens"}  # tile -> page that it opens


def make_tiles(run: Run, scale: Scale) -> tuple[bytes, dict[str, dict[str, str]]]:
    """Return the tiles of a run, made from stored results, and the state of the page that each tile opens, by tile."""
    tiles: dict[str, dict[str, Any]] = {}
    places: dict[str, dict[str, str]] = {}
    if sentence := growth.best_example(results.read_example_questions(run)):
        tiles["sentence"], places["sentence"] = sentence_tile(sentence), {"text": sentence.text, "subject": ""}
    levels = np.empty(0, np.uint8)
    if head := _clearest_head_tile(run):
        tiles["head"], levels, places["head"] = head
    if len(curves := growth.changed_most(run)):
        tiles["curves"], places["curves"] = curves_tile(curves, scale), {}
    return head_maps.pack(tiles, levels), places


def _clearest_head_tile(run: Run) -> tuple[dict[str, Any], np.ndarray, dict[str, str]] | None:
    """Return the tile of the clearest head, its maps [S, M, M] as colour levels, and its page's state.

    The steps are those with both its map and its pattern; None without such steps.
    """
    frame = patterns.read_behaviour(run)
    pattern, layer, head = patterns.clearest_head(frame)
    rows = patterns.select_pattern(frame, pattern)
    rows = rows[(rows["layer"] == layer) & (rows["head"] == head)].set_index("step")["value"]
    steps = log_spaced(sorted(results.steps_done(run, "attention") & set(rows.index)), head_maps.MAX_MAPS)
    if not steps:
        return None
    maps, label = results.read_attention(run, layer, head, steps), patterns.PATTERNS[pattern].label.lower()
    tile, levels = head_tile(f"Layer {layer}, head {head}", label, steps, maps.weights, rows.loc[steps].tolist())
    return tile, levels, {"layer": str(layer), "head": str(head), "section": "maps"}


def sentence_tile(example: ExampleQuestion) -> dict[str, Any]:
    """Return the sentence tile: an example's best answers at each step."""
    text = without_treebank_spaces(example.text)
    before, mask, after = text.partition("[MASK]")
    answers = example.answers
    return {
        "label": f"Best answers to {text} Opens Query.",
        "before": before if mask else f"{before} ",
        "after": after,
        "steps": [answer.step for answer in answers],
        "answers": [[*answer.words.items()] for answer in answers],
    }


def head_tile(
    title: str, pattern: str, steps: Sequence[int], weights: np.ndarray, values: Sequence[float]
) -> tuple[dict[str, Any], np.ndarray]:
    """Return the head tile's data, with the strength of its pattern [S], and its weights [S, L, L] as colour levels."""
    small = map_style.shrink(weights, head_maps.GRID_SIZE)
    levels = map_style.colour_levels(small, map_style.colour_end(small))
    about = {
        "label": f"{title}, {pattern}. Opens Attention.",
        "title": title,
        "pattern": pattern,
        "steps": [*map(int, steps)],
        "values": [*map(float, values)],
        "size": small.shape[-1],
        "colours": map_style.colours().tolist(),
    }
    return about, levels


def curves_tile(table: pd.DataFrame, scale: Scale) -> dict[str, Any]:
    """Return the tile of curves (group, step, accuracy) with their positions on an axis of steps."""
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
