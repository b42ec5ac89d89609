"""Designs and their seeds: group runs by design and size, and aggregate run comparisons by design."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache

import numpy as np
import pandas as pd
from msgspec import convert

from embryo_core.comparison.acquisition import SLOPE_COLUMNS
from embryo_core.runs.schema import Settings
from embryo_core.types import Run

NON_DESIGN_FIELDS = ("name", "path", "note", "code_version")  # fields of a run that are not part of its design
STEP_COLUMNS = ["onset", "earliest", "latest"]


def group_by_design(runs: Sequence[Run]) -> list[tuple[Run, ...]]:
    """Group runs that differ only in seed, name, note and code version, in the order of each group's first run.

    Copies with the same seed are never averaged together: second copies form a second group.
    """
    designs: dict[tuple[str, int], list[Run]] = {}
    copies: Counter[tuple[str, str]] = Counter()
    for run in runs:
        design, seed = _design_key(run), str(run.config.get("seed"))
        designs.setdefault((design, copies[design, seed]), []).append(run)
        copies[design, seed] += 1
    return [tuple(seeds) for seeds in designs.values()]


def group_by_size(runs: Sequence[Run]) -> list[list[tuple[Run, ...]]]:
    """Group the designs of `runs` by family, depth and width; within a group, they differ in other choices.

    Single runs come first, then groups of several designs, then several seeds of one design. Within a group, the design
    with the most seeds comes first.
    """
    runs_by_size: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        size = size_of(run)
        runs_by_size.setdefault((run.family, *size) if all(size) else (run.path,), []).append(run)
    groups = [sorted(group_by_design(size_runs), key=len, reverse=True) for size_runs in runs_by_size.values()]
    return sorted(groups, key=lambda designs: 1 if len(designs) > 1 else 2 * (len(designs[0]) > 1))


def size_of(run: Run) -> tuple[int, int]:
    """Return the number of layers and the hidden size of a run's model; 0 if unknown."""
    settings = convert(run.config, Settings)
    return settings.num_hidden_layers, settings.hidden_size


@lru_cache(maxsize=512)
def _design_key(run: Run) -> str:
    fields = {name: value for name, value in asdict(run).items() if name not in NON_DESIGN_FIELDS}
    fields["corpus"] = {name: part for name, part in run.corpus.items() if name != "counted_words"}  # new in 0.3.0
    fields["config"] = {name: value for name, value in run.config.items() if name != "seed"}
    return json.dumps(fields, sort_keys=True, default=str)


def average_seeds(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Average the `value` of several seeds at each step, over the seeds that have it.

    Each table has the columns curve, step, value and n, with one row per curve and step. The result has the mean as
    `value`, the `standard_error` of the mean (NaN for one seed), `low` and `high` one standard error away, the number
    of `seeds`, the sum of `n`, and the mean of `baseline` if the tables have one.
    """
    rows = pd.concat(tables, ignore_index=True).groupby(["curve", "step"], sort=False)
    means = rows["value"].agg(value="mean", standard_error="sem", seeds="count")
    means["low"], means["high"] = (means["value"] + sign * means["standard_error"] for sign in (-1, 1))
    means["n"] = rows["n"].sum(min_count=1)
    if "baseline" in rows.obj:
        means["baseline"] = rows["baseline"].mean()
    return means.reset_index().sort_values("step", kind="stable", ignore_index=True)


def average_acquisitions(table: pd.DataFrame, designs: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Aggregate `comparison.acquisitions` by design: average onsets, slopes and last accuracies over seeds.

    `designs` maps the name of a design, which replaces the names of its runs, to these names. `earliest` and `latest`
    are means over seeds, but at least one standard error from the mean onset; slopes likewise, and `before` (the
    step before `earliest`, if the table has it) is a mean that is not after `earliest`. n is the sum,
    and places are ranks of the mean place. A category that has no onset in one of the seeds has none in the design; an
    interval that is open in one of them (no `latest`) is open in the design, and a slope that one lacks is missing.
    """
    tables = []
    for name, runs in designs.items():
        rows = table[table["run"].isin(runs)]
        has_seeds = rows["run"].nunique() > 1
        tables.append(_average_onsets(rows).assign(run=name) if has_seeds else rows.assign(run=name))
    return pd.concat(tables, ignore_index=True)[[*table.columns]]


def _average_onsets(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per category, averaged over several seeds."""
    column_sets = [names for names in (STEP_COLUMNS, SLOPE_COLUMNS) if names[0] in rows]
    step_columns = [*STEP_COLUMNS, *(["before"] if "before" in rows else [])]
    number_columns = [*step_columns, *(SLOPE_COLUMNS if SLOPE_COLUMNS[0] in rows else [])]
    by_group = rows.astype(dict.fromkeys(["place", *number_columns], float)).groupby("group", sort=False)
    means = by_group[["place", *number_columns, "last"]].mean().assign(n=by_group["n"].sum())
    for middle, low, high in column_sets:
        error = by_group[middle].sem()
        means[low] = np.fmin(means[low], means[middle] - error)
        means[high] = np.fmax(means[high], means[middle] + error)
    if "before" in means:
        means["before"] = np.fmin(means["before"], means["earliest"])
    seed_count, seeds_with = rows["run"].nunique(), by_group[number_columns].count()
    means = means.mask((seeds_with < seed_count).reindex(columns=means.columns, fill_value=False))
    means.loc[seeds_with["onset"] < seed_count, ["place", *number_columns]] = float("nan")
    means["place"] = means["place"].rank(method="min").astype("Int64")
    means = means.assign(**{name: means[name].round().astype("Int64") for name in step_columns})
    return means.reset_index().sort_values(["place", "group"])
