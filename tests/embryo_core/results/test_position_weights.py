"""Tests that weights on fixed positions equal those computed from the attention maps, however the maps are stored."""

import numpy as np
import pandas as pd
import pytest

from embryo_core import results
from embryo_core.curves import normalise_rows
from embryo_core.curves.scores import POSITIONS, position_weights
from embryo_core.errors import ResultsError
from embryo_core.measurements import AttentionMap, Findings
from embryo_core.results.summaries import POSITION_WEIGHTS_SUMMARY
from embryo_core.types import Run
from tests.conftest import checkpoint_at
from tests.embryo_core.results.conftest import STEPS, find, lose

HEADS = [(layer, head) for layer in (1, 2) for head in (1, 2, 3)]
NORMALISED = [False, True]


def write(run: Run, *steps: int, seed: int = 0) -> None:
    """Write pending maps of all heads at these steps, with rows that do not sum to 1."""
    for step in steps:
        attention = find("attention", step, seed).attention
        maps = [
            AttentionMap(head_map.layer, head_map.head, head_map.weights * 0.75**head_map.head, head_map.sentences)
            for head_map in attention
        ]
        results.write(checkpoint_at(run, step), "attention", Findings(attention=maps))


def of_maps(run: Run, layer: int, head: int, normalised: bool) -> pd.DataFrame:
    """Return the position weights of a head, computed from its maps."""
    maps = results.read_attention(run, layer, head)
    means = position_weights(normalise_rows(maps.weights) if normalised else maps.weights)
    return pd.DataFrame({"step": maps.steps} | dict(zip(POSITIONS, means.T, strict=True)))


def check(run: Run) -> None:
    """Check every head, with rows as stored and normalised, which give different weights."""
    for layer, head in HEADS:
        weights = [results.read_position_weights(run, layer, head, normalised) for normalised in NORMALISED]
        for normalised, frame in zip(NORMALISED, weights, strict=True):
            pd.testing.assert_frame_equal(frame, of_maps(run, layer, head, normalised), check_exact=True)
        assert not weights[0].equals(weights[1])


@pytest.mark.parametrize("compacted", [False, True])
def test_position_weights_equal_those_of_the_maps(run: Run, compacted: bool):
    """They come from pending parts or the summary, and stay equal after a later step and after a repeated step."""
    write(run, *STEPS[:-1])
    if compacted:
        results.compact(run)
    assert (run.results / POSITION_WEIGHTS_SUMMARY.file).exists() == compacted
    check(run)
    write(run, STEPS[-1])
    check(run)
    write(run, STEPS[1], seed=1)
    check(run)
    results.compact(run)
    check(run)


def test_position_weights_are_read_from_summary(run: Run, monkeypatch: pytest.MonkeyPatch):
    """Only the maps of pending parts are read, so that no page waits for the maps of a long series."""
    write(run, *STEPS[:-1])
    results.compact(run)
    write(run, STEPS[-1])
    expected = of_maps(run, 2, 1, False)
    for name in ("read_table", "read_attention"):
        monkeypatch.setattr(f"embryo_core.results.summaries.{name}", None)
    assert results.read_position_weights(run, 2, 1).equals(expected)


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_damaged_summary_is_recomputed(run: Run, damage: str):
    """The next compaction writes the same bytes again."""
    write(run, *STEPS)
    results.compact(run)
    path = run.results / POSITION_WEIGHTS_SUMMARY.file
    whole = path.read_bytes()
    lose(path, damage)
    check(run)
    results.compact(run)
    assert path.read_bytes() == whole


def test_compaction_accepts_maps_of_two_lengths(run: Run):
    """The error is raised when the maps are read as one history."""
    write(run, *STEPS[:-1])
    other = [AttentionMap(layer, head, np.ones((3, 3)), 7) for layer, head in HEADS]
    results.write(checkpoint_at(run, STEPS[-1]), "attention", Findings(attention=other))
    results.compact(run)
    assert set(results.read_position_weights(run, 1, 1)["step"]) == {*STEPS}  # the means of each step are separate
    with pytest.raises(ResultsError, match=r"length \(3, 4\)"):
        results.read_attention(run, 1, 1)


def test_maps_of_one_position_do_not_stop_compaction(run: Run):
    """A single position has no other to attend to; the two lengths are reported when the weights are read."""
    single = [AttentionMap(layer, head, np.ones((1, 1)), 7) for layer, head in HEADS]
    results.write(checkpoint_at(run, 0), "attention", Findings(attention=single))
    write(run, 8)
    results.compact(run)
    with pytest.raises(ResultsError, match=r"length \(1, 4\)"):
        results.read_position_weights(run, 1, 1)


def test_empty_run_has_no_position_weights(run: Run):
    """No file is created."""
    assert results.read_position_weights(run, 1, 1).empty and not run.results.exists()
