"""Figures and tables of fine-tuning over pretraining: tasks over the steps, one fine-tuning's own curve (Section 5)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core import curves
from embryo_core.curves.agreement import FEWEST, rank_agreement
from embryo_core.curves.reached import Reached
from embryo_core.curves.step_scales import log_spaced
from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import StepAxis
from embryo_core.figures.overlay import Curves
from embryo_core.finetune.task_specs import GLUE, SQUAD
from embryo_core.types import StepUnit
from embryo_core.words import point

TICKS = 8  # evaluations of a fine-tuning that are all named on its axis
COLUMNS = 24  # steps in a table of examples
AVERAGE = "glue average"
EXACT = "squad exact match"  # a curve of its own, beside SQuAD's F1
MAIN = ("matthews", "f1", "spearman", "accuracy", "exact")  # a task's score is the first of these that it has
NAMES = {
    "cola": "CoLA",
    "sst2": "SST-2",
    "mrpc": "MRPC",
    "stsb": "STS-B",
    "qqp": "QQP",
    "mnli": "MNLI",
    "qnli": "QNLI",
    "rte": "RTE",
    SQUAD: "SQuAD",
    EXACT: "SQuAD EM",
    AVERAGE: "GLUE average",
}
# ALBERT-base, version 1, in development: README.md of google-research/albert (31 October 2019).
PUBLISHED = {"mnli": 0.816, "sst2": 0.903}
PUBLISHED_SQUAD = {  # 1.1, 2.0
    SQUAD: (0.893, 0.800),
    EXACT: (0.823, 0.771),
}
METRICS = {
    "matthews": "Matthews' correlation",
    "f1": "F1",
    "spearman": "Spearman's correlation",
    "pearson": "Pearson's correlation",
    "accuracy": "accuracy",
    "exact": "exact match",
}


def label(task: str) -> str:
    """A task as people write it."""
    return NAMES.get(task, task)


def task_curves(scores: pd.DataFrame) -> pd.DataFrame:
    """Each task's score over the steps: task, metric, step, value, low, high, seeds, n, control.

    SQuAD's exact match is one more task, EXACT. The value is the mean over the seeds, `low` and `high` their least and
    greatest score; `control` is the score of the predictor that reads no text. `scores` are those of
    `results.read_task_scores`.
    """
    exact = scores[scores["metric"] == "exact"].assign(task=EXACT)
    known = pd.concat([scores, exact], ignore_index=True)
    known = known[known["metric"].isin(MAIN)]
    rank = known["metric"].map(MAIN.index)
    main = known[rank == rank.groupby(known["task"]).transform("min")]
    is_model = main["predictor"] == "model"
    grouped = main[is_model].groupby(["task", "metric", "step"])
    found = grouped.agg(
        value=("value", "mean"), low=("value", "min"), high=("value", "max"), seeds=("seed", "nunique"), n=("n", "max")
    )
    control = main[~is_model].groupby(["task", "metric", "step"])["value"].mean().rename("control")
    return found.join(control).reset_index()


def average(frame: pd.DataFrame) -> pd.DataFrame:
    """The mean score of the GLUE tasks in rows of `task_curves`, at the steps that all of them have; may be empty.

    It is where there is but one of them.
    """
    glue = frame[frame["task"].isin(GLUE)]
    several = glue if glue["task"].nunique() > 1 else glue[:0]
    complete = several[several.groupby("step")["task"].transform("size") == several["task"].nunique()]
    means = complete.groupby("step")[["value", "control"]].mean().reset_index()
    present = set(glue["task"].unique())
    return means.assign(task=AVERAGE, tasks=", ".join(label(task) for task in GLUE if task in present))


def styles(tasks: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The colour and symbol of each curve; SQuAD's two share the colour, so that nine others have one of their own."""
    ways = list(zip(style.PALETTE, style.SYMBOLS, strict=True))
    found = {task: ways[i % len(ways)] for i, task in enumerate(task for task in tasks if task != EXACT)}
    colour, _ = found.get(SQUAD, ways[len(found) % len(ways)])
    return found | ({EXACT: (colour, "cross-open")} if EXACT in tasks else {})


def tasks_figure(frame: pd.DataFrame, axis: StepAxis) -> go.Figure:
    """Rows of `task_curves` as lines with the spread of the seeds, the best step marked, and each control dashed.

    Every point carries its task and step as customdata.
    """
    figure = go.Figure()
    styled = styles(frame["task"].unique())
    for task, rows in frame.groupby("task", sort=False):
        (colour, symbol), of, x = styled[task], style.plain(label(task)), axis.values(rows["step"])
        if "low" in rows and rows["low"].notna().any() and (rows["high"] > rows["low"]).any():
            style.add_band(figure, x, rows["low"], rows["high"], colour, of, "seeds")
        smoothing.add_curve(
            figure,
            x,
            rows,
            "value",
            of,
            colour,
            customdata=rows[["task", "step"]].to_numpy(),
            hovertemplate=f"{of}, {axis.hover('customdata[1]')}: %{{y:.3f}}<extra></extra>",
            marker={"size": np.where(rows["value"] == rows["value"].max(), 11, 6), "symbol": symbol},
        )
        figure.add_scatter(
            x=x,
            y=rows["control"],
            name=f"{of}, control",
            legendgroup=of,
            showlegend=False,
            hovertemplate=f"{of}, without reading: %{{y:.3f}}<extra></extra>",
            **_level(x, {"color": colour, "width": 1, "dash": "dash"}),
        )
        _add_published(figure, task, rows, x, colour)
    axis.draw(figure, sorted(set(frame["step"])))
    return style.finish(figure, "score on the development set", height=460)


OVERLAY = Curves(
    by="task",
    value="value",
    low="low",
    high="high",
    label=label,
    styles=styles,
    y_title="score on the development set",
    tickformat=".2~f",
    decimals=".3f",
    baseline="control",
    band="seeds",
    kept=("metric", "seeds", "data"),
)


def published(task: str, rows: pd.DataFrame) -> float | None:
    """The published score of ALBERT-base on the data of these rows of `task_curves`; None where we know none."""
    if task in PUBLISHED_SQUAD:
        first, second = PUBLISHED_SQUAD[task]
        # An empty answer is right for half of the questions in 2.0, and in 1.1 for those whose answer is "." at most.
        return second if rows["control"].iloc[-1] > 0.1 else first
    return PUBLISHED.get(task)


def _add_published(figure: go.Figure, task: str, rows: pd.DataFrame, x: list[float], colour: str) -> None:
    if (value := published(task, rows)) is None:
        return
    figure.add_scatter(
        x=[min(x), max(x)],
        y=[value, value],
        name=f"{label(task)}, ALBERT-base",
        hovertemplate=f"{label(task)}, ALBERT-base as published: %{{y:.3f}}<extra></extra>",
        **_level(x, {"color": colour, "width": 1.5, "dash": "dashdot"}),
    )


def _level(x: Sequence[float], line: dict[str, Any]) -> dict[str, Any]:
    """How a line of reference is drawn: where there is one step alone, it is a dash, as a line would have no length."""
    if len(set(x)) > 1:
        return {"mode": "lines", "line": line}
    dash = {"color": line["color"], "width": line["width"]}
    return {"mode": "markers", "marker": {"symbol": "line-ew", "size": 40, "line": dash}}


def curve_figure(curve: pd.DataFrame, metric: str) -> go.Figure:
    """One step's fine-tunings: loss in training and score in development after each epoch, a line for each seed."""
    figure = go.Figure()
    for seed, rows in curve.groupby("seed"):
        for column, name, colour, dash in (
            ("dev_score", f"{METRICS[metric]}, development", style.BLUE, "solid"),
            ("train_loss", "training loss", style.VERMILION, "dot"),
        ):
            figure.add_scatter(
                x=rows["update"],
                y=rows[column],
                name=f"{name}, seed {seed}",
                mode="lines+markers",
                line={"color": colour, "dash": dash},
                hovertemplate=f"seed {seed}, update %{{x:,}}: %{{y:.3f}}<extra>{name}</extra>",
            )
    figure.update_xaxes(title={"text": "updates of the fine-tuning"}, rangemode="tozero")
    if (updates := sorted(curve["update"].unique().tolist())) and len(updates) <= TICKS:
        figure.update_xaxes(tickvals=[0, *updates], tickformat=",")
    return style.finish(figure, "loss, score", height=320)


def widest_sample(measures: pd.DataFrame, steps: Collection[int]) -> pd.DataFrame:
    """Accuracy as in training, of one sample of the shortest sequences throughout: step, value, n.

    The sample that most of the `steps` have, of several the largest: accuracies of two are not to be compared.
    `measures` is the table of `runs.read_measures`; empty where it has none that is masked so.
    """
    rows = measures[measures["masking"] == "training"]
    rows = rows[rows["length"] == rows["length"].min()].drop_duplicates(["step", "sample", "first"])
    right = (rows["accuracy"] * rows["n"]).groupby([rows["step"], rows["sample"]]).sum().reset_index(name="right")
    covered = right["step"].isin(steps).groupby(right["sample"]).sum()
    widest = max(covered.index, key=lambda sample: (covered[sample], sample), default=None)
    found = right[right["sample"] == widest]
    return found.assign(value=found["right"] / found["sample"], n=found["sample"])[["step", "value", "n"]]


def associations(frame: pd.DataFrame, masked: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlation over the steps of each task's score with the accuracy on masked words.

    Columns: task, value, low and high (see `agreement.rank_agreement`; no value where all scores are equal), steps, and
    tied: at how many steps the commonest score is that of several. `masked` has the columns step and value. Tasks with
    fewer than four steps in common with it are left out.
    """
    rows = []
    for task, scores in frame.groupby("task", sort=False):
        both = scores[["step", "value"]].merge(masked[["step", "value"]], on="step", suffixes=("", "_masked"))
        if len(both) < FEWEST:
            continue
        found, most = rank_agreement(both["value"], both["value_masked"]), both["value"].value_counts().max()
        rho = (found.rho, found.low, found.high) if found else (np.nan,) * 3
        rows.append((task, *rho, len(both), most if most > 1 else 0))
    return pd.DataFrame(rows, columns=["task", "value", "low", "high", "steps", "tied"])


def histories(answers: pd.DataFrame, labels: Sequence[str] = ()) -> pd.DataFrame:
    """How the answers of one seed went, by the rules for facts: gold, history, one column a step; the index is example.

    `answers` has the columns step, example, gold and answer, both indices of the `labels` where these are known.
    """
    table = answers.pivot(index="example", columns="step", values="answer")
    gold = answers.groupby("example")["gold"].first()
    history = curves.classify_histories(table.eq(gold, axis=0))
    if labels:
        names = dict(enumerate(labels))
        table, gold = table.stack().map(names).unstack(), gold.map(names)
    return _by_example(table, gold=gold, history=history)


def values(answers: pd.DataFrame) -> pd.DataFrame:
    """What one seed answered in a regression, where nothing is right or wrong: gold, one column a step."""
    table = answers.pivot(index="example", columns="step", values="answer")
    gold = answers.groupby("example")["gold"].first()
    return _by_example(table.astype(float).round(2), gold=gold.astype(float).round(2))  # of float32 2.08 is 2.0799999


def span_histories(spans: pd.DataFrame, contexts: pd.Series | None) -> pd.DataFrame:
    """How one seed's answers to questions went: history, one column a step; the index is the question's id.

    A column holds the answers where the paragraphs, `contexts` by id, are known, else F1. Right is an exact match.
    """
    shown = spans["f1"].astype(float).round(2)
    if contexts is not None:
        where = zip(spans["question"].map(contexts).fillna(""), spans["start"], spans["end"], strict=True)
        shown = pd.Series([context[start:end] or "(none)" for context, start, end in where], spans.index)
    table = spans.assign(shown=shown).pivot(index="question", columns="step", values="shown")
    right = spans.pivot(index="question", columns="step", values="exact").to_numpy() == 1
    return _by_example(table, history=curves.classify_histories(right))


def _by_example(table: pd.DataFrame, **before: Any) -> pd.DataFrame:
    """A table whose columns are steps, with these columns before them."""
    return pd.concat([pd.DataFrame(before, index=table.index), table], axis=1)


def with_some_steps(table: pd.DataFrame, chosen: int, unit: StepUnit) -> pd.DataFrame:
    """A table of examples with at most `COLUMNS` of its steps, evenly on a log axis, and the chosen one; named."""
    steps = sorted(column for column in table if not isinstance(column, str))
    shown = sorted({*log_spaced(steps, COLUMNS), *({chosen} & {*steps})})
    others = [column for column in table if isinstance(column, str)]
    return table[[*others, *shown]].rename(columns={step: point(step, unit) for step in shown})


def task_table(frame: pd.DataFrame, step: int, reached: Mapping[str, Sequence[Reached | None]]) -> pd.DataFrame:
    """A row for each task: its score now and last, its best step, the control, and when it reached 95 % and 99 %."""
    rows = []
    for task, scores in frame.groupby("task", sort=False):
        by_step = scores.set_index("step")["value"]
        last = scores.iloc[-1]
        rows.append(
            {
                "task": label(task),
                "metric": METRICS[last["metric"]],
                "now": by_step.get(step),
                "last": last["value"],
                "best": int(by_step.idxmax()),
                "control": last["control"],
                "n": int(last["n"]),
                "seeds": int(scores["seeds"].max()),
                **dict(zip(("95 %", "99 %"), map(_with_interval, reached.get(task, ())), strict=False)),
            }
        )
    return pd.DataFrame(rows)


def _with_interval(found: Reached | None) -> str:
    """A step with its interval."""
    if found is None:
        return "last score not surely above 0"
    return f"{found.step:,} ({found.earliest:,} to {found.latest:,})"
