"""Factual knowledge over pretraining: precision at 1 on LAMA's T-REx (Section 6, Figures 6 and 14)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

import pandas as pd

from embryo_core import curves, results
from embryo_core.curves import baselines
from embryo_core.figures import style
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.figures.curves import Curves, curves_figure, with_intervals
from embryo_core.figures.figure import Caption, Figure, data_note, sentences
from embryo_core.groups import ALL, RELATION_NAMES, RELATION_TYPES, TYPE_OF_RELATION
from embryo_core.types import Run
from embryo_core.words import count_range, name_step, percent, quantity

TITLE_WIDTH = 30  # characters of a line above a panel
METRIC = "world_knowledge"
NEVER = "never learned"
TYPE_COLOURS: dict[str, str] = dict(zip(RELATION_TYPES, (style.ORANGE, style.BLUE, style.GREEN)))


def relation_label(relation: str) -> str:
    """Return a relation's name in Wikidata with its id."""
    if relation == ALL:
        return "all relations"
    return f"{RELATION_NAMES[relation]} ({relation})" if relation in RELATION_NAMES else relation


# === Tables ===


@results.memoized
def precision_table(run: Run, without_giveaways: bool = False, types: bool = False) -> pd.DataFrame:
    """Return the precision at 1 of every relation over the steps (see `with_baselines`). Raises ResultsError.

    It covers all facts or, if `without_giveaways`, only those whose subject's name does not contain the object. With
    `types`, all facts and each type come first, then the relations by type and number.
    """
    facts = results.read_histories(run)
    if without_giveaways:
        facts, steps = facts[~baselines.object_in_subject(facts)], sorted(results.steps_done(run, METRIC))
        scores = baselines.precision(facts, results.read_right_answers(run), steps)
    else:
        scores = results.read_scores(run, METRIC)
    tables = scores, baselines.fact_baselines(facts)
    if not types:
        return with_baselines(*tables)
    with_types = (pd.concat([table, baselines.type_baselines(table)], ignore_index=True) for table in tables)
    table = with_baselines(*with_types)
    order = _sort_relations(table["relation"].unique())
    return table.sort_values("relation", key=lambda column: column.map(order.index), kind="stable", ignore_index=True)


def with_baselines(scores: pd.DataFrame, baseline_rows: pd.DataFrame) -> pd.DataFrame:
    """Add 95 % intervals (Wilson) and baselines to `scores`; `baseline_rows` come from `baselines.fact_baselines`.

    Columns: relation, step, value, n, baseline, answer, low, high.
    """
    table = scores.rename(columns={"group": "relation"})[["relation", "step", "value", "n"]]
    baseline_rows = baseline_rows.set_index("group")
    table = table.assign(
        baseline=table["relation"].map(baseline_rows["value"]), answer=table["relation"].map(baseline_rows["answer"])
    )
    return with_intervals(table.sort_values(["relation", "step"], ignore_index=True))


def _sort_relations(relations: Sequence[str]) -> list[str]:
    """Sort names: all facts, the types, then the relations by type and number."""

    def sort_key(relation: str) -> tuple[int, int, str]:
        kind, digits = TYPE_OF_RELATION.get(relation), relation[1:]
        return (
            RELATION_TYPES.index(kind) if kind else len(RELATION_TYPES),
            int(digits) if digits.isdecimal() else 0,
            relation,
        )

    groups = [name for name in (ALL, *RELATION_TYPES) if name in relations]
    return groups + sorted({*relations} - {*groups}, key=sort_key)


def relations_by_precision(table: pd.DataFrame) -> list[str]:
    """Return the relations by their precision at the last step, the best first."""
    last = table[(table["step"] == table["step"].max()) & (table["relation"] != ALL)]
    return last.sort_values("value", ascending=False)["relation"].tolist()


def default_relations(table: pd.DataFrame) -> list[str]:
    """Return the default relations: all together, and the six learned ones with the largest rise."""
    by_relation = list(table[table["relation"] != ALL].groupby("relation"))
    rises = {
        name: rows["value"].max() - rows["value"].iloc[0]
        for name, rows in by_relation
        if curves.classify_curve(rows["value"], rows["n"]) != NEVER
    }
    return [ALL, *sorted(rises, key=rises.__getitem__, reverse=True)[:6]]


# === Relations over the steps ===

CURVES = Curves(
    by="relation",
    label=relation_label,
    y_title="precision at 1",
    metric=METRIC,
    baseline="baseline",
    baseline_name="always the most frequent object",
    unit="facts",
    height=460,
)


def precision(
    runs: Sequence[Run], axis: AxisChoice, relations: Sequence[str], without_giveaways: bool = False
) -> Figure:
    """Return the figure of relations' precision at 1; `without_giveaways` as in `precision_table`."""

    def read(run: Run) -> pd.DataFrame:
        table = precision_table(run, without_giveaways)
        selected_rows = table[table["relation"].isin(relations)]
        return selected_rows.sort_values("relation", key=lambda names: names.map([*relations].index), kind="stable")

    def styles(names: Sequence[str]) -> dict[str, tuple[str, str]]:
        colours, symbols = style.PALETTE[:-1] * len(relations), style.SYMBOLS * len(relations)
        looks = {name: (style.GREY if name == ALL else colours[i], symbols[i]) for i, name in enumerate(relations)}
        return {name: look for name, look in looks.items() if name in names}

    def describe(row: Any) -> str:
        answer = "each relation's most frequent object" if pd.isna(row.answer) else f"“{style.escape_text(row.answer)}”"
        return f"always {answer} is right for {percent(row.baseline)} of {row.n:,} facts"

    return _precision_figure(
        runs, axis, read, replace(CURVES, styles=styles, describe_baseline=describe), without_giveaways
    )


def precision_panels(runs: Sequence[Run], axis: AxisChoice, without_giveaways: bool = False) -> Figure:
    """Return the figure with a panel for all facts, each type and each relation with its template (Figure 14)."""
    templates = results.read_sources(runs[0]).get(METRIC, {}).get("templates", {})

    def title(relation: str) -> str:
        if relation == ALL:
            return "all relations"
        if relation in RELATION_TYPES:
            return f"all {relation} relations"
        kind = f", {TYPE_OF_RELATION[relation]}" if relation in TYPE_OF_RELATION else ""
        return "\n".join(
            [f"{relation}{kind}", *wrap(templates.get(relation, RELATION_NAMES.get(relation, "")), TITLE_WIDTH)]
        )

    def styles(relations: Sequence[str]) -> dict[str, tuple[str, str]]:
        colours = {
            name: TYPE_COLOURS.get(TYPE_OF_RELATION.get(name, name), style.GREY) for name in _sort_relations(relations)
        }
        return {name: (colour, "circle") for name, colour in colours.items()}

    panels = replace(CURVES, label=title, styles=styles, panels_per_row=4, width=1280)
    return _precision_figure(
        runs, axis, lambda run: precision_table(run, without_giveaways, types=True), panels, without_giveaways
    )


def _precision_figure(
    runs: Sequence[Run], axis: AxisChoice, read: Callable[[Run], pd.DataFrame], spec: Curves, without_giveaways: bool
) -> Figure:
    run = runs[0]
    panels = "-panels" if spec.width else ""
    return curves_figure(
        runs,
        axis,
        read,
        spec,
        f"knowledge{panels}",
        "Precision at 1 of each relation",
        lambda table: describe_precision(run, table, without_giveaways, types=bool(panels)),
    )


def describe_precision(run: Run, table: pd.DataFrame, without_giveaways: bool, types: bool) -> Caption:
    """Return the caption: precision at 1, left-out facts, and if `types`, the types of relations."""
    named_count = int(baselines.object_in_subject(results.read_histories(run)).sum()) if without_giveaways else 0
    left_out_note = (
        f"Left out: {quantity(named_count, 'fact')} whose subject's name contains the object."
        if without_giveaways
        else ""
    )
    types_note = (
        "Types as in LAMA: 1-1, one object for each subject and one subject for each object; N-1, many subjects share "
        "an object; N-M, subjects have several objects too. In the curve and baseline of a type each fact counts once."
    )
    return Caption(
        "Precision at 1: the proportion of facts whose object is the model's top answer.",
        sentences(
            "An answer is any piece of the vocabulary.",
            left_out_note,
            "Dashed, or a stroke at the right: the precision of always answering a relation's most frequent object; "
            "for all relations, each one's own. Bands: 95 % intervals (Wilson).",
            types_note if types else "",
        ),
        f"Facts: {data_note(run, METRIC, 'facts of LAMA’s T-REx')}; n = {count_range(table['n'])} for a curve.",
        "Click a point for its facts.",
    )


def headline(table: pd.DataFrame, axis: StepAxis) -> str:
    """Return a sentence on the precision over all facts of a `precision_table` at the last step and at the best one."""
    rows = table[table["relation"] == ALL].sort_values("step")
    last, best = rows.iloc[-1], rows.loc[rows["value"].idxmax()]
    end = axis.step_in_unit(int(last["step"]))
    right_text = f"The model gets {percent(last['value'])} of {int(last['n']):,} facts right"
    if len(rows) == 1:
        return f"{right_text} at {end}."
    if best["step"] == last["step"]:
        return f"{right_text} at {end}, its best so far."
    return f"{right_text}; its best was {percent(best['value'])}, at {axis.step_in_unit(int(best['step']))}."


def compare_with_baseline(table: pd.DataFrame, without: pd.DataFrame, run: Run) -> str:
    """Return sentences that compare the last precision at 1 with its baseline.

    `table` is the `precision_table` of all facts, `without` the table that leaves out facts whose subject's name
    contains the object.
    """
    ends = pd.concat(
        [
            precision_rows[precision_rows["relation"] == ALL].sort_values("step").tail(1)
            for precision_rows in (table, without)
        ]
    )
    whole, others = ends.iloc[0], ends.iloc[-1]
    step_name = name_step(int(whole["step"]), run.step_unit)
    comparison = (
        f"Always answering a relation's most frequent object is right for {percent(whole['baseline'])} of "
        f"{whole['n']:,} facts; the run's {percent(whole['value'])} at {step_name} is {_compare(whole)} that."
    )
    if others["n"] == whole["n"]:
        return comparison
    named_count = whole["n"] - others["n"]
    return (
        f"{comparison} In {quantity(named_count, 'fact')} ({percent(named_count / whole['n'], 0)}) the "
        f"subject's name contains the object; without them the model gets {percent(others['value'])} of "
        f"{others['n']:,} correctly, {_compare(others)} the baseline's {percent(others['baseline'])}."
    )


def _compare(row: pd.Series) -> str:
    """Return in words whether a precision is significantly above or below its baseline, over the same facts."""
    if row["low"] > row["baseline"]:
        return "above"
    return "below" if row["high"] < row["baseline"] else "not significantly different from"
