"""Tests of the divergences from unigrams and bigrams: intervals, curves, and the phases that captions name."""

import pandas as pd
import pytest

from embryo_core.figures import ngrams
from embryo_core.figures.axis import AxisChoice
from embryo_core.types import Run, StepUnit


def divergences(*rows: tuple[int, float, float]) -> pd.DataFrame:
    """Return a table of divergences from rows (step, unigrams, bigrams), each with a standard error of 0.05."""
    values = [(group, step, one) for step, *both in rows for group, one in zip(("unigram", "bigram"), both)]
    scores = pd.DataFrame(values, columns=["group", "step", "value"]).assign(n=70)
    return ngrams.with_standard_errors(scores, scores.assign(value=0.05))


def test_intervals_are_normal_and_never_negative() -> None:
    """Intervals reach 1.96 standard errors to both sides; a divergence cannot be below 0."""
    rows = divergences((0, 2.0, 3.0), (8, 0.01, 0.9)).set_index(["group", "step"])
    assert rows.loc[("unigram", 0), ["low", "high"]].tolist() == pytest.approx([1.902, 2.098], abs=1e-3)
    assert rows.loc[("unigram", 8), "low"] == 0


def test_divergence_without_standard_error_is_never_significant() -> None:
    """A single mask has a divergence but no interval."""
    scores = divergences((8, 2.0, 1.5))[["group", "step", "value", "n"]]
    table = ngrams.with_standard_errors(scores, scores[:0])
    assert table["value"].tolist() == [1.5, 2.0] and table[["low", "high"]].isna().all(axis=None)
    assert "At no step" in ngrams.describe_divergence(table, "a text", StepUnit.UPDATES).details


def test_both_curves_hold_the_stored_divergences(tiny_results: Run) -> None:
    """Each has its band, and n in its hover text."""
    figure = ngrams.divergence([tiny_results], AxisChoice("log"))
    for group, rows in figure.table.groupby("group"):
        (curve,) = [trace for trace in figure.plot.data if trace.name == group]
        (band,) = [trace for trace in figure.plot.data if trace.name == f"{group}, 95 % band"]
        assert list(curve.y) == list(rows["value"]) and list(band.y) == [*rows["high"], *rows["low"][::-1]]
        assert all(f"n = {n:,}" in point[2] for n, point in zip(rows["n"], curve.customdata))
    assert figure.headline == "" and "masked pieces" in figure.caption.data


def test_caption_names_the_phases() -> None:
    """If bigrams are significantly nearer, there is no unigram phase; one at the first step may have begun earlier."""
    whole = ngrams.describe_divergence(divergences((0, 2, 3), (8, 0.5, 1.5), (16, 2, 1)), "a text", StepUnit.UPDATES)
    assert "step 8 (0.50 nats): the unigram phase" in whole.summary and "step 16" in whole.details
    split = ngrams.describe_divergence(divergences((1, 2, 1), (8, 1, 2), (1000, 2, 1)), "", StepUnit.UPDATES)
    assert "At steps 1, 1,000 (2 in all)" in split.details
    assert "first" not in whole.summary and whole.data == "Data: a text."
    late = ngrams.describe_divergence(divergences((8, 0.5, 1.5), (16, 0.6, 1)), "", StepUnit.WORDS)
    assert "8 words (0.50 nats), the first" in late.summary and "At no step" in late.details
    assert "no unigram phase" in ngrams.describe_divergence(divergences((8, 2.0, 1.5)), "", StepUnit.UPDATES).summary
