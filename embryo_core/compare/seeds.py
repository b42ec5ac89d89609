"""Runs of one design that differ in their seed alone: which they are, and their mean and range."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache

import pandas as pd

from embryo_core.types import Run

PLACE = ("name", "path")  # of a run, which no design has


def by_design(runs: Sequence[Run]) -> list[tuple[Run, ...]]:
    """The runs, those whose run.json differ in the seed alone together, in the order of the first of each.

    Copies of one run, with the same seed, are no seeds of a design: each stands with others than itself.
    """
    designs: dict[tuple[str, int], list[Run]] = {}
    copies: Counter[tuple[str, str]] = Counter()
    for run in runs:
        design, seed = _design(run), str(run.config.get("seed"))
        designs.setdefault((design, copies[design, seed]), []).append(run)
        copies[design, seed] += 1
    return [tuple(found) for found in designs.values()]


@lru_cache(maxsize=64)
def _design(run: Run) -> str:
    card = {name: value for name, value in asdict(run).items() if name not in PLACE}
    card["config"] = {name: value for name, value in run.config.items() if name != "seed"}
    return json.dumps(card, sort_keys=True, default=str)


def over_seeds(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The mean `value` of several seeds with their least and greatest as `low` and `high`, and the sum of their `n`.

    Each table has the columns curve, step, value and n, a row for each curve and step; what not every seed has is left
    out. Where they have a `baseline`, so has the result: their mean.
    """
    rows = pd.concat(tables, ignore_index=True).groupby(["curve", "step"], sort=False)
    found = rows["value"].agg(value="mean", low="min", high="max", seeds="count")
    found["n"] = rows["n"].sum(min_count=1)
    if "baseline" in rows.obj:
        found["baseline"] = rows["baseline"].mean()
    return found[found["seeds"] == len(tables)].drop(columns="seeds").reset_index()
