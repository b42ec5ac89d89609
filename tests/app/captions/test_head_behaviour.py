"""Captions of head behaviour."""

import pandas as pd
import pytest

from app.captions import head_behaviour as captions


@pytest.mark.parametrize("steps, said", [([8], "at 1 step, n = 40."), ([0, 8], "at 2 steps, n = 40.")])
def test_the_curves_say_at_how_many_steps(steps: list[int], said: str):
    """Of all heads, the chosen one named."""
    points = [(step, 1, head, 40) for step in steps for head in (1, 2)]
    rows = pd.DataFrame(points, columns=["step", "layer", "head", "n"])
    said_of_all = captions.over_steps(rows, (1, 2))
    assert said_of_all.startswith("Layer 1, head 2, bold, among all 2 heads") and said in said_of_all
