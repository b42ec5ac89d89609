"""When each category is acquired, run beside run, and how far the orders agree with each other and with the paper's."""

from collections.abc import Sequence
from itertools import combinations

import pandas as pd

from embryo_core import results
from embryo_core.agreement import rank_agreement
from embryo_core.curves import onset
from embryo_core.findings.words import CONTENT, FUNCTION, paper_ranks
from embryo_core.types import Run

PARTS_OF_SPEECH = (*FUNCTION, *CONTENT)
PAPER = "the paper"
COLUMNS = ["place", "group", "onset", "earliest", "latest", "last", "n"]


def acquisition(data: pd.DataFrame, share: float = 0.5) -> pd.DataFrame:
    """Categories in the order in which they are acquired: place, group, onset, earliest, latest, last (accuracy), n.

    `data` has the columns group, step, accuracy and n. The onset and its ends are those of `curves.onset`, for `share`
    of the last accuracy; a category that ends at 0 has none. Categories of one onset share a place: no checkpoint tells
    which came first.
    """
    rows = []
    for group, part in data.groupby("group", sort=False):
        found = onset(part["step"].to_numpy(), part["accuracy"], part["n"], share)
        ends = (found.step, found.earliest, found.latest) if found else (None,) * 3
        rows.append((group, *ends, part["accuracy"].iloc[-1], part["n"].iloc[-1]))
    order = pd.DataFrame(rows, columns=COLUMNS[1:])
    order = order.astype(dict.fromkeys(("onset", "earliest", "latest"), "Int64"))
    order = order.sort_values(["onset", "group"], ignore_index=True)
    order.insert(0, "place", order["onset"].rank(method="min").astype("Int64"))
    return order


def acquisitions(compared: Sequence[Run], metric: str, groups: Sequence[str]) -> pd.DataFrame:
    """`acquisition` of the scores of a metric in each run, with the column run; runs without such scores are left out.

    Raises ResultsError.
    """
    parts = []
    for run in compared:
        scores = results.read_scores(run, metric)
        picked = scores[scores["group"].isin(groups)].sort_values("step").rename(columns={"value": "accuracy"})
        parts.append(acquisition(picked).assign(run=run.name))
    return pd.concat(parts, ignore_index=True)[["run", *COLUMNS]]


def agreements(table: pd.DataFrame) -> pd.DataFrame:
    """Rank agreement of the orders of `acquisitions`: first, second, rho, low, high, n.

    Every two runs, and each run with the paper's order, over the categories that both have an onset of. Runs whose
    agreement cannot be told have no rho.
    """
    onsets = {run: rows.set_index("group")["onset"].dropna() for run, rows in table.groupby("run", sort=False)}
    pairs = list(combinations(onsets, 2))
    orders = onsets | {PAPER: pd.Series(paper_ranks(table["group"].unique()))}
    rows = []
    for first, second in [*pairs, *((run, PAPER) for run in onsets)]:
        both = [group for group in orders[first].index if group in orders[second].index]
        found = rank_agreement(*([float(orders[one][group]) for group in both] for one in (first, second)))
        ends = (found.rho, found.low, found.high) if found else (None,) * 3
        rows.append((first, second, *ends, len(both)))
    return pd.DataFrame(rows, columns=["first", "second", "rho", "low", "high", "n"])
