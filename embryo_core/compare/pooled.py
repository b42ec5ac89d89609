"""What is compared of runs, of designs instead: seeds of one design together, as a mean with its range."""

from collections.abc import Mapping, Sequence

import pandas as pd

RANGE = {"earliest": ("onset", "min"), "latest": ("onset", "max")}
ONSETS = {"place": ("place", "mean"), "onset": ("onset", "mean")} | RANGE
SLOPES = {"slope": ("slope", "mean"), "slope_low": ("slope", "min"), "slope_high": ("slope", "max")}
CASES = {"last": ("last", "mean"), "n": ("n", "sum")}
STEPS = ("onset", "earliest", "latest")


def pooled(table: pd.DataFrame, designs: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """`compare.acquisitions` of designs; of several seeds the mean onset, from the lowest to the highest.

    `designs` has the names of the runs of each design, whose name replaces theirs. The last accuracy and slopes are
    means, the n are added, and places are ranks of the mean place. A category that one seed lacks has no onset.
    """
    parts = []
    for name, runs in designs.items():
        rows = table[table["run"].isin(runs)]
        several = rows["run"].nunique() > 1
        parts.append(_over_seeds(rows).assign(run=name) if several else rows.assign(run=name))
    return pd.concat(parts, ignore_index=True)[[*table.columns]]


def _over_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each category of several seeds."""
    of_onsets = ONSETS | (SLOPES if "slope" in rows else {})
    by_group = rows.groupby("group", sort=False)
    found = by_group.agg(**of_onsets, **CASES).astype(dict.fromkeys(of_onsets, float))
    found.loc[by_group["onset"].count() < rows["run"].nunique(), list(of_onsets)] = float("nan")
    found["place"] = found["place"].rank(method="min").astype("Int64")
    found = found.assign(**{name: found[name].round().astype("Int64") for name in STEPS})
    return found.reset_index().sort_values(["place", "group"])


def pooled_differences(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """`compare.differences` of two designs, from those of every pair of their runs, at least one.

    Of several pairs the mean difference, from the lowest to the highest; shares are means, steps and n the
    least of theirs. A measure that one pair lacks is missing.
    """
    if len(tables) == 1:
        return tables[0]
    by_measure = pd.concat(tables).groupby("measure", sort=False)
    how = {step: (step, "min") for step in ("step_first", "step_second")}
    how |= {"first": ("first", "mean"), "second": ("second", "mean")}
    how |= {"difference": ("difference", "mean"), "low": ("difference", "min"), "high": ("difference", "max")}
    found = by_measure.agg(**how, n_first=("n_first", "min"), n_second=("n_second", "min")).astype(object)
    found[by_measure["difference"].count() < len(tables)] = None
    return found.reset_index()[tables[0].columns]
