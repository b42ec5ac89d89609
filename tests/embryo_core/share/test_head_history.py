"""Tests of a head's history: the stored maps, with a title and a note that describe them."""

from dataclasses import replace

import numpy as np
import pytest

from embryo_core import results
from embryo_core.errors import ResultsError
from embryo_core.share import HeadHistory, averaged, read_averaged
from embryo_core.types import SpecialTokens, StepUnit


def test_history_equals_the_stored_maps(tiny_results):
    """The history has the steps and weights of the results, and its note names the data."""
    history, maps = read_averaged(tiny_results, 2, 1), results.read_attention(tiny_results, 2, 1)
    np.testing.assert_array_equal(history.steps, maps.steps)
    np.testing.assert_array_equal(history.weights, maps.weights)
    assert history.title == "tiny, layer 2, head 1" and history.size == maps.weights.shape[-1]
    assert history.note == f"Attention weights, {results.read_sources(tiny_results)['attention']['note']}"


def test_token_at_position_0_is_the_run_s_own(tiny_results):
    """A run of pretrain has the default tokens; an added decoder may have none that opens a text."""
    maps = results.read_attention(tiny_results, 1, 1)
    tokens = {None: "[CLS]", SpecialTokens(cls="<s>"): "<s>", SpecialTokens(cls=None): None}
    for special, opening in tokens.items():
        assert averaged(replace(tiny_results, special_tokens=special), 1, 1, maps, {}).opening == opening


def test_note_falls_back_to_the_number_of_sentences(tiny_results):
    """Results without sources.json have no note on the metric."""
    maps = results.read_attention(tiny_results, 1, 1)
    history = averaged(tiny_results, 1, 1, maps, {})
    assert history.note == f"Attention weights, averaged over {maps.sentences:,} sentences"


def test_maximum_of_zero_weights_is_1():
    """The renderers divide by the maximum, so it must not be 0."""
    weights = np.zeros((2, 3, 3), np.float32)
    assert HeadHistory("tiny", 1, 1, "", np.array([0, 1]), weights, step_unit=StepUnit.UPDATES).maximum == 1
    weights[1, 2, 0] = 0.25
    assert HeadHistory("tiny", 1, 1, "", np.array([0, 1]), weights, step_unit=StepUnit.UPDATES).maximum == 0.25


def test_missing_maps_name_the_evaluate_command(tiny_run):
    """The run has not been evaluated."""
    with pytest.raises(ResultsError, match=r"has no attention maps yet; .* evaluate tiny --metrics attention"):
        read_averaged(tiny_run, 1, 1)


@pytest.mark.parametrize(("layer", "head"), [(3, 1), (1, 3), (0, 1), (1, -1)])
def test_unknown_head_lists_the_existing_ones(tiny_results, layer, head):
    """Layers and heads count from 1."""
    with pytest.raises(ResultsError, match=f"no layer {layer}, head {head}: its layers are 1 to 2, its heads 1 to 2"):
        read_averaged(tiny_results, layer, head)
