"""Tests of attention in one sentence: weights are the model's own, and texts that cannot be read are refused."""

import numpy as np
import pytest

from embryo_core import runs
from embryo_core.engine.model import load
from embryo_core.errors import BrokenCheckpoint, QueryError
from embryo_core.query.sentence import attend, attend_over_steps

TEXT = "The cat sat on the [MASK] ."


def test_weights_equal_the_models_attention(tiny_run):
    """All layers and heads are compared, and every row sums to 1."""
    attention = attend(tiny_run, TEXT, 8)
    model = load(runs.checkpoint(tiny_run, 8))
    ids = model.tokenizer.encode_text(TEXT)[None]
    np.testing.assert_array_equal(attention.weights, model.attentions(ids)[:, 0])
    np.testing.assert_allclose(attention.weights.sum(axis=-1), 1, rtol=0, atol=ids.shape[1] * np.finfo(np.float32).eps)
    assert len(attention.pieces) == attention.weights.shape[-1]
    assert attention.pieces[0] == "[CLS]" and "[MASK]" in attention.pieces and attention.pieces[-1] == "[SEP]"


def test_mask_is_recognised_in_lower_case(tiny_run):
    """The text is normalised as in a query."""
    assert attend(tiny_run, " the [mask] sat ", 0).pieces == attend(tiny_run, "the [MASK] sat", 0).pieces


def test_head_over_steps_equals_the_head_at_each_step(tiny_run):
    """Layer and head count from 1; the weights of each step are those of `attend`."""
    history = attend_over_steps(tiny_run, TEXT, layer=2, head=1)
    assert history.steps.tolist() == [0, 8, 16] and not history.skipped
    for step, weights in zip(history.steps, history.weights, strict=True):
        np.testing.assert_array_equal(weights, attend(tiny_run, TEXT, int(step)).weights[1, 0])


def test_head_can_be_read_at_some_of_the_steps(tiny_run):
    """Its weights there equal those among all steps."""
    every, part = attend_over_steps(tiny_run, TEXT, 2, 1), attend_over_steps(tiny_run, TEXT, 2, 1, [0, 16])
    assert part.steps.tolist() == [0, 16]
    np.testing.assert_array_equal(part.weights, every.weights[[0, 2]])


def test_broken_checkpoint_is_left_out_and_named(own_run):
    """The others are read; an error is raised if it is the only one asked."""
    (own_run.path / "checkpoints" / "step8" / "model.safetensors").unlink()
    history = attend_over_steps(own_run, TEXT, 1, 1)
    assert history.steps.tolist() == [0, 16] and "model.safetensors does not exist" in history.skipped[0]
    with pytest.raises(BrokenCheckpoint, match=r"model\.safetensors does not exist"):
        attend(own_run, TEXT, 8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  ", "The text is empty"),
        ("cat " * 500, r"pieces long .* this model reads at most \d+\. Shorten it"),
        ("cat " * 10_000, "39,999 characters; the maximum is 20,000"),
    ],
    ids=("empty", "past the positions", "past all reason"),
)
def test_texts_that_cannot_be_read_are_refused(tiny_run, text, message):
    """The message says that the text is empty, or has its length and the limit."""
    with pytest.raises(QueryError, match=message):
        attend(tiny_run, text, 0)
