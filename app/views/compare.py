"""Compare: the design of runs side by side, their orders of acquisition, and what each choice changed."""

from collections.abc import Iterable, Sequence

import pandas as pd
import streamlit as st

from app import figures, pickers, results, widgets
from app.view import View
from embryo_core.compare import (
    CHOICES,
    MASKED_PIECES,
    Rule,
    agreements,
    average_differences,
    continues,
    group_by_design,
)
from embryo_core.errors import FigureError
from embryo_core.figures import acquisition as order
from embryo_core.figures import compare as charts
from embryo_core.figures.axis import Axis
from embryo_core.figures.captions import compare as captions
from embryo_core.figures.captions import openings
from embryo_core.figures.captions.overlay import named
from embryo_core.figures.markdown import literal
from embryo_core.figures.tokens import SETS, default_categories
from embryo_core.types import Run

METRICS = {"mask_prediction": "Mask prediction", "token_reconstruction": "Token reconstruction"}
RULES: dict[Rule, str] = {"half": "Half of last value", "paper": "Appendix C.4"}


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Compare", lambda run: results.default_scale(run, "mask_prediction"))
    axis = Axis(view.scale, view.unit)
    orders = order.acquisition_table(view.drawn, axis, "mask_prediction", SETS["parts of speech"])
    widgets.show_opening(openings.compare(agreements(orders), next(iter(_seeds(view)))))
    _design(view)
    if not view.compared_runs:
        words = "Choose runs under Overlay, above, to compare them with this one."
        st.info(words, icon=":material/info:")
        return
    acquisition(view)
    _choices(view)


def _seeds(view: View) -> dict[str, tuple[Run, ...]]:
    """The runs of each design by its name, the page's first."""
    return {named(runs): runs for runs in group_by_design((view.run, *view.compared_runs))}


def _names(seeds: dict[str, tuple[Run, ...]]) -> dict[str, list[str]]:
    return {name: [run.name for run in runs] for name, runs in seeds.items()}


def _design(view: View) -> None:
    st.header("Design", anchor=False)
    table = charts.design_table(results.designs((view.run, *view.compared_runs)), _names(_seeds(view)))
    differs = st.column_config.TextColumn("≠", width=30) if view.compared_runs else None
    columns = {"differs": differs, "row": st.column_config.TextColumn("setting", width=300)}
    columns |= {name: st.column_config.TextColumn(name, width=340) for name in table.columns[2:]}
    st.dataframe(table, hide_index=True, column_config=columns, width="content", height="content", key="designs")
    widgets.show_caption(captions.DIFFERS + captions.DESIGN if view.compared_runs else captions.DESIGN)


# === Order of acquisition ===


def acquisition(view: View) -> None:
    """Draw when each category is acquired, run beside run, and how far the orders agree."""
    st.header("Order of acquisition", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        metric = pickers.pick_one("metric", "Task", list(METRICS), format_func=METRICS.get, segmented=True)
        family = pickers.pick_one("family", "By", list(SETS), format_func=str.capitalize, segmented=True)
        rule = pick_rule()
    compared = tuple(run for run in (view.run, *view.compared_runs) if view.supports_axis(run))
    for run in (run for run in compared if results.scores(run, metric).empty):
        words = f"Run '{run.name}' has no {METRICS[metric].lower()} yet."
        st.info(literal(words), icon=":material/info:")
    groups = tuple(default_categories(family, SETS[family]))
    name = f"{view.run.name}-{metric}-{family}".replace(" ", "-")
    try:
        figure = figures.draw(view, order.acquisition, metric=metric, groups=groups, rule=rule, name=name)
    except FigureError as error:
        st.caption(str(error))
        return
    figures.show(figure)
    if family == "parts of speech":
        _agreement(figure.table)


def pick_rule() -> Rule:
    """What makes a category come first: our onset, or the paper's "faster"."""
    return pickers.pick_one("order", "First by", list(RULES), format_func=RULES.get, segmented=True, optional=True)


def _drawn(view: View, seeds: dict[str, tuple[Run, ...]], names: Iterable[str]) -> list[Run]:
    """The runs of the designs of these `names`, without the page's own."""
    return [run for name in names for run in seeds[name] if run != view.run]


def _several(seeds: dict[str, tuple[Run, ...]]) -> bool:
    """Whether any design has several runs."""
    return any(len(runs) > 1 for runs in seeds.values())


def _agreement(table: pd.DataFrame) -> None:
    st.header("Agreement of the orders", anchor=False)
    number = st.column_config.NumberColumn
    ends = {"rho": "Spearman's rho", "low": "from", "high": "to"}
    columns = {name: number(label, format="%.2f") for name, label in ends.items()} | {"n": number("categories")}
    names = {"first": "order of", "second": "and of"}
    found = agreements(table)
    st.dataframe(found, hide_index=True, column_config=names | columns, placeholder="–", key="agreement")
    widgets.show_caption(captions.AGREEMENT)


# === Choices ===


def _choices(view: View) -> None:
    """A figure for each set of choices in which runs differ from the page's, those that differ in fewest first."""
    _, *others = _seeds(view).items()
    differing: dict[tuple[str, ...], list[str]] = {}
    for name, runs in others:
        if choices := tuple(results.differing_choices(view.run, runs[0])):
            differing.setdefault(choices, []).append(name)
    if not differing:
        words = f"No run beside '{view.run.name}' differs from it in {', '.join(CHOICES)}."
        st.info(literal(words), icon=":material/info:")
        return
    pairs = range(0, len(differing), 2)
    columns = [column for _ in pairs for column in st.columns(min(2, len(differing)), gap="large")]
    for choices, column in zip(sorted(differing, key=len), columns):
        with column:
            _changed(view, choices, differing[choices])


def _changed(view: View, choices: Sequence[str], names: Sequence[str]) -> None:
    """What the designs of these `names`, which differ from the page's run in the same choices, have to show for it."""
    title = captions.changed(choices)
    st.header(title, anchor=False)
    seeds = _seeds(view)
    own, first = next(iter(seeds.items()))
    rows = charts.design_table(results.designs((view.run, *view.compared_runs)), _names(seeds)).set_index("row")
    changes = {name: "; ".join(f"{row}: {rows[own][row]} → {rows[name][row]}" for row in choices) for name in names}
    parts = [_differences(first, seeds[name]).assign(run=name, change=changes[name]) for name in names]
    table = pd.concat(parts, ignore_index=True).assign(minus=own)
    if table["difference"].isna().all():
        st.info("These runs share no measure at any step.", icon=":material/info:")
        return
    masked = {name: kinds for name in (own, *names) if (kinds := rows[name][MASKED_PIECES]) != charts.UNKNOWN}
    caption = captions.differences(choices, own, table, _several(seeds), masked)
    name = "-".join([view.run.name, *choices]).replace(" ", "-")
    units = {name: seeds[name][0].step_unit for name in names}
    figure, beside = charts.differences_figure(table, units), _drawn(view, seeds, [own, *names])
    figures.show_plot(figure, table, name, caption, f"{title} (accuracy minus that of {own})", view, beside=beside)


def _differences(first: tuple[Run, ...], second: tuple[Run, ...]) -> pd.DataFrame:
    """Accuracies of one design less those of another; where runs go on from the other's, of these pairs alone."""
    pairs = [(one, other) for one in first for other in second]
    continued = [(one, other) for one, other in pairs if continues(other, one) or continues(one, other)]
    return average_differences([results.differences(*pair) for pair in continued or pairs])
