"""LAMA's facts as live queries: the texts to which the stored answers of metrics/world_knowledge.py were given."""

from embryo_core import results
from embryo_core.errors import ResultsError, unknown
from embryo_core.types import Run


def question(template: str, subject: str) -> str:
    """The cloze text of a fact: "[X] was born in [Y] ." and "Allan Peiper" give "Allan Peiper was born in [MASK] ."."""
    return template.replace("[Y]", "[MASK]").replace("[X]", subject)


def templates(run: Run) -> dict[str, str]:
    """The template of each relation whose facts the run was asked: {"P19": "[X] was born in [Y] ."}; may be none."""
    return results.read_sources(run).get("world_knowledge", {}).get("templates", {})


def knowledge_query(run: Run, relation: str, subject: str) -> str:
    """The text that asks for a fact's object. Raises ResultsError for a relation that the run was not asked."""
    known = templates(run)
    if relation not in known:
        then = f"Evaluate them with: python -m embryo_core evaluate {run.name} --metrics world_knowledge"
        raise ResultsError(unknown("relation", relation, known, then))
    return question(known[relation], subject)
