"""Tests of the types: where a run's results are, and how findings and attention maps behave."""

from pathlib import Path

import numpy as np
import pytest

from embryo_core.measurements import AttentionMap, Findings
from embryo_core.types import Run


def test_results_are_beside_the_runs(tiny_run: Run):
    """The results of <root>/runs/<run> are in <root>/results/<run>."""
    root = tiny_run.path.parents[1]
    assert tiny_run.results == root / "results" / "tiny"
    assert tiny_run.tokenizer == root / "runs" / "tiny" / "tokenizer"


def test_run_is_hashable_and_frozen(tiny_run: Run):
    """Runs are keys of caches, so nothing may change them."""
    assert hash(tiny_run) == hash(tiny_run)
    with pytest.raises(AttributeError):
        tiny_run.path = Path("elsewhere")


def test_attention_maps_compare_by_identity():
    """Comparing the arrays of two maps would not give a single truth value."""
    maps = [AttentionMap(1, 1, np.eye(2), sentences=1) for _ in range(2)]
    assert maps[0] != maps[1]


def test_findings_share_no_list():
    """A score added to one empty Findings is not in another."""
    first, second = Findings(), Findings()
    first.scores.append("score")
    assert second.scores == []
