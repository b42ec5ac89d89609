"""The Findings page: all findings of a run as a table, and the comparisons of one finding as a figure of intervals."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from urllib.parse import quote

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from embryo_core.errors import FigureError
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.figure import Caption, Figure, data_note, make_figure
from embryo_core.figures.rows import error_bar
from embryo_core.findings import FINDINGS, Judgement, Verdict, judge
from embryo_core.types import Run, StepUnit
from embryo_core.words import count_range, name_step, quantity

SIDE_STYLES = {  # side of a comparison -> colour and symbol
    "holds": (style.BLUE, "circle"),
    "not decided": (style.GREY, "circle-open"),
    "opposed": (style.VERMILION, "x"),
}
# verdicts whose name on pages differs
VERDICT_NAMES: dict[Verdict, str] = {"partly": "partly reproduced", "not": "not reproduced"}
VERDICT_RULES: dict[Verdict, str] = {  # verdict -> rule, in the order of the headline
    "reproduced": "more than half of its comparisons hold, and none is opposed",
    "partly": "at least one comparison holds, but no more than half do, or some are opposed",
    "not": "no comparison holds, and fewer than a quarter are opposed",
    "contradicted": "at least a quarter of its comparisons are opposed, and more of them than hold",
    "undecided": "what it compares was not computed or not learned, or mostly began at the same evaluated step",
}
PICTURE_SIZE = (120, 32)  # pixels: width and height of a small picture
DOES_NOT_APPLY = "does not apply"  # verdict for a model without the outputs that a finding needs
ROW_HEIGHT, PANEL_GAP = 24, 80  # pixels: height of a comparison, gap between panels


def verdict_name(verdict: Verdict) -> str:
    """Return a verdict as pages show it."""
    return VERDICT_NAMES.get(verdict, verdict)


# === All findings ===


def finding_table(
    judgements: Sequence[Judgement], other_judgements: Sequence[Sequence[Judgement]] = ()
) -> pd.DataFrame:
    """Return a row for each finding: verdict, finding, hold, picture, comparisons, paper.

    `comparisons` are numbers: 1 holds, 0 not decided, -1 opposed; `hold` counts those that hold ("9 of 9"). Each
    `other_judgements` run adds a column of verdicts (`verdict_column`), with the measure if it differs.
    """
    rows, by_name = [], [{item.finding.name: item for item in other} for other in other_judgements]
    for judgement in judgements:
        name = judgement.finding.name
        others = {verdict_column(i): _name_other_verdict(judgement, other.get(name)) for i, other in enumerate(by_name)}
        rows.append(
            {
                "verdict": verdict_name(judgement.verdict),
                **others,
                "finding": judgement.finding.claim,
                "hold": f"{judgement.hold_count} of {len(judgement.comparisons)}" if judgement.comparisons else None,
                "picture": picture(judgement),
                "comparisons": sorted(
                    (int(item.holds) - int(item.opposed) for item in judgement.comparisons), reverse=True
                ),
                "paper": judgement.finding.section.replace("Section ", "§ "),
            }
        )
    return pd.DataFrame(rows)


def verdict_column(index: int) -> str:
    """Return the name of the column of a compared run's verdicts; `index` counts compared runs from 0."""
    return f"verdict, run {index + 2}"


def _name_other_verdict(judgement: Judgement, other: Judgement | None) -> str:
    """Return the verdict of a compared run on the same finding."""
    if other is None:
        return DOES_NOT_APPLY
    measure = other.finding.measure if other.finding.measure != judgement.finding.measure else ""
    return verdict_name(other.verdict) + (f" ({measure})" if measure else "")


def headline(judgements: Sequence[Judgement], last: int, planned: int, unit: StepUnit) -> str:
    """Return a sentence with the numbers of verdicts up to the `last` evaluated step; "" if nothing can be tested."""
    decided = [judgement for judgement in judgements if judgement.verdict != "undecided"]
    if not decided:
        return ""
    counts: Counter[str] = Counter(judgement.verdict for judgement in decided)
    steps = f" up to {name_step(last, unit)} of {planned:,}" if last < planned else ""
    other_counts = ", ".join(
        f"{counts[verdict]} {name}"
        for verdict, name in {"partly": "in part", "not": "not", "contradicted": "contradicted"}.items()
        if counts[verdict]
    )
    summary = f"This run shows {counts['reproduced']} of {quantity(len(decided), 'finding')} of the paper{steps}"
    left = len(judgements) - len(decided)
    undecided = f"{left} more {'is' if left == 1 else 'are'} undecided" if left else ""
    return "; ".join(filter(None, [summary, other_counts, undecided])) + "."


def describe_findings(judgements: Sequence[Judgement], other_runs: Collection[str] = ()) -> Caption:
    """Return the caption of `finding_table`: the rules of the verdicts, and the names of `other_runs`."""
    rules = "; ".join(f"{verdict_name(verdict)}: {rule}" for verdict, rule in VERDICT_RULES.items())
    columns_note = (
        f" The columns {', '.join(other_runs)} have the verdicts of those runs; all else is about the first run."
    )
    columns_note = columns_note if other_runs else ""
    if left_out := len(FINDINGS) - len(judgements):
        columns_note += f" {left_out} others need models of another kind."
    return Caption(
        f"{quantity(len(judgements), 'finding')} of the paper, and how many of their comparisons hold in this run.",
        "Each finding makes several comparisons. A comparison holds if its whole 95 % interval agrees with the paper, "
        f"and is opposed if the whole interval contradicts it. Verdicts: {rules}. Bars point up for comparisons that "
        "hold, and down for opposed ones. Small plots show the curves behind a verdict (log steps, one scale for each "
        f"finding), or a bar for each comparison.{columns_note}",
        hint="Click a row to see its comparisons, or a picture to open its page.",
    )


def describe_verdict(judgement: Judgement) -> tuple[str, str]:
    """Return the verdict on a finding, and a sentence with its counts and statistic."""
    counts = f"{judgement.summary}. " if judgement.comparisons else ""
    return verdict_name(judgement.verdict).capitalize(), f"{counts}{judgement.statistic}".strip()


# === Small pictures ===


def picture(judgement: Judgement) -> str | None:
    """Return the curves behind a verdict over the logarithm of the step, as the address of an SVG.

    A judgement without curves has a bar for each comparison instead; without comparisons the picture is None.
    """
    if judgement.curves:
        shapes = _draw_lines(judgement)
    elif judgement.comparisons:
        shapes = _draw_bars([comparison.value for comparison in judgement.comparisons])
    else:
        return None
    width, height = PICTURE_SIZE
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "data:image/svg+xml," + quote(f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(shapes)}</svg>')


def _draw_lines(judgement: Judgement) -> Iterator[str]:
    """Yield an SVG line for each curve, all on one scale."""
    last = max(curve.steps[-1] for curve in judgement.curves)
    low = min(curve.values.min() for curve in judgement.curves)
    high = max(curve.values.max() for curve in judgement.curves)
    for i, curve in enumerate(judgement.curves):
        x = np.log1p(curve.steps) / np.log1p(last)
        points = " ".join(map(_format_pixel, x, (curve.values - low) / ((high - low) or 1)))
        colour = style.PALETTE[i % len(style.PALETTE)]
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _draw_bars(values: Sequence[float]) -> Iterator[str]:
    """Yield an SVG bar for each value, from the zero line."""
    low, high = min(0.0, *values), max(0.0, *values)
    for i, value in enumerate(values):
        ends = [_format_pixel((i + 0.5) / len(values), (end - low) / ((high - low) or 1)) for end in (0.0, value)]
        yield f'<polyline points="{" ".join(ends)}" stroke="{style.BLUE}" stroke-width="10"/>'


def _format_pixel(x: float, y: float) -> str:
    """Return a point of the picture in pixels, from fractions of its width and of its height (from below)."""
    width, height = (side - 4 for side in PICTURE_SIZE)
    return f"{2 + x * width:.1f},{2 + (1 - y) * height:.1f}"


# === Comparisons of one finding ===


def comparisons(runs: Sequence[Run], axis: AxisChoice, name: str) -> Figure:
    """Return the figure of a finding's comparisons in the first run, each with its 95 % interval."""
    run = runs[0]
    judgement = next(iter(judge(run, [name])), None)
    if judgement is None:
        raise FigureError(f"The finding '{name}' does not apply to the models of run '{run.name}'.")
    finding = judgement.finding
    if not judgement.comparisons:
        raise FigureError(f"'{finding.claim}' is undecided for run '{run.name}': {judgement.statistic}")
    table = comparison_table(judgement)
    metric = (finding.metrics[0] if finding.metrics else "").removesuffix("_f1").removesuffix("_same")
    note, n = data_note(run, metric), count_range(pd.Series([comparison.n for comparison in judgement.comparisons]))
    caption = Caption(
        f"The paper expects: {finding.predicts}",
        "Each point is one comparison, its line the 95 % interval. Points without a line have an interval of no width "
        "or none. The comparisons are not independent of each other. docs/metrics.md has the rules.",
        f"Data: {note}; n = {n}." if note else f"n = {n}.",
    )
    return make_figure((run,), f"{run.name}-{name}", finding.claim, plot_comparisons(table), table, caption, metric)


def comparison_table(judgement: Judgement) -> pd.DataFrame:
    """Return the comparisons of a finding in the order of its test: comparison, value, low, high, unit, n, side."""
    sides = [
        "holds" if comparison.holds else "opposed" if comparison.opposed else "not decided"
        for comparison in judgement.comparisons
    ]
    table = pd.DataFrame([vars(comparison) for comparison in judgement.comparisons]).assign(side=sides)
    return table.drop(columns="tied").rename(columns={"what": "comparison"})


def plot_comparisons(table: pd.DataFrame) -> go.Figure:
    """Plot the rows of a `comparison_table` (at least one) from top to bottom, with a panel for each unit."""
    panels = [(unit, rows) for unit, rows in table.groupby("unit", sort=False)]
    heights = [len(rows) + 1 for _, rows in panels]
    height = ROW_HEIGHT * sum(heights) + PANEL_GAP * len(panels)
    plot = make_subplots(rows=len(panels), row_heights=heights, vertical_spacing=PANEL_GAP / height)
    for i, (unit, rows) in enumerate(panels, 1):
        _add_panel(plot, rows, i)
        names = rows["comparison"].map(style.escape_text).tolist()
        plot.update_xaxes(title_text=f"{unit} (above 0: as in the paper)", row=i, col=1)
        plot.update_yaxes(categoryorder="array", categoryarray=names[::-1], row=i, col=1)
        plot.add_vline(0, line={"color": style.GREY, "width": 1.5, "dash": "dot"}, row=i, col=1)
    style.finish(plot, "", height=height)
    return style.set_axes(plot, "y", automargin=True, tickfont={"size": style.FONT_SIZE - 1})


def _add_panel(plot: go.Figure, rows: pd.DataFrame, i: int) -> None:
    for side, (colour, symbol) in SIDE_STYLES.items():
        rows_of_side = rows[rows["side"] == side]
        if rows_of_side.empty:
            continue
        plot.add_scatter(
            x=rows_of_side["value"],
            y=rows_of_side["comparison"].map(style.escape_text),
            error_x=error_bar(rows_of_side["value"], rows_of_side["low"], rows_of_side["high"], colour),
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 9},
            name=side,
            legendgroup=side,
            showlegend=not any(trace.name == side for trace in plot.data),
            customdata=rows_of_side[["low", "high", "n"]],
            hovertemplate="%{y}<br>%{x:.3~f} (%{customdata[0]:.3~f} to %{customdata[1]:.3~f}), "
            "n = %{customdata[2]:,}<extra></extra>",
            row=i,
            col=1,
        )
