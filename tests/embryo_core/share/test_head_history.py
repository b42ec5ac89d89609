"""A head's history is what is stored, with words that say what it is."""

import numpy as np
import pytest

from embryo_core import results
from embryo_core.errors import ResultsError
from embryo_core.share import HeadHistory, averaged, read_averaged
from embryo_core.types import StepUnit


def test_a_history_is_what_is_stored(tiny_results):
    """Steps and weights are those of the results, and the note says on what data they are."""
    history, maps = read_averaged(tiny_results, 2, 1), results.read_attention(tiny_results, 2, 1)
    np.testing.assert_array_equal(history.steps, maps.steps)
    np.testing.assert_array_equal(history.weights, maps.weights)
    assert history.title == "tiny, layer 2, head 1" and history.size == maps.weights.shape[-1]
    assert history.note == f"Attention weights, {results.read_sources(tiny_results)['attention']['note']}"


def test_without_a_note_of_the_metric_the_sentences_are_counted(tiny_results):
    """As in results without sources.json."""
    maps = results.read_attention(tiny_results, 1, 1)
    found = averaged(tiny_results, 1, 1, maps, {})
    assert found.note == f"Attention weights, averaged over {maps.sentences:,} sentences"


def test_colours_of_a_head_without_weights_have_an_end():
    """The maximum divides: it is 1 where all weights are 0."""
    weights = np.zeros((2, 3, 3), np.float32)
    assert HeadHistory("tiny", 1, 1, "", np.array([0, 1]), weights, step_unit=StepUnit.UPDATES).maximum == 1
    weights[1, 2, 0] = 0.25
    assert HeadHistory("tiny", 1, 1, "", np.array([0, 1]), weights, step_unit=StepUnit.UPDATES).maximum == 0.25


def test_without_maps_the_command_is_named(tiny_run):
    """A run that was not evaluated."""
    with pytest.raises(ResultsError, match=r"has no attention maps yet; .* evaluate tiny --metrics attention"):
        read_averaged(tiny_run, 1, 1)


@pytest.mark.parametrize(("layer", "head"), [(3, 1), (1, 3), (0, 1), (1, -1)])
def test_a_head_that_does_not_exist_is_answered_with_those_that_do(tiny_results, layer, head):
    """Layers and heads count from 1."""
    with pytest.raises(ResultsError, match=f"no layer {layer}, head {head}: its layers are 1 to 2, its heads 1 to 2"):
        read_averaged(tiny_results, layer, head)
