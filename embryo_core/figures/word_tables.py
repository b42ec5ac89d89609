"""Tables of the words of a list: their surprisals, their ages of acquisition, and how many are acquired by a step."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from embryo_core import curves, results
from embryo_core import runs as run_files
from embryo_core.curves.ages import find_ages
from embryo_core.figures.curves import with_intervals
from embryo_core.groups import ALL
from embryo_core.types import Run
from embryo_core.words import two_digits

METRIC = "word_surprisal"
FIT_PARAMETERS = ("top", "bottom", "rate", "middle")
AGE_COLUMNS = "word category age earliest latest why n pieces count unigram bigram beyond children concreteness".split()
AGE_COLUMNS += ["chance", "first", "lowest", *FIT_PARAMETERS]
# columns of the table that pages show of all words
LISTED_COLUMNS = "word category age earliest latest why children beyond lowest n count".split()
PARTLY_MEASURED = "measured at some steps alone"
EXPECTED_LINES = {  # expected surprisal -> label of its line, its definition, and dash of its line
    "unigram": ("by frequency", "by the word's frequency in the {text}", "solid"),
    "bigram": ("by bigrams", "after the word before, by counts of the measured text", "dash-dotted"),
}


@results.memoized
def age_table(run: Run) -> pd.DataFrame:
    """Return every word of the list with the step at which the run acquires it, or the reason why it has none.

    Columns: word, category, age (a step), earliest, latest (see `ages.Ages`), why (the reason if it has no age), n
    (occurrences), pieces, count (in the training text), unigram (bits by the counts of `counted_text`), bigram (bits
    after the word before, by counts of the measured text), beyond (first step from which its surprisal stays
    significantly below these and chance), children (months), concreteness, chance, first and lowest surprisal, and the
    fitted top, bottom, rate and middle. Sorted by age; words without an age come last. Raises ResultsError and
    BrokenRun.
    """
    table = results.read_surprisals(run)
    if table.empty:
        return pd.DataFrame(columns=AGE_COLUMNS)
    starts = np.flatnonzero((table["word"] != table["word"].shift()).to_numpy())  # first row of each word
    ends = np.append(starts[1:], len(table))
    surprisal = table["surprisal"].to_numpy()
    rows = table.iloc[ends - 1][["word", "category", "n", "pieces", "age", "concreteness", "chance"]]
    rows = rows.rename(columns={"age": "children"}).reset_index(drop=True)
    rows = rows.assign(first=surprisal[starts], lowest=np.minimum.reduceat(surprisal, starts))
    rows = rows.join(_estimate_ages(table, starts, ends, rows["chance"].to_numpy()))
    rows["why"] = rows["why"].fillna(PARTLY_MEASURED)
    rows = pd.concat([rows, pd.DataFrame(_read_left_out(run), columns=["word", "why"])], ignore_index=True)
    counts = _count_words(run)
    rows["count"] = [counts.get(word.casefold(), math.nan) for word in rows["word"]]
    recorded = rows["word"].map(_read_expected(run, "unigrams")).astype(float)
    rows["unigram"] = -np.log2(rows["count"] / (run_files.counted_words(run) or 1)) if counts else recorded
    rows["bigram"] = rows["word"].map(_read_expected(run, "bigrams")).astype(float)
    beyond = _steps_beyond(rows, table, zip(starts, ends, strict=True))
    rows["beyond"] = pd.array([*beyond, *[None] * (len(rows) - len(beyond))], "Int64")
    return rows[AGE_COLUMNS].sort_values(["age", "word"], ignore_index=True)


def _estimate_ages(table: pd.DataFrame, starts: np.ndarray, ends: np.ndarray, chance: np.ndarray) -> pd.DataFrame:
    """Return age, earliest, latest, the fit and why of the words with as many occurrences at every step.

    The i-th word has the rows from `starts[i]` to `ends[i]` of `table`, and the index i in the result.
    """
    evaluated_steps, n = np.unique(table["step"]), table["n"].to_numpy()
    is_whole = ends - starts == len(evaluated_steps)
    is_whole &= np.minimum.reduceat(n, starts) == np.maximum.reduceat(n, starts)
    occurrences = table["occurrences"].tolist()
    word_curves = [  # per word, the surprisals [S, n] of its occurrences at every step
        np.frombuffer(b"".join(occurrences[start:end]), "<f2").astype(float).reshape(end - start, -1)
        for start, end in zip(starts[is_whole], ends[is_whole], strict=True)
    ]
    ages = find_ages(evaluated_steps.tolist(), word_curves, chance[is_whole])
    estimates = {"age": ages.step, "earliest": ages.earliest, "latest": ages.latest}
    estimates |= {name: getattr(ages.fits, name) for name in FIT_PARAMETERS}
    return pd.DataFrame({**estimates, "why": ages.reasons}, np.flatnonzero(is_whole))


def _steps_beyond(words: pd.DataFrame, table: pd.DataFrame, spans: Iterable[tuple[int, int]]) -> list[int | None]:
    """Return the column `beyond` of `age_table`; `spans` are the ranges of each word's rows in `table`."""
    lowest = words[[*EXPECTED_LINES, "chance"]].min(axis=1).where(words["unigram"].notna())
    steps, high = table["step"].to_numpy(), table["surprisal"].to_numpy() + interval_half_widths(table)
    return [
        None if math.isnan(bits) else curves.held_from(steps[start:end], bits - high[start:end], 0.0)
        for (start, end), bits in zip(spans, lowest.tolist(), strict=False)
    ]


def interval_half_widths(table: pd.DataFrame) -> np.ndarray:
    """Return half the width of the 95 % interval of each mean surprisal; NaN for a single occurrence.

    `table` comes from `results.read_surprisals`.
    """
    n = table["n"].to_numpy()
    if not len(n):
        return np.zeros(0)
    surprisals, starts = np.frombuffer(b"".join(table["occurrences"]), "<f2").astype(float), np.cumsum(n) - n
    means = np.add.reduceat(surprisals, starts) / n
    squares = np.add.reduceat((surprisals - np.repeat(means, n)) ** 2, starts)
    return curves.Z * np.sqrt(squares / np.where(n > 1, n - 1, np.nan) / n)


def _read_left_out(run: Run) -> Iterator[tuple[str, str]]:
    """Yield each word of the list that was not measured, with the reason that the evaluation recorded."""
    recorded = results.read_sources(run).get(METRIC, {}).get("left_out", {})
    for reason, words in recorded.items() if isinstance(recorded, dict) else ():
        yield from ((word, str(reason)) for word in words if isinstance(word, str)) if isinstance(words, list) else ()


def counted_text(run: Run) -> str:
    """Return the name of the text with the frequencies: the training text or, if it is unknown, the measured text."""
    return "training text" if run_files.has_counts(run.frequencies) else "measured text"


def _read_expected(run: Run, kind: str) -> dict[str, float]:
    """Return the recorded surprisals of words by "unigrams" or "bigrams"; empty for results of earlier versions."""
    recorded = results.read_sources(run).get(METRIC, {}).get(kind, {})
    pairs = recorded.items() if isinstance(recorded, dict) else ()
    return {word: float(bits) for word, bits in pairs if isinstance(bits, int | float) and math.isfinite(bits)}


def _count_words(run: Run) -> Counter[str]:
    """Return the count of each word in the training text, ignoring case."""
    counts: Counter[str] = Counter()
    for word, count in run_files.read_counts(run.frequencies).items():
        counts[word.casefold()] += count
    return counts


def list_words(table: pd.DataFrame) -> pd.DataFrame:
    """Reduce an `age_table` to LISTED_COLUMNS; ages are rounded to two significant digits."""
    ages = table[["age", "earliest", "latest"]].replace([np.inf, -np.inf], np.nan)
    ages = ages.map(lambda age: round(two_digits(age)), na_action="ignore").astype("Int64")
    return table.assign(**ages, n=table["n"].astype("Int64"), count=table["count"].astype("Int64"))[LISTED_COLUMNS]


def acquired_table(run: Run) -> pd.DataFrame:
    """Return the proportion of words acquired by each step, of all and by category: group, step, value, n, low, high.

    n is the number of measured words, with or without an age. Raises ResultsError.
    """
    table = age_table(run)
    table = table[table["n"].notna()]
    steps = sorted(results.read_surprisals(run)["step"].unique())
    rows = []
    for group in [ALL, *table["category"].dropna().unique()]:
        group_rows = table if group == ALL else table[table["category"] == group]
        rows += [(group, step, float((group_rows["age"] <= step).mean()), len(group_rows)) for step in steps]
    return with_intervals(pd.DataFrame(rows, columns=["group", "step", "value", "n"]))


def curve_table(run: Run, word: str) -> pd.DataFrame:
    """Return word, step, surprisal (bits), n, low, high (95 % of the mean), chance of a word. Raises ResultsError."""
    table = results.read_surprisals(run, word)
    half_widths = interval_half_widths(table)
    table = table[["word", "step", "surprisal", "n", "chance"]]
    return table.assign(low=table["surprisal"] - half_widths, high=table["surprisal"] + half_widths)
