"""What the captions of the Tokens page say: the task, the data, what the lines and bands are."""

from collections.abc import Iterable

import pandas as pd

from embryo_core.compare import Rule
from embryo_core.figures.captions.markdown import literal
from embryo_core.words import points

TASKS = {
    "mask_prediction": "every word is masked as a whole and predicted from its sentence; all its pieces must match",
    "replaced_token_accuracy": "a word is right when the discriminator calls its pieces original in the sentence, and "
    "replaced where the generator's samples stand for them",
    "token_reconstruction": "every word is left in its sentence and predicted from its own states; all its pieces must "
    "match",
}
BASELINE = (
    "; dashed, or a stroke at the right: always answering the category's most frequent word, counted on the same words "
    "of the treebank. This baseline is told the category, the model is not"
)
NONE_ACQUIRED = "No category has an accuracy above 0 at the last step, so there is no order yet."
ONE_WORD = 0.9  # share of a category's right answers above which one word alone makes its curve
FEWEST = 10  # right answers from which a share is given


def accuracy(
    metric: str, title: str, note: str, data: pd.DataFrame, chosen: Iterable[str], rescaled: bool, bands: bool
) -> str:
    """The caption of the curves `data` of a metric, computed on what the `note` says, of these `chosen` categories."""
    counts = data.groupby("group")["n"].last().sort_values()
    fewest, most = (f"{counts.iloc[i]:,} ({literal(counts.index[i])})" for i in (0, -1))
    task = f"{title}: {TASKS[metric]}" if metric in TASKS else title
    lacking = ", ".join(literal(group) for group in chosen if group not in counts.index)
    left_out = f" Left out: {lacking}, {'0 at the last step' if rescaled else 'not evaluated'}." if lacking else ""
    return (
        f"{task}. Data: {literal(note)}; n = {fewest} to {most} words per category. Line: as measured"
        + ("; band: its 95 % interval (Wilson)" if bands else "")
        + ("; divided by the accuracy at the last step, as in the paper" if rescaled else "")
        + (BASELINE if "baseline" in data and data["baseline"].notna().any() else "")
        + f".{left_out} Click a point to see the words behind it below."
    )


HALF = (
    "First step from which the accuracy stays at or above half of its last value. Dips within its 95 % interval "
    "are left out of account. Line: the steps between which it may lie."
)
FROM_ZERO = (
    "First step from which the accuracy stays at or above a tenth of its last value, where it rises from zero. "
    "Of categories that rise at the same checkpoint, the one with the steeper rescaled slope is faster, as in "
    "Appendix C.4 of the paper; docs/metrics.md has the rule. Dips within the 95 % interval are left out of account. "
    "Line: the steps between which the rise may lie."
)
ONSETS: dict[Rule, str] = {"half": HALF, "paper": FROM_ZERO}
TIES: dict[Rule, str] = {
    "half": "Categories that share a place (=) were acquired between the same two checkpoints.",
    "paper": "Categories that share a place (=) rise at the same checkpoint with slopes that cannot be told apart.",
}


def acquisition(order: pd.DataFrame, rule: Rule) -> str:
    """The rule of the order, and the categories that have no onset."""
    never = ", ".join(map(literal, order.loc[order["onset"].isna(), "group"]))
    words = f"{ONSETS[rule]} {TIES[rule]}"
    return f"{words} Without an onset: {never}." if never else words


def one_word(answers: pd.DataFrame, counted_in: str = "updates") -> str:
    """Which categories are right by one word alone, and at which steps; `answers` are those of all categories.

    See `results.commonest_answers`; nothing where there are none.
    """
    alone = answers[(answers["share"] > ONE_WORD) & (answers["right"] >= FEWEST)]
    remarks = []
    for (group, word), rows in alone.groupby(["group", "word"], sort=False):
        steps = points(int(rows["step"].min()), int(rows["step"].max()), counted_in)
        of_words = rows["of_words"].iloc[-1]
        remarks.append(
            f"{literal(group)} at {steps}: “{literal(word)}”, {100 * of_words:.0f} % of the category's words"
        )
    if not remarks:
        return ""
    return f" One word is more than {100 * ONE_WORD:.0f} % of all right answers: {'; '.join(remarks)}."


def words(found: pd.DataFrame, words: pd.DataFrame) -> str:
    """How many words were `found` among all `words` of a category, and how many of their occurrences are correct."""
    return (
        f"{found['word'].nunique():,} of {words['word'].nunique():,} words; "
        f"{found['correct'].sum():,} of {found['n'].sum():,} occurrences predicted correctly. "
        "Click a word to follow it on the Query page."
    )
