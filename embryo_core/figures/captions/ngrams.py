"""What the caption of the divergences from unigrams and bigrams says: when each is least, and which phases show."""

import pandas as pd

from embryo_core.figures.markdown import literal
from embryo_core.types import StepUnit
from embryo_core.words import point, points


def divergence(data: pd.DataFrame, note: str, unit: StepUnit) -> str:
    """The caption of `charts.ngrams.divergences`, computed on what the `note` says."""
    by_group = {group: rows.set_index("step") for group, rows in data.groupby("group")}
    unigram, bigram = by_group["unigram"], by_group["bigram"]
    step = int(unigram["value"].idxmin())
    if step in _nearer_to_bigrams(unigram, bigram):
        phase = ", when they are nearer to what follows the piece before: no unigram phase is among these steps"
    else:
        phase = ": the unigram phase, in which the model knows which pieces are frequent and little else"
        if step == unigram.index.min():
            phase = f", the first that was evaluated, so that it may have been earlier{phase}"
    return (
        f"Predictions are nearest to the frequencies of single pieces at {point(step, unit)} "
        f"({unigram['value'].min():.2f} nats){phase}. {_bigram_phase(unigram, bigram, unit)} Where both rise, "
        "the model uses more of the sentence than the piece before. Kullback-Leibler divergence from the model's "
        f"distribution to both, mean over masked pieces; band: 95 % interval. Data: {literal(note)}."
    )


def _bigram_phase(unigram: pd.DataFrame, bigram: pd.DataFrame, unit: StepUnit) -> str:
    """Where predictions are surely nearer to what follows the piece before than to frequencies."""
    nearer = _nearer_to_bigrams(unigram, bigram)
    if nearer.empty:
        return "At no step are they surely nearer to what follows the piece before (bigrams)."
    steps = points(int(nearer.min()), int(nearer.max()), unit)
    return f"They are surely nearer to what follows the piece before (bigrams) than to these at {steps}."


def _nearer_to_bigrams(unigram: pd.DataFrame, bigram: pd.DataFrame) -> pd.Index:
    """The steps at which predictions are surely nearer to bigrams."""
    return bigram.index[bigram["high"] < unigram["low"].reindex(bigram.index)]
