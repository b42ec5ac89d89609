"""Scores of linear probes as tables: by task and layer, over the steps, expected layer, two tasks (Section 4)."""

import pandas as pd

from embryo_core import curves
from embryo_core.words import layer_name  # noqa: F401

PREFIX = "edge_probing_"
NAMES = {"pos": "part of speech", "constituent": "constituent", "coref": "coreference", "srl": "semantic role"}
BEST, LAST = "best", "last"  # choices of a layer besides its number
MASKED = "masked accuracy"  # the row of the training log among the tasks; no task has a blank in its name
HELD_OUT = "held-out text of the pretraining"  # the data of that row
SHOWN = {"shown": "value", "shown_low": "low", "shown_high": "high", "shown_majority": "majority"}


def probe_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores of edge probing as read from the store, one row per task, layer (0: embeddings) and step, sorted by these.

    Columns: task, layer, step, n (targets of the test set), f1, control, selectivity (f1 - control), majority (all in
    [0, 1], missing where they were not measured). The four tasks of the paper come first.
    """
    frame = _column(scores, "f1", ["task", "layer", "step", "n"])
    for name, on in (("control", ["task", "layer", "step"]), ("majority", ["task", "step"])):
        frame = frame.merge(_column(scores, name, on), on=on, how="left")
    frame = frame.astype({"layer": int}).assign(selectivity=frame["f1"] - frame["control"])
    order = {task: i for i, task in enumerate(NAMES)}
    frame = frame.sort_values(["task", "layer", "step"]).sort_values(
        "task", key=lambda tasks: tasks.map(lambda task: order.get(task, len(order))), kind="stable"
    )
    columns = ["task", "layer", "step", "n", "f1", "control", "selectivity", "majority"]
    return frame[columns].reset_index(drop=True)


def _column(scores: pd.DataFrame, name: str, key: list[str]) -> pd.DataFrame:
    rows = scores[scores["metric"] == PREFIX + name]
    return rows.rename(columns={"group": "task", "value": name})[[*key, name]]


def of_layer(frame: pd.DataFrame, layer: str | int) -> pd.DataFrame:
    """Rows of `probe_scores` of one layer: the BEST of each task and step by F1, the LAST, or that of a number."""
    if layer == BEST:
        return frame.loc[frame.groupby(["task", "step"], sort=False)["f1"].idxmax()].sort_index(kind="stable")
    return frame[frame["layer"] == (frame["layer"].max() if layer == LAST else layer)]


def task_curves(frame: pd.DataFrame, log: pd.DataFrame, rescaled: bool) -> pd.DataFrame:
    """What the first figure draws: tasks (rows of `of_layer`), and masked accuracy on held-out text from `log`.

    Columns: task (or MASKED), step, layer, n, value, low, high (Wilson, 95 %), majority, and what is shown of the last
    four: shown, shown_low, shown_high, shown_majority; the same or, if `rescaled`, divided by the last value. Rows of
    MASKED have their own `data`.
    """
    tasks = frame.rename(columns={"f1": "value"})[["task", "step", "layer", "n", "value", "majority"]]
    parts = []
    for _, rows in pd.concat([tasks, _masked_accuracy(log)]).groupby("task", sort=False):
        rows = rows.sort_values("step")
        low, high = curves.interval(rows["value"], rows["n"])
        rows = rows.assign(low=low, high=high)
        last = rows["value"].iloc[-1]
        shown = {name: curves.rescale(rows[of], last) if rescaled else rows[of] for name, of in SHOWN.items()}
        parts.append(rows.assign(**shown))
    return pd.concat(parts, ignore_index=True)


def _masked_accuracy(log: pd.DataFrame) -> pd.DataFrame:
    """Held-out rows of the training log with their n; none where the run has no held-out text."""
    if not {"split", "masked_lm_accuracy", "n_masked"} <= set(log.columns):
        return pd.DataFrame()
    rows = log[(log["split"] == "heldout") & (log["n_masked"] > 0)]
    renamed = rows.rename(columns={"masked_lm_accuracy": "value", "n_masked": "n"})[["step", "n", "value"]]
    return renamed.assign(task=MASKED, data=HELD_OUT).astype({"n": int})


def expected_layers(frame: pd.DataFrame) -> pd.DataFrame:
    """The expected layer of each task and step (see `curves.expected_layer`): task, step, expected, low, high, n.

    From low to high is its 95 % interval. Steps at which no layer is above the majority are left out.
    """
    rows = []
    for task, own in frame.groupby("task", sort=False):
        for step, layers in own.groupby("step"):
            majority = layers["majority"].iloc[0]
            expected = curves.expected_layer(layers["f1"], majority)
            if expected is not None:
                low, high = curves.expected_layer_interval(layers["f1"], majority, layers["n"])
                rows.append((task, step, expected, low, high, layers["n"].iloc[0]))
    table = pd.DataFrame(rows, columns=["task", "step", "expected", "low", "high", "n"])
    return table.astype({name: float for name in ("expected", "low", "high")})


def path(frame: pd.DataFrame, x_task: str, y_task: str) -> pd.DataFrame:
    """Two tasks at the steps that both have, as `frame` is of one layer (`of_layer`).

    Columns: step; f1_x, n_x, layer_x, task_x; the same of y.
    """
    sides = []
    for task, side in ((x_task, "x"), (y_task, "y")):
        rows = frame[frame["task"] == task].set_index("step").sort_index()
        sides.append(rows[["f1", "n", "layer"]].add_suffix(f"_{side}").assign(**{f"task_{side}": task}))
    return sides[0].join(sides[1], how="inner").reset_index()


def label(task: str) -> str:
    """A task as people read it; a task of the user's own has its own name."""
    return NAMES.get(task, task)
