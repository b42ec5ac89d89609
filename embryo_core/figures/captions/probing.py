"""What the captions of the Probing page say: which layer, what a score means, and on how many targets it counts."""

from typing import Any

import pandas as pd

from embryo_core.figures.markdown import literal
from embryo_core.figures.probing_layers import QUANTITIES
from embryo_core.figures.probing_scores import BEST, LAST, MASKED, label, layer_name
from embryo_core.types import StepUnit
from embryo_core.words import point, span

METRIC = "edge_probing"
LINES = "Line: as measured"
Sources = dict[str, dict[str, Any]]  # sources.json: what is noted of each evaluation, by its name


def tasks(
    data: pd.DataFrame, frame: pd.DataFrame, layer: str | int, sources: Sources, rescaled: bool, bands: bool
) -> str:
    """The caption of all tasks over the steps: `data` is drawn, out of the scores `frame` of all layers."""
    return (
        f"A linear probe learns each task from the frozen hidden states of one layer: {_which(layer, frame)}. F1 "
        f"is micro-averaged over the test set, n = {span(frame['n'])} targets. {_masked(data)} {LINES}; dashed: the "
        "F1 of always predicting the most frequent label"
        + ("; band: 95 % interval (Wilson) of the value as measured" if bands else "")
        + ("; all divided by the curve's own last value" if rescaled else "")
        + f". {_data(sources)} Click a point to open its task at that step."
    )


def layers(data: pd.DataFrame, task: str, quantity: str, layer: int | None, sources: Sources, bands: bool) -> str:
    """The caption of a task's curves, a line per layer, one of them thick; or None of them, in panels of their own."""
    lines = "" if layer is None else f" A line per layer, embeddings included; thick: {layer_name(layer)}."
    return (
        f"**{literal(label(task))}**: {QUANTITIES[quantity].means}. n = {data['n'].iloc[-1]:,} targets"
        f"{_sizes(sources, task)}.{lines} {LINES}"
        + ("; dashed: the F1 of always predicting the most frequent label" if "majority" in data else "")
        + ("; band: 95 % interval of the value as measured" if bands else "")
        + ". Click a point for its layer and step."
    )


def heat_map(data: pd.DataFrame, layer: int, step: int, unit: StepUnit) -> str:
    """The caption of a task as layer by step, with the outlined cell."""
    return (
        f"The same values in hundredths: a column for each evaluated checkpoint ({data['step'].nunique()}), a row "
        f"for each layer. Colours run from the lowest cell to the highest. Outlined: {layer_name(layer)} at "
        f"{point(step, unit)}. Click a cell for its layer and step."
    )


def peaks(table: pd.DataFrame) -> str:
    """The caption of the figure of peaks."""
    return (
        "Left: the step at which each layer's F1 is highest; line: steps whose F1 is not significantly lower. Right: "
        "how far it has fallen from there by the last step, in points of F1, with its 95 % interval (Newcombe, from "
        f"the {span(table['n'])} targets of the test sets). Hollow: the interval of the decay holds zero. "
        "Click a mark for its task, layer and step."
    )


NOTHING_FELL = "Peak and decay: no layer has fallen significantly from its peak"
PEAK_TABLE = "Click a row to open its task, layer and step."


def expected(frame: pd.DataFrame, bands: bool, middle: bool = True) -> str:
    """The caption of the expected layer of each task; `middle`: whether half of the layers are told by a line."""
    half = " Above the dashed line, the upper layers have the larger share of these weights." if middle else ""
    return (
        f"Expected layer: the mean of the layers 0 (embeddings) to {frame['layer'].max()}, each weighted by how far "
        f"its F1 is above the majority baseline. n = {span(frame['n'])} targets.{half} {LINES}"
        + ("; band: 95 % interval, as if each layer had been tested on other targets" if bands else "")
        + ". A step without a layer above the baseline is left out. Click a point to open its task at that step."
    )


def two_tasks(
    table: pd.DataFrame, frame: pd.DataFrame, layer: str | int, step: int, unit: StepUnit
) -> str:
    """The caption of the path of two tasks, with the marked step."""
    return (
        f"F1 of both tasks at each checkpoint ({len(table)}), in {_which(layer, frame)}. "
        f"n = {table['n_x'].iloc[-1]:,} and {table['n_y'].iloc[-1]:,} targets. The path runs from dark to "
        f"bright; the ring marks {point(step, unit)}. Where it is horizontal, only the task of the horizontal "
        "axis is being learned; where it is vertical, only the other. Click a point for its step."
    )


def training(table: pd.DataFrame, task: str, sources: Sources) -> str:
    """The caption of how one probe and its control were trained, `table` being their curves."""
    last = table.groupby("control")["iteration"].max()
    on = {True: "control task", False: "task"}
    counts = ", ".join(f"{n:,} iterations on the {on[control]}" for control, n in last.items())
    protocol = _evaluation(sources, task).get("protocol")
    how = f" by the {literal(protocol)} protocol" if protocol else ""
    return (
        "F1 on the development set, and mean cross-entropy in training, over the iterations of the probe's own "
        f"optimizer. There are {counts}{how}{_sizes(sources, task)}. The probe that is tested is the one with the best "
        "development F1. A click in the heat map chooses another."
    )


def _which(layer: str | int, frame: pd.DataFrame) -> str:
    if layer == BEST:
        return "the layer with the best F1 at each step"
    return f"the last layer ({frame['layer'].max()})" if layer == LAST else layer_name(layer)


def _masked(data: pd.DataFrame) -> str:
    n = data.loc[data["task"] == MASKED, "n"]
    if n.empty:
        return "The run's log holds no accuracy on held-out text."
    pieces = f"{int(n.iloc[-1]):,} masked pieces of held-out text"
    return f"Masked accuracy: share of {pieces} that the model itself predicts."


def _data(sources: Sources) -> str:
    """What is noted of the data of the probes, the user's own tasks included."""
    notes = [literal(about["note"]) for name, about in sources.items() if _probes(name) and "note" in about]
    return f"Data: {'; '.join(notes) or 'the probing sets given to the evaluation'}."


def _probes(name: str) -> bool:
    return name.split(":")[0] == METRIC


def _evaluation(sources: Sources, task: str) -> dict[str, Any]:
    """What is noted of the evaluation that has this task: of the metric, or of a task of the user's own."""
    known = (sources.get(name, {}) for name in (METRIC, f"{METRIC}:{task}"))
    return next((about for about in known if task in about.get("tasks", {})), {})


def _sizes(sources: Sources, task: str) -> str:
    """How many targets a task has in each split, and how many labels, in brackets; nothing where it was not noted."""
    sizes = _evaluation(sources, task).get("tasks", {}).get(task)
    if not sizes:
        return ""
    return (
        f" ({sizes['train']:,} targets for training, {sizes['dev']:,} for development, {sizes['test']:,} for testing; "
        f"{sizes['labels']:,} labels)"
    )
