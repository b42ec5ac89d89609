"""Captions of the Attention page: what is shared is said where it is."""

from dataclasses import replace

import pytest

from embryo_core.figures.captions import attention as captions
from embryo_core.types import Run


def test_shared_weights_are_named_where_layers_share_them(tiny_run: Run) -> None:
    """All layers, or those of each group; nothing of a family whose layers have weights of their own."""
    assert "All layers share their weights" in captions.shared_weights(replace(tiny_run, config={}))
    grouped = replace(tiny_run, config={"num_hidden_groups": 2})
    assert "Layers of each of the 2 groups share their weights" in captions.shared_weights(grouped)
    assert captions.shared_weights(replace(tiny_run, family="bert")) == ""


@pytest.mark.parametrize("steps, said", [(1, "each head at this step."), (1200, "each head over all 1,200 steps.")])
def test_the_small_multiples_say_over_how_many_steps_their_colours_run(steps: int, said: str):
    """A run may have one step, or a thousand."""
    assert captions.all_heads(steps, 1, shared=False).endswith(f"percentile of the weights of {said}")


@pytest.mark.parametrize(
    ("steps", "sentences", "n", "columns"),
    [([8], 1, "1 sentence.", "1 evaluated step"), ([0, 8], 1200, "1,200 sentences.", "2 evaluated steps")],
)
def test_the_layers_say_how_many_sentences_and_steps(tiny_run: Run, steps, sentences, n: str, columns: str):
    """One of them is singular."""
    said = captions.layers_over_steps(tiny_run, 1, steps, sentences, 1, 0.5)
    assert f"n = {n} Rows are layers, columns {columns} around the chosen one" in said


def test_divided_rows_are_told_below_every_figure_of_maps(tiny_run: Run):
    """Their weights are other numbers than the measured ones."""
    said = "each row divided by its sum"
    assert said in captions.layers_over_steps(tiny_run, 1, [8], 2, 1, 0.5, normalised=True)
    assert said in captions.positions(8, normalised=True) and said in captions.all_heads(3, 1, False, normalised=True)
    assert said not in captions.positions(8) + captions.all_heads(3, 1, False)
