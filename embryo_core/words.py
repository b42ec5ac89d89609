"""Format numbers and steps for sentences: "1 checkpoint", "28.3 %", "steps 0 to 1,000"."""

import re
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING

from embryo_core.types import StepUnit

if TYPE_CHECKING:
    import pandas as pd

MAX_LISTED_STEPS = 8  # longer lists of steps are shortened


def quantity(n: int, noun: str) -> str:
    """Return a count with its regular noun: "1 checkpoint", "1,000 checkpoints"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def percent(share: float, decimals: int = 1) -> str:
    """Return a share in percent: "28.3 %"."""
    return f"{share:.{decimals}%}".replace("%", " %")


def two_digits(number: float) -> float:
    """Round a number to two significant digits: 12,345 to 12,000."""
    return float(f"{number:.2g}")


def without_treebank_spaces(text: str) -> str:
    """Return a text in ordinary spelling, without the spaces that treebanks have before punctuation."""
    return re.sub(r" +([.,;:?!])", r"\1", text)


def count_range(n: "pd.Series") -> str:
    """Return the range of counts, ignoring missing ones: "1,000", or "8 to 1,000"."""
    lowest, highest = f"{n.min():,.0f}", f"{n.max():,.0f}"
    return lowest if lowest == highest else f"{lowest} to {highest}"


def name_step(step: int | str, unit: StepUnit) -> str:
    """Return a step, or a figure's placeholder for a step, with its unit: "step 1,000", or "1,000 words"."""
    number = f"{step:,}" if isinstance(step, Integral) else step
    if unit == StepUnit.UPDATES:
        return f"step {number}"
    return f"{number} {unit.removesuffix('s') if number == '1' else unit}"


def name_step_range(first: int, last: int, unit: StepUnit) -> str:
    """Return a range of steps: "step 8", "steps 0 to 1,000", or "0 to 1,000 words"."""
    if first == last:
        return name_step(first, unit)
    return with_step_unit(f"{first:,} to {last:,}", unit)


def step_heading(text: str, unit: StepUnit) -> str:
    """Return the heading of a table's column of steps: "peak at step", or "peak at, in words"."""
    return f"{text} step" if unit == StepUnit.UPDATES else f"{text}, in {unit}"


def step_unit_name(unit: StepUnit) -> str:
    """Return the title of an axis of steps: "step", or "words"."""
    return "step" if unit == StepUnit.UPDATES else unit


def list_steps(steps: Sequence[int], unit: StepUnit) -> str:
    """Return ascending steps, shortened if many: "step 8", "steps 0, 8 (2 in all)", or "0, 8 words (2 in all)"."""
    step_texts = [f"{step:,}" for step in steps]
    if len(step_texts) == 1:
        return name_step(steps[0], unit)
    shown = step_texts if len(step_texts) <= MAX_LISTED_STEPS else [*step_texts[:4], "…", step_texts[-1]]
    return f"{with_step_unit(', '.join(shown), unit)} ({len(step_texts):,} in all)"


def join_steps(steps: Sequence[int], unit: StepUnit) -> str:
    """Return all of these steps as a list in words: "step 8", "steps 0, 8 and 16", or "0, 8 and 16 words"."""
    *step_texts, last = (f"{step:,}" for step in steps)
    return with_step_unit(f"{', '.join(step_texts)} and {last}", unit) if step_texts else name_step(steps[0], unit)


def with_step_unit(numbers: str, unit: StepUnit) -> str:
    """Return a text with the numbers of several steps, with their unit: "steps 0, 8", or "0, 8 words"."""
    return f"steps {numbers}" if unit == StepUnit.UPDATES else f"{numbers} {unit}"


def sentence_case(text: str) -> str:
    """Return a text with its first letter capitalised and the rest unchanged."""
    return text[:1].upper() + text[1:]


def family_name(family: str) -> str:
    """Return the display name of a model family: "ALBERT", "GPT-2"."""
    return {"gpt2": "GPT-2", "gpt_neox": "GPT-NeoX"}.get(family, family.upper())


def layer_name(layer: int) -> str:
    """Return the display name of a layer: "layer 1", or "embeddings" for 0."""
    return f"layer {layer}" if layer else "embeddings"


def join_names(names: Sequence[str]) -> str:
    """Join names into a list in a sentence: "a, b and c"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
