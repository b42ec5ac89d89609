"""The quick protocol's number of updates."""

import numpy as np
import pytest

from embryo_core.finetune.task_specs import quick_settings


@pytest.mark.parametrize(
    ("examples", "length", "updates"),
    [
        (8_551, 12, 2 * 268),  # CoLA: two epochs
        (67_349, 13, 2_000),  # SST-2: as many as there are at most
        (51_121, 40, 2_000),  # MNLI
        (250_000, 125, 1_000),  # SQuAD's windows: 32 of them are 4,000 pieces
        (3_000, 125, 2 * 94),
    ],
)
def test_two_epochs_within_the_budget(examples: int, length: int, updates: int):
    """A tenth of the updates is warm-up."""
    settings = quick_settings(np.full(examples, length), 1e-4)
    assert (settings.updates, settings.warmup) == (updates, updates // 10)
