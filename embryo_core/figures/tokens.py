"""Figures of the Tokens page: accuracy by category over the steps, and order of acquisition (Figures 1, 7 and 8)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core.corpora.word_groups import SINGLE_TAGS
from embryo_core.curves import interval, rescale
from embryo_core.figures import smoothing, style, tags
from embryo_core.figures.overlay import Curves
from embryo_core.figures.step_axis import StepAxis
from embryo_core.findings.words import VERB_FORMS
from embryo_core.words import percent

SETS = {
    "parts of speech": tuple(style.PARTS_OF_SPEECH),
    "verb forms": tuple(style.VERB_FORMS),
    "single tags": SINGLE_TAGS,
    "frequency bands": tuple(style.FREQUENCY_BANDS),
}
FEW = 3  # categories whose baselines are lines across the figure
BASELINE = "always the most frequent word"
PAPER = {"verb forms": VERB_FORMS, "single tags": tuple(style.PAPER_TAGS)}  # of Table 4, and of Figure 1


def _written(group: str) -> str:
    """A category as a figure has it."""
    return style.plain(tags.named(group))


def category_sets(scores: pd.DataFrame) -> dict[str, list[str]]:
    """Sets of categories to choose from: the paper's that the scores have; a metric with none of these has its own.

    Verb forms alone are no set of single tags.
    """
    groups = scores["group"].dropna().unique().tolist()
    sets, missing = {}, set(groups)
    for name, known in SETS.items():
        if missing & set(known):
            sets[name] = list(known)
        missing -= set(known)
    return sets or {"categories": groups}


def usual(name: str, groups: Sequence[str]) -> list[str]:
    """Those of a set's categories that are drawn at first: all, or where the paper shows fewer, those of the paper."""
    return [group for group in groups if group in PAPER.get(name, groups)]


def curves(scores: pd.DataFrame, groups: Sequence[str], rescaled: bool) -> pd.DataFrame:
    """What is drawn, a row per category and step: group, step, n, accuracy, low, high, shown, shown_low, shown_high.

    `accuracy`, with its Wilson 95 % interval `low` to `high`, is as measured, in [0, 1]; what is `shown` of the three
    is the same or, if `rescaled`, divided by the accuracy at the last step (a category that ends at 0 is left out).
    """
    parts = []
    for group in groups:
        rows = scores[scores["group"] == group].sort_values("step")
        accuracy = rows["value"].to_numpy(float)
        if not len(rows) or (rescaled and accuracy[-1] == 0):
            continue
        low, high = interval(accuracy, rows["n"])
        part = {"group": group, "step": rows["step"], "n": rows["n"], "accuracy": accuracy, "low": low, "high": high}
        shown = {"shown": accuracy, "shown_low": low, "shown_high": high}
        if rescaled:
            shown = {column: rescale(values, accuracy[-1]) for column, values in shown.items()}
        parts.append(pd.DataFrame(part | shown))
    columns = ["group", "step", "n", "accuracy", "low", "high", "shown", "shown_low", "shown_high"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def with_baselines(data: pd.DataFrame, baselines: pd.DataFrame, rescaled: bool) -> pd.DataFrame:
    """The table of `curves` with what always answering a category's most frequent word gives (`baselines.of_words`).

    Columns added: answer, baseline, and shown_baseline, which is divided as the curve is if `rescaled`.
    """
    known = baselines.set_index("group")
    value = data["group"].map(known["value"])
    last = data.groupby("group")["accuracy"].transform("last")
    return data.assign(
        answer=data["group"].map(known["answer"]),
        baseline=value,
        shown_baseline=value / last if rescaled else value,
    )


def most_changed(data: pd.DataFrame) -> str:
    """The category of `curves` whose accuracy as measured changes most between two steps."""
    accuracy = data.groupby("group", sort=False)["accuracy"]
    return (accuracy.max() - accuracy.min()).idxmax()


def accuracy_figure(
    data: pd.DataFrame, axis: StepAxis, rescaled: bool = False, bands: bool = True
) -> go.Figure:
    """Curves from `curves`, each with its 95 % band, and those of `with_baselines` with their baselines dashed."""
    figure = go.Figure()
    heights = data.groupby("group")["shown"]
    by_height = (heights.mean() if rescaled else heights.last()).sort_values(ascending=False).index
    drawn = [(group, data[data["group"] == group]) for group in by_height]
    for group, rows in drawn if bands else ():
        x, colour = axis.values(rows["step"]), style.colour(group)
        style.add_band(figure, x, rows["shown_low"], rows["shown_high"], colour, _written(group))
    for group, rows in drawn:
        _add_curve(figure, group, rows, axis)
    if "baseline" in data:
        _add_baselines(figure, [(group, rows) for group, rows in drawn if rows["baseline"].notna().all()], axis)
    axis.draw(figure, list(data["step"]) or [0])
    style.finish(figure, "accuracy relative to the last step" if rescaled else "accuracy (words)", height=430)
    return figure.update_yaxes(tickformat=".0%" if not rescaled else ".1f", rangemode="tozero")


def _add_baselines(figure: go.Figure, drawn: Sequence[tuple[str, pd.DataFrame]], axis: StepAxis) -> None:
    """Where few categories are drawn a line across the figure, else a mark at the right end."""
    for group, rows in drawn:
        row, x = rows.iloc[-1], axis.values([rows["step"].min(), rows["step"].max()])
        text = f"{_written(group)}: always “{style.plain(row['answer'])}” is right for {percent(row['baseline'])}"
        ends = x if len(drawn) <= FEW else x[-1:]
        style.add_baseline(
            figure, ends, row["shown_baseline"], style.colour(group), _written(group), f"{text} of {row['n']:,} words"
        )
    style.explain_baselines(figure, BASELINE)


def _add_curve(figure: go.Figure, group: str, rows: pd.DataFrame, axis: StepAxis) -> None:
    smoothing.add_curve(
        figure,
        axis.values(rows["step"]),
        rows,
        "shown",
        _written(group),
        style.colour(group),
        marker={"symbol": style.SYMBOL_OF.get(group, "circle"), "size": 8},
        customdata=style.told(rows[["group", "step", "accuracy", "low", "high", "n"]]),
        hovertemplate=(
            f"<b>{_written(group)}</b>, {axis.hover('customdata[1]')}<br>"
            "accuracy %{customdata[2]} (95 %: %{customdata[3]} to %{customdata[4]})<br>"
            "n = %{customdata[5]:,} words; click to see them<extra></extra>"
        ),
    )


def overlay_curves(rescaled: bool) -> Curves:
    """How rows of `curves` are drawn for several runs."""
    return Curves(
        by="group",
        value="shown",
        low="shown_low",
        high="shown_high",
        label=tags.named,
        styles=lambda groups: {group: (style.colour(group), style.SYMBOL_OF.get(group, "circle")) for group in groups},
        y_title="accuracy relative to the last step" if rescaled else "accuracy (words)",
        tickformat=".1f" if rescaled else ".0%",
        decimals=".2f" if rescaled else ".1%",
        baseline="shown_baseline",
    )


# === Order of acquisition ===


def acquisition_figure(order: pd.DataFrame, steps: Sequence[int], axis: StepAxis) -> go.Figure:
    """A row per category with a mark at its onset and a line between its ends; ties share a place and a frame."""
    there = order.dropna(subset="onset")
    figure = go.Figure()
    for row, label in zip(there.itertuples(), _place_labels(there), strict=True):
        _add_onset(figure, row, label, axis)
    axis.draw(figure, steps)
    style.finish(figure, "", height=90 + 30 * len(there))  # rows name the categories, the legend the changes alone
    _frame_ties(figure, there)
    return figure.update_yaxes(categoryorder="array", categoryarray=_place_labels(there)[::-1], showgrid=False)


def _place_labels(there: pd.DataFrame) -> list[str]:
    """Each category with its place, "2= noun" where it shares it."""
    tied = there["place"].duplicated(keep=False)
    rows = zip(there["place"], tied, there["group"].map(_written))
    return [f"{place}{'=' if tie else '.'} {group}" for place, tie, group in rows]


def _add_onset(figure: go.Figure, row: tuple, label: str, axis: StepAxis) -> None:
    closed = not pd.isna(row.latest)  # else the last step is not certain to hold it yet, and the line has no end
    steps = [row.earliest, row.onset, row.latest] if closed else [row.earliest, row.onset]
    ends = f"{row.earliest:,} to {row.latest:,}" if closed else f"{row.earliest:,} or later"
    colour = style.colour(row.group)
    marker = {"color": colour, "symbol": style.SYMBOL_OF.get(row.group), "size": [0, 11, 0], "opacity": 1}
    text = f"{percent(row.last)}, n = {row.n:,} words{steepness(row, axis.counted_in)}"
    figure.add_scatter(
        x=axis.values(steps),
        y=[label] * len(steps),
        name=_written(row.group),
        showlegend=False,
        mode="lines+markers",
        line={"color": style.faint(colour, 0.45), "width": 3},
        marker=marker,
        customdata=[[_written(row.group), row.onset, ends, text]] * len(steps),
        hovertemplate=(
            f"<b>%{{customdata[0]}}</b>: {axis.hover('customdata[1]')} (%{{customdata[2]}})<br>"
            "last accuracy %{customdata[3]}<extra></extra>"
        ),
    )


def steepness(row: tuple, counted_in: str) -> str:
    """The slope of a row of `compare.acquisition` in words, on a line of its own; nothing by a rule without slopes."""
    if pd.isna(getattr(row, "slope", None)):
        return ""
    per = "steps" if counted_in == "updates" else counted_in
    return f"<br>slope {row.slope:.3g} per 1,000 {per} (95 %: {row.slope_low:.3g} to {row.slope_high:.3g})"


def _frame_ties(figure: go.Figure, there: pd.DataFrame) -> None:
    """A grey ground behind the rows that share a place; the last row lies at height 0."""
    for _, rows in there.reset_index(drop=True).groupby("place"):
        if len(rows) > 1:
            top, bottom = len(there) - 1 - rows.index.min(), len(there) - 1 - rows.index.max()
            ground = {"fillcolor": style.faint(style.GREY, 0.14), "line_width": 0, "layer": "below"}
            figure.add_shape(
                type="rect", xref="paper", x0=0, x1=1, yref="y", y0=bottom - 0.45, y1=top + 0.45, **ground
            )


# === Words ===


def merged_by_case(words: pd.DataFrame, cased: bool) -> pd.DataFrame:
    """Counts of words, as read from the store; those of an uncased model that differ in case alone are one word."""
    if cased or words.empty:
        return words
    key = ["metric", "step", "tag", "word", "band"]
    lower = words.assign(word=words["word"].str.lower())
    return lower.groupby(key, dropna=False, sort=False, as_index=False)[["n", "correct"]].sum()


def commonest_answers(words: pd.DataFrame) -> pd.DataFrame:
    """At each step of one category's `words` the one most often predicted rightly: step, word, right, share, of_words.

    `right` counts all right predictions, `share` is that word's part of them and `of_words` its part of all words.
    Steps without a right prediction are left out.
    """
    by_word = words.groupby(["step", "word"], as_index=False)[["n", "correct"]].sum()
    totals = by_word.groupby("step")[["n", "correct"]].transform("sum")
    by_word = by_word.assign(
        right=totals["correct"],
        share=by_word["correct"] / totals["correct"].replace(0, np.nan),
        of_words=by_word["n"] / totals["n"],
    )
    known = by_word.dropna(subset="share")
    first = known.loc[known.groupby("step")["share"].idxmax()]
    return first[["step", "word", "right", "share", "of_words"]].reset_index(drop=True)
