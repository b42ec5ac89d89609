"""The one sentence that opens a page: what its main figure says about this run, computed from the figure's table."""

from collections.abc import Sequence

import pandas as pd

from embryo_core.compare import PAPER
from embryo_core.figures.markdown import literal
from embryo_core.types import StepUnit
from embryo_core.words import point


def probing(best: pd.DataFrame, named: dict[str, str], unit: StepUnit) -> str:
    """Which task gains most and least from the first step to the last; `best` has the best layer of each step."""
    ends = best.sort_values("step").groupby("task", sort=False)["f1"].agg(["first", "last"])
    gains = (ends["last"] - ends["first"]).sort_values()

    def with_gain(task: str) -> str:
        return f"{literal(named.get(task, task))} ({ends['first'][task]:.2f} to {ends['last'][task]:.2f})"

    begin, end = (point(int(step), unit) for step in (best["step"].min(), best["step"].max()))
    if begin == end:
        last = ends["last"]
        highest, lowest = (
            f"{literal(named.get(task, task))} ({last[task]:.2f})" for task in (last.idxmax(), last.idxmin())
        )
        lowest = f" and lowest for {lowest}" if len(ends) > 1 else ""
        return f"At {end}, F1 in the best layer is highest for {highest}{lowest}."
    words = f"From {begin} to {end}, F1 in the best layer changes"
    if len(gains) == 1:
        return f"{words} for {with_gain(gains.index[0])}."
    return f"{words} most for {with_gain(gains.index[-1])} and least for {with_gain(gains.index[0])}."


def compare(agreements: pd.DataFrame, run: str) -> str:
    """How far the order of acquisition of a `run` agrees with another's, or else with the paper's.

    Where nothing is known of it, how far those of others agree; `agreements` as in `compare.agreements`, of mask
    prediction.
    """
    known = agreements.dropna(subset="rho")
    own = known[known["first"] == run]
    rows = known if own.empty else own
    of_runs = rows[rows["second"] != PAPER]
    rows = rows if of_runs.empty else of_runs
    if rows.empty:
        return ""
    row = rows.loc[rows["rho"].abs().idxmax()]
    return (
        f"The orders in which {literal(row['first'])} and {literal(row['second'])} acquire parts of speech in mask "
        f"prediction have a rank correlation of {row['rho']:.2f} (95 % interval {row['low']:.2f} to {row['high']:.2f}, "
        f"n = {row['n']})."
    )


def _listed(names: Sequence[str]) -> str:
    *others, last = map(literal, names)
    return f"{', '.join(others)} and {last}" if others else last
