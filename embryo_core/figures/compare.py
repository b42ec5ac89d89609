"""Figures of the Compare page: designs of runs side by side, and what each choice of design changed."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from embryo_core import comparison
from embryo_core.comparison import MASKED_ACCURACY, MASKED_PIECES, PAIRS_PREFIX, PAPER, WORLD_KNOWLEDGE
from embryo_core.errors import FigureError
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.curves import designs
from embryo_core.figures.figure import Caption, Figure, describe_seeds, make_figure, sentences
from embryo_core.figures.rows import plot_rows
from embryo_core.types import Run, StepUnit
from embryo_core.words import count_range, name_step, percent

POINTS_PER_UNIT = 100  # percentage points per unit of difference
UNKNOWN = "–"
MIN_REACH = 1  # percentage points: smallest reach of the axis of differences on both sides of 0
AGREEMENT = Caption(
    "Spearman's rho of two orders of acquisition, from −1 (reversed) to 1 (the same), with its 95 % interval over the "
    "n categories that both have acquired; – if it cannot be computed.",
    "Ties share their mean rank. Where two orders are equal, the interval has no width. The paper's order has all "
    "function words first, then verb, adverb, adjective, noun, proper noun. A run of which more than half of the "
    "categories were acquired between the same two evaluated steps is not compared: the steps decide its order.",
)


def headline(agreements: pd.DataFrame, run: str, measure: str = "mask prediction") -> str:
    """Return a sentence on how far a `run`'s order of acquisition agrees with another run's, or else with the paper's.

    It is about other runs if the order of `run` is unknown, and "" if no orders can be compared. `agreements` come from
    `comparison.agreements`.
    """
    comparable = agreements.dropna(subset="rho")
    with_run = comparable[comparable["first"] == run]
    rows = comparable if with_run.empty else with_run
    with_runs = rows[rows["second"] != PAPER]
    rows = rows if with_runs.empty else with_runs
    if rows.empty:
        return ""
    row = rows.loc[rows["rho"].abs().idxmax()]
    orders = (
        "similar orders" if row["low"] > 0 else "opposite orders" if row["high"] < 0 else "orders that need not agree"
    )
    return (
        f"{row['first']} and {row['second']} learn parts of speech in {orders}: rank correlation {row['rho']:.2f} "
        f"(95 % interval {row['low']:.2f} to {row['high']:.2f}, n = {row['n']}, {measure})."
    )


# === Designs ===


def design_table(rows: pd.DataFrame, seeds: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return `comparison.designs` as text: differs ("≠" or ""), row, and a column for each design.

    `seeds` has the names of each design's runs. If their values differ, numbers become a mean with its range, and texts
    a list. Rows in which the designs differ come first.
    """
    columns = {
        name: [_describe_seeds(row, rows.loc[i, list(runs)].tolist()) for i, row in rows["row"].items()]
        for name, runs in seeds.items()
    }
    table = rows[["row"]].assign(**columns)
    values = [[frozenset(rows.loc[i, list(runs)]) for runs in seeds.values()] for i in rows.index]
    marks = ["≠" if len(set(values_of_row)) > 1 else "" for values_of_row in values]
    table.insert(0, "differs", marks)
    return table.sort_values("differs", ascending=False, kind="stable", ignore_index=True)


def describe_designs(several: bool) -> Caption:
    """Return the caption of a `design_table`; for `several` runs it explains the marks of differing rows."""
    parameters = "Parameters are those of the last checkpoint that has weights; what layers share counts once."
    summary, *rest = ["≠ marks rows in which the runs differ.", parameters] if several else [parameters]
    return Caption(
        summary,
        sentences(
            *rest,
            "Tokens per second is the median of the log; machines may differ. FLOPs are counted from the configuration "
            "(docs/metrics.md). Seeds of one design are one column; numbers in which they differ are a mean with its "
            "range. Dates are in UTC, from the log; those marked “(file)” are the dates of the files, which a copy "
            "changes.",
        ),
    )


def _describe_seeds(row: str, values: Sequence[str | float | None]) -> str:
    """Return the known values of one row in all runs of a design: one value, a list, or a mean with its range."""
    known = [value for value in values if value is not None]
    if row == "seed":
        return ", ".join(map(str, known)) or UNKNOWN  # 12345, not 12,345
    distinct: list[str | float | None] = [*dict.fromkeys(known)] or [None]
    numbers = [value for value in known if isinstance(value, int | float)]
    if len(distinct) == 1 or len(numbers) < len(known):
        return ", ".join(map(_format, distinct))
    return f"{_format(sum(numbers) / len(numbers))} ({_format(min(numbers))} to {_format(max(numbers))})"


def _format(value: str | float | None) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return value
    is_whole = float(value).is_integer()
    return f"{round(value):,}" if 1e12 > value >= 1000 or (is_whole and value < 1e12) else f"{value:.3g}"


# === What a choice changed ===


def changed_choices(runs: Sequence[Run]) -> dict[tuple[str, ...], list[str]]:
    """Group the names of designs by the choices in which they differ from the first run's design.

    Groups with the fewest choices come first.
    """
    _, *others = designs(runs).items()
    changes: dict[tuple[str, ...], list[str]] = {}
    for name, seeds in others:
        if choices := tuple(comparison.differing_choices(runs[0], seeds[0])):
            changes.setdefault(choices, []).append(name)
    return {choices: changes[choices] for choices in sorted(changes, key=len)}


def title_of(choices: Sequence[str]) -> str:
    """Return the heading of a comparison of runs that differ in these choices."""
    return f"What the {choices[0]} changed" if len(choices) == 1 else f"What changed: {', '.join(choices)}"


def differences(runs: Sequence[Run], axis: AxisChoice, choices: Sequence[str]) -> Figure:
    """Return the figure of the accuracies of designs that differ in these choices, minus those of the first run.

    Accuracies of a design are means over its seeds. Raises FigureError if no measure has a common step.
    """
    seeds = designs(runs)
    first_name, first_seeds = next(iter(seeds.items()))
    names = changed_choices(runs)[tuple(choices)]
    compared_runs = [*first_seeds, *(run for name in names for run in seeds[name])]
    run_names = {name: [run.name for run in seeds[name]] for name in (first_name, *names)}
    rows = design_table(comparison.designs(compared_runs), run_names).set_index("row")
    changes = {
        name: "; ".join(f"{row}: {rows[first_name][row]} → {rows[name][row]}" for row in choices) for name in names
    }
    tables = [comparison.differences(first_seeds, seeds[name]).assign(run=name, change=changes[name]) for name in names]
    table = pd.concat(tables, ignore_index=True).assign(minus=first_name)
    if table["difference"].isna().all():
        raise FigureError("These runs share no measure at any step.")
    replacements = {name: replacement for name in run_names if (replacement := rows[name][MASKED_PIECES]) != UNKNOWN}
    return make_figure(
        compared_runs,
        "-".join([runs[0].name, *choices]).replace(" ", "-"),
        f"{title_of(choices)} (accuracy minus that of {first_name})",
        plot_differences(table, {name: seeds[name][0].step_unit for name in names}),
        table,
        describe_differences(choices, first_name, table, {name: len(seeds[name]) for name in run_names}, replacements),
    )


def describe_differences(
    choices: Sequence[str], first: str, table: pd.DataFrame, seeds: Mapping[str, int], replacements: Mapping[str, str]
) -> Caption:
    """Return the caption of a comparison with the design `first`: steps, n, changes, and caveats of the measures.

    `seeds` has the number of seeds of each design. `replacements` has the replacements of masked pieces in each design.
    """
    changes = " ".join(f"{run}, {change}." for run, change in dict(table[["run", "change"]].values).items())
    missing_measures = [f"{row.measure} ({row.run})" for row in table[table["difference"].isna()].itertuples()]
    rows = table.dropna(subset="difference")
    rows = rows[(rows["seeds_first"] < seeds[first]) | (rows["seeds_second"] < rows["run"].map(seeds))]
    fewer_seeds = [f"{row.measure} ({row.seeds_first:.0f} and {row.seeds_second:.0f})" for row in rows.itertuples()]
    steps = table["step_second"].dropna().astype(int)
    step_text = count_range(steps) if steps.nunique() == 1 else f"{count_range(steps)}, by measure"
    measures, masking = set(table["measure"]), "; ".join(f"{run} {text}" for run, text in replacements.items())
    differs = len(set(replacements.values())) > 1 and MASKED_ACCURACY in measures
    counts = ", ".join(f"{name}: {count}" for name, count in seeds.items() if count > 1)
    mean = f"means ({counts}), with the multi-bootstrap of seeds and cases (Sellam et al., 2022)"
    has_fixed_cases = any(measure == WORLD_KNOWLEDGE or measure.startswith(PAIRS_PREFIX) for measure in measures)
    resampled = ", resampled jointly" if max(seeds.values()) > 1 else ""
    is_continued = not table["step_first"].equals(table["step_second"])
    remarks = {
        "All of these changed at once, and the figure cannot distinguish their effects.": len(choices) > 1,
        "A run that continues the other: its last step minus the step where it began.": is_continued,
        f"What changed: {changes} Line: 95 % interval, of two single runs Newcombe's.": True,
        f"Measured with fewer seeds (numbers in brackets): {', '.join(fewer_seeds)}.": bool(fewer_seeds),
        describe_seeds([*seeds.values()], mean): True,
        f"World knowledge and minimal pairs: items that all runs answered{resampled}.": has_fixed_cases,
        "Masked accuracy counts pieces, and the tokenizers split words differently.": "tokenizer" in choices,
        f"Each run's masked accuracy is measured with its own masking: {masking}. The model sees the pieces that "
        "masking leaves unchanged.": differs,
        "Probing tasks: the layer with the best F1 at that step.": True,
        f"Not measured on the same data at a common step: {', '.join(missing_measures)}.": bool(missing_measures),
    }
    cases = pd.concat([table["n_first"], table["n_second"]])
    return Caption(
        f"Accuracy of each run minus that of {first}, at the last step that all have ({step_text}).",
        sentences(*(part for part, applies in remarks.items() if applies)),
        f"n = {count_range(cases)} cases.",
    )


def plot_differences(table: pd.DataFrame, units: Mapping[str, StepUnit]) -> go.Figure:
    """Plot an interval for each row and run of `comparison.differences`; `units` has the unit of each run's steps."""
    measured_rows = table.dropna(subset="difference")
    rows = measured_rows.assign(**POINTS_PER_UNIT * measured_rows[["difference", "low", "high"]].astype(float))
    texts = [_describe_difference(row, name_step(int(row.step_second), units[row.run])) for row in rows.itertuples()]
    rows = rows.assign(text=texts).rename(columns={"measure": "row", "difference": "value"})
    figure = plot_rows(rows, "difference, percentage points")
    style.set_axes(figure, "x", tickformat=".3~g")
    if rows[["low", "high"]].abs().to_numpy().max() < MIN_REACH:  # Plotly's default would be -1 to 1
        style.set_axes(figure, "x", range=[-MIN_REACH, MIN_REACH])
    return figure


def _describe_difference(row: Any, step_name: str) -> str:
    values = (
        f"{percent(accuracy)} (n = {int(n):,})"
        for accuracy, n in ((row.first, row.n_first), (row.second, row.n_second))
    )
    interval = f"{row.difference:+.1f} points ({row.low:+.1f} to {row.high:+.1f})"
    return f"<b>{row.measure}</b>, {step_name}: {interval}<br>{', then '.join(values)}"
