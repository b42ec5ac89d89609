"""Compare: the designs of runs side by side, their orders of acquisition, and the effect of each design choice."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.column_config import NumberColumn, TextColumn

from app import figures, notices, pickers, results, widgets
from app.tables import correlation_columns, show_wrapped
from app.view import View
from embryo_core.comparison import DESIGN_CHOICES, Rule, group_by_size, size_of
from embryo_core.errors import FigureError
from embryo_core.figures import acquisition as order
from embryo_core.figures import compare, early_signals
from embryo_core.figures.curves import designs
from embryo_core.figures.figure import describe_readings, name_measures
from embryo_core.figures.tokens import SETS, default_categories
from embryo_core.findings.words import equivalent_metric
from embryo_core.types import Run

METRICS = ("mask_prediction", "token_reconstruction")  # for decoders, the first is next-word prediction
RULE_LABELS: dict[Rule, str] = {"half": "Half of last value", "paper": "Appendix C.4"}  # rule of an order -> label


def show() -> None:
    """Draw the page."""
    view = widgets.begin_page(
        "Compare",
        lambda run: results.evaluated_steps(run, equivalent_metric(run, METRICS[0])),
        default_runs=default_runs,
    )
    with suppress(FigureError):
        categories = tuple(default_categories("parts of speech", SETS["parts of speech"]))
        orders = results.agreement(view.drawn_runs, view.axis_choice, METRICS[0], categories, next(iter(RULE_LABELS)))
        first_design = next(iter(designs(view.drawn_runs)))
        notices.show_headline(compare.headline(orders, first_design, name_measures(view.drawn_runs, METRICS[0])))
    if len(view.drawn_runs) > 1:
        _show_choices(view)
    _show_designs(view)
    if not view.compared_runs:
        notices.note("Choose runs under Overlay, above, to compare them with this one.")
        return
    _show_acquisition(view)
    if measures := results.early_measures(view.drawn_runs):
        pickers.fold("signals", "Early signals", partial(_show_signals, view, measures))


def default_runs(run: Run, runs: Collection[Run]) -> list[str]:
    """Return the names of the runs to compare by default: other seeds of the run, and runs of other designs.

    These are the other designs of the run's group (`group_by_size`) or, if it has none, one design of each other
    family, if possible of the run's size. In a family, a design with the run's planned steps is preferred, then the
    longest, then the one with the most seeds.
    """
    groups = group_by_size([*runs])
    groups_of_run = next(group for group in groups if any(run in design for design in group))
    other_designs = [design for group in groups for design in group if design[0].family != run.family]
    same_size = [design for design in other_designs if size_of(design[0]) == size_of(run)]

    def nearness(design: Sequence[Run]) -> tuple[bool, int, int]:
        plan = design[0].planned_steps
        return plan == run.planned_steps, max(plan, default=0), len(design)

    nearest = {design[0].family: design for design in sorted(same_size or other_designs, key=nearness)}
    selected_designs = groups_of_run if len(groups_of_run) > 1 else [*groups_of_run, *nearest.values()]
    return [candidate.name for design in selected_designs for candidate in design if candidate != run]


def _show_designs(view: View) -> None:
    """Draw the table of designs, with a column that marks settings in which compared runs differ."""
    st.header("Design", anchor=False)
    runs = (view.run, *view.compared_runs)
    seeds = {name: [run.name for run in runs_of_design] for name, runs_of_design in designs(runs).items()}
    table = compare.design_table(results.designs(runs), seeds)
    visible_table = table.rename(columns={"differs": "≠", "row": "setting"}).drop(
        columns=[] if view.compared_runs else "≠"
    )
    show_wrapped(visible_table, "Design", "designs")
    notices.show_caption(compare.describe_designs(bool(view.compared_runs)))


# === Order of acquisition ===


def _show_acquisition(view: View) -> None:
    """Draw when each run acquires each category, and how well the orders of the runs agree."""
    st.header("Order of acquisition", anchor=False)
    with pickers.row():
        titles = {metric: name_measures(view.drawn_runs, metric).capitalize() for metric in METRICS}
        metric = pickers.pick_one("metric", "Task", titles, segmented=True)
        family = pickers.pick_one("family", "By", list(SETS), format_func=str.capitalize, segmented=True)
        rule = pick_rule()
    for run in (run for run in view.drawn_runs if results.scores(run, equivalent_metric(run, metric)).empty):
        applies = "words" if metric == METRICS[0] else "masked_words"
        words = f"Run '{run.name}' has no {titles[metric].lower()} yet."
        if applies not in results.capabilities(run):
            words = f"{titles[metric]} does not apply to run '{run.name}'."
        notices.note(words)
    if warning := describe_readings(view.drawn_runs, metric):
        notices.warn(warning)
    groups = tuple(default_categories(family, SETS[family]))
    name = f"{view.run.name}-{metric}-{family}".replace(" ", "-")
    if not figures.plot(view, order.acquisition, metric=metric, groups=groups, rule=rule, name=name):
        return
    if family == "parts of speech":
        _show_agreement(results.agreement(view.drawn_runs, view.axis_choice, metric, groups, rule))


def pick_rule() -> Rule:
    """Pick and return the rule that orders categories: half of the last value, or "faster" as in the paper."""
    return pickers.pick_one("order", "First by", RULE_LABELS, segmented=True, optional=True)


def _show_agreement(agreements: pd.DataFrame) -> None:
    """Draw Spearman's rho of each pair of orders, with its interval."""
    st.header("Agreement of the orders", anchor=False)
    columns = {  # on a phone, all but n fit
        "first": TextColumn("order of", width=108),
        "second": TextColumn("and of", width=108),
        **correlation_columns("rho", width=48),
        "n": NumberColumn(help="Categories that both have acquired", width=40),
    }
    st.dataframe(agreements, alt="Agreement of the orders", hide_index=True, column_config=columns, placeholder="–")
    notices.show_caption(compare.AGREEMENT)


# === Choices ===


def _show_choices(view: View) -> None:
    """Draw a figure for each set of choices in which compared runs differ from the page's run."""
    changed_choices = compare.changed_choices(view.drawn_runs)
    if not changed_choices:
        notices.note(f"None of the compared runs differs from '{view.run.name}' in {', '.join(DESIGN_CHOICES)}.")
        return
    row_starts = range(0, len(changed_choices), 2)
    columns = [column for _ in row_starts for column in st.columns(min(2, len(changed_choices)), gap="large")]
    for choices, column in zip(changed_choices, columns):
        with column:
            st.header(compare.title_of(choices), anchor=False)
            figures.plot(view, compare.differences, choices=choices)


# === Early signals ===


def _show_signals(view: View, measures: Sequence[str]) -> None:
    """Draw how early the runs' ranking by a measure agrees with their final ranking in each task."""
    measure = pickers.pick_one("signal", "Measure", list(measures))
    try:
        figure = figures.draw(view, early_signals.early_signals, measure=measure)
    except FigureError as error:
        notices.note(error)
        return
    notices.show_headline(figure.headline)
    figures.show(figure)
