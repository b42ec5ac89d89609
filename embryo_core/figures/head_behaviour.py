"""Figures of what each head does: a score by layer and head, over the steps, and the step at which it appears."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from embryo_core.errors import FigureError
from embryo_core.figures import cells, smoothing, style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.downsampling import cuts_at
from embryo_core.figures.figure import Caption, Figure, data_note, make_figure
from embryo_core.figures.patterns import (
    PATTERNS,
    WEIGHTS,
    appearance,
    appearances,
    baseline,
    level,
    read_behaviour,
    select_pattern,
)
from embryo_core.figures.style import layer_colours
from embryo_core.types import Run, StepUnit
from embryo_core.words import name_step, percent, quantity, sentence_case

METRIC = "head_behaviour"
HEAD_COLOUR = style.VERMILION  # a colour outside the scale
NEVER_TEXT = "–"
BASELINE_RULE = "baseline"  # rule: a head has to reach the best fixed offset

Head = tuple[int, int]  # layer and head, both from 1


def at_step(runs: Sequence[Run], axis: AxisChoice, pattern: str, step: int, selected_head: Head) -> Figure:
    """Return the figure of a pattern by layer and head in the first run at a step, on the colour scale of all steps."""
    run, spec = runs[0], PATTERNS[pattern]
    rows = _read_rows(run, pattern)
    rows_at_step = rows[rows["step"] == step]
    step_name = name_step(step, run.step_unit)
    return make_figure(
        [run],
        f"{run.name}-{pattern}-heads",
        f"{spec.label}, {step_name}",
        plot_values(rows, pattern, step, selected_head),
        rows_at_step.assign(pattern=pattern),
        Caption(
            f"{sentence_case(spec.definition)}.",
            "Colours run from the lowest to the highest value of any head at any step.",
            f"{sentence_case(data_note(run, METRIC, 'as evaluated'))}; n = {rows_at_step['n'].max():,} in each cell.",
            "Click a cell for its head.",
        ),
        METRIC,
        suffix=f"step{step}",
    )


def presence(runs: Sequence[Run], axis: AxisChoice, pattern: str, change: float | None, selected_head: Head) -> Figure:
    """Return the figure of the step from which each head of the first run shows a pattern; `change` as in `Pattern`."""
    run, step_axis = runs[0], axis.for_run(runs[0], runs)
    steps, behaviour = sorted(set(_read_rows(run, pattern)["step"])), read_behaviour(run, pattern)
    onsets = appearances(behaviour, pattern, change)
    return make_figure(
        [run],
        f"{run.name}-{pattern}-since",
        f"{PATTERNS[pattern].label}: {step_axis.step_heading('present since')}",
        plot_presence(onsets, steps, selected_head, step_axis),
        onsets.assign(pattern=pattern, change=BASELINE_RULE if change is None else change),
        Caption(*describe_presence(behaviour, change, onsets, step_axis)),
        METRIC,
    )


def over_steps(
    runs: Sequence[Run], axis: AxisChoice, pattern: str, change: float | None, selected_head: Head
) -> Figure:
    """Return the figure of a pattern in every head of the first run over the steps; the chosen head is bold."""
    run = runs[0]
    rows = smoothing.with_smoothed(_read_rows(run, pattern), "value", axis.smoothing, ["layer", "head"])
    return make_figure(
        [run],
        f"{run.name}-{pattern}",
        f"{PATTERNS[pattern].label} of each head over the steps",
        plot_heads(rows, baseline(read_behaviour(run, pattern)), pattern, change, selected_head, axis.for_run(run)),
        rows.assign(pattern=pattern),
        Caption(
            f"Layer {selected_head[0]}, head {selected_head[1]}, bold, among all "
            f"{rows.groupby(['layer', 'head']).ngroups} heads, at "
            f"{quantity(rows['step'].nunique(), 'step')}, n = {rows['n'].max():,}.",
            hint="Click a point to choose its head and step.",
        ),
        METRIC,
    )


def describe_rule(option: str, first: int, unit: StepUnit) -> str:
    """Return the label of a rule of presence: "baseline", or a change since the `first` step."""
    if option == BASELINE_RULE:
        return "reached the best fixed offset"
    return f"{'risen' if option[0] == '+' else 'fallen'} by {option[1:]} since {name_step(first, unit)}"


def describe_presence(
    frame: pd.DataFrame, change: float | None, onsets: pd.DataFrame, axis: StepAxis
) -> tuple[str, str]:
    """Return the rule by which a pattern counts as present, and a sentence on the heads that show it."""
    if change is None:
        best = baseline(frame)
        assert best is not None, "without a baseline every pattern has a change"
        accuracy, offset = best
        rule = (
            "The first step from which an attention head stays at least as accurate as the best fixed offset, up to "
            f"the last step. Always answering the word at {offset:+d} is right for {percent(accuracy)} of the same "
            "words."
        )
    else:
        direction = "above" if change > 0 else "below"
        rule = (
            f"The first step from which a head's value stays at least {abs(change):g} {direction} its value at "
            f"{axis.step_in_unit(int(frame['step'].min()))}, up to the last step."
        )
    present = onsets.dropna().sort_values(["step", "layer", "head"])
    heads = quantity(len(onsets), "head")
    if present.empty:
        return rule, f"Of {heads}, none shows the pattern at the last step."
    order = ", ".join(
        f"layer {row.layer} at {axis.step_in_unit(int(row.step))} (head {row.head})"
        for row in present.drop_duplicates("layer").itertuples()
    )
    show = "shows" if len(present) == 1 else "show"
    return rule, f"Of {heads}, {len(present):,} {show} the pattern at the last step; the first of each layer: {order}."


def _read_rows(run: Run, name: str) -> pd.DataFrame:
    """Return the rows of a pattern. Raises FigureError if it was not measured."""
    rows = select_pattern(read_behaviour(run, name), name)
    if rows.empty:
        raise FigureError(f"'{PATTERNS[name].label}' has not been measured for the heads of '{run.name}'.")
    return rows


def headline(run: Run, pattern: str, selected_head: Head, axis: StepAxis) -> str:
    """Return the page's headline: how a head's pattern changed from the first step to the last; "" if it is unknown."""
    rows = _read_rows(run, pattern)
    head_rows = rows[(rows["layer"] == selected_head[0]) & (rows["head"] == selected_head[1])].sort_values("step")
    if head_rows.empty:
        return ""
    first, last, spec = head_rows.iloc[0], head_rows.iloc[-1], PATTERNS[pattern]
    name = spec.label[:1].lower() + spec.label[1:]
    ends = [axis.step_in_unit(int(step)) for step in (first["step"], last["step"])]
    subject = f"Layer {selected_head[0]}, head {selected_head[1]} has the clearest pattern"
    if pattern not in WEIGHTS:
        summary = f"{subject}, {name}: {spec.write(last['value'])} at {ends[1]}"
        return f"{summary}, {spec.write(first['value'])} at {ends[0]}." if len(head_rows) > 1 else f"{summary}."
    target = f"the {name}" if name.endswith("token") else name.rpartition(": ")[2]
    summary = f"{subject}: {percent(last['value'], 0)} of its attention goes to {target} at {ends[1]}"
    return f"{summary}, {percent(first['value'], 0)} at {ends[0]}." if len(head_rows) > 1 else f"{summary}."


# === Plots: layer by head ===


def plot_values(rows: pd.DataFrame, pattern: str, step: int, selected_head: Head) -> go.Figure:
    """Plot the rows of a pattern at one step by layer and head; colours cover the values of all steps."""
    spec = PATTERNS[pattern]
    at_step = rows[rows["step"] == step]
    texts = [spec.write(value) for value in at_step["value"]]
    return _plot_grid(
        at_step.assign(colour=at_step["value"], text=texts),
        selected_head,
        (rows["value"].min(), rows["value"].max()),
        style.colour_bar(spec.y_title, tickformat=spec.tickformat),
    )


def plot_presence(onsets: pd.DataFrame, steps: list[int], selected_head: Head, axis: StepAxis) -> go.Figure:
    """Plot `appearances` by layer and head: brighter is earlier among the evaluated `steps`, empty is never."""
    order = {step: index for index, step in enumerate(steps)}
    names = axis.short(steps)
    cells_by_head = onsets.assign(
        colour=[np.nan if pd.isna(step) else -order[step] for step in onsets["step"]],
        text=[NEVER_TEXT if pd.isna(step) else names[order[step]] for step in onsets["step"]],
        exact=[NEVER_TEXT if pd.isna(step) else axis.number(int(step)) for step in onsets["step"]],
    )
    first, last = order.get(onsets["step"].min(), 0), len(steps) - 1
    ticks = {-index: names[index] for index in style.few_ticks(first, last)}
    colour_bar = style.colour_bar(axis.step_heading("since"), tickvals=[*ticks], ticktext=[*ticks.values()])
    return _plot_grid(cells_by_head, selected_head, (-last, -first), colour_bar)


def _plot_grid(
    heads: pd.DataFrame, selected_head: Head, ends: tuple[float, float], colour_bar: dict[str, Any]
) -> go.Figure:
    """Plot cells with colour and text by layer and head; the column `exact`, if it exists, is the hover text."""
    colours = heads.pivot(index="layer", columns="head", values="colour")
    texts = heads.pivot(index="layer", columns="head", values="text")
    figure, z = go.Figure(), colours.to_numpy(float, na_value=np.nan)
    axes = {"x": colours.columns, "y": colours.index}
    cells.add_cells(figure, z, texts.to_numpy(), ends=ends, gap=2, colorbar=colour_bar, **axes)
    customdata = heads[["layer", "head"]].to_numpy().tolist()
    hover = "layer %{customdata[0]}, head %{customdata[1]}: %{text}"
    cells.add_points(figure, heads["head"], heads["layer"], customdata, hover, heads.get("exact", heads["text"]))
    for row in heads[heads["colour"].isna()].itertuples():
        figure.add_annotation(x=row.head, y=row.layer, text=row.text, showarrow=False, font_size=style.FONT_SIZE - 2)
    layer, head = selected_head
    cells.outline(figure, (head, head), (layer, layer), color=HEAD_COLOUR, width=3)
    style.finish(figure, "layer", height=min(90 + 46 * len(colours), 560), legend=False)
    figure.update_xaxes(title_text="head", dtick=1, range=[0.5, colours.columns.max() + 0.5], fixedrange=True)
    figure.update_yaxes(dtick=1, range=[colours.index.max() + 0.5, 0.5], showgrid=False, fixedrange=True)
    return figure


# === Plots: over the steps ===


def plot_heads(
    rows: pd.DataFrame,
    base: tuple[float, int] | None,
    pattern: str,
    change: float | None,
    selected_head: Head,
    axis: StepAxis,
) -> go.Figure:
    """Plot a pattern of every head over the steps: the chosen head bold, all other heads faint in their layer's colour.

    `rows` come from `select_pattern`, `base` from `baseline`. Only the chosen head is smoothed. Customdata: layer,
    head, step, value as text.
    """
    figure = go.Figure()
    for layer, colour in layer_colours(sorted(set(rows["layer"]))).items():
        layer_rows = rows[rows["layer"] == layer]
        others = layer_rows[(layer_rows["head"] != selected_head[1]) | (layer != selected_head[0])]
        _add_others(figure, others, pattern, axis, f"layer {layer}", colour)
    head_rows = rows[(rows["layer"] == selected_head[0]) & (rows["head"] == selected_head[1])]
    smoothing.add_curve(
        figure,
        axis.values(head_rows["step"]),
        head_rows,
        "value",
        f"layer {selected_head[0]}, head {selected_head[1]}",
        HEAD_COLOUR,
        line={"width": 3.5},
        marker={"size": 7},
        customdata=_describe_points(head_rows, pattern),
        hovertemplate=_hover_template(axis),
    )
    _mark_appearance(figure, head_rows, change, base, axis)
    axis.draw(figure, sorted(set(rows["step"])))
    spec = PATTERNS[pattern]
    figure.update_yaxes(tickformat=spec.tickformat, rangemode="normal" if spec.falls else "tozero")
    return style.finish(figure, spec.y_title, height=420)


def _add_others(figure: go.Figure, rows: pd.DataFrame, pattern: str, axis: StepAxis, name: str, colour: str) -> None:
    """Add the faint curves of several heads as one trace, with gaps between them and at the gaps of the run."""
    x: list[float | None] = []
    y: list[float | None] = []
    customdata: list[list[Any]] = []
    for _, curve in rows.groupby(["layer", "head"]):
        positions, points = axis.values(curve["step"]), _describe_points(curve, pattern)
        ends = [*cuts_at(curve["step"].tolist(), axis.gaps), len(curve)]
        for start, end in zip([0, *ends], ends):
            x += [*positions[start:end], None]
            y += [*curve["value"].iloc[start:end], None]
            customdata += [*points[start:end], []]
    line = {"color": colour, "width": 1}
    trace_settings = {"mode": "lines", "name": name, "line": line, "opacity": 0.7}
    figure.add_scatter(x=x, y=y, customdata=customdata, hovertemplate=_hover_template(axis), **trace_settings)


def _hover_template(axis: StepAxis) -> str:
    head_text = "layer %{customdata[0]}, head %{customdata[1]}, "
    return f"{head_text}{axis.hover_step('customdata[2]')}: " + "%{customdata[3]}<extra></extra>"


def _describe_points(rows: pd.DataFrame, pattern: str) -> list[list[Any]]:
    """Return layer, head, step and value of each row, the value as text."""
    points = rows[["layer", "head", "step", "value"]].itertuples(index=False)
    return [[layer, head, step, PATTERNS[pattern].write(value)] for layer, head, step, value in points]


def _mark_appearance(
    figure: go.Figure, head_rows: pd.DataFrame, change: float | None, base: tuple[float, int] | None, axis: StepAxis
) -> None:
    """Draw the level at which the pattern counts as present, and the step at which it appears in the chosen head."""
    threshold = level(change, head_rows["value"].iloc[0], base)
    first = axis.step_in_unit(int(head_rows["step"].iloc[0]))
    name = f"best fixed offset ({base[1]:+d})" if change is None and base else f"{first} {change:+g}"
    figure.add_hline(y=threshold, line=style.DASHED, annotation_text=name, annotation_position="top left")
    onset_step = appearance(head_rows, change, base)
    if onset_step is not None:
        value = head_rows.loc[head_rows["step"] == onset_step, "value"]
        marker = {"color": HEAD_COLOUR, "size": 16, "symbol": "star", "line": {"color": "white", "width": 1}}
        text = f"present since {axis.step_in_unit(int(onset_step))}"
        figure.add_scatter(
            x=axis.values([onset_step]), y=value, name=text, mode="markers", marker=marker, hovertemplate=text
        )
