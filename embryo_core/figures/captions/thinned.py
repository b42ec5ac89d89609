"""What a caption adds where the curves of its figure have more points than are drawn."""

import plotly.graph_objects as go

from embryo_core.figures.thinning import longest


def thinned(figure: go.Figure) -> str:
    """Which points are drawn; nothing where all are."""
    points = longest(figure)
    if points is None:
        return ""
    return (
        f" A curve has up to {points:,} points; drawn are the first, the last, the lowest and the highest of each "
        "hundredth of the axis. The CSV has all."
    )
