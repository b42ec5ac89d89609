"""Compare runs: progress, designs and their seeds, orders of acquisition, differences, and early signals."""

import sys

from embryo_core import CallablePackage
from embryo_core.compare.acquisition import (
    CHANCE,
    PAPER,
    PARTS_OF_SPEECH,
    RULES,
    Rule,
    acquisition,
    acquisitions,
    agreements,
    seed_agreements,
)
from embryo_core.compare.cost import parameters, training_flops
from embryo_core.compare.design import DESIGN_CHOICES, MASKED_PIECES, design, designs, differing_choices
from embryo_core.compare.differences import MASKED_ACCURACY, PAIRS_PREFIX, WORLD_KNOWLEDGE, differences, measures
from embryo_core.compare.early_signals import MIN_RUNS, early_signals
from embryo_core.compare.progress import UNITS, StepCounts, Unit, progress
from embryo_core.compare.seeds import (
    average_acquisitions,
    average_seeds,
    group_by_design,
    group_by_size,
    size_of,
)

sys.modules[__name__].__class__ = CallablePackage  # `embryo.compare(...)` for notebooks
