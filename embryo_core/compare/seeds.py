"""Designs and their seeds: runs that differ in their seed alone, their mean and range, and designs of one size."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache

import pandas as pd
from msgspec import convert

from embryo_core.runs.schema import Settings
from embryo_core.types import Run

PLACE = ("name", "path")  # fields of a run that are no part of its design


def by_design(runs: Sequence[Run]) -> list[tuple[Run, ...]]:
    """Return the runs by design: those whose run.json differ in the seed alone are together.

    Designs are in the order of their first runs. Copies with the same seed are never together.
    """
    designs: dict[tuple[str, int], list[Run]] = {}
    copies: Counter[tuple[str, str]] = Counter()
    for run in runs:
        design, seed = _design(run), str(run.config.get("seed"))
        designs.setdefault((design, copies[design, seed]), []).append(run)
        copies[design, seed] += 1
    return [tuple(found) for found in designs.values()]


def by_size(runs: Sequence[Run]) -> list[list[tuple[Run, ...]]]:
    """Return the designs of `runs`, grouped by family, depth and width: designs of one group are choices.

    Groups of one run come first, then groups of several designs, then several seeds of one design. In a group the
    design with the most seeds comes first.
    """
    sizes: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        settings = convert(run.config, Settings)
        size = (settings.num_hidden_layers, settings.hidden_size)
        sizes.setdefault((run.family, *size) if all(size) else (run.path,), []).append(run)
    groups = [sorted(by_design(found), key=len, reverse=True) for found in sizes.values()]
    return sorted(groups, key=lambda designs: 1 if len(designs) > 1 else 2 * (len(designs[0]) > 1))


@lru_cache(maxsize=512)
def _design(run: Run) -> str:
    card = {name: value for name, value in asdict(run).items() if name not in PLACE}
    card["config"] = {name: value for name, value in run.config.items() if name != "seed"}
    return json.dumps(card, sort_keys=True, default=str)


def over_seeds(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the mean `value` of several seeds, their least and greatest as `low` and `high`, and the sum of their `n`.

    Each table has the columns curve, step, value and n, with a row for each curve and step. Rows that a seed lacks are
    left out. The `baseline` is the mean of the seeds' baselines, if they have any.
    """
    rows = pd.concat(tables, ignore_index=True).groupby(["curve", "step"], sort=False)
    found = rows["value"].agg(value="mean", low="min", high="max", seeds="count")
    found["n"] = rows["n"].sum(min_count=1)
    if "baseline" in rows.obj:
        found["baseline"] = rows["baseline"].mean()
    return found[found["seeds"] == len(tables)].drop(columns="seeds").reset_index()
