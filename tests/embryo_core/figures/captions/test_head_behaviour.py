"""Captions of head behaviour."""

import pandas as pd
import pytest

from embryo_core.figures.captions import head_behaviour as captions
from embryo_core.types import StepUnit


@pytest.mark.parametrize("steps, said", [([8], "at 1 step, n = 40."), ([0, 8], "at 2 steps, n = 40.")])
def test_the_curves_say_at_how_many_steps(steps: list[int], said: str):
    """Of all heads, the chosen one named."""
    points = [(step, 1, head, 40) for step in steps for head in (1, 2)]
    rows = pd.DataFrame(points, columns=["step", "layer", "head", "n"])
    said_of_all = captions.over_steps(rows, (1, 2))
    assert said_of_all.startswith("Layer 1, head 2, bold, among all 2 heads") and said in said_of_all


@pytest.mark.parametrize(("unit", "at"), [(StepUnit.UPDATES, "step 1,000"), (StepUnit.WORDS, "1,000 words")])
def test_the_first_head_of_each_layer_is_named_with_its_step(unit: StepUnit, at: str):
    """By what steps count; one head is singular."""
    frame = pd.DataFrame({"step": [0, 1000]})
    since = pd.DataFrame({"layer": [1, 1], "head": [1, 2], "step": [None, 1000.0]})
    told = captions.presence(frame, 0.1, since, unit)
    assert told.endswith(
        f"Of 2 heads, 1 shows the pattern at the last step; the first of each layer: layer 1 at {at} (head 2)."
    )
    none = captions.presence(frame, 0.1, since[:1], unit)
    assert none.endswith("Of 1 head, none shows the pattern at the last step.")


def test_layers_come_in_the_order_in_which_they_have_the_pattern():
    """Each by its first head; of heads of one step the lowest layer's is first."""
    rows = [(1, 1, 64), (1, 2, 32), (2, 1, 8), (2, 2, 16), (3, 1, None), (3, 2, 8), (4, 1, None)]
    since = pd.DataFrame(rows, columns=["layer", "head", "step"])
    told = captions.presence(pd.DataFrame({"step": [0, 64]}), 0.1, since, StepUnit.UPDATES)
    assert "at least 0.1 above its value at step 0, up to the last step." in told
    order = "layer 2 at step 8 (head 1), layer 3 at step 8 (head 2), layer 1 at step 32 (head 2)."
    assert told.endswith(f"Of 7 heads, 5 show the pattern at the last step; the first of each layer: {order}")
