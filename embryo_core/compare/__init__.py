"""Runs beside each other: how far each had come, seeds of one design, designs, orders of acquisition, choices."""

from embryo_core.compare.acquisition import PAPER, PARTS_OF_SPEECH, RULES, Rule, acquisition, acquisitions, agreements
from embryo_core.compare.choices import KNOWLEDGE, MASKED, differences, goes_on_from
from embryo_core.compare.design import CHOICES, MASKED_PIECES, design, designs, differing_choices
from embryo_core.compare.flops import training_flops
from embryo_core.compare.parameters import parameters
from embryo_core.compare.pooled import pooled, pooled_differences
from embryo_core.compare.progress import UNITS, Progress, Unit, progress
from embryo_core.compare.seeds import by_design, by_size, over_seeds

__all__ = [
    "CHOICES",
    "KNOWLEDGE",
    "MASKED",
    "MASKED_PIECES",
    "PAPER",
    "PARTS_OF_SPEECH",
    "RULES",
    "UNITS",
    "Progress",
    "Rule",
    "Unit",
    "acquisition",
    "acquisitions",
    "agreements",
    "by_design",
    "by_size",
    "design",
    "designs",
    "differences",
    "differing_choices",
    "goes_on_from",
    "over_seeds",
    "parameters",
    "pooled",
    "pooled_differences",
    "progress",
    "training_flops",
]
