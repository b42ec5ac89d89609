"""Figures of the Query page: probability and rank of the answers to a text over the steps of pretraining."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log10
from typing import Any

import numpy as np
import pandas as pd

from embryo_core import query
from embryo_core.figures import smoothing, style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.draft import Draft
from embryo_core.figures.figure import Caption, Figure, describe_networks, make_figure, sentences
from embryo_core.figures.smoothing import with_smoothed
from embryo_core.query import TOGETHER, Answers, Lead
from embryo_core.types import Run
from embryo_core.words import quantity

TRACKED, TRUE_OBJECT = "tracked", "true object"  # roles of a marked word
MARKED = {TRUE_OBJECT: (style.ORANGE, "dash"), TRACKED: (style.PINK, "dot")}  # role -> colour and dash of the line
# colours of the first six answers; the rest is grey
ANSWER_COLOURS = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.SKY, style.OLIVE)
OTHERS = "other answers"  # name of the grey curves in the legend
OTHERS_ENTRY = {  # legend entry of the grey curves
    "name": OTHERS,
    "legendgroup": OTHERS,
    "x": [None],
    "y": [None],
    "mode": "lines+markers",
    "line": {"color": style.GREY, "width": 1},
    "marker": {"size": 5},
}
SMALL_RANKS = (1, 2, 3, 4, 5, 7, 10, 15, 20)  # ticks of a rank axis that ends at 20 or earlier
MIN_PROBABILITY = 1e-30  # lower end of a log axis
COLUMNS = ("token", "role", "step", "probability", "rank", "exact", "leads", "final")
NEEDS = frozenset({"masked_words"})  # capability of the network that answers
AT_LEAST_NOTE = f"≥: at least this rank, since a beam of {query.BEAM_WIDTH} can miss a more probable answer."
JOINTLY = Caption(
    "Several masks are answered jointly, from left to right.",
    "The probability of an answer is the product of the probabilities of its words. Each is read with the words before "
    f"it filled in and the later masks still in place (beam of {query.BEAM_WIDTH}). The list for one mask shows "
    "only that mask's factor, given the best answer to the masks before it. " + AT_LEAST_NOTE,
)


# === Questions ===


@dataclass(frozen=True)
class Subject:
    """The question that a figure answers about a text, and its number on the page.

    It asks for the word at one `mask`, for the words at all masks (TOGETHER), or for the continuation of the text.
    """

    text: str
    mask: int
    masks: int
    number: int = 1
    continues: bool = False  # whether the text is continued, instead of filling its masks

    @property
    def which(self) -> str:
        """Return the part of titles and captions that names the answered mask; "" for a text with one mask."""
        if self.masks == 1:
            return ""
        return " (all masks together)" if self.mask == TOGETHER else f" ([MASK] {self.mask} of {self.masks})"

    def name(self, run: Run, kind: str) -> str:
        """Return the name of a figure's files."""
        name = f"{run.name}-query-{kind}"
        if self.masks > 1:
            name += "-together" if self.mask == TOGETHER else f"-mask{self.mask}"
        return name + (f"-{self.number}" if self.number > 1 else "")

    def label(self, table: pd.DataFrame) -> pd.DataFrame:
        """Add the text and the mask to each row of a table."""
        mask = "after the text" if self.continues else "all together" if self.mask == TOGETHER else self.mask
        return table.assign(text=self.text, mask=mask)


def curve_table(answers: Answers, mask: int, words: Mapping[str, Answers]) -> pd.DataFrame:
    """Return a row for each answer and step: token, role, step, probability, rank, exact, leads, final.

    `words` are the answers for marked words, by role (TRACKED, TRUE_OBJECT); `role` is "" for other answers. A rank
    that is not `exact` is a lower bound. `final` marks the answer that leads at the last step. A marked word at a later
    mask has its own rows beside those of the same answer, which are given the best answers to the masks before.
    """
    tracked = {role: word_answers.question.tracked for role, word_answers in words.items()}
    roles = {word.token: role for role, word in tracked.items() if len(word.pieces) == 1 and mask == 1}
    history = answers.history(mask)
    role = history["token"].map(roles).fillna("") if roles else ""
    tables = [history.assign(role=role, final=history["token"] == answers.lead(mask).token)]
    listed_tokens = set(history["token"])
    for name, word_answers in words.items():
        token = tracked[name].token
        if token not in roles or token not in listed_tokens:
            tables.append(word_answers.table.assign(role=name, final=False))
    return pd.concat([table[[*COLUMNS]] for table in tables], ignore_index=True)


def continuation_table(answers: Answers) -> pd.DataFrame:
    """Return the greedy continuation at each step: step, probability, continuation."""
    rows = answers.history(TOGETHER).rename(columns={"token": "continuation"})
    return rows[["step", "probability", "continuation"]].reset_index(drop=True)


# === Axes that figures share ===


@dataclass(frozen=True)
class SharedAxes:
    """The axes and colours that the figures of several questions share."""

    steps: tuple[int, ...]
    ends: tuple[float, float]  # of the axis of steps, in its unit
    zero: float  # the place of 0 on a log axis of steps
    log_probability: bool
    probabilities: tuple[float, float]  # smallest and largest
    worst_rank: int
    colours: Mapping[str, str]  # answer -> colour; the rest is grey


def share_axes(tables: Sequence[pd.DataFrame], axes: Sequence[StepAxis], log_probability: bool) -> SharedAxes:
    """Return axes that cover all of these tables (see `curve_table`); `axes` are the step axes of their runs."""
    all_rows = pd.concat(tables)
    steps = tuple(sorted(set(all_rows["step"])))
    ranges = [(table["step"].min(), table["step"].max()) for table in tables]
    counts = [count for step_range, axis in zip(ranges, axes, strict=True) for count in axis.counts(step_range)]
    probability_range = all_rows["probability"].min(), all_rows["probability"].max()
    worst_rank = max(int(all_rows["rank"].max()), 3)
    zero = min(axis.zero for axis in axes)
    return SharedAxes(
        steps,
        (min(counts), max(counts)),
        zero,
        log_probability,
        probability_range,
        worst_rank,
        _assign_colours(all_rows),
    )


def _assign_colours(rows: pd.DataFrame) -> dict[str, str]:
    """Assign ANSWER_COLOURS to answers without a role: the final ones first, then the most probable ones."""
    best_scores: dict[str, tuple[bool, float]] = {}
    for token, role, *score in zip(*(rows[name].tolist() for name in ("token", "role", "final", "probability"))):
        if role == "":
            best_scores[token] = tuple(map(max, score, best_scores.get(token, score)))
    return dict(zip(sorted(sorted(best_scores), key=lambda token: best_scores[token], reverse=True), ANSWER_COLOURS))


# === Figures ===


def answer_curves(
    runs: Sequence[Run],
    axis: AxisChoice,
    subject: Subject,
    table: pd.DataFrame,
    lead: Lead,
    shared: SharedAxes,
    column: str,
) -> Figure:
    """Return the figure of the "probability" or "rank" (1 at the top) of each answer; `table` is a `curve_table`.

    If there are several steps, stars mark the step at which the final answer first led, and the step from which it led
    to the end. A point whose rank is not exact is hollow.
    """
    (run,) = runs
    table = with_smoothed(table, column, axis.smoothing, ["token", "role"])
    count = quantity(table["step"].nunique(), "checkpoint")
    if column == "rank":
        joint_answers = f"all joint answers (hollow points, {AT_LEAST_NOTE})"
        competitors = joint_answers if subject.mask == TOGETHER else "all pieces of the vocabulary"
        plot, selection_note = plot_rank(table, lead, shared, axis.for_run(run)), ""
        summary = f"Rank among {competitors} at {count}{subject.which}; 1 is the top answer."
    else:
        plot = plot_probability(table, lead, shared, axis.for_run(run))
        selection_note = "Lines: all answers that ever led, the five best at the last step, and the marked words."
        summary = f"Probability at {count} of run '{run.name}', one text{subject.which}."
    grey_note = "Grey: all but the first six; point at a line to read its answer."
    caption = Caption(summary, sentences(selection_note, grey_note, describe_networks([run], NEEDS)))
    title = f"{column.capitalize()} of each answer: {subject.text}{subject.which}"
    return make_figure([run], subject.name(run, column), title, plot, subject.label(table), caption)


def plot_probability(table: pd.DataFrame, lead: Lead, shared: SharedAxes, axis: StepAxis) -> Draft:
    """Plot the column `probability` of a `curve_table`."""
    figure = _plot_curves(table, "probability", lead, shared, axis)
    lowest, highest = shared.probabilities
    if shared.log_probability:
        low, high = log10(max(lowest, MIN_PROBABILITY)), log10(highest)
        margin = 0.05 * (high - low or 1)
        return style.set_axes(figure, "y", type="log", exponentformat="power", range=[low - margin, high + margin])
    return style.set_axes(figure, "y", tickformat=".2~p", range=[-0.03 * highest, 1.06 * highest])


def plot_rank(table: pd.DataFrame, lead: Lead, shared: SharedAxes, axis: StepAxis) -> Draft:
    """Plot the column `rank` of a `curve_table`, on a log axis with 1 at the top."""
    figure, worst_rank = _plot_curves(table, "rank", lead, shared, axis), shared.worst_rank
    powers = [tick for power in range(7) for tick in (10**power, 3 * 10**power) if tick <= worst_rank]
    ticks = powers if worst_rank > SMALL_RANKS[-1] else [tick for tick in SMALL_RANKS if tick <= worst_rank]
    rank_range = [log10(worst_rank * 1.3), log10(0.8)]
    ticktext = [f"{tick:,}" for tick in ticks]
    return style.set_axes(figure, "y", type="log", range=rank_range, tickvals=ticks, ticktext=ticktext)


def _plot_curves(curves: pd.DataFrame, column: str, lead: Lead, shared: SharedAxes, axis: StepAxis) -> Draft:
    """Draw a column of a `curve_table` with a curve for each answer; all grey curves share a legend entry."""
    axis, traces = replace(axis, zero=shared.zero), []
    by_answer = curves.groupby(["token", "role"]).indices
    x, exact, is_final = np.array(axis.values(curves["step"])), curves["exact"].to_numpy(), curves["final"].to_numpy()
    names = [name for name in ("step", column, *smoothing.COLUMNS) if name in curves]
    hover, numbers = _hover_texts(curves), {name: curves[name].to_numpy() for name in names}
    for i, (token, role) in enumerate(_order_answers(curves, by_answer)):
        colour, dash = MARKED[role] if role else (shared.colours.get(token, style.GREY), "solid")
        rows = by_answer[token, role]
        answer_values, final = {name: values[rows] for name, values in numbers.items()}, is_final[rows[0]]
        filled_symbol = style.SYMBOLS[i % len(style.SYMBOLS)]
        symbols = [filled_symbol if is_exact else f"{filled_symbol}-open" for is_exact in exact[rows]]
        answer_traces = smoothing.curve(
            x[rows],
            answer_values,
            column,
            style.escape_text(f"{token} ({role})" if role else token),
            colour,
            showlegend=colour != style.GREY,
            line={"dash": dash, "width": 3 if final or role else 1.6 if colour != style.GREY else 1},
            marker={"size": 5, "symbol": symbols if len(set(symbols)) > 1 else symbols[0]},
            customdata=hover[rows],
            hovertemplate=f"%{{customdata[0]}}, {axis.name_step('%{customdata[1]}')}<br>"
            "probability %{customdata[2]}<br>rank %{customdata[3]}<extra></extra>",
        )
        traces += (
            [trace | {"legendgroup": OTHERS} for trace in answer_traces] if colour == style.GREY else answer_traces
        )
        if final and len(set(answer_values["step"])) > 1:  # one step does not show when the answer began to lead
            traces += _mark_leads(answer_values, column, lead, axis, colour)
    if any(trace.get("legendgroup") == OTHERS for trace in traces):
        traces.append(OTHERS_ENTRY)
    figure = Draft(traces)
    axis.set_ends(figure, *shared.ends, margin=0.03)
    axis.set_curves(figure)
    axis.mark_step(axis.mark_changes(figure, shared.steps), int(curves["step"].max()))
    style.finish(figure, column, height=400)
    figure.layout.legend["itemsizing"] = "constant"
    return figure


def _order_answers(curves: pd.DataFrame, by_answer: dict[tuple[str, str], np.ndarray]) -> list[tuple[str, str]]:
    """Return token and role of each answer: the final one, marked words, then the rest, most probable first."""
    final, probabilities = curves["final"].to_numpy(), curves["probability"].to_numpy()

    def sort_key(answer: tuple[str, str]) -> tuple[bool, bool, float]:
        rows = by_answer[answer]
        return not final[rows[0]], answer[1] == "", -probabilities[rows].max()

    return sorted(sorted(by_answer), key=sort_key)


def _mark_leads(
    final: Mapping[str, np.ndarray], column: str, lead: Lead, axis: StepAxis, colour: str
) -> list[dict[str, Any]]:
    """Return marks on the final answer's curve: where it first led, and from where it led to the end."""
    labels = {lead.first: ("star-open", "first leads")} if lead.first < lead.for_good else {}
    labels |= {lead.for_good: ("star", lead.says(int(final["step"].max())))}
    marks = []
    for step, (symbol, label) in labels.items():
        is_at_step = final["step"] == step
        preposition = "at" if symbol == "star-open" else "from"
        mark = {
            "x": axis.values(final["step"][is_at_step]),
            "y": final[column][is_at_step],
            "name": f"{label}: {axis.number(step)}",
            "mode": "markers",
            "marker": {"symbol": symbol, "size": 15, "color": colour, "line": {"width": 1.5, "color": colour}},
            "hovertemplate": f"{label} {preposition} {axis.step_in_unit(step)}<extra></extra>",
        }
        marks.append(mark)
    return marks


def _hover_texts(curves: pd.DataFrame) -> np.ndarray:
    """Return token, step, probability and rank of each point as text, [points, 4]."""
    columns = (curves[name].tolist() for name in ("token", "step", "probability", "rank", "exact"))
    points = [
        (style.escape_text(token), f"{step:,}", f"{100 * probability:.3g} %", query.spell_rank(*rank))
        for token, step, probability, *rank in zip(*columns, strict=True)
    ]
    return np.array(points, dtype=object)
