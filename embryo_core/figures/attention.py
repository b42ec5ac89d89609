"""Averaged attention maps (Figure 4): a figure of a head's weight on fixed positions; tables and captions of maps."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from embryo_core import results
from embryo_core.curves.step_scales import Scale
from embryo_core.engine.capabilities import head_groups
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.curves import Curves, curves_figure
from embryo_core.figures.figure import Caption, Figure, data_note, describe_networks, sentences
from embryo_core.share import HeadHistory, bertviz, map_style
from embryo_core.share.head_history import METRIC
from embryo_core.types import Run

WEIGHT_CURVES = Curves(
    by="position", y_title="weight in the averaged map", metric=METRIC, value="weight", decimals=".4f", height=320
)
NEEDS = frozenset({"attentions"})
POSITIONS = {  # label and formula of each of `scores.POSITIONS`
    "same": ("same position", "A[i, i], over i ≥ 0"),
    "previous": ("previous position", "A[i, i−1], over i ≥ 1"),
    "next": ("next position", "A[i, i+1], over i ≤ L−2"),
    "first": ("first position", "A[i, 0], over i ≥ 1"),
}


def maps_note(run: Run, normalised: bool) -> str:
    """Return the note on the data of a run's averaged maps, whose rows may be `normalised`; "" if it has none."""
    return f"{data_note(run, METRIC)}{normalised_suffix(normalised)}".lstrip(", ")


def normalised_suffix(normalised: bool) -> str:
    """Return the end of a title or a note on maps whose rows are `normalised`; "" if they are not."""
    return ", each row divided by its sum" if normalised else ""


# === Weight on fixed positions ===


def position_weights(runs: Sequence[Run], axis: AxisChoice, layer: int, head: int, normalised: bool = False) -> Figure:
    """Return the figure of a head's mean weight on four positions over the steps; rows sum to 1 if `normalised`."""
    formulas = "; ".join(f"{name}: {formula}" for name, formula in POSITIONS.values())
    return curves_figure(
        runs,
        axis,
        lambda run: position_weight_table(run, layer, head, normalised),
        WEIGHT_CURVES,
        f"attention-positions-layer{layer}-head{head}",
        f"Layer {layer}, head {head}: weight on fixed positions{normalised_suffix(normalised)}",
        lambda table: Caption(
            "Mean weight of this head on four positions.",
            f"In the averaged map A, L positions wide{normalised_suffix(normalised)}: {formulas}. Every position "
            "counts the same here; the section on head behaviour counts every piece the same.",
        ),
    )


def position_weight_table(run: Run, layer: int, head: int, normalised: bool) -> pd.DataFrame:
    """Return a row for each position and step: step, position, weight, layer, head; empty without maps."""
    if not results.steps_done(run, METRIC):
        return pd.DataFrame(columns=["step", "position", "weight", "layer", "head"])
    table = position_rows(results.read_position_weights(run, layer, head, normalised)).assign(layer=layer, head=head)
    return table.assign(data=maps_note(run, True)) if normalised else table


def position_rows(weights: pd.DataFrame) -> pd.DataFrame:
    """Reshape `results.read_position_weights` to a row for each position and step: step, position, weight."""
    names = {position: name for position, (name, _) in POSITIONS.items()}
    return weights.rename(columns=names).melt("step", [*names.values()], "position", "weight")


# === One head ===


def maps_csv(table: pd.DataFrame, run: str, note: str) -> str:
    """Return a table of maps as CSV; each row names the run and the data, which `note` describes."""
    return table.assign(run=run, **({"data": note} if note else {})).to_csv(index=False)


def map_table(history: HeadHistory, step: int) -> pd.DataFrame:
    """Return one head's map at a step as a `weights_table`; the map of a sentence has columns with its pieces."""
    i = history.steps.tolist().index(step)
    table = weights_table(history.weights[i][None, None], step).assign(layer=history.layer, head=history.head)
    if not history.tokens:
        return table
    pieces = {f"{end}_piece": [history.tokens[i] for i in table[end]] for end in ("from", "to")}
    return table.assign(**pieces)


def weights_table(weights: np.ndarray, step: int) -> pd.DataFrame:
    """Return maps [layers, heads, L, L] as a table with a row for each weight.

    Columns: step, layer and head (from 1), from and to (positions, from 0), weight.
    """
    layer, head, row, column = (axis.ravel() for axis in np.indices(weights.shape))
    columns = {"step": step, "layer": layer + 1, "head": head + 1, "from": row, "to": column}
    return pd.DataFrame(columns | {"weight": weights.ravel()})


def describe_head(
    run: Run, history: HeadHistory, sentences_at: Sequence[int], normalised: bool, evaluated_count: int
) -> Caption:
    """Return the caption of one head's averaged maps.

    `sentences_at` [L] is the number of sentences that reach each position, if known; `evaluated_count` is the number of
    steps with maps.
    """
    reach_note = f": {sentences_at[0]:,} reach position 0, {sentences_at[-1]:,} the last" if len(sentences_at) else ""
    return Caption(
        f"{history.note}.",
        sentences(
            f"From each position (row) to each position (column), 0 to {history.size - 1} from the token that opens a "
            "text ([CLS]), or the first piece if there is none. Each entry "
            f"is averaged over the sentences that have both positions{reach_note}.",
            "" if normalised else "So rows do not sum to 1; the switch above divides each by its sum.",
            map_style.clipping(history),
            describe_steps(len(history.steps), evaluated_count),
            describe_networks([run], NEEDS),
        ),
    )


def describe_steps(map_count: int, step_count: int) -> str:
    """Return the part of the caption on the steps whose maps are on the page; "" if it has all of them."""
    if map_count == step_count:
        return ""
    return (
        f"Of {step_count:,} steps, {map_count} have their maps here: log-spaced ones, and the one that the time bar "
        "was last set to. While it is dragged, the last of them up to its step is shown."
    )


# === All heads ===


def describe_all_heads(run: Run, steps: int, block: int, shared: bool, normalised: bool, more: str = "") -> Caption:
    """Return the caption of the small maps of all heads; a pixel is the mean of `block` x `block` weights.

    The colour scale covers the weights of `steps` steps: those of all heads if `shared`, else of each head. `more` is
    added to the details.
    """
    blocks = f"; each pixel is the mean of {block} × {block} weights" if block > 1 else ""
    return Caption(
        "All heads at one step: rows are layers, columns are heads; click a map to see it large.",
        sentences(
            f"Colours run from 0 to the {map_style.CLIP_PERCENTILE}th percentile of the weights of "
            f"{'all heads' if shared else 'each head'} {f'over all {steps:,} steps' if steps > 1 else 'at this step'}"
            f"{blocks}{normalised_suffix(normalised)}.",
            describe_sharing(run),
            more,
            describe_networks([run], NEEDS),
        ),
    )


def print_all_heads(note: str, scale: Scale, shared: bool) -> str:
    """Return the small print of a file with the small maps of all heads; `note` names the data, "" if unknown."""
    scope = "all weights" if shared else "each head's weights"
    colours = f"{scale} colours up to the {map_style.CLIP_PERCENTILE}th percentile of {scope}"
    return "; ".join(filter(None, (note, "rows are layers, columns are heads", colours)))


def describe_sharing(run: Run) -> str:
    """Return a sentence on the layers that share the weights of their heads; "" if none do."""
    group_count = head_groups(run)
    if group_count is None:
        return ""
    layers = "All layers" if group_count == 1 else f"Layers of each of the {group_count} groups"
    return f"{layers} share their weights: heads of the same number differ only in their input."


# === A sentence ===

BERTVIZ = {
    "head": "A line from a piece (left) to a piece (right) is as strong as the weight divided by the "
    "number of heads shown. The coloured squares are the heads from 1 on: click one to hide it, click twice to see it "
    "alone; point at a piece for its links.",
    "model": "Rows are layers, columns are heads; a line from a piece (left) to a piece (right) is as strong as the "
    "weight. Click a head to see it large, with its pieces.",
}


def describe_sentence(
    view: str, run: Run, step_name: str, size: int, visible_layers: Sequence[int], layer_count: int, initial_count: int
) -> Caption:
    """Return the caption of bertviz's "head" or "model" view of a text of `size` pieces.

    The view has the `visible_layers`. It opens with `initial_count` of the `layer_count` layers; more make it slower.
    """
    layer_names = (
        f"layers {', '.join(map(str, visible_layers))}" if len(visible_layers) > 1 else f"layer {visible_layers[0]}"
    )
    return Caption(
        f"Attention of this one text ({size} pieces, [CLS] and [SEP] counted; ## marks a piece inside a word), run "
        f"'{run.name}', {step_name}, {layer_names}.",
        sentences(
            BERTVIZ[view],
            f"Weights below {bertviz.MIN_WEIGHT} are not drawn. Drawing: bertviz (Vig, 2019).",
            f"It begins with {initial_count} of {layer_count} layers; more make it slower."
            if initial_count < layer_count
            else "",
            describe_networks([run], NEEDS),
        ),
    )


def describe_sentence_head(run: Run, history: HeadHistory, total: int) -> Caption:
    """Return the caption of one head's maps of a sentence; `total` is the number of steps that could have a map."""
    return Caption(
        f"Attention weight of layer {history.layer}, head {history.head} from each piece (row) to each piece (column) "
        f"of this one text ({history.size} pieces).",
        sentences(
            map_style.clipping(history),
            describe_steps(len(history.steps), total),
            describe_networks([run], NEEDS),
        ),
        hint="Play, or drag the time bar.",
    )
