"""What the caption of the divergences from unigrams and bigrams says: when each is least, and which phases show."""

import pandas as pd

from app.captions.markdown import literal
from embryo_core.words import point, points


def divergence(data: pd.DataFrame, note: str, counted_in: str = "updates") -> str:
    """The caption of `charts.ngrams.divergences`, computed on what the `note` says."""
    by_group = {group: rows.set_index("step") for group, rows in data.groupby("group")}
    unigram, bigram = by_group["unigram"], by_group["bigram"]
    step = int(unigram["value"].idxmin())
    first = ", the first that was evaluated, so that it may have been earlier" if step == unigram.index.min() else ""
    return (
        f"Predictions are nearest to the frequencies of single pieces at {point(step, counted_in)} "
        f"({unigram['value'].min():.2f} nats){first}: the unigram phase, in which the model knows which pieces are "
        f"frequent and little else. {_bigram_phase(unigram, bigram, counted_in)} Where both rise, the model uses more "
        "of the sentence than the piece before. Kullback-Leibler divergence from the model's distribution to both, "
        f"mean over masked pieces; band: 95 % interval. Data: {literal(note)}."
    )


def _bigram_phase(unigram: pd.DataFrame, bigram: pd.DataFrame, counted_in: str) -> str:
    """Where predictions are surely nearer to what follows the piece before than to frequencies."""
    nearer = bigram.index[bigram["high"] < unigram["low"].reindex(bigram.index)]
    if nearer.empty:
        return "At no step are they surely nearer to what follows the piece before (bigrams)."
    steps = points(int(nearer.min()), int(nearer.max()), counted_in)
    return f"They are surely nearer to what follows the piece before (bigrams) than to these at {steps}."
