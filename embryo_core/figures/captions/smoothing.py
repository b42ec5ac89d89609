"""What a caption adds where the reader has smoothed the curves of its figure."""

import pandas as pd

from embryo_core.figures.smoothing import WINDOW


def smoothing(data: pd.DataFrame) -> str:
    """How the curves of `data`, the table of a figure, are smoothed; nothing where they are not."""
    if WINDOW not in data:
        return ""
    points = data[WINDOW].iloc[0]
    return (
        f" Smoothed line: mean of {points} neighbouring points{' (as in the paper)' if points == 3 else ''}; markers: "
        "as measured."
    )
