"""Figures of the Query page: probability and rank of the answers to a [MASK] over the steps of pretraining."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log10
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import StepAxis
from embryo_core.query import spell_rank

MARKED = {"true object": (style.ORANGE, "dash"), "tracked": (style.PINK, "dot")}  # roles and their lines
COLOURS = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.SKY, style.OLIVE)  # then grey
OTHERS = "other answers"  # one entry of the legend for the grey ones
FEW = (1, 2, 3, 4, 5, 7, 10, 15, 20)  # ranks that an axis names where there are no more
TINY = 1e-30  # a log axis goes no lower


@dataclass(frozen=True)
class Axes:
    """What figures beside each other share: their steps and step axis, and how far the other axis reaches."""

    steps: tuple[int, ...]
    time: StepAxis
    log_probability: bool
    probabilities: tuple[float, float]  # the least and the most
    lowest: int  # rank
    colours: Mapping[str, str]  # by answer, the same in each figure; others are grey

    @property
    def step_range(self) -> tuple[float, float]:
        """Ends of the step axis as Plotly takes them, with a little margin."""
        low, high = self.time.values((self.steps[0], self.steps[-1]))
        low, high = (log10(low), log10(max(high, 1))) if self.time.scale == "log" else (low, high)
        margin = (high - low or 1) * 0.03
        return low - margin, high + margin


def of_run(axes: Axes, own: StepAxis) -> Axes:
    """The same axes with the changes in training and the gaps of a figure's `own` run."""
    return replace(axes, time=replace(axes.time, changes=own.changes, gaps=own.gaps))


def shared_axes(tables: Sequence[pd.DataFrame], time: StepAxis, log_probability: bool) -> Axes:
    """Axes that hold all of these tables (columns as for `probability`)."""
    together = pd.concat(tables)
    steps = tuple(sorted(set(together["step"])))
    reach = together["probability"].min(), together["probability"].max()
    return Axes(steps, time, log_probability, reach, max(int(together["rank"].max()), 3), _colours(together))


def _colours(together: pd.DataFrame) -> dict[str, str]:
    """Colours of the answers without a role: the final ones first, then the most probable."""
    answers = together[together["role"] == ""].groupby("token")
    order = pd.DataFrame({"final": answers["final"].any(), "probability": answers["probability"].max()})
    tokens = order.sort_values(["final", "probability"], ascending=False, kind="stable").index
    return dict(zip(tokens, COLOURS))


def probability(curves: pd.DataFrame, first_led: int, leads_from: int, axes: Axes) -> go.Figure:
    """Probability of each answer over the steps.

    `curves` has the columns token, role (of a marked word, else ""), step, probability, rank, exact (else the true
    rank is at least it: a hollow point), leads, final; stars mark the final answer at the steps where it first led and
    from which it led for good, unless there is one step alone.
    """
    figure = _curves(curves, "probability", first_led, leads_from, axes)
    least, most = axes.probabilities
    if axes.log_probability:
        low, high = log10(max(least, TINY)), log10(most)
        margin = 0.05 * (high - low or 1)
        return style.set_axes(figure, "y", type="log", exponentformat="power", range=[low - margin, high + margin])
    return style.set_axes(figure, "y", tickformat=".2~p", range=[-0.03 * most, 1.06 * most])


def rank(curves: pd.DataFrame, first_led: int, leads_from: int, axes: Axes) -> go.Figure:
    """Rank of each answer over the steps, 1 at the top, on a log axis; columns as for `probability`."""
    figure = _curves(curves, "rank", first_led, leads_from, axes)
    powers = [tick for power in range(7) for tick in (10**power, 3 * 10**power) if tick <= axes.lowest]
    ticks = powers if axes.lowest > FEW[-1] else [tick for tick in FEW if tick <= axes.lowest]
    reach = [log10(axes.lowest * 1.3), log10(0.8)]
    ticktext = [f"{tick:,}" for tick in ticks]
    return style.set_axes(figure, "y", type="log", range=reach, tickvals=ticks, ticktext=ticktext)


def _curves(curves: pd.DataFrame, column: str, first_led: int, leads_from: int, axes: Axes) -> go.Figure:
    traces = []
    by_answer = curves.groupby(["token", "role"]).indices
    x, exact = np.array(axes.time.values(curves["step"])), curves["exact"].to_numpy()
    hover, numbers = _hover(curves), curves.drop(columns=["token", "role"])  # rows of text take longer than the figure
    for i, (token, role) in enumerate(_in_order(curves, by_answer)):
        colour, dash = MARKED[role] if role else (axes.colours.get(token, style.GREY), "solid")
        rows = by_answer[token, role]
        own, final = numbers.iloc[rows], curves["final"].iat[rows[0]]
        drawn = smoothing.curve(
            x[rows],
            own,
            column,
            style.plain(f"{token} ({role})" if role else token),
            colour,
            showlegend=colour != style.GREY,
            line={"dash": dash, "width": 3 if final or role else 1.6 if colour != style.GREY else 1},
            marker={"size": 5, "symbol": _symbols(exact[rows], style.SYMBOLS[i % len(style.SYMBOLS)])},
            customdata=hover[rows],
            hovertemplate=f"%{{customdata[0]}}, {axes.time.point('%{customdata[1]}')}<br>"
            "probability %{customdata[2]}<br>"
            "rank %{customdata[3]}<extra></extra>",
        )
        traces += [trace | {"legendgroup": OTHERS} for trace in drawn] if colour == style.GREY else drawn
        if final and own["step"].nunique() > 1:  # of one step alone, it tells nothing
            traces += _stars(own, column, first_led, leads_from, axes.time, colour)
    if any(trace.get("legendgroup") == OTHERS for trace in traces):
        look = {"mode": "lines+markers", "line": {"color": style.GREY, "width": 1}, "marker": {"size": 5}}
        traces.append({"x": [None], "y": [None], **look, "name": OTHERS, "legendgroup": OTHERS})
    figure = go.Figure(traces)  # all at once: to add them one by one takes three times as long
    axes.time.draw(figure, axes.steps)
    style.set_axes(figure, "x", range=axes.step_range)
    style.finish(figure, column, height=400)
    figure.layout.legend.update(itemsizing="constant")
    return figure


def _in_order(curves: pd.DataFrame, by_answer: dict[tuple[str, str], np.ndarray]) -> list[tuple[str, str]]:
    """Token and role of each answer: the final one, the marked words, then the others, the most probable first."""
    final, probabilities = curves["final"].to_numpy(), curves["probability"].to_numpy()

    def key(answer: tuple[str, str]) -> tuple[bool, bool, float]:
        rows = by_answer[answer]
        return not final[rows[0]], answer[1] == "", -probabilities[rows].max()

    return sorted(sorted(by_answer), key=key)


def _stars(
    final: pd.DataFrame, column: str, first_led: int, leads_from: int, axis: StepAxis, colour: str
) -> list[dict[str, Any]]:
    """Marks on the final answer's curve where it first led, and where it began to lead for good."""
    labels = {first_led: ("star-open", "first leads"), leads_from: ("star", "leads for good")}
    if first_led == leads_from:
        labels = {leads_from: ("star", "leads for good")}
    marks = []
    for step, (symbol, label) in labels.items():
        rows = final[final["step"] == step]
        when = "at" if symbol == "star-open" else "from"
        mark = {
            "x": axis.values(rows["step"]),
            "y": rows[column].to_numpy(),
            "name": f"{label}: {axis.point(step).removeprefix('step ')}",
            "mode": "markers",
            "marker": {"symbol": symbol, "size": 15, "color": colour, "line": {"width": 1.5, "color": colour}},
            "hovertemplate": f"{label} {when} {axis.point(step)}<extra></extra>",
        }
        marks.append(mark)
    return marks


def _hover(curves: pd.DataFrame) -> np.ndarray:
    """Token, step, probability and rank of each point as text, [points, 4]."""
    columns = (curves[name].tolist() for name in ("token", "step", "probability", "rank", "exact"))
    points = [
        (style.plain(token), f"{step:,}", f"{probability:.3g}", spell_rank(*rank))
        for token, step, probability, *rank in zip(*columns, strict=True)
    ]
    return np.array(points, dtype=object)


def _symbols(exact: np.ndarray, symbol: str) -> str | list[str]:
    """The symbol of all points, or that of each, hollow where its rank is not exact."""
    return symbol if exact.all() else [symbol if known else f"{symbol}-open" for known in exact]
