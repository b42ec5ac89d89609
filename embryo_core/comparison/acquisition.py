"""When each run acquires each category, and how far these orders agree between runs and with the paper's order."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

import pandas as pd

from embryo_core import results
from embryo_core.curves import Onset, onset
from embryo_core.curves.agreement import rank_agreement
from embryo_core.curves.rise import Rise, ranks, rise
from embryo_core.findings.words import CONTENT_CATEGORIES, FUNCTION_CATEGORIES, equivalent_metric, paper_ranks
from embryo_core.types import Run

Rule = Literal["half", "paper", "chance"]

PARTS_OF_SPEECH = (*FUNCTION_CATEGORIES, *CONTENT_CATEGORIES)
PAPER = "the paper"
RULES: dict[Rule, str] = {"half": "half of the last value", "paper": "rising from zero, then slope (Appendix C.4)"}
CHANCE = 0.5  # accuracy of guessing between two sentences
COLUMNS = ["place", "group", "onset", "earliest", "latest", "last", "n"]
# slopes in shares of the last value per SLOPE_STEPS steps
SLOPE_COLUMNS = ["slope", "slope_low", "slope_high"]
SLOPE_STEPS = 1000  # steps over which slopes are given


def acquisition(data: pd.DataFrame, rule: Rule = "half") -> pd.DataFrame:
    """Return categories in the order in which they are acquired: place, group, onset, earliest, latest, last, n.

    `data` has the columns group, step, accuracy and n; `last` is the accuracy at the last step. The rule decides what
    an onset is:

    half    `curves.onset`; categories with the same onset share a place, since no checkpoint shows which came first
    paper   `rise.rise`, with the columns `SLOPE_COLUMNS` in addition; places are `rise.ranks`
    chance  like half, for curves that rise from `CHANCE` instead of 0

    A category that ends at 0, or at chance, has no onset.
    """
    rows, rises = [], []
    for group, group_rows in data.groupby("group", sort=False):
        steps, accuracy, n = group_rows["step"].to_numpy(), group_rows["accuracy"], group_rows["n"]
        floor = CHANCE if rule == "chance" else 0.0
        found_onset: Onset | None
        found_onset = rise(steps, accuracy, n) if rule == "paper" else onset(steps, accuracy, n, floor=floor)
        ends = (found_onset.step, found_onset.earliest, found_onset.latest) if found_onset else (None,) * 3
        slope = found_onset.slope if isinstance(found_onset, Rise) else None
        slope_values = [SLOPE_STEPS * value for value in (slope.value, slope.low, slope.high)] if slope else [None] * 3
        rows.append((group, *ends, accuracy.iloc[-1], n.iloc[-1], *slope_values))
        rises += [found_onset] if isinstance(found_onset, Rise) else []
    table = pd.DataFrame(rows, columns=[*COLUMNS[1:], *SLOPE_COLUMNS])
    table = table.astype(dict.fromkeys(("onset", "earliest", "latest"), "Int64") | dict.fromkeys(SLOPE_COLUMNS, float))
    has_onset = table["onset"].notna()
    table.insert(0, "place", table["onset"].rank(method="min").astype("Int64"))
    if rule == "paper":
        table.loc[has_onset, "place"] = ranks(rises)
    return table.sort_values(["place", "group"], ignore_index=True)[COLUMNS + SLOPE_COLUMNS * (rule == "paper")]


def acquisitions(compared_runs: Sequence[Run], metric: str, groups: Sequence[str], rule: Rule = "half") -> pd.DataFrame:
    """Return `acquisition` of a metric's scores for each run, with the column run; runs without scores have no rows.

    A metric of word prediction is replaced by the equivalent for the run's models (see `equivalent_metric`). Raises
    ResultsError.
    """
    tables = []
    for run in compared_runs:
        scores = results.read_scores(run, equivalent_metric(run, metric))
        group_scores = scores[scores["group"].isin(groups)].sort_values("step").rename(columns={"value": "accuracy"})
        tables.append(acquisition(group_scores, rule).assign(run=run.name))
    table = pd.concat(tables, ignore_index=True)
    return table[["run", *(column for column in table if column != "run")]]


def agreements(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rank agreement of the orders in `acquisitions`: first, second, rho, low, high, n.

    Every two runs are compared, and each run with the paper, over the categories that have a place in both orders. A
    pair has no rho if it has too few categories (see `agreement.rank_agreement`), or if more than half of a run's
    categories share a place: that order reflects the evaluated steps, not training.
    """
    orders = _ranks_by_run(table)
    pairs = [*combinations(orders, 2), *((run, PAPER) for run in orders)]
    return _compare_orders(orders | {PAPER: pd.Series(paper_ranks(table["group"].unique()))}, pairs)


def seed_agreements(table: pd.DataFrame, designs: Iterable[Sequence[str]]) -> pd.DataFrame:
    """Return the rank agreement of every two seeds of each design, with the columns of `agreements`.

    `table` has the `acquisitions` of single runs; each design is a sequence of their names.
    """
    orders = _ranks_by_run(table)
    seed_names = [[run for run in seeds if run in orders] for seeds in designs]
    return _compare_orders(orders, [pair for seeds in seed_names for pair in combinations(seeds, 2)])


def _ranks_by_run(table: pd.DataFrame) -> dict[str, pd.Series]:
    return {run: rows.set_index("group")["place"].dropna() for run, rows in table.groupby("run", sort=False)}


def _compare_orders(orders: Mapping[str, pd.Series], pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """Return the table of `agreements` for these pairs; `orders` has the place of each category by run."""
    rows = []
    for first, second in pairs:
        common_groups = [group for group in orders[first].index if group in orders[second].index]
        common_ranks = {run: [float(orders[run][group]) for group in common_groups] for run in (first, second)}
        run_ranks = [ranking for run, ranking in common_ranks.items() if run != PAPER]
        has_ties = (max(Counter(ranking).values(), default=0) > len(ranking) / 2 for ranking in run_ranks)
        agreement = None if any(has_ties) else rank_agreement(*common_ranks.values())
        ends = (agreement.rho, agreement.low, agreement.high) if agreement else (None,) * 3
        rows.append((first, second, *ends, len(common_groups)))
    return pd.DataFrame(rows, columns=["first", "second", "rho", "low", "high", "n"])
