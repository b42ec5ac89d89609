"""The lens reads every layer with the model's own head; its last layer is the model's answer."""

import numpy as np
import pytest

from embryo_core import query, runs
from embryo_core.engine.cache import MODELS
from embryo_core.errors import QueryError
from embryo_core.query.lens import lens
from embryo_core.types import Run
from tests.rounding import probability_rounding

ONE = "The cat sat on the [MASK] ."
TWO = "The [MASK] sat on the [MASK] ."


def test_the_last_layer_is_the_answer(tiny_run: Run) -> None:
    """At every step its predictions are the answer at that step."""
    found = lens(tiny_run, ONE, k=5)
    assert (found.steps, found.layers, found.skipped) == ((0, 8, 16), (0, 1, 2), ())
    for step, layers in zip(found.steps, found.cells, strict=True):
        (expected,) = query.answer(tiny_run, ONE, step, k=5).masks
        assert [(p.token, p.rank) for p in layers[-1]] == [(p.token, p.rank) for p in expected]
        model, probabilities = MODELS.get(runs.checkpoint(tiny_run, step)), [p.probability for p in expected]
        tolerance = probability_rounding(model, model.max_positions, probabilities)
        np.testing.assert_allclose([p.probability for p in layers[-1]], probabilities, rtol=tolerance)


@pytest.mark.parametrize("mask", [1, 2])
def test_every_layer_equals_transformers(tiny_run: Run, mask: int) -> None:
    """Its head on its hidden states gives the same probabilities; the other mask of the text stays a mask."""
    import torch
    from transformers import AlbertForPreTraining

    model = MODELS.get(runs.checkpoint(tiny_run, 16))
    question = query.read_question(TWO, model.tokenizer, model.max_positions)
    reference = AlbertForPreTraining.from_pretrained(model.checkpoint.path).eval()
    with torch.no_grad():
        states = reference(torch.tensor(question.ids[None]), output_hidden_states=True).hidden_states
        logits = [reference.predictions(state[0, question.masks[mask - 1]]) for state in states]
    (layers,) = lens(tiny_run, TWO, mask, k=700, steps=[16]).cells
    for own, layer in zip(layers, logits, strict=True):
        expected = torch.softmax(layer.double(), dim=0).numpy()
        best = np.argsort(-expected, kind="stable")
        assert own[0].token == query.readable(model.tokenizer, best[:1])[0]
        tolerance = probability_rounding(model, len(question.ids), expected)
        np.testing.assert_allclose([p.probability for p in own], expected[best], rtol=tolerance)


def test_a_mask_that_is_not_there(tiny_run: Run) -> None:
    """The message says how many there are."""
    with pytest.raises(QueryError, match="There is no .MASK. 3: the text has 2"):
        lens(tiny_run, TWO, mask=3)
