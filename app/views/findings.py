"""Findings: which of the paper's claims a run shows, and the comparisons behind each verdict."""

import streamlit as st

from app import figures, permalink, pickers, results, widgets
from app.tables import show_rows
from app.view import View
from app.widgets import show_caption
from embryo_core.figures import findings as charts
from embryo_core.figures.captions import findings as captions
from embryo_core.figures.captions import openings
from embryo_core.findings import Judgement


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Findings")
    judgements = results.judgements(view.run)
    last = results.last_done(view.run)
    planned = max(view.run.planned_steps, default=0)
    widgets.show_opening(openings.findings(judgements, last, planned, view.run.step_unit))
    beside = {run.name: results.judgements(run) for run in view.compared_runs}
    _show_all(judgements, beside)
    by_name = {judgement.finding.name: judgement for judgement in judgements}
    name = pickers.pick_one("finding", "Finding", list(by_name), format_func=lambda name: by_name[name].finding.claim)
    number = list(by_name).index(name)
    _show_one(view, by_name[name], {run: others[number] for run, others in beside.items()})


def _show_all(judgements: list[Judgement], beside: dict[str, list[Judgement]]) -> None:
    column = st.column_config
    columns = {
        "picture": column.ImageColumn("Curves", width=110, help="Click it to see them large on their page"),
        "verdict": column.TextColumn("Verdict", width=130),
        **{charts.verdicts_column(place): column.TextColumn(run, width=150) for place, run in enumerate(beside)},
        "finding": column.TextColumn("Finding", width=420),
        "paper": column.TextColumn("In the paper", width=160 if beside else 220),
        "comparisons": column.BarChartColumn("Comparisons", y_min=-1, y_max=1, width=130),
        "hold": column.NumberColumn("Hold", width=60),
        "opposed": column.NumberColumn("Opposed", width=80),
        "of": column.NumberColumn("Of", width=60),
    }
    names = [judgement.finding.name for judgement in judgements]
    show_rows(
        charts.overview(judgements, list(beside.values())),
        "findings",
        lambda row: permalink.choose("finding", names[row]),
        columns,
        "content",
        {"picture": lambda row: _lead(judgements[row])},
    )
    show_caption(captions.counted(judgements) + captions.beside(beside))


def _show_one(view: View, judgement: Judgement, beside: dict[str, Judgement]) -> None:
    finding = judgement.finding
    st.markdown(captions.judged(judgement))
    for run, other in beside.items():
        st.markdown(captions.judged_beside(run, other))
    if judgement.remedy:
        st.code(judgement.remedy, language="bash", wrap_lines=True)
    if judgement.comparisons:
        table = charts.comparisons(judgement)
        metric = finding.metrics[0] if finding.metrics else ""
        note = results.note(view.run, metric.removesuffix("_f1").removesuffix("_same"))
        figures.show_plot(
            figures.drawn(charts.comparisons_figure, table),
            table,
            f"{view.run.name}-{finding.name}",
            captions.comparisons(judgement, note),
            finding.claim,
            view,
            metric,
        )
    st.button(f"See it on the {finding.page} page", icon=":material/arrow_forward:", on_click=_lead, args=(judgement,))


def _lead(judgement: Judgement) -> None:
    for name, value in judgement.finding.view.items():
        permalink.choose(name, value)
    permalink.lead_to(judgement.finding.page.lower().replace("-", ""))
