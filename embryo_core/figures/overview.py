"""Figures of the overview: losses and accuracies over the steps, and what has been computed for which step."""

from collections.abc import Collection, Iterable, Mapping

import pandas as pd
import plotly.graph_objects as go

from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.overlay import Curves
from embryo_core.words import percent

ORIGINAL = "always “original”"
ROW, AROUND = 24, 110  # pixels, of a row of what has been computed, and around the rows
SPLITS = {"train": ("training", style.BLUE), "heldout": ("held-out", style.VERMILION)}


def training_curve(
    log: pd.DataFrame, quantity: str, y_title: str, axis: StepAxis, baseline: tuple[str, float] | None = None
) -> go.Figure:
    """One quantity of the log over the steps: training averages as a thin line, held-out measures as points.

    A dashed line stands at the `baseline`, its name and value, where one is known; else along the column baseline, what
    always calling a token original gives at each held-out measure, where the log has it.
    """
    figure = go.Figure()
    for split, (label, colour) in SPLITS.items():
        rows = log[(log["split"] == split) & log[quantity].notna()]
        if rows.empty:
            continue
        heldout = split == "heldout"
        smoothing.add_curve(
            figure,
            axis.values(rows["step"]),
            rows,
            quantity,
            label,
            colour,
            line={"width": 2.2 if heldout else 1.2},
            marker={"size": 6 if heldout else 2},
            customdata=rows[["step", "n"]],
            hovertemplate=f"{label}, {axis.hover('customdata[0]')}<br>{y_title}: %{{y:.3f}}"
            + ("<br>n = %{customdata[1]:,}" if heldout else "")
            + "<extra></extra>",
        )
    axis.draw(figure, list(log["step"]) or [0])
    style.finish(figure, y_title, height=300)
    if baseline is not None:
        name, value = baseline
        ends = axis.values([min(log["step"], default=0), max(log["step"], default=0)])
        style.add_baseline(figure, ends, value, style.GREY, name, f"{name}: {percent(value)}")
        figure.data[-1].update(showlegend=True, name=name)
    elif "baseline" in log:
        rows = log[log["baseline"].notna()]
        hover = f"{ORIGINAL}, {axis.hover('customdata')}: %{{y:.1%}}"
        style.add_baseline(figure, axis.values(rows["step"]), rows["baseline"], style.GREY, ORIGINAL, hover)
        figure.data[-1].update(showlegend=True, name=ORIGINAL, customdata=rows["step"])
    if quantity.endswith("accuracy"):
        figure.update_yaxes(tickformat=".0%", rangemode="tozero")
    return figure


def overlay_curves(quantity: str, y_title: str) -> Curves:
    """How one quantity of the log is drawn for several runs."""
    share = quantity.endswith("accuracy")
    names = {split: label for split, (label, _) in SPLITS.items()}
    return Curves(
        by="split",
        value=quantity,
        low=None,
        high=None,
        label=names.get,
        styles=lambda splits: {split: (SPLITS[split][1], "circle") for split in SPLITS if split in splits},
        y_title=y_title,
        tickformat=".0%" if share else "",
        decimals=".1%" if share else ".3f",
        baseline="baseline",
    )


def coverage_table(planned: Iterable[int], steps: Collection[int], done: Mapping[str, Collection[int]]) -> pd.DataFrame:
    """What has been `done` of each metric at the `steps` of a run: metric (as shown), step, done; checkpoints first."""
    rows = [("checkpoint", step, step in steps) for step in sorted({*planned, *steps})]
    rows += [(metric.replace("_", " "), step, step in found) for metric, found in done.items() for step in steps]
    return pd.DataFrame(rows, columns=["metric", "step", "done"])


def coverage(done: pd.DataFrame, axis: StepAxis) -> go.Figure:
    """Rows of `coverage_table`: one row per metric, one mark per checkpoint, filled where computed."""
    figure = go.Figure()
    for there, label in ((True, "computed"), (False, "not computed")):
        rows = done[done["done"] == there]
        figure.add_scatter(
            x=axis.values(rows["step"]),
            y=rows["metric"],
            name=label,
            mode="markers",
            marker={
                "symbol": "line-ns" if there else "x-thin",
                "size": 16 if there else 7,
                "line": {"width": 2.5 if there else 1.5, "color": style.GREEN if there else style.GREY},
            },
            customdata=rows["step"],
            hovertemplate=f"%{{y}}, {axis.hover('customdata')}: {label}<extra></extra>",
        )
    axis.draw(figure, list(done["step"]))
    metrics = list(dict.fromkeys(done["metric"]))
    style.finish(figure, "", height=AROUND + ROW * len(metrics))
    figure.update_yaxes(categoryorder="array", categoryarray=metrics[::-1], showgrid=False)
    return figure
