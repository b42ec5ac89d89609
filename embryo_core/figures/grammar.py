"""Grammar over pretraining: accuracy on minimal pairs, with a panel for each paradigm in the order of their rise."""

from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd

from embryo_core import comparison, curves, results
from embryo_core.comparison import CHANCE
from embryo_core.curves.agreement import MIN_ITEMS
from embryo_core.curves.turns import Turns, falls_after_rise, find_turns
from embryo_core.engine.capabilities import run_capabilities
from embryo_core.errors import FigureError
from embryo_core.figures import style
from embryo_core.figures.acquisition import acquisition
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.curves import Curves, curves_figure, with_intervals
from embryo_core.figures.figure import Caption, Figure, data_note, sentences
from embryo_core.metrics.minimal_pairs import PLAIN, WORD_L2R
from embryo_core.types import Run
from embryo_core.words import count_range, name_step, percent, quantity

METRIC = "minimal_pairs"
LEVELS = {"paradigms": 2, "phenomena": 1}  # level -> slashes in the names of its groups, "set/phenomenon/paradigm"
MAX_PANELS = 24  # most paradigms with a panel when the page opens; more would push the rest out of view
TITLE_WIDTH = 34  # characters of a line above a panel
COLOURS = {"": style.SKY, "flat": style.GREY, "rises": style.BLUE, "falls": style.PURPLE}
COLOUR_NAMES = (
    "blue: rises; orange: falls and rises again; red: rises and falls again; purple: falls; grey: no significant change"
)
SUM_NOTE = "A sentence's score is the sum of the log probabilities of its pieces, never divided by its length; each is"
METHODS = {  # method -> how it scores a sentence
    WORD_L2R: f"{SUM_NOTE} masked together with the pieces of its word after it (PLL-word-l2r).",
    PLAIN: f"{SUM_NOTE} masked alone (plain PLL).",
    "from the left": f"{SUM_NOTE} predicted from those before it.",
}
SHAPES_CAPTION = Caption(
    "Sorted by the first step from which the accuracy stays halfway between chance and its last value.",
    "Those that end at chance or below come last. A rise or fall counts if the lowest and the highest of its steps "
    "differ significantly on the same pairs: McNemar's test, 95 % for all comparisons of two steps together. “Chance” "
    "says whether the 95 % interval of the last accuracy is above or below one half, or contains it.",
    hint="Click a row for its pairs.",
)


def group_label(group: str) -> str:
    """Return the name of a paradigm or phenomenon without its set and underscores, or the name of a set."""
    return group.rpartition("/")[2].replace("_", " ")


# === Tables ===


def pair_sets(run: Run) -> list[str]:
    """Return the sets of pairs on which a run was evaluated. Raises ResultsError."""
    groups = results.read_scores(run, METRIC)["group"].unique()
    return sorted(group for group in groups if "/" not in group)


def levels(shapes: pd.DataFrame) -> list[str]:
    """Return the levels of a set with these `shapes`; the page opens on the first one."""
    return sorted(LEVELS, reverse=len(shapes) <= MAX_PANELS, key=lambda level: LEVELS[level])


def accuracy_table(run: Run, pair_set: str, level: str = "paradigms") -> pd.DataFrame:
    """Return the accuracies of a set as a whole and of its paradigms or phenomena. Raises ResultsError.

    Columns: group, step, value, n, low, high (Wilson's 95 % interval), chance, ties (pairs).
    """
    table = _select_set(results.read_scores(run, METRIC), pair_set, LEVELS[level])
    ties = _select_set(results.read_scores(run, f"{METRIC}_ties"), pair_set, LEVELS[level])
    tie_rates = table[["group", "step"]].merge(ties, "left", ["group", "step"])["value"].fillna(0.0)
    tie_counts = (tie_rates.to_numpy() * table["n"].to_numpy()).round().astype(int)
    return with_intervals(table).assign(chance=CHANCE, ties=tie_counts)


def _select_set(scores: pd.DataFrame, pair_set: str, slashes: int) -> pd.DataFrame:
    """Return the rows of a set and of its groups at a level, whose names have this number of `slashes`."""
    groups = scores["group"].astype(str)
    is_of_set = (groups == pair_set) | (groups.str.startswith(f"{pair_set}/") & (groups.str.count("/") == slashes))
    return scores.loc[is_of_set, ["group", "step", "value", "n"]].sort_values(["group", "step"], ignore_index=True)


def paradigm_shapes(run: Run, pair_set: str) -> pd.DataFrame:
    """Return a row for each paradigm of a set on how its accuracy develops, in the order of their rise.

    Columns: group, paradigm, phenomenon, onset, earliest, latest (`curves.onset` from chance), first, lowest, highest,
    last, end (whether the last value is significantly "above" or "below" chance, or "at" it), shape (see
    `turns.find_turns`), turns (the steps where it turns), fallen (whether it falls after a rise), n, ties (at the last
    step). Rows without an onset come last, sorted by their last value. Raises ResultsError.
    """
    table = accuracy_table(run, pair_set)
    rows = [
        _describe_shape(run, str(group), scores) for group, scores in table[table["group"] != pair_set].groupby("group")
    ]
    shapes = pd.DataFrame(rows).astype(dict.fromkeys(("onset", "earliest", "latest"), "Int64"))
    return shapes.sort_values(["onset", "last"], ascending=[True, False], na_position="last", ignore_index=True)


def _describe_shape(run: Run, group: str, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the row of one paradigm; `rows` has its accuracies."""
    _, phenomenon, paradigm = group.split("/")
    steps, values, last = rows["step"].to_numpy(), rows["value"].to_numpy(), rows.iloc[-1]
    onset = curves.onset(steps, values, rows["n"], floor=CHANCE)
    pairs = results.read_pair_scores(run, group)
    difference = (pairs["good"] - pairs["bad"]).to_numpy()
    right_answers = (
        pd.Series(np.where(difference == 0, 0.5, difference > 0)).groupby([pairs["pair"], pairs["step"]]).first()
    )
    right_table = right_answers.unstack().dropna()  # a row for each pair, a column for each step; a tie is half right
    turns = find_turns(right_table.to_numpy(float)) if len(right_table.columns) > 1 else Turns(())
    return {
        "group": group,
        "paradigm": paradigm.replace("_", " "),
        "phenomenon": phenomenon.replace("_", " "),
        "onset": onset.step if onset else None,
        "earliest": onset.earliest if onset else None,
        "latest": onset.latest if onset else None,
        "first": values[0],
        "lowest": values.min(),
        "highest": values.max(),
        "last": values[-1],
        "end": "above" if last["low"] > CHANCE else "below" if last["high"] < CHANCE else "at",
        "shape": turns.shape,
        "turns": [int(right_table.columns[i]) for i in turns.points],
        "fallen": falls_after_rise(turns),
        "n": int(last["n"]),
        "ties": int(last["ties"]),
    }


def name_turns(table: pd.DataFrame, axis: StepAxis) -> list[str]:
    """Return the turns of `paradigm_shapes` as text, in the unit of the axis."""
    return [", ".join(map(axis.number_without_unit, steps)) for steps in table["turns"]]


# === Figures ===

CURVES = Curves(
    by="group",
    y_title="accuracy",
    metric=METRIC,
    baseline="chance",
    baseline_name="chance",
    unit="pairs",
    panels_per_row=4,
    width=1280,
)


def accuracy(runs: Sequence[Run], axis: AxisChoice, pair_set: str, level: str = "paradigms") -> Figure:
    """Return the figure of a set and its paradigms or phenomena, a panel each, in the order of their rise."""
    run = runs[0]
    shapes = paradigm_shapes(run, pair_set)
    if shapes.empty:
        raise FigureError(f"Run '{run.name}' was not evaluated on the set '{pair_set}'.")
    rows = shapes.set_index("group")
    order = [pair_set, *(rows.index if level == "paradigms" else _phenomena(run, pair_set))]

    def title(group: str) -> str:
        if group == pair_set:
            return f"{pair_set}, all pairs"
        lines = wrap(group_label(group), TITLE_WIDTH)
        return "\n".join([*lines, rows["shape"][group]] if group in rows.index else lines)

    def colour(group: str) -> str:
        shape = rows["shape"].get(group, "")  # a phenomenon has no shape; the last of several moves counts
        return COLOURS.get(shape, style.ORANGE if shape.endswith("rises") else style.VERMILION)

    def styles(groups: Sequence[str]) -> dict[str, tuple[str, str]]:
        return {name: (colour(name), "circle") for name in order if name in groups}

    figure = curves_figure(
        runs,
        axis,
        lambda line_run: accuracy_table(line_run, pair_set, level),
        replace(CURVES, label=title, styles=styles),
        f"grammar-{pair_set}-{level}",
        f"Accuracy on minimal pairs: {pair_set}",
        lambda table: describe_accuracy(run, table, level, coloured=len(runs) == 1),
    )
    style.set_axes(figure.plot, "y", range=[-0.03, 1.03], tickvals=[0, CHANCE, 1])
    return figure


def _phenomena(run: Run, pair_set: str) -> list[str]:
    """Return the phenomena of a set in the order in which their accuracies rise."""
    table = accuracy_table(run, pair_set, "phenomena")
    groups = tuple(group for group in table["group"].unique() if group != pair_set)
    order = comparison.acquisition(table.rename(columns={"value": "accuracy"}), "chance")
    return [group for group in order["group"] if group in groups]


def describe_accuracy(run: Run, table: pd.DataFrame, level: str, coloured: bool) -> Caption:
    """Return the caption: the accuracy, the order of panels, their colours if `coloured` by shape, and the ties."""
    set_rows = table[~table["group"].str.contains("/")]
    ties, step = int(set_rows["ties"].max()), int(set_rows.loc[set_rows["ties"].idxmax(), "step"])
    method = "from the left"
    if "masked_words" in run_capabilities(run):
        method = str(results.read_sources(run).get(METRIC, {}).get("pll", WORD_L2R))
    ties_note = (
        f", at most {ties:,} of {set_rows['n'].max():,} pairs, at {name_step(step, run.step_unit)}"
        if ties
        else "; none"
    )
    return Caption(
        "Accuracy: the proportion of minimal pairs whose good sentence has the higher score.",
        sentences(
            METHODS[method],
            f"Ties count half{ties_note}. Bands: 95 % intervals (Wilson). Dashed: chance, one half.",
            "Sorted by the first step from which the accuracy stays halfway between chance and its last value; those "
            "that end at chance or below come last.",
            f"Colours: {COLOUR_NAMES} (95 % for all pairs of steps together, on the same pairs of sentences)."
            if level == "paradigms" and coloured
            else "",
        ),
        f"Pairs: {data_note(run, METRIC, 'minimal pairs')}; n = {count_range(table['n'])} for a curve.",
        "Click a point for its pairs.",
    )


def order_of_rise(runs: Sequence[Run], axis: AxisChoice, pair_set: str) -> Figure:
    """Return the figure of when each paradigm of a set rises from chance, in each run."""
    groups = [group for group in accuracy_table(runs[0], pair_set)["group"].unique() if group != pair_set]
    name = f"{runs[0].name}-grammar-{pair_set}"
    return acquisition(runs, axis, METRIC, groups, "chance", name, group_label, "pairs")


# === Words of the page ===


def headline(pair_set: str, table: pd.DataFrame, accuracies: pd.DataFrame, axis: StepAxis) -> str:
    """Return a sentence on a set's accuracy and how many paradigms end above or below chance, or fall after a rise."""
    end_row = accuracies[accuracies["group"] == pair_set].sort_values("step").iloc[-1]
    above, below = (int((table["end"] == end).sum()) for end in ("above", "below"))
    fall_count = int(table["fallen"].sum())
    falls = "none falls" if not fall_count else f"{fall_count} fall" if fall_count > 1 else "1 falls"
    end, accuracy = axis.step_in_unit(int(end_row["step"])), percent(end_row["value"])
    return (
        f"At {end} the model prefers the good sentence in {accuracy} of {quantity(int(end_row['n']), 'pair')} of "
        f"{pair_set}: {above} of {quantity(len(table), 'paradigm')} are above chance, {below} below it, "
        f"and {falls} after a rise."
    )


def describe_agreement(runs: Sequence[Run], pair_set: str) -> list[str]:
    """Return a sentence for every two runs (seeds included) on how far their orders of a set's paradigms agree."""
    groups = {group for run in runs for group in accuracy_table(run, pair_set)["group"] if group != pair_set}
    agreements = comparison.agreements(comparison.acquisitions(runs, METRIC, sorted(groups), "chance"))
    lines = []
    for row in agreements[agreements["second"] != comparison.PAPER].itertuples():
        subject = f"The orders of {row.first} and {row.second}"
        if pd.isna(row.rho):
            few_note = f"only {quantity(row.n, 'paradigm')} rise from chance in both"
            reason = (
                few_note if row.n < MIN_ITEMS else "more than half of a run's rise between the same two evaluated steps"
            )
            lines.append(f"{subject} cannot be compared: {reason}.")
            continue
        rho = f"{row.rho:.2f} (95 %: {row.low:.2f} to {row.high:.2f})"
        lines.append(
            f"{subject} agree with Spearman's rho = {rho} over {quantity(row.n, 'paradigm')} that rise in both."
        )
    return lines
