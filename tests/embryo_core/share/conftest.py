"""Fixtures: the history of one head, as averaged maps and for one sentence with hostile tokens."""

from dataclasses import replace

import numpy as np
import pytest

from embryo_core.share import HeadHistory
from embryo_core.types import StepUnit


@pytest.fixture
def history() -> HeadHistory:
    """Return the history of a head whose attention turns from uniform to diagonal in three steps."""
    weights = np.stack([np.full((4, 4), 0.25), 0.125 + 0.5 * np.eye(4), np.eye(4)]).astype(np.float32)
    note = "Attention weights, averaged over 1,000 sentences"
    return HeadHistory("tiny", 2, 1, note, np.array([0, 8, 16]), weights, step_unit=StepUnit.UPDATES)


@pytest.fixture
def sentence(history: HeadHistory) -> HeadHistory:
    """Return the same history for one sentence with hostile, long and foreign tokens."""
    return replace(history, tokens=("[CLS]", "</script><img src=x onerror=alert(1)>", "Þαж▁", "[SEP]"))
