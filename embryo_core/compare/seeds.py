"""Designs and their seeds: group runs by design and size, and aggregate run comparisons by design."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache

import numpy as np
import pandas as pd
from msgspec import convert

from embryo_core.runs.schema import Settings
from embryo_core.types import Run

NO_DESIGN = ("name", "path", "note", "code_version")  # fields of a run that do not belong to its design
STEPS = ("onset", "earliest", "latest")
SLOPES = ("slope", "slope_low", "slope_high")


def group_by_design(runs: Sequence[Run]) -> list[tuple[Run, ...]]:
    """Group runs whose run.json differ only in the seed (and notes), in the order of the first run of each group.

    Copies with the same seed are never averaged together: the second copies form a second group.
    """
    designs: dict[tuple[str, int], list[Run]] = {}
    copies: Counter[tuple[str, str]] = Counter()
    for run in runs:
        design, seed = _design_key(run), str(run.config.get("seed"))
        designs.setdefault((design, copies[design, seed]), []).append(run)
        copies[design, seed] += 1
    return [tuple(seeds) for seeds in designs.values()]


def group_by_size(runs: Sequence[Run]) -> list[list[tuple[Run, ...]]]:
    """Group the designs of `runs` by family, depth and width: the designs of one group are choices.

    Groups of one run come first, then groups of several designs, then several seeds of one design. In a group the
    design with the most seeds comes first.
    """
    sizes: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        size = size_of(run)
        sizes.setdefault((run.family, *size) if all(size) else (run.path,), []).append(run)
    groups = [sorted(group_by_design(of_size), key=len, reverse=True) for of_size in sizes.values()]
    return sorted(groups, key=lambda designs: 1 if len(designs) > 1 else 2 * (len(designs[0]) > 1))


def size_of(run: Run) -> tuple[int, int]:
    """Return the depth and the width of a run's model; 0 where its configuration does not say."""
    settings = convert(run.config, Settings)
    return settings.num_hidden_layers, settings.hidden_size


@lru_cache(maxsize=512)
def _design_key(run: Run) -> str:
    card = {name: value for name, value in asdict(run).items() if name not in NO_DESIGN}
    card["config"] = {name: value for name, value in run.config.items() if name != "seed"}
    return json.dumps(card, sort_keys=True, default=str)


def average_seeds(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Average the `value` of several seeds at each step over those that have it.

    Each table has the columns curve, step, value and n, and a row for each curve and step. The result has the number of
    `seeds`, the `standard_error` of their mean, which a single seed lacks, the mean minus and plus one standard error
    as `low` and `high`, and the sum of n. If the tables have a `baseline`, so has the result: its mean.
    """
    rows = pd.concat(tables, ignore_index=True).groupby(["curve", "step"], sort=False)
    means = rows["value"].agg(value="mean", standard_error="sem", seeds="count")
    means["low"], means["high"] = (means["value"] + sign * means["standard_error"] for sign in (-1, 1))
    means["n"] = rows["n"].sum(min_count=1)
    if "baseline" in rows.obj:
        means["baseline"] = rows["baseline"].mean()
    return means.reset_index().sort_values("step", kind="stable", ignore_index=True)


def average_acquisitions(table: pd.DataFrame, designs: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Aggregate `compare.acquisitions` by design: of several seeds the mean onset and slope.

    `designs` maps the name of a design, which replaces those of its runs, to the runs. `earliest` and `latest` are
    means over seeds, and at least one standard error from the mean onset; the same holds for slopes. The last accuracy
    is a mean, n is the sum, and places are ranks of the mean place. A category that one seed lacks has no onset.
    """
    parts = []
    for name, runs in designs.items():
        rows = table[table["run"].isin(runs)]
        several = rows["run"].nunique() > 1
        parts.append(_average_onsets(rows).assign(run=name) if several else rows.assign(run=name))
    return pd.concat(parts, ignore_index=True)[[*table.columns]]


def _average_onsets(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each category of several seeds."""
    kinds = [names for names in (STEPS, SLOPES) if names[0] in rows]
    numbers = [name for names in kinds for name in names]
    by_group = rows.astype(dict.fromkeys(["place", *numbers], float)).groupby("group", sort=False)
    means = by_group[["place", *numbers, "last"]].mean().assign(n=by_group["n"].sum())
    for middle, low, high in kinds:
        error = by_group[middle].sem()
        means[low] = np.fmin(means[low], means[middle] - error)
        means[high] = np.fmax(means[high], means[middle] + error)
    means.loc[by_group["onset"].count() < rows["run"].nunique(), ["place", *numbers]] = float("nan")
    means["place"] = means["place"].rank(method="min").astype("Int64")
    means = means.assign(**{name: means[name].round().astype("Int64") for name in STEPS})
    return means.reset_index().sort_values(["place", "group"])
