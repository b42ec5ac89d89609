"""What stands below the phases of a run: how they were found, and what their intervals are."""

from collections.abc import Mapping, Sequence

from embryo_core.curves.phases import FASTER, RESAMPLES, Phase
from embryo_core.figures.phases import RATIO, SIMILARITY

NONE = "No phases can be told apart: the masked-word loss does not turn, or was measured at too few steps."


def found(phases: Sequence[Phase], cases: Mapping[str, int]) -> str:
    """The rule of the phases, the `cases` behind each accuracy, and that nothing took off where nothing did."""
    counted = "".join(f"{title}: n = {n:,}. " for title, n in cases.items())
    words = (
        "Lines that meet at breakpoints were fitted to the masked-word loss over the logarithm of the step. "
        f"“Begins between” is the 95 % interval of a breakpoint, from {RESAMPLES} fits to the line and its residuals "
        "with random signs (wild bootstrap), the nearest of each, and from there to the measured steps on both sides. "
        "The interval does not cover other seeds. In falls and take-offs the loss falls by over "
        f"{FASTER:g} times as much per doubling as over the whole run, and by less in the others. Each change is "
        "between two evaluated steps: the last one up to the beginning of the phase and the last one up to its end. "
        "They are named where they are far from these. The head is the one whose weight changed most. "
        f"“{RATIO}” divides the standard deviation of the position embeddings by that of the words; "
        f"“{SIMILARITY}” is the mean cosine between the states of two pieces of a sentence. {counted}"
        "docs/metrics.md has the rules."
    )
    if any(phase.name == "take-off" for phase in phases):
        return words
    return f"{words} Nothing takes off in this run: no fast fall follows a plateau."
