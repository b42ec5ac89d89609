"""Designs and their seeds: group runs by design and size, and aggregate run comparisons by design."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import pandas as pd
from msgspec import convert

from embryo_core.runs.schema import Settings
from embryo_core.types import Run

NO_DESIGN = ("name", "path", "note", "code_version")  # fields of a run that are no part of its design
RANGE = {"earliest": ("onset", "min"), "latest": ("onset", "max")}
ONSETS = {"place": ("place", "mean"), "onset": ("onset", "mean")} | RANGE
SLOPES = {"slope": ("slope", "mean"), "slope_low": ("slope", "min"), "slope_high": ("slope", "max")}
CASES = {"last": ("last", "mean"), "n": ("n", "sum")}
STEPS = ("onset", "earliest", "latest")


def group_by_design(runs: Sequence[Run]) -> list[tuple[Run, ...]]:
    """Group runs whose run.json differ in the seed alone (and notes), in the order of the first run of each group.

    Copies with the same seed are never averaged together: the second copies form a second group.
    """
    designs: dict[tuple[str, int], list[Run]] = {}
    copies: Counter[tuple[str, str]] = Counter()
    for run in runs:
        design, seed = _design_key(run), str(run.config.get("seed"))
        designs.setdefault((design, copies[design, seed]), []).append(run)
        copies[design, seed] += 1
    return [tuple(found) for found in designs.values()]


def group_by_size(runs: Sequence[Run]) -> list[list[tuple[Run, ...]]]:
    """Group the designs of `runs` by family, depth and width: the designs of one group are choices.

    Groups of one run come first, then groups of several designs, then several seeds of one design. In a group the
    design with the most seeds comes first.
    """
    sizes: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        settings = convert(run.config, Settings)
        size = (settings.num_hidden_layers, settings.hidden_size)
        sizes.setdefault((run.family, *size) if all(size) else (run.path,), []).append(run)
    groups = [sorted(group_by_design(found), key=len, reverse=True) for found in sizes.values()]
    return sorted(groups, key=lambda designs: 1 if len(designs) > 1 else 2 * (len(designs[0]) > 1))


@lru_cache(maxsize=512)
def _design_key(run: Run) -> str:
    card = {name: value for name, value in asdict(run).items() if name not in NO_DESIGN}
    card["config"] = {name: value for name, value in run.config.items() if name != "seed"}
    return json.dumps(card, sort_keys=True, default=str)


def average_seeds(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Average the `value` of several seeds, with the lowest and highest as `low` and `high`, and the sum of their `n`.

    Each table has the columns curve, step, value and n, and a row for each curve and step; rows that some seed lacks
    are left out. If they have a `baseline`, so has the result: its mean.
    """
    rows = pd.concat(tables, ignore_index=True).groupby(["curve", "step"], sort=False)
    found = rows["value"].agg(value="mean", low="min", high="max", seeds="count")
    found["n"] = rows["n"].sum(min_count=1)
    if "baseline" in rows.obj:
        found["baseline"] = rows["baseline"].mean()
    return found[found["seeds"] == len(tables)].drop(columns="seeds").reset_index()


def average_acquisitions(table: pd.DataFrame, designs: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Aggregate `compare.acquisitions` by design: of several seeds the mean onset, with the lowest and highest.

    `designs` has the runs of each design by the name that replaces theirs. The last accuracy and slopes are means, n
    is the sum, and places are ranks of the mean place. A category that one seed lacks has no onset.
    """
    parts = []
    for name, runs in designs.items():
        rows = table[table["run"].isin(runs)]
        several = rows["run"].nunique() > 1
        parts.append(_average_onsets(rows).assign(run=name) if several else rows.assign(run=name))
    return pd.concat(parts, ignore_index=True)[[*table.columns]]


def _average_onsets(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each category of several seeds."""
    of_onsets: dict[str, Any] = ONSETS | (SLOPES if "slope" in rows else {})
    by_group = rows.groupby("group", sort=False)
    found = by_group.agg(**of_onsets, **CASES).astype(dict.fromkeys(of_onsets, float))
    found.loc[by_group["onset"].count() < rows["run"].nunique(), list(of_onsets)] = float("nan")
    found["place"] = found["place"].rank(method="min").astype("Int64")
    found = found.assign(**{name: found[name].round().astype("Int64") for name in STEPS})
    return found.reset_index().sort_values(["place", "group"])


def average_differences(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Aggregate `compare.differences` of two designs, from those of every pair of their runs, at least one.

    Of several pairs: the mean difference, with the lowest and highest; mean accuracies; the smallest steps and n. A
    measure that one pair lacks is missing.
    """
    if len(tables) == 1:
        return tables[0]
    by_measure = pd.concat(tables).groupby("measure", sort=False)
    how: dict[str, Any] = {step: (step, "min") for step in ("step_first", "step_second")}
    how |= {"first": ("first", "mean"), "second": ("second", "mean")}
    how |= {"difference": ("difference", "mean"), "low": ("difference", "min"), "high": ("difference", "max")}
    found = by_measure.agg(**how, n_first=("n_first", "min"), n_second=("n_second", "min")).astype(object)
    found[by_measure["difference"].count() < len(tables)] = None
    return found.reset_index()[tables[0].columns]
