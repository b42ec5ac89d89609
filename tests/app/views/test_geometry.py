"""Tests of the Geometry page: every measure, and a chosen step."""

from embryo_core.figures.geometry import MEASURES
from tests.app.conftest import captions_of, unescaped


def test_every_measure_is_drawn(open_view, tiny_results):
    """The picker lists the measures of hidden states; CKA compares layers with a step that the reader chooses."""
    test = open_view(tiny_results)
    assert not test.exception and not test.error
    assert any("effective rank of the last layer" in line.value for line in test.markdown)
    (box,) = [box for box in test.selectbox if box.label == "Measure"]
    assert {MEASURES[name].label for name in ("rank_me", "anisotropy", "dimension", "cka_step")} <= {*box.options}
    test = open_view(tiny_results, measure="cka_step", to="8", states="1", step="8")
    assert not test.exception and not test.error
    assert "Similarity to step 8, layer by layer" in [unescaped(header.value) for header in test.header]
    assert any("same words" in caption for caption in captions_of(test))
