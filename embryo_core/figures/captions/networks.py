"""What captions say of a family with two networks, as ELECTRA: which of them a figure is about."""

from collections.abc import Collection, Sequence

from embryo_core.families import FAMILIES
from embryo_core.figures.markdown import literal
from embryo_core.metrics import METRICS
from embryo_core.types import Run

NEEDS = {metric.name: metric.needs for metric in METRICS} | {"finetuning": frozenset({"trainable"})}
MASKED_WORDS = frozenset({"masked_words"})


def of_metric(runs: Sequence[Run], metric: str) -> str:
    """Which network of each run a figure of this metric is about; nothing of families with one, or of no metric."""
    needs = NEEDS.get(metric.split(":")[0])
    return network(runs, needs) if needs else ""


def network(runs: Sequence[Run], needs: Collection[str]) -> str:
    """Which network of each run gives what a figure `needs` (see `Metric.needs`); nothing where it needs both."""
    two = [literal(run.name) for run in runs if run.family in FAMILIES and FAMILIES[run.family].replaced_token_heads]
    if not two or "replaced_tokens" in needs:
        return ""
    predicts = "the generator, which predicts masked words"
    which = predicts if "masked_words" in needs else "the discriminator, which tells replaced tokens"
    return f" Of the two networks of {' and '.join(two)}: {which}."
