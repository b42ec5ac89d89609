"""Findings: which claims of the paper hold for a run, and the comparisons behind each verdict."""

import streamlit as st
from streamlit.column_config import BarChartColumn, ImageColumn, TextColumn

from app import figures, notices, permalink, pickers, results, widgets
from app.tables import show_rows
from app.view import View
from embryo_core.figures import findings
from embryo_core.figures.markdown import literal
from embryo_core.findings import Judgement


def show() -> None:
    """Draw the page."""
    view = widgets.begin_page("Findings")
    judgements = results.judgements(view.run)
    last_planned = max(view.run.planned_steps, default=0)
    headline = findings.headline(judgements, results.last_evaluated_step(view.run), last_planned, view.run.step_unit)
    notices.show_headline(headline)
    judgements_of_runs = {run.name: results.judgements(run) for run in view.compared_runs}
    _show_all(judgements, judgements_of_runs)
    by_name = {judgement.finding.name: judgement for judgement in judgements}
    name = pickers.pick_one(
        "finding", "Finding", {item: judgement.finding.claim for item, judgement in by_name.items()}
    )
    judgements_by_name = {
        run: {item.finding.name: item for item in run_judgements} for run, run_judgements in judgements_of_runs.items()
    }
    _show_one(
        view,
        by_name[name],
        {run: run_judgements[name] for run, run_judgements in judgements_by_name.items() if name in run_judgements},
    )


def _show_all(judgements: list[Judgement], judgements_of_runs: dict[str, list[Judgement]]) -> None:
    """Draw the table of all findings; a row opens a finding below, and its picture the page that shows it."""
    columns = {
        "verdict": TextColumn("Verdict", width=130),
        **{
            findings.verdict_column(number): TextColumn(run, width=130) for number, run in enumerate(judgements_of_runs)
        },
        "finding": TextColumn("Finding", width=430),
        "hold": TextColumn("Hold", width=62, help="Comparisons that hold, of all"),
        "picture": ImageColumn("Curves", width=90, help="Click to open the figure on its page"),
        "comparisons": BarChartColumn("Comparisons", y_min=-1, y_max=1, width=84),
        "paper": TextColumn("In the paper", width=146),
    }
    names = [judgement.finding.name for judgement in judgements]
    table = findings.finding_table(judgements, list(judgements_of_runs.values()))
    with st.container(key="findings_table"):
        show_rows(
            table,
            "All findings",
            "findings",
            lambda row: permalink.choose("finding", names[row]),
            columns,
            "content",
            {"picture": lambda row: _open_page(judgements[row])},
        )
    with st.container(key="findings_list"):  # replaces the table on a phone, where it would be cut off: see page.css
        lines = table[["verdict", "finding", "hold"]].fillna("").itertuples(index=False)
        st.markdown("\n".join(f"- **{verdict}** {literal(claim)} {hold}" for verdict, claim, hold in lines))
    notices.show_caption(findings.describe_findings(judgements, judgements_of_runs))


def _show_one(view: View, judgement: Judgement, judgement_of_run: dict[str, Judgement]) -> None:
    """Show the verdict on one finding, for the page's run and the compared runs, and the comparisons behind it."""
    for run, run_judgement in ({"": judgement} | judgement_of_run).items():
        verdict, sentence = map(literal, findings.describe_verdict(run_judgement))
        st.markdown(f"{literal(run)}{': ' if run else ''}**{verdict}.** {sentence}".strip())
    if judgement.remedy:
        st.code(judgement.remedy, language="bash", wrap_lines=True)
    if judgement.comparisons:
        figures.plot(view, findings.comparisons, name=judgement.finding.name)
    page = judgement.finding.page
    label = f"See it on the {page} page"
    st.button(label, icon=":material/arrow_forward:", on_click=_open_page, args=(judgement,))


def _open_page(judgement: Judgement) -> None:
    """Open the page that shows a finding, with the choices that the finding needs."""
    permalink.open_page(judgement.finding.page.lower().replace("-", ""), **judgement.finding.view)
