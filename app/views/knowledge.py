"""Knowledge: which facts the model answers at each step, and what it says instead (Section 6, Figures 6 and 14)."""

from app import results, widgets
from app.views import knowledge_facts, knowledge_relations
from app.views.knowledge_relations import METRIC
from embryo_core.corpora.groups import ALL
from embryo_core.figures.captions import openings


def show() -> None:
    """Draw the page."""
    view = widgets.open_page("Knowledge", lambda run: results.default_scale(run, METRIC))
    scores, facts = results.scores(view.run, METRIC), results.fact_histories(view.run)
    if scores.empty or facts.empty:
        widgets.stop_uncomputed(view.run, METRIC, f"Run '{view.run.name}' has not been asked any facts yet.")
    frame = results.relation_curves(view.run)
    widgets.show_opening(openings.knowledge(frame[frame["relation"] == ALL], view.run.step_unit))
    step = view.evaluated(frame["step"].unique())
    note = results.note(view.run, METRIC, "facts of LAMA's T-REx")
    knowledge_relations.show(view, frame, facts, note)
    knowledge_relations.show_table(view, frame, facts, step)
    knowledge_facts.show(view, frame, facts, step)
