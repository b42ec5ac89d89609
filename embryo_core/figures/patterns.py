"""Patterns of attention heads: names and units, tables of scores, and the step at which a head begins to show one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from embryo_core import curves, results
from embryo_core.types import Run

PREFIX = "head_behaviour_"
BASELINE = "fixed_offset"
FIRST_HEAD = ("previous", 1, 1)  # pattern, layer and head that the page opens on without measurements
COLUMNS = ["what", "layer", "head", "step", "value", "n", "offset"]


@dataclass(frozen=True)
class Pattern:
    """One score of a head: its names, the format of its values, and the rule by which it counts as present.

    It is present once the value has changed by one of the `changes` since the first evaluated step (fallen, if the
    change is negative), or has reached the baseline if the change is None. The first of the changes is the default.
    """

    label: str
    y_title: str
    definition: str  # definition of a value, for captions
    changes: tuple[float | None, ...]
    write: Callable[[float], str] = "{:.2f}".format
    tickformat: str = ""

    @property
    def falls(self) -> bool:
        """Return whether low values show the pattern."""
        return (self.changes[0] or 0) < 0


def _weight(label: str, target: str) -> Pattern:
    definition = f"mean weight that a piece of a sentence gives to {target}"
    return Pattern(label, "mean attention weight", definition, (0.05, 0.02, 0.1, 0.2, 0.4))


def _syntax(label: str, link: str) -> Pattern:
    definition = f"unlabelled attachment: the proportion of words {link} (the word itself, [CLS] and [SEP] left out)"
    return Pattern(label, "unlabelled attachment", definition, (None, 0.02, 0.05, 0.1), "{:.0%}".format, ".0%")


PATTERNS = {
    "same": _weight("Same token", "itself"),
    "previous": _weight("Previous token", "the one before it"),
    "next": _weight("Next token", "the one after it"),
    "cls": _weight("Start: [CLS]", "the token that opens the text ([CLS], or a decoder's own)"),
    "sep": _weight("End: [SEP]", "the token that ends the text ([SEP], or a decoder's own)"),
    "punctuation": _weight("Punctuation", "punctuation"),
    "entropy": Pattern(
        "Entropy",
        "entropy (nats)",
        "mean entropy of a piece's weights over all positions, in nats",
        (-0.5, -0.1, -0.2, -1.0, -2.0),
    ),
    "distance": Pattern(
        "Distance",
        "mean distance (pieces)",
        "mean distance between two pieces of a sentence, in pieces, weighted by the attention from one to the other",
        (-1.0, -0.5, -2.0, -4.0),
        "{:.1f}".format,
    ),
    "dependent_to_head": _syntax("Syntax: dependent → head", "that attend most to their syntactic head"),
    "head_to_dependent": _syntax(
        "Syntax: head → dependent", "whose syntactic head is the word that attends most to them"
    ),
}
# patterns that an averaged map shows, as a diagonal or as its first column
MAP_PATTERNS = ("previous", "next", "same", "cls")
WEIGHTS = ("same", "previous", "next", "cls", "sep", "punctuation")  # patterns that are fractions of a head's attention


@results.memoized
def read_behaviour(run: Run, pattern: str | None = None) -> pd.DataFrame:
    """Return the `behaviour_curves` of a run, of all patterns or of one `pattern` and the baseline.

    The table is empty without measurements. Raises ResultsError.
    """
    metrics = [PREFIX + name for name in (pattern, BASELINE)] if pattern else None
    scores = results.read_scores(run, metrics, PREFIX, categories=True)
    return behaviour_curves(scores) if len(scores) else pd.DataFrame(columns=COLUMNS)


def behaviour_curves(scores: pd.DataFrame) -> pd.DataFrame:
    """Return scores of heads (texts are categories) by pattern, sorted.

    Columns: what (a pattern or BASELINE, categorical), layer, head, step, value, n, offset. Rows of the baseline have
    its offset instead of a layer and a head.
    """
    patterns = scores["metric"].cat.rename_categories(lambda metric: metric.removeprefix(PREFIX))
    groups = scores["group"].cat
    number = pd.Series(groups.categories.astype(int).to_numpy()[groups.codes], scores.index, "Int64")
    is_head = scores["layer"].notna()
    frame = scores[["layer", "step", "value", "n"]].assign(
        what=patterns, head=number.where(is_head), offset=number.where(~is_head)
    )
    return frame[COLUMNS].sort_values(["what", "layer", "head", "step"], ignore_index=True)


def baseline(frame: pd.DataFrame) -> tuple[float, int] | None:
    """Return the unlabelled attachment of the best fixed offset, and the offset.

    None if the treebank had no syntactic heads.
    """
    rows = frame[frame["what"] == BASELINE]
    return (float(rows["value"].iloc[0]), int(rows["offset"].iloc[0])) if len(rows) else None


def select_pattern(frame: pd.DataFrame, pattern: str) -> pd.DataFrame:
    """Return the rows of one pattern: layer, head, step, value, n; sorted by layer, head, step."""
    rows = frame.loc[frame["what"] == pattern, ["layer", "head", "step", "value", "n"]]
    return rows.astype({"layer": int, "head": int})


def level(change: float | None, first: float, base: tuple[float, int] | None) -> float:
    """Return the value at which a pattern counts as present in a head whose value at the first step is `first`."""
    if change is not None:
        return first + change
    assert base is not None, "without a baseline every pattern has a change"
    return base[0]


def appearance(curve: pd.DataFrame, change: float | None, base: tuple[float, int] | None) -> int | None:
    """Return the step from which the pattern is present in one head's `curve` (step, value) to its end, or None."""
    values = curve["value"].to_numpy()
    sign = -1 if (change or 0) < 0 else 1
    return curves.held_from(curve["step"].to_numpy(), sign * values, sign * level(change, values[0], base))


def appearances(frame: pd.DataFrame, pattern: str, change: float | None) -> pd.DataFrame:
    """Return the step from which each head shows the pattern to the end: layer, head, step (missing if it does not)."""
    base = baseline(frame)
    rows = [
        {"layer": layer, "head": head, "step": appearance(curve, change, base)}
        for (layer, head), curve in select_pattern(frame, pattern).groupby(["layer", "head"])
    ]
    return pd.DataFrame(rows).astype({"step": "Int64"})


def profile(frame: pd.DataFrame, layer: int, head: int, step: int) -> pd.DataFrame:
    """Return all patterns of one head: what, pattern, first, now (at `step`), last, appears, history (its curve).

    `appears` is by the default change. A history runs from 0, the pattern's lowest value in any head at any step, to 1,
    its highest, so that the curves of two heads can be compared.
    """
    base, rows = baseline(frame), []
    for name, pattern in PATTERNS.items():
        pattern_rows = select_pattern(frame, name)
        curve = pattern_rows[(pattern_rows["layer"] == layer) & (pattern_rows["head"] == head)]
        if curve.empty:
            continue
        low, high = pattern_rows["value"].min(), pattern_rows["value"].max()
        values = curve["value"].tolist()
        now = curve.loc[curve["step"] == step, "value"].iloc[0]
        texts = [pattern.write(value) for value in (values[0], now, values[-1])]
        row = dict(zip(("first", "now", "last"), texts), what=name, pattern=pattern.label)
        row["history"] = ((curve["value"] - low) / ((high - low) or 1)).tolist()
        rows.append(row | {"appears": appearance(curve, pattern.changes[0], base)})
    return pd.DataFrame(rows).astype({"appears": "Int64"})


def strongest(frame: pd.DataFrame, names: Sequence[str] = MAP_PATTERNS) -> tuple[str, int, int] | None:
    """Return pattern, layer and head of the clearest of these patterns at the last step; None if none was measured.

    By default the patterns are those that averaged maps show; [SEP] is not, since sentences end at different positions.
    """
    last = frame[frame["what"].isin(names) & (frame["step"] == frame["step"].max())]
    if last.empty:
        return None
    row = last.loc[last["value"].idxmin() if PATTERNS[names[0]].falls else last["value"].idxmax()]
    return str(row["what"]), int(row["layer"]), int(row["head"])


def clearest_head(frame: pd.DataFrame) -> tuple[str, int, int]:
    """Return pattern, layer and head to open on: the `strongest`, or FIRST_HEAD without measurements."""
    return (None if frame.empty else strongest(frame)) or FIRST_HEAD
