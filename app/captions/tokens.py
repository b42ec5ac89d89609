"""What the captions of the Tokens page say: the task, the data, what the lines and bands are."""

import pandas as pd

from app.captions.markdown import literal

TASKS = {
    "mask_prediction": "every word is masked as a whole and predicted from its sentence; all its pieces must match",
    "token_reconstruction": "every word is left in its sentence and predicted from its own states; all its pieces must "
    "match",
}


def accuracy(metric: str, title: str, note: str, data: pd.DataFrame, rescaled: bool, bands: bool) -> str:
    """The caption of the curves `data` of a metric, computed on what the `note` says."""
    counts = data.groupby("group")["n"].last().sort_values()
    fewest, most = (f"{counts.iloc[i]:,} ({literal(counts.index[i])})" for i in (0, -1))
    task = f"{title}: {TASKS[metric]}" if metric in TASKS else title
    return (
        f"{task}. Data: {literal(note)}; n = {fewest} to {most} words per category. "
        "Line: mean of three neighbouring checkpoints; faint line: as measured"
        + ("; band: 95 % interval (Wilson) of the measured accuracy" if bands else "")
        + (", both divided by the accuracy at the last step, as in the paper" if rescaled else "")
        + ". Click a point to see the words behind it below."
    )


def acquisition(order: pd.DataFrame) -> str:
    """The rule of the onset, and the categories that have none."""
    never = ", ".join(map(literal, order.loc[order["onset"].isna(), "group"]))
    rule = "First step from which the smoothed accuracy stays at or above half of its last value."
    return f"{rule} Without an onset: {never}." if never else rule


def words(found: pd.DataFrame, words: pd.DataFrame) -> str:
    """How many words were `found` among all `words` of a category, and how many of their occurrences are correct."""
    return (
        f"{len(found):,} of {len(words):,} words of this category; "
        f"{found['correct'].sum():,} of {found['n'].sum():,} occurrences predicted correctly."
    )
