"""Tests of the number of updates in the quick protocol."""

import numpy as np
import pytest

from embryo_core.finetune.task_specs import quick_settings


@pytest.mark.parametrize(
    ("examples", "length", "updates"),
    [
        (8_551, 12, 2 * 268),  # CoLA: two epochs
        (67_349, 13, 2_000),  # SST-2: the maximum
        (51_121, 40, 2_000),  # MNLI
        (250_000, 125, 1_000),  # SQuAD's windows: 32 of them are 4,000 tokens
        (3_000, 125, 2 * 94),
    ],
)
def test_quick_protocol_takes_two_epochs_within_the_budget(examples: int, length: int, updates: int):
    """A tenth of the updates is warm-up."""
    settings = quick_settings(np.full(examples, length), 1e-4)
    assert (settings.updates, settings.warmup) == (updates, updates // 10)
