"""The one sentence that opens a page: what its main figure says about this run, computed from the figure's table."""

from collections.abc import Sequence

import pandas as pd

from embryo_core.compare import PAPER
from embryo_core.figures.markdown import literal


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
