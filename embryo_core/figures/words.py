"""Words over pretraining: the surprisal of a word, and its age of acquisition."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from embryo_core.curves.ages import Sigmoids
from embryo_core.engine.capabilities import run_capabilities
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.curves import Curves, curves_figure
from embryo_core.figures.figure import Caption, Figure, data_note, sentences
from embryo_core.figures.word_tables import (
    EXPECTED_LINES,
    FIT_PARAMETERS,
    METRIC,
    acquired_table,
    age_table,
    counted_text,
    curve_table,
)
from embryo_core.groups import ALL
from embryo_core.types import Run
from embryo_core.words import quantity

BITS_CURVES = Curves(
    by="word",
    y_title="surprisal (bits)",
    metric=METRIC,
    value="surprisal",
    baseline="chance",
    baseline_name="chance",
    decimals=".2f",
    unit="occurrences",
)
MASKED_NOTE = "A piece is masked together with the pieces of its word after it, and predicted from both sides."
FROM_LEFT_NOTE = "A piece is predicted from those before it."
MIN_WORDS = 5  # least number of words of a category that a headline names


def category_styles(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return a colour and a symbol for each category, the same in every figure of the page."""
    looks = style.default_styles(sorted({*names} - {ALL})) | {ALL: (style.GREY, "circle")}
    return {name: looks[name] for name in names}


def describe_data(run: Run) -> str:
    """Return the sentence of a caption on the list of words."""
    return f"Words: {data_note(run, METRIC, 'a list of words')}."


def headline(table: pd.DataFrame, axis: StepAxis) -> str:
    """Return a sentence on how many words of an `age_table` are acquired, and the first and last category."""
    measured_words, words_with_age = table[table["n"].notna()], table.dropna(subset="age")
    if words_with_age.empty:
        return f"None of the {quantity(len(measured_words), 'word')} that were measured has an age yet."
    medians = words_with_age.groupby("category")["age"].agg(["median", "size"])
    medians = medians[medians["size"] >= MIN_WORDS]["median"].sort_values()
    median_step = axis.as_estimate.step_in_unit(round(words_with_age["age"].median()))
    order = f", {medians.index[0]} first and {medians.index[-1]} last" if len(medians) > 1 else ""
    return (
        f"The model acquires {len(words_with_age):,} of {quantity(len(measured_words), 'word')}, half of them by about "
        f"{median_step}{order}."
    )


def default_word(table: pd.DataFrame) -> str | None:
    """Return the default word: of the middle third by age, the one with the surest age; else the first measured."""
    words_with_age = table.dropna(subset="age")
    if words_with_age.empty:
        return min(table.loc[table["n"].notna(), "word"], default=None)
    middle = words_with_age.iloc[len(words_with_age) // 3 : max(len(words_with_age) * 2 // 3, 1)]
    widths = np.log(middle["latest"] / middle["earliest"].clip(lower=1))
    return str(middle["word"].iloc[widths.fillna(np.inf).argmin()])


def describe_words(table: pd.DataFrame, matches: pd.DataFrame) -> Caption:
    """Return the caption: how many words have an age, and how many the search found."""
    listed_note = f"{len(matches):,} of {quantity(len(table), 'word')} listed; " if len(matches) < len(table) else ""
    return Caption(
        f"{listed_note}{table['age'].notna().sum():,} of {quantity(len(table), 'word')} have an age.",
        "Sorted by age; words without one come last, with the reason. Without “from” or “to”, the interval goes beyond "
        "the steps. Surprisals in bits.",
        hint="Click a row for the word's curve.",
    )


def acquired(runs: Sequence[Run], axis: AxisChoice) -> Figure:
    """Return the figure of the proportion of words acquired by each step, by category."""
    run = runs[0]
    curves = Curves(by="group", y_title="words acquired", metric=METRIC, unit="words", styles=category_styles)

    def caption(table: pd.DataFrame) -> Caption:
        ages = age_table(run)
        missing_reasons = ages.loc[ages["age"].isna(), "why"].value_counts()
        reason_counts = ", ".join(f"{count} {reason}" for reason, count in missing_reasons.items())
        return Caption(
            "Proportion of the words acquired by each step: halfway from chance to their lowest surprisal.",
            sentences(
                "The age is where a sigmoid over log steps crosses the middle between chance (all pieces of the "
                "vocabulary equally probable) and the lowest surprisal (Chang and Bergen, 2022). Bands: 95 % (Wilson).",
                f"Without an age: {quantity(int(missing_reasons.sum()), 'word')} ({reason_counts})."
                if len(missing_reasons)
                else "",
            ),
            describe_data(run),
        )

    return curves_figure(runs, axis, acquired_table, curves, "words-acquired", "Words acquired", caption)


# === One word ===


def curve(runs: Sequence[Run], axis: AxisChoice, word: str) -> Figure:
    """Return the figure of a word's mean surprisal, with the first run's sigmoid, age and frequency."""
    run = runs[0]

    def caption(table: pd.DataFrame) -> Caption:
        row = _find_row(run, word)
        return Caption(
            f"“{word}” has no age: {row['why']}."
            if pd.isna(row["age"])
            else f"“{word}” is acquired at {describe_estimate(row, axis.for_run(run, runs))}.",
            sentences(
                "Surprisal: minus log2 of the probability of all pieces of the word.",
                MASKED_NOTE if "masked_words" in run_capabilities(run) else FROM_LEFT_NOTE,
                "Bands: 95 % intervals of the mean over the occurrences. Dashed: chance, all pieces equally probable.",
                "Dotted: the sigmoid from which the age is taken." if pd.notna(row["age"]) else "",
                *(
                    f"{dash.capitalize()} grey line: {row[name]:.1f} bits, {definition.format(text=counted_text(run))}."
                    for name, (_, definition, dash) in EXPECTED_LINES.items()
                    if pd.notna(row[name])
                ),
            ),
            describe_data(run),
        )

    name, title = f"word-{re.sub(r'[^a-zA-Z0-9]+', '-', word)}", f"Surprisal of “{word}”"
    figure = curves_figure(runs, axis, lambda line_run: curve_table(line_run, word), BITS_CURVES, name, title, caption)
    return _with_fit(figure, run, axis, word) if run.name in figure.runs else figure


def _find_row(run: Run, word: str) -> pd.Series:
    table = age_table(run)
    rows = table[table["word"] == word]
    return rows.iloc[0] if len(rows) else pd.Series(dict.fromkeys(table.columns))


def describe_estimate(row: Any, axis: StepAxis) -> str:
    """Return a row's age with its interval, in the unit of the axis; both are estimated between checkpoints."""
    return (
        f"about {axis.as_estimate.step_in_unit(round(row['age']))} (95 %: {_describe_interval(row, axis.as_estimate)})"
    )


def _describe_interval(row: Any, axis: StepAxis) -> str:
    low, high = row["earliest"], row["latest"]
    if np.isfinite([low, high]).all():
        return axis.between(round(low), round(high))
    if np.isfinite(low):
        return f"{axis.number(round(low))} or later"
    return f"{axis.number(round(high))} or earlier" if np.isfinite(high) else "any step"


def _with_fit(figure: Figure, run: Run, axis: AxisChoice, word: str) -> Figure:
    """Add the sigmoid, the age and the expected surprisals (EXPECTED_LINES) to a word's curve, in plot and table."""
    row, step_axis = _find_row(run, word), axis.for_run(run)
    steps = figure.first_table["step"].astype(int)
    table = figure.table.copy()
    trace_settings: dict[str, Any] = {"mode": "lines", "hoverinfo": "skip"}
    ends = step_axis.values([steps.min(), steps.max()])
    for name, (label, _, dash) in EXPECTED_LINES.items():
        if pd.notna(row[name]):
            line = {"color": style.GREY, "width": 1.5, "dash": dash.replace("dash-dotted", "dashdot")}
            figure.plot.add_scatter(x=ends, y=[row[name]] * 2, name=label, line=line, **trace_settings)
            table.loc[steps.index, name] = row[name]
    if pd.notna(row["age"]):
        age, later_steps = round(row["age"]), steps[steps > 0]
        sigmoid = Sigmoids(*(np.array([row[name]], float) for name in FIT_PARAMETERS))
        fit_values, value_at_age = sigmoid.at(later_steps.tolist())[0], float(sigmoid.at([age])[0, 0])
        line = {"color": style.VERMILION, "width": 2, "dash": "dot"}
        figure.plot.add_scatter(
            x=step_axis.values(later_steps.tolist()), y=fit_values, name="sigmoid", line=line, **trace_settings
        )
        figure.plot.add_scatter(
            x=step_axis.values([age]),
            y=[value_at_age],
            name="age",
            mode="markers",
            marker={"symbol": "star", "size": 14, "color": style.VERMILION},
            hovertemplate=f"age: {describe_estimate(row, step_axis)}<extra></extra>",
        )
        table.loc[later_steps.index, "sigmoid"] = fit_values
        age_row: dict[str, Any] = {"run": table["run"].iloc[0], "word": word, "step": age, "sigmoid": value_at_age}
        if axis.unit != "step":
            age_row[axis.unit] = step_axis.counts([age])[0]
        table = pd.concat([table, pd.DataFrame([age_row])], ignore_index=True)
    return replace(figure, table=table)
