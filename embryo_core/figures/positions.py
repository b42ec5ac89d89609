"""Positions: accuracy by length and position, size of position embeddings, similarity of the states of a sentence."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from embryo_core import results
from embryo_core import runs as run_files
from embryo_core.curves import difference_interval
from embryo_core.errors import EmbryoError
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.curves import Curves, curves_figure, with_intervals
from embryo_core.figures.figure import Caption, Figure, data_note, sentences
from embryo_core.figures.overview import baseline_name, most_frequent_piece
from embryo_core.types import Run
from embryo_core.words import layer_name, name_step, percent

METRIC = "positions"
DEVIATION, COSINE = "positions_deviation", "positions_cosine"
TITLES = {DEVIATION: "Position and word embeddings", COSINE: "Similarity of states within a sentence"}
Y_TITLES = {DEVIATION: "standard deviation", COSINE: "mean cosine"}
WORDS, POSITIONS = "words", "positions"
COLOURS = (style.VERMILION, style.ORANGE, style.GREEN, style.PURPLE, style.PINK, style.OLIVE)
SYMBOLS = ("square", "diamond", "triangle-up", "triangle-down", "cross", "x")
MAX_SAMPLES = 4  # largest number of samples to choose from
MASKINGS = {"training": "as in training"}  # way of masking -> label; by default its name


# === Accuracy by length and position ===


def measure_table(run: Run) -> pd.DataFrame:
    """Return held-out accuracy by length, masking and position (fields of `runs.PositionAccuracy`), or no rows."""
    try:
        return pd.DataFrame(run_files.read_measures(run), columns=run_files.PositionAccuracy._fields)
    except EmbryoError:
        return pd.DataFrame(columns=run_files.PositionAccuracy._fields)


def maskings(table: pd.DataFrame) -> list[str]:
    """Return the ways of masking in a `measure_table`; 15 % of single pieces, common to all runs, comes first."""
    names = list(dict.fromkeys(table["masking"]))
    return sorted(names, key=lambda masking: (not masking.startswith("single"), masking == "training"))


def samples(table: pd.DataFrame, masking: str) -> list[int]:
    """Return the samples of the text by their number of masked pieces in the shortest sequences, the largest first.

    Samples with less than a quarter of the steps of the most frequent sample come last: they show no development. Empty
    if there are too many to choose from, for example if each step has a new text.
    """
    rows = table[table["masking"] == masking]
    shortest = rows[rows["length"] == rows["length"].min()]
    steps = shortest.groupby("sample")["step"].nunique()
    if len(steps) > MAX_SAMPLES:
        return []
    return sorted(steps.index.tolist(), key=lambda sample: (4 * steps[sample] < steps.max(), -sample))


def position_table(table: pd.DataFrame, masking: str, sample: int | None = None) -> pd.DataFrame:
    """Return the accuracies of one way of masking: curve, step, value, low, high (Wilson's 95 % interval), n.

    `sample` is one of the `samples`, by default the first. Of longer sequences, the sample with the same rank by size
    is used.
    """
    rows = table[table["masking"] == masking].sort_values(["length", "first", "step"], kind="stable")
    if sizes := samples(table, masking):
        rank = sorted(sizes, reverse=True).index(sizes[0] if sample is None else sample)
        ranks = rows.groupby("length")["sample"].transform("rank", method="dense", ascending=False)
        rows = rows[ranks == rank + 1]
    ranges = zip(rows["length"], rows["first"], rows["last"], strict=True)
    names = [f"{length} tokens, positions {first} to {min(last, length - 1)}" for length, first, last in ranges]
    rows = with_intervals(rows.rename(columns={"accuracy": "value"}).assign(curve=names))
    return rows[["curve", "step", "value", "low", "high", "n"]].reset_index(drop=True)


def accuracy_by_position(runs: Sequence[Run], axis: AxisChoice, masking: str, sample: int | None = None) -> Figure:
    """Return the figure of held-out accuracy by length and position; `sample` applies to the first run."""
    run = runs[0]

    def read(line_run: Run) -> pd.DataFrame:
        table = position_table(measure_table(line_run), masking, sample if line_run == run else None)
        word = most_frequent_piece(line_run)
        return table.assign(baseline=word[1]) if word else table

    curves = Curves(
        by="curve",
        styles=_position_styles,
        y_title="accuracy (masked pieces)",
        baseline="baseline",
        baseline_name=baseline_name(run, "masked_lm_accuracy"),
        height=300,
    )
    title = "Accuracy on masked pieces by length and position"
    return curves_figure(
        runs, axis, read, curves, "by-position", title, lambda table: describe_positions(table, masking)
    )


def _position_styles(curves: Sequence[str]) -> dict[str, tuple[str, str]]:
    others = zip(COLOURS * len(curves), SYMBOLS * len(curves))
    return dict(zip(_by_number(curves), [(style.BLUE, "circle"), *others]))


def _by_number(names: Iterable[str]) -> list[str]:
    """Sort names by the numbers in them."""
    return sorted(names, key=lambda name: [int(number) for number in re.findall("[0-9]+", name)])


def describe_positions(table: pd.DataFrame, masking: str) -> Caption:
    """Return the caption: the difference between the ends of the longest sequences at the last step, and each n."""
    last = table.groupby("curve", sort=False).last()
    definition = (
        f"Proportion of masked pieces of held-out text predicted exactly, masked {MASKINGS.get(masking, masking)}; the "
        "same sequences and masks at every step."
    )
    legend = "Band: 95 % interval. Dashed: always the training text's most frequent word."
    counts = ", ".join(f"{n:,} ({name})" for name, n in last["n"].items())
    comparison = _compare_ends(last)
    summary, details = (comparison, sentences(definition, legend)) if comparison else (definition, legend)
    return Caption(summary, details, f"n at the last step = {counts}.")


def _compare_ends(last: pd.DataFrame) -> str:
    """Return a sentence that compares the last positions of the longest sequences with the first; "" for one group."""
    length = last.index[-1].partition(",")[0]
    longest = last[[name.startswith(f"{length},") for name in last.index]]
    if len(longest) < 2:
        return ""
    (first, first_row), (second, second_row) = next(longest.iterrows()), (longest.index[-1], longest.iloc[-1])
    low, high = (
        100 * end
        for end in difference_interval(
            second_row["value"], first_row["value"], second_row["n"], n_second=first_row["n"]
        )
    )
    return (
        f"In sequences of {length}, {second.partition(', ')[2]} are at {percent(second_row['value'])} and "
        f"{first.partition(', ')[2]} at {percent(first_row['value'])}: a difference of "
        f"{100 * (second_row['value'] - first_row['value']):+.1f} points ({low:+.1f} to {high:+.1f})."
    )


# === Embeddings and states ===


def positions(runs: Sequence[Run], axis: AxisChoice, metric: str) -> Figure:
    """Return the figure of the deviation of embeddings (a curve per table) or the cosine of states (one per layer)."""
    run = runs[0]
    describe = describe_deviation if metric == DEVIATION else describe_cosine
    curves = Curves(
        by="curve",
        metric=METRIC if metric == COSINE else "",  # deviations are of weights, not of data
        label=lambda curve: curve if isinstance(curve, str) else layer_name(curve),
        styles=_styles,
        y_title=Y_TITLES[metric],
        decimals=".3f",
        height=300,
    )
    return curves_figure(
        runs,
        axis,
        lambda line_run: embedding_table(results.read_scores(line_run, metric), metric),
        curves,
        metric.replace("_", "-"),
        TITLES[metric],
        lambda table: describe(table, run),
    )


def embedding_table(scores: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return one of the two metrics as curve, step, value, n; a curve is a table of embeddings, or a layer.

    If positions are measured in several groups, the rows of all positions together are left out, else the rows of the
    only group.
    """
    key = "group" if metric == DEVIATION else "layer"
    rows = scores[scores["metric"] == metric].rename(columns={key: "curve"})
    if metric == COSINE:
        rows = rows.astype({"curve": int})
    else:
        groups = [group for group in rows["curve"].unique() if group.startswith(f"{POSITIONS} ")]
        rows = rows[~rows["curve"].isin([POSITIONS] if len(groups) > 1 else groups)]
    return rows[["curve", "step", "value", "n"]].sort_values("step", kind="stable", ignore_index=True)


def _styles(curves: Sequence[Any]) -> Mapping[Any, tuple[str, str]]:
    """Return a colour and a symbol for each curve: words and groups of positions, or layers."""
    layers = [curve for curve in curves if not isinstance(curve, str)]
    if layers:
        return {layer: (colour, "circle") for layer, colour in style.layer_colours(sorted(layers)).items()}
    groups = _by_number(curve for curve in curves if curve != WORDS)
    looks = {group: (colour, "circle") for group, colour in zip(groups, COLOURS * len(groups))}
    return ({WORDS: (style.BLUE, "square")} if WORDS in curves else {}) | looks


def describe_deviation(table: pd.DataFrame, run: Run) -> Caption:
    """Return the caption: position embeddings relative to word embeddings in size, at the lowest and the last step."""
    n = table.groupby("curve", sort=False)["n"].last()
    row_counts = f"n = {', '.join(f'{rows:,} ({name})' for name, rows in n.items())} rows of an embedding table."
    by_curve = table.pivot(index="step", columns="curve", values="value")
    groups = [name for name in by_curve if name.startswith(POSITIONS)]
    if not groups:
        return Caption(
            "Standard deviation of the word embeddings; this model has no embedding for each position.", data=row_counts
        )
    ratio = by_curve[groups[0]] / by_curve[WORDS]
    step = int(ratio.idxmin())
    return Caption(
        f"The standard deviation of {groups[0]}, divided by that of the words, is smallest at "
        f"{name_step(step, run.step_unit)} ({ratio[step]:.2f}){_at_last(ratio, step, run)}.",
        "Standard deviation of all numbers of an embedding table. Small position embeddings carry little of the order "
        "of words; embeddings of positions that training never reached keep their initial values.",
        row_counts,
    )


def describe_cosine(table: pd.DataFrame, run: Run) -> Caption:
    """Return the caption: when the states of a sentence are most similar in the last layer, and the data."""
    last = table[table["curve"] == table["curve"].max()].set_index("step")["value"]
    step = int(last.idxmax())
    return Caption(
        f"The states of a sentence are most similar in the last layer at {name_step(step, run.step_unit)} "
        f"({last[step]:.2f}){_at_last(last, step, run)}.",
        "Mean cosine between the states of two different pieces of a sentence, then over the sentences; [CLS] and "
        "[SEP] are left out. At 1 the states of all pieces have the same direction.",
        f"n = {int(table['n'].max()):,} sentences. Data: {data_note(run, METRIC, 'a treebank')}.",
    )


def _at_last(values: pd.Series, named_step: int, run: Run) -> str:
    """Return the value at the last evaluated step, or "" if that step is `named_step`."""
    last = int(values.index[-1])
    return "" if last == named_step else f", and {values.iloc[-1]:.2f} at {name_step(last, run.step_unit)}, the last"
