"""Weights on fixed positions are read as they are computed from the maps, however these are stored."""

import numpy as np
import pandas as pd
import pytest

from embryo_core import results
from embryo_core.curves import normalise_rows
from embryo_core.curves.scores import POSITIONS, position_weights
from embryo_core.errors import ResultsError
from embryo_core.results.position_weights import WEIGHTS
from embryo_core.types import AttentionMap, Findings, Run
from tests.conftest import at
from tests.embryo_core.results.conftest import STEPS, find, lose

HEADS = [(layer, head) for layer in (1, 2) for head in (1, 2, 3)]
NORMALISED = [False, True]


def write(run: Run, *steps: int, seed: int = 0) -> None:
    """Return maps of all heads at these steps, pending; of rows that do not sum to 1."""
    for step in steps:
        found = find("attention", step, seed).attention
        maps = [AttentionMap(one.layer, one.head, one.weights * 0.75**one.head, one.sentences) for one in found]
        results.write(at(run, step), "attention", Findings(attention=maps))


def of_maps(run: Run, layer: int, head: int, normalised: bool) -> pd.DataFrame:
    """Return the same, computed from the maps of the head."""
    maps = results.read_attention(run, layer, head)
    means = position_weights(normalise_rows(maps.weights) if normalised else maps.weights)
    return pd.DataFrame({"step": maps.steps} | dict(zip(POSITIONS, means.T, strict=True)))


def check(run: Run) -> None:
    """Of every head, with rows as they are and normalised, which differ."""
    for layer, head in HEADS:
        found = [results.read_position_weights(run, layer, head, normalised) for normalised in NORMALISED]
        for normalised, frame in zip(NORMALISED, found, strict=True):
            pd.testing.assert_frame_equal(frame, of_maps(run, layer, head, normalised), check_exact=True)
        assert not found[0].equals(found[1])


@pytest.mark.parametrize("compacted", [False, True])
def test_they_are_what_the_maps_say(run: Run, compacted: bool):
    """From pending evaluations and from the summary, once a later step has come, and once a step was evaluated anew."""
    write(run, *STEPS[:-1])
    if compacted:
        results.compact(run)
    assert (run.results / WEIGHTS.file).exists() == compacted
    check(run)
    write(run, STEPS[-1])
    check(run)
    write(run, STEPS[1], seed=1)
    check(run)
    results.compact(run)
    check(run)


def test_the_summary_is_read_and_not_the_maps(run: Run, monkeypatch: pytest.MonkeyPatch):
    """No page waits for the maps of a long series; those of a part are read."""
    write(run, *STEPS[:-1])
    results.compact(run)
    write(run, STEPS[-1])
    expected = of_maps(run, 2, 1, False)
    for name in ("read_table", "read_attention"):
        monkeypatch.setattr(f"embryo_core.results.position_weights.{name}", None)
    assert results.read_position_weights(run, 2, 1).equals(expected)


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_summary_that_cannot_be_trusted_is_computed_anew(run: Run, damage: str):
    """And written again by the next compaction, byte for byte."""
    write(run, *STEPS)
    results.compact(run)
    path = run.results / WEIGHTS.file
    whole = path.read_bytes()
    lose(path, damage)
    check(run)
    results.compact(run)
    assert path.read_bytes() == whole


def test_maps_of_two_lengths_do_not_hinder_compaction(run: Run):
    """They are explained where they are read."""
    write(run, *STEPS[:-1])
    other = [AttentionMap(layer, head, np.ones((3, 3)), 7) for layer, head in HEADS]
    results.write(at(run, STEPS[-1]), "attention", Findings(attention=other))
    results.compact(run)
    assert set(results.read_position_weights(run, 1, 1)["step"]) == {*STEPS}  # each step has its own means
    with pytest.raises(ResultsError, match=r"length \(3, 4\)"):
        results.read_attention(run, 1, 1)


def test_maps_of_one_position_are_left_out_of_the_summary(run: Run):
    """Which has no other position to attend to; the next step's are there."""
    single = [AttentionMap(layer, head, np.ones((1, 1)), 7) for layer, head in HEADS]
    results.write(at(run, 0), "attention", Findings(attention=single))
    write(run, 8)
    results.compact(run)
    with pytest.raises(ResultsError, match=r"length \(1, 4\)"):
        results.read_position_weights(run, 1, 1)


def test_without_maps_there_are_none(run: Run):
    """No step, no file."""
    assert results.read_position_weights(run, 1, 1).empty and not run.results.exists()
