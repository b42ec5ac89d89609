"""What the captions of the Compare page say: how rows, orders and differences are counted."""

from collections.abc import Mapping, Sequence

import pandas as pd

from embryo_core.compare import KNOWLEDGE, MASKED
from embryo_core.figures.markdown import literal
from embryo_core.words import span

DIFFERS = "≠ marks rows in which the runs differ. "
DESIGN = (
    "Parameters are those of the last checkpoint that has weights; what layers share counts once. Tokens per second is "
    "the median of the log; machines may differ. FLOPs are counted from the configuration (docs/metrics.md). Seeds of "
    "one design are one column; numbers in which they differ are a mean with its range. Dates are in UTC, "
    "those of the log; “(file)” marks those of the files here, which of a copied run tell when it was copied."
)
AGREEMENT = (
    "Spearman's rho of two orders of acquisition, from −1 (reversed) to 1 (the same), with its 95 % interval over the "
    "n categories that both have acquired. Ties share their mean rank. Where two orders are equal, the interval "
    "has no width. The paper's order has all function words first, then verb, adverb, adjective, noun, proper noun."
)

BEGAN = " Of a run that goes on from the other: at its last step, minus where it began."
FACTS = " World knowledge: the facts that both were asked."
CUT = " Masked accuracy counts pieces, which their tokenizers cut differently."
VISIBLE = " Masked accuracy is that of each run's own masking: {}. Pieces left as they are can be read off."
SEEDS = " Of several seeds of one design: the mean, and a line from the lowest to the highest."


def changed(choices: Sequence[str]) -> str:
    """The heading of what runs that differ in these choices have to show for it."""
    return f"What the {choices[0]} changed" if len(choices) == 1 else f"What changed: {', '.join(choices)}"


def differences(
    choices: Sequence[str], first: str, table: pd.DataFrame, seeds: bool, masked: Mapping[str, str]
) -> str:
    """What one figure compares, with runs that differ in these choices from the `first`.

    Whether any is a mean over `seeds`; and what stands for the `masked` pieces of each run.
    """
    changes = " ".join(f"{run}, {change}." for run, change in dict(table[["run", "change"]].values).items())
    together = "All of these changed at once, and the figure cannot tell them apart. " if len(choices) > 1 else ""
    cut = CUT if "tokenizer" in choices else ""
    if len(set(masked.values())) > 1 and (table["measure"] == MASKED).any():
        cut += VISIBLE.format(literal("; ".join(f"{run} {kinds}" for run, kinds in masked.items())))
    facts = FACTS if (table["measure"] == KNOWLEDGE).any() else ""
    lacking = table[table["difference"].isna()]
    missing = [f"{row.measure} ({row.run})" for row in lacking.itertuples()]
    left_out = f" Not measured at a step that both have: {literal(', '.join(missing))}." if missing else ""
    pooling, cases = SEEDS if seeds else "", pd.concat([table["n_first"], table["n_second"]])
    ends = "" if table["step_first"].equals(table["step_second"]) else BEGAN
    steps = table["step_second"].dropna().astype(int)
    at = span(steps) if steps.nunique() == 1 else f"{span(steps)}, by measure"
    return (
        f"{together}Accuracy of each run minus that of {literal(first)}, at the last step that both have ({at})."
        f"{ends} What changed: {literal(changes)} Line: 95 % interval (Newcombe).{pooling}{facts}{cut} Probing tasks: "
        f"the layer with the best F1 at that step; n = {span(cases)} cases.{left_out}"
    )
