"""The vocabulary: where a run's results are, and what findings and an attention map are."""

from pathlib import Path

import numpy as np
import pytest

from embryo_core.types import AttentionMap, Findings, Run


def test_results_are_beside_the_runs(tiny_run: Run):
    """<root>/runs/<run> has its results in <root>/results/<run>."""
    root = tiny_run.path.parents[1]
    assert tiny_run.results == root / "results" / "tiny"
    assert tiny_run.tokenizer == root / "runs" / "tiny" / "tokenizer"


def test_a_run_is_hashable_and_frozen(tiny_run: Run):
    """Runs are keys of caches, and nobody changes them."""
    assert hash(tiny_run) == hash(tiny_run)
    with pytest.raises(AttributeError):
        tiny_run.path = Path("elsewhere")


def test_attention_maps_compare_by_identity():
    """A map holds an array, whose equality is no single truth value."""
    maps = [AttentionMap(1, 1, np.eye(2), sentences=1) for _ in range(2)]
    assert maps[0] != maps[1]


def test_findings_share_no_list():
    """Two empty findings are filled apart."""
    first, second = Findings(), Findings()
    first.scores.append("score")
    assert second.scores == []
