"""What the caption of the divergences from unigrams and bigrams says: where each is least, and what that means."""

import pandas as pd

from app.captions.markdown import literal


def divergence(data: pd.DataFrame, note: str) -> str:
    """The caption of `charts.ngrams.divergences`, computed on what the `note` says."""
    least = data.loc[data.groupby("group")["value"].idxmin()].set_index("group")
    unigram, bigram = ((int(least.loc[group, "step"]), least.loc[group, "value"]) for group in ("unigram", "bigram"))
    return (
        f"Predictions are nearest to the frequencies of single pieces at step {unigram[0]:,} ({unigram[1]:.2f} nats), "
        f"and to what follows the piece before at step {bigram[0]:,} ({bigram[1]:.2f} nats). While the first is small, "
        "the model knows which pieces are frequent and little else: the unigram phase. Where the second falls, it uses "
        "the piece before: the bigram phase. Where both rise, it uses more of the sentence than that. Kullback-Leibler "
        "divergence from the model's distribution to both, mean over masked pieces; band: 95 % interval. Data: "
        f"{literal(note)}."
    )
