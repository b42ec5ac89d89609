"""What the Findings page says: how many claims a run shows, how a verdict comes about, and what is drawn."""

from collections.abc import Mapping, Sequence

from embryo_core.figures.findings import named
from embryo_core.figures.markdown import literal
from embryo_core.findings import Judgement, Verdict

VERDICTS: dict[Verdict, str] = {  # in the order in which they are counted
    "reproduced": "more than half of its comparisons hold, and none is opposed",
    "partly": "at least one comparison holds, but no more than half do, or some are opposed",
    "not": "no comparison holds, and fewer than a quarter are opposed",
    "contradicted": "at least a quarter of its comparisons are opposed, and more than hold",
    "cannot be said": "what it compares has not been computed, or was not learned",
}


def counted(judgements: Sequence[Judgement]) -> str:
    """How many findings have each verdict, and the rule of the verdicts."""
    counts = {verdict: sum(one.verdict == verdict for one in judgements) for verdict in VERDICTS}
    shown = ", ".join(f"{count} {named(verdict)}" for verdict, count in counts.items() if count)
    rules = "; ".join(f"**{named(verdict)}**: {rule}" for verdict, rule in VERDICTS.items())
    return (
        f"Of {len(judgements)} findings of the paper: {shown}. Each finding predicts several comparisons. One holds "
        "where its whole 95 % interval is on the paper's side, and is opposed where all of it is on the other. "
        f"{rules}. Bars up hold, bars down are opposed. Click a row to see its comparisons. Small pictures: the curves "
        "behind a verdict over the logarithm of the step, all of one finding on one scale, or a bar for each "
        "comparison; a click opens their page."
    )


def beside(runs: Mapping[str, Sequence[Judgement]]) -> str:
    """What the table has of runs beside the page's own; nothing where there are none."""
    if not runs:
        return ""
    return f" The columns {', '.join(map(literal, runs))} have the verdicts of the runs beside it; all else is its own."


def judged_beside(run: str, judgement: Judgement) -> str:
    """The verdict of a run beside the page's own, as Markdown."""
    return f"{literal(run)}: {judged(judgement)}"


def judged(judgement: Judgement) -> str:
    """The verdict on one finding with its counts and statistic, as Markdown."""
    counts = f"{judgement.summary}. " if judgement.comparisons else ""
    return f"**{named(judgement.verdict).capitalize()}.** {counts}{literal(judgement.statistic)}".strip()


def comparisons(judgement: Judgement, note: str) -> str:
    """The caption of a finding's figure, on the data that the `note` names."""
    where = f" ({literal(note)})" if note else ""
    return (
        f"Predicted: {judgement.finding.predicts} Each point is one comparison{where}, its line the 95 % interval. "
        "Points without a line have an interval of no width or none. The comparisons are not independent of each "
        "other. docs/metrics.md has the rules."
    )
