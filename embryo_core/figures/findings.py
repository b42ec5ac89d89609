"""A finding's comparisons as intervals beside a line at 0, and all findings of a run as a table."""

from collections.abc import Iterator, Sequence
from urllib.parse import quote

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from embryo_core.figures import style
from embryo_core.findings import Judgement, Verdict

SIDES = {  # of a comparison: colour and symbol
    "holds": (style.BLUE, "circle"),
    "not decided": (style.GREY, "circle-open"),
    "opposed": (style.VERMILION, "x"),
}
NAMES: dict[Verdict, str] = {"partly": "partly reproduced", "not": "not reproduced"}  # of verdicts, where not their own
SIGNS = {"holds": 1, "not decided": 0, "opposed": -1}
PICTURE = (120, 32)  # pixels
ROW, GAP = 24, 80  # pixels, of a comparison and between panels


def overview(judgements: Sequence[Judgement], beside: Sequence[Sequence[Judgement]] = ()) -> pd.DataFrame:
    """A row for each finding: picture, verdict, finding, paper, comparisons (1 holds, 0 not decided, -1 opposed), ...

    The counts hold, opposed and of (all) follow. Runs `beside` have a column of verdicts each (`verdicts_column`).
    """
    rows = []
    for number, judgement in enumerate(judgements):
        sides = comparisons(judgement)["side"] if judgement.comparisons else pd.Series(dtype=str)
        rows.append(
            {
                "picture": picture(judgement),
                "verdict": named(judgement.verdict),
                **{verdicts_column(place): named(other[number].verdict) for place, other in enumerate(beside)},
                "finding": judgement.finding.claim,
                "paper": judgement.finding.place,
                "comparisons": sorted(sides.map(SIGNS), reverse=True),
                "hold": judgement.holding,
                "opposed": judgement.opposed,
                "of": len(judgement.comparisons),
            }
        )
    return pd.DataFrame(rows)


def named(verdict: Verdict) -> str:
    """A verdict in the words of a page."""
    return NAMES.get(verdict, verdict)


def verdicts_column(place: int) -> str:
    """The column with the verdicts of a run beside the page's own, by its place from 0."""
    return f"verdict, run {place + 2}"


def picture(judgement: Judgement) -> str | None:
    """The curves behind a verdict over the logarithm of the step, as the address of an SVG; None where there are none.

    A verdict on shares alone has a bar for each comparison instead.
    """
    if judgement.curves:
        shapes = _lines(judgement)
    elif judgement.comparisons:
        shapes = _bars([one.value for one in judgement.comparisons])
    else:
        return None
    width, height = PICTURE
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "data:image/svg+xml," + quote(f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(shapes)}</svg>')


def _lines(judgement: Judgement) -> Iterator[str]:
    """A line for each curve, all on one scale."""
    last = max(curve.steps[-1] for curve in judgement.curves)
    low = min(curve.values.min() for curve in judgement.curves)
    high = max(curve.values.max() for curve in judgement.curves)
    for i, curve in enumerate(judgement.curves):
        x = np.log1p(curve.steps) / np.log1p(last)
        points = " ".join(map(_point, x, (curve.values - low) / ((high - low) or 1)))
        colour = style.PALETTE[i % len(style.PALETTE)]
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _bars(values: Sequence[float]) -> Iterator[str]:
    """A bar for each value, from the zero line."""
    low, high = min(0.0, *values), max(0.0, *values)
    for i, value in enumerate(values):
        ends = [(end - low) / ((high - low) or 1) for end in (0.0, value)]
        ends = [_point((i + 0.5) / len(values), end) for end in ends]
        yield f'<polyline points="{" ".join(ends)}" stroke="{style.BLUE}" stroke-width="10"/>'


def _point(x: float, y: float) -> str:
    """A point of the picture from its shares of width and height, counted from below."""
    width, height = (side - 4 for side in PICTURE)
    return f"{2 + x * width:.1f},{2 + (1 - y) * height:.1f}"


def comparisons(judgement: Judgement) -> pd.DataFrame:
    """The comparisons of a finding, in the order of its test: comparison, value, low, high, unit, n, side."""
    rows = [
        {
            "comparison": one.what,
            "value": one.value,
            "low": one.low,
            "high": one.high,
            "unit": one.unit,
            "n": one.n,
            "side": "holds" if one.holds else "opposed" if one.opposed else "not decided",
        }
        for one in judgement.comparisons
    ]
    return pd.DataFrame(rows)


def comparisons_figure(table: pd.DataFrame) -> go.Figure:
    """Rows of `comparisons`, at least one, from above; those of one unit share a panel."""
    panels = [(unit, rows) for unit, rows in table.groupby("unit", sort=False)]
    heights = [len(rows) + 1 for _, rows in panels]
    height = ROW * sum(heights) + GAP * len(panels)
    figure = make_subplots(rows=len(panels), row_heights=heights, vertical_spacing=GAP / height)
    for i, (unit, rows) in enumerate(panels, 1):
        _panel(figure, rows, i)
        names = rows["comparison"].map(style.plain).tolist()
        figure.update_xaxes(title_text=f"{unit} (above 0: as in the paper)", row=i, col=1)
        figure.update_yaxes(categoryorder="array", categoryarray=names[::-1], row=i, col=1)
        figure.add_vline(0, line={"color": style.GREY, "width": 1.5, "dash": "dot"}, row=i, col=1)
    style.finish(figure, "", height=height)
    return style.set_axes(figure, "y", automargin=True, tickfont={"size": style.FONT - 1})


def _panel(figure: go.Figure, rows: pd.DataFrame, i: int) -> None:
    for side, (colour, symbol) in SIDES.items():
        own = rows[rows["side"] == side]
        if own.empty:
            continue
        figure.add_scatter(
            x=own["value"],
            y=own["comparison"].map(style.plain),
            error_x={
                "type": "data",
                "array": own["high"] - own["value"],
                "arrayminus": own["value"] - own["low"],
                "color": colour,
                "thickness": 2,
                "width": 0,
            },
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 9},
            name=side,
            legendgroup=side,
            showlegend=not any(trace.name == side for trace in figure.data),
            customdata=own[["low", "high", "n"]],
            hovertemplate="%{y}<br>%{x:.3~f} (%{customdata[0]:.3~f} to %{customdata[1]:.3~f}), "
            "n = %{customdata[2]:,}<extra></extra>",
            row=i,
            col=1,
        )
