"""Compare runs: progress, designs and their seeds, orders of acquisition, differences, and early signals."""

from embryo_core.comparison.acquisition import (
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
from embryo_core.comparison.cost import parameters, training_flops
from embryo_core.comparison.design import DESIGN_CHOICES, MASKED_PIECES, design, designs, differing_choices
from embryo_core.comparison.differences import MASKED_ACCURACY, PAIRS_PREFIX, WORLD_KNOWLEDGE, differences, measures
from embryo_core.comparison.early_signals import MIN_RUNS, early_signals
from embryo_core.comparison.progress import UNITS, StepCounts, Unit, progress
from embryo_core.comparison.seeds import (
    average_acquisitions,
    average_seeds,
    group_by_design,
    group_by_size,
    size_of,
)
