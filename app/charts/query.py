"""Figures of the Query page: probability and rank of the candidates for a [MASK] over the steps of pretraining."""

from html import escape

import pandas as pd
import plotly.graph_objects as go

from app.charts import style

NAMED = len(style.PALETTE) - 1  # candidates with a colour of their own; the others are grey, told by hovering


def probability(courses: pd.DataFrame, first_led: int, leads_from: int, log: bool, chosen: int) -> go.Figure:
    """Probability of each candidate over the steps.

    `courses` has the columns token, step, probability, rank (missing where unknown), leads, final; stars mark the final
    answer at the steps where it first led and from which it led for good.
    """
    figure = _curves(courses, "probability", first_led, leads_from, log, chosen)
    return figure.update_yaxes(tickformat=".2~p", rangemode="tozero")


def rank(courses: pd.DataFrame, first_led: int, leads_from: int, log: bool, chosen: int) -> go.Figure:
    """Rank of each candidate over the steps, 1 at the top, on a log axis; columns as for `probability`."""
    figure = _curves(courses, "rank", first_led, leads_from, log, chosen)
    lowest = max(courses["rank"].max(), 3)
    powers = [tick for power in range(7) for tick in (10**power, 3 * 10**power) if tick <= lowest]
    ticks = powers if lowest > 20 else list(range(1, lowest + 1))
    return figure.update_yaxes(type="log", autorange="reversed", tickvals=ticks, ticktext=[f"{t:,}" for t in ticks])


def _curves(courses: pd.DataFrame, column: str, first_led: int, leads_from: int, log: bool, chosen: int) -> go.Figure:
    figure = go.Figure()
    best_first = courses.groupby("token").agg(final=("final", "max"), peak=("probability", "max"))
    tokens = best_first.sort_values(["final", "peak"], ascending=False, kind="stable").index
    for i, token in enumerate(tokens):
        rows = courses[courses["token"] == token]
        colour = style.PALETTE[i] if i < NAMED else style.GREY
        figure.add_scatter(
            x=style.along(rows["step"], log),
            y=rows[column],
            name=_plain(token),
            mode="lines+markers",
            showlegend=i < NAMED,
            line={"color": colour, "width": 3 if i == 0 else 1.6 if i < NAMED else 1},
            marker={"size": 5, "symbol": style.SYMBOLS[i % len(style.SYMBOLS)]},
            customdata=_hover(rows),
            hovertemplate="%{customdata[0]}, step %{customdata[1]}<br>probability %{customdata[2]}<br>"
            "rank %{customdata[3]}<extra></extra>",
        )
        if i == 0:
            _stars(figure, rows, column, first_led, leads_from, log)
    style.step_axis(figure, sorted(set(courses["step"])), log, chosen)
    return style.finish(figure, column, height=340)


def _stars(figure: go.Figure, final: pd.DataFrame, column: str, first_led: int, leads_from: int, log: bool) -> None:
    """Mark on the final answer's curve where it first led, and where it began to lead for good."""
    labels = {first_led: ("star-open", "first leads"), leads_from: ("star", "leads for good")}
    if first_led == leads_from:
        labels = {leads_from: ("star", "leads, for good")}
    for step, (symbol, label) in labels.items():
        rows = final[final["step"] == step]
        figure.add_scatter(
            x=style.along(rows["step"], log),
            y=rows[column],
            name=f"{label} (step {step:,})",
            mode="markers",
            marker={"symbol": symbol, "size": 15, "color": style.PALETTE[0], "line": {"width": 1.5}},
            hovertemplate=f"{label} from step {step:,}<extra></extra>"
            if symbol == "star"
            else f"{label} at step {step:,}<extra></extra>",
        )


def _hover(rows: pd.DataFrame) -> list[list[str]]:
    """Token, step, probability and rank of each point as text."""
    ranks = ["beyond the beam" if pd.isna(rank) else f"{int(rank):,}" for rank in rows["rank"]]
    return [
        [_plain(token), f"{step:,}", f"{probability:.3g}", rank]
        for token, step, probability, rank in zip(rows["token"], rows["step"], rows["probability"], ranks)
    ]


def _plain(token: str) -> str:
    """Plotly reads a few HTML tags in names and hover texts; a token is never markup."""
    return escape(token, quote=False)
