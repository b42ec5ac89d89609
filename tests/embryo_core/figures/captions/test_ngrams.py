"""The words below the divergences from unigrams and bigrams."""

import pandas as pd

from embryo_core.figures.captions import ngrams
from embryo_core.types import StepUnit


def told(*divergences: tuple[int, float, float]) -> str:
    """The caption of divergences from (step, unigrams, bigrams), each known to 0.1."""
    rows = [
        (group, step, value, value - 0.1, value + 0.1)
        for step, *both in divergences
        for group, value in zip(("unigram", "bigram"), both, strict=True)
    ]
    return ngrams.divergence(
        pd.DataFrame(rows, columns=["group", "step", "value", "low", "high"]), "a text", StepUnit.UPDATES
    )


def test_the_unigram_phase_is_where_single_pieces_are_nearest() -> None:
    """And not where predictions are surely nearer to bigrams; the first step may come after it."""
    assert "at step 8 (0.50 nats): the unigram phase" in told((0, 2, 3), (8, 0.5, 1.5), (16, 2, 1))
    assert "the first that was evaluated, so that it may have been earlier: the" in told((8, 0.5, 1.5), (16, 2, 1))
    alone = told((8, 2.0, 1.5))
    assert "(2.00 nats), when they are nearer to what follows the piece before: no unigram phase is among" in alone
