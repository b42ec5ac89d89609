"""Scores of linear probes as tables: by task and layer, over the steps, expected layer, two tasks (Section 4)."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from embryo_core import curves, results
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.curves import with_intervals
from embryo_core.figures.overview import training_log
from embryo_core.findings.layers import PROBE_NAMES
from embryo_core.types import Run
from embryo_core.words import layer_name

METRIC = "edge_probing"
PREFIX = "edge_probing_"
TASK_ORDER = ("pos", "constituent", "coref", "srl")  # order of the paper's tasks
BEST, LAST = "best", "last"  # a layer is chosen by one of these or by its number
MASKED_ACCURACY = "masked accuracy"  # the training log's curve among the tasks, whose names have no space
HELD_OUT_NOTE = "held-out text of the pretraining"  # data of this curve
# column as drawn -> column as measured
PLOTTED_COLUMNS = {"shown": "value", "shown_low": "low", "shown_high": "high", "shown_majority": "majority"}


def read_probe_scores(run: Run) -> pd.DataFrame:
    """Return `probe_scores` of a run; empty if it was not probed. Raises ResultsError."""
    return probe_scores(results.read_scores(run, prefix=PREFIX))


def probe_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return stored scores of edge probing as a row for each task, layer (0: embeddings) and step, sorted by these.

    Columns: task, layer, step, n (targets of the test set), f1, control, selectivity (f1 - control), majority (all in
    [0, 1], missing if not measured). The four tasks of the paper come first.
    """
    frame = _column(scores, "f1", ["task", "layer", "step", "n"])
    for name, key_columns in (("control", ["task", "layer", "step"]), ("majority", ["task", "step"])):
        frame = frame.merge(_column(scores, name, key_columns), on=key_columns, how="left")
    frame = frame.astype({"layer": int}).assign(selectivity=frame["f1"] - frame["control"])
    order = frame["task"].map({task: i for i, task in enumerate(TASK_ORDER)}).fillna(len(TASK_ORDER))
    frame = frame.assign(order=order).sort_values(["order", "task", "layer", "step"], ignore_index=True)
    return frame[["task", "layer", "step", "n", "f1", "control", "selectivity", "majority"]]


def _column(scores: pd.DataFrame, name: str, key: list[str]) -> pd.DataFrame:
    rows = scores[scores["metric"] == PREFIX + name]
    return rows.rename(columns={"group": "task", "value": name})[[*key, name]]


def select_layer(frame: pd.DataFrame, layer: str | int) -> pd.DataFrame:
    """Return the `probe_scores` of one layer: the BEST by F1 for each task and step, the LAST, or a number."""
    if layer == BEST:
        return frame.loc[frame.groupby(["task", "step"], sort=False)["f1"].idxmax()].sort_index(kind="stable")
    return frame[frame["layer"] == (frame["layer"].max() if layer == LAST else layer)]


def described_run(runs: Sequence[Run], axis: AxisChoice, read: Callable[[Run], pd.DataFrame]) -> Run:
    """Return the run of a figure's caption: the first one with data that the axis supports, else the first one."""
    return next((run for run in runs if axis.supports(run, runs[0]) and len(read(run))), runs[0])


def task_table(run: Run, layer: str | int, rescaled: bool) -> pd.DataFrame:
    """Return the `task_curves` of a run in one layer; empty if it was not probed. Raises ResultsError."""
    rows = select_layer(read_probe_scores(run), layer)
    return rows if rows.empty else task_curves(rows, training_log(run), rescaled)


def task_curves(frame: pd.DataFrame, log: pd.DataFrame, rescaled: bool) -> pd.DataFrame:
    """Return the curves of the tasks in a layer (see `select_layer`), and the held-out masked accuracy in `log`.

    Columns: task (or MASKED_ACCURACY, with its `data`), step, layer, n, value, low, high (Wilson, 95 %), majority;
    shown, shown_low, shown_high, shown_majority: the previous four or, if `rescaled`, these divided by the last value.
    """
    tasks = frame.rename(columns={"f1": "value"})[["task", "step", "layer", "n", "value", "majority"]]
    tables = []
    for _, rows in pd.concat([tasks, _masked_accuracy(log)]).groupby("task", sort=False):
        rows = with_intervals(rows.sort_values("step"))
        last = rows["value"].iloc[-1]
        plotted = {
            name: curves.rescale(rows[column], last) if rescaled else rows[column]
            for name, column in PLOTTED_COLUMNS.items()
        }
        tables.append(rows.assign(**plotted))
    return pd.concat(tables, ignore_index=True)


def _masked_accuracy(log: pd.DataFrame) -> pd.DataFrame:
    """Return held-out rows of the training log with their n; empty without held-out text."""
    if not {"split", "masked_lm_accuracy", "n_masked"} <= set(log.columns):
        return pd.DataFrame()
    rows = log[(log["split"] == "heldout") & (log["n_masked"] > 0)]
    held_out = rows.rename(columns={"masked_lm_accuracy": "value", "n_masked": "n"})[["step", "n", "value"]]
    return held_out.assign(task=MASKED_ACCURACY, data=HELD_OUT_NOTE).astype({"n": int})


def expected_layers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the expected layer of each task and step (see `curves.expected_layer`) with its 95 % interval.

    Columns: task, step, expected, low, high, n. Steps without a layer above the majority baseline are left out.
    """
    rows = []
    for task, scores in frame.groupby("task", sort=False):
        for step, layers in scores.groupby("step"):
            majority = layers["majority"].iloc[0]
            expected = curves.expected_layer(layers["f1"], majority)
            interval = curves.expected_layer_interval(layers["f1"], majority, layers["n"])
            if expected is not None and interval is not None:
                low, high = interval
                rows.append((task, step, expected, low, high, layers["n"].iloc[0]))
    table = pd.DataFrame(rows, columns=["task", "step", "expected", "low", "high", "n"])
    return table.astype({name: float for name in ("expected", "low", "high")})


def path(frame: pd.DataFrame, x_task: str, y_task: str) -> pd.DataFrame:
    """Return step, f1_x, n_x, layer_x, task_x, and the same for y, at the common steps of both tasks in one layer."""
    sides = []
    for task, side in ((x_task, "x"), (y_task, "y")):
        rows = frame[frame["task"] == task].set_index("step").sort_index()
        sides.append(rows[["f1", "n", "layer"]].add_suffix(f"_{side}").assign(**{f"task_{side}": task}))
    return sides[0].join(sides[1], how="inner").reset_index()


def task_label(task: str) -> str:
    """Return the display name of a task; users' own tasks keep their names."""
    return PROBE_NAMES.get(task, task)


def describe_layer(layer: str | int, frame: pd.DataFrame) -> str:
    """Return the name of the chosen layer (see `select_layer`); `frame` are the `probe_scores`."""
    if isinstance(layer, int):
        return layer_name(layer)
    return "the layer with the best F1 at each step" if layer == BEST else f"the last layer ({frame['layer'].max()})"


def read_provenance(run: Run, task: str) -> dict[str, Any]:
    """Return the entry of sources.json that covers a task: the metric's, or a user's own; empty without one."""
    sources = results.read_sources(run)
    candidates = (sources.get(name, {}) for name in (METRIC, f"{METRIC}:{task}"))
    return next((entry for entry in candidates if task in entry.get("tasks", {})), {})


def describe_sizes(run: Run, task: str) -> str:
    """Return the numbers of targets by split, and of labels, of a task; "" if not recorded."""
    sizes = read_provenance(run, task).get("tasks", {}).get(task)
    if not sizes:
        return ""
    return (
        f" ({sizes['train']:,} targets for training, {sizes['dev']:,} for development, {sizes['test']:,} for testing; "
        f"{sizes['labels']:,} labels)"
    )
