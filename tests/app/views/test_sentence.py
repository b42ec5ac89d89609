"""Tests of the section Your sentence: the data that bertviz draws, the captions, and texts that are refused."""

import json
import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.views import sentence
from app.views.sentence import _with_step
from embryo_core import query
from embryo_core.query import cost
from embryo_core.types import Run
from tests.app.conftest import captions_of, unescaped

TEXT = "The cat sat on the mat ."


@pytest.fixture
def open_view(open_page: Callable[..., AppTest]) -> Callable[..., AppTest]:
    """Return a function that opens the section on the data root of a run, with parameters in the URL."""
    return partial(open_page, "attention", section="sentence")


def frames(test: AppTest) -> list[str]:
    """Return the HTML documents of all frames on the page."""
    components = [element.proto for element in test.get("bidi_component")]
    return [json.loads(proto.json)["html"] for proto in components if proto.component_name == "embryo.frame"]


def frame(test: AppTest) -> str:
    """Return the one HTML document, in which bertviz draws."""
    (document,) = frames(test)
    return document


def data(test: AppTest) -> dict:
    """Return the data that the document embeds for bertviz."""
    return json.loads(re.search(r'id="data">(.*?)</script>', frame(test), re.DOTALL)[1])


def test_section_needs_no_results(open_view, tiny_run):
    """On a run that was not evaluated, bertviz gets every layer, and one head is drawn over the steps."""
    test = open_view(tiny_run)
    assert not test.exception and not test.error and not test.warning
    assert data(test)["include_layers"] == [1, 2]
    assert "All heads at step 16" in [heading.value for heading in test.header]
    captions = " ".join(caption for caption in captions_of(test))
    assert f"({len(data(test)['tokens'])} pieces" in captions and "over all 3 steps" in captions


def test_budget_counts_every_step(open_view, tiny_run, monkeypatch):
    """The attention at one step is within the budget, that of one head at all three exceeds it."""
    text = "The dog sat on the cat ."
    monkeypatch.setenv("EMBRYO_QUESTION_BUDGET", str(2.5 * cost.attend_seconds(tiny_run, text)))
    test = open_view(tiny_run, sentence=text)
    assert data(test)["tokens"] and any("seconds of one core" in warning.value for warning in test.warning)


def test_link_restores_view(open_view, tiny_run):
    """The URL has sentence, view, layers and step; at another step the weights differ."""
    test = open_view(tiny_run, sentence=TEXT, heads="model", layers="2", step="8")
    assert "total_heads" in data(test) and data(test)["include_layers"] == [2]
    assert data(test)["tokens"][0] == "[CLS]" and "step 8, layer 2." in " ".join(captions_of(test))
    assert (
        data(open_view(tiny_run, sentence=TEXT, heads="model", layers="2", step="0"))["weights"]
        != data(test)["weights"]
    )


def test_head_view_begins_with_layer_of_url(open_view, tiny_run):
    """If that layer is not among the chosen layers, the view begins with the first of them."""
    assert data(open_view(tiny_run, layer="2"))["layer"] == 2
    assert data(open_view(tiny_run, layer="2", layers="1"))["layer"] == 1


def test_model_view_begins_with_few_layers(open_view, tiny_run, monkeypatch):
    """MAX_DRAWN_LINES limits the default number of layers, which the caption states; the reader can add the others."""
    monkeypatch.setattr("app.views.sentence.MAX_DRAWN_LINES", 2)
    test = open_view(tiny_run, heads="model")
    assert data(test)["include_layers"] == [1] and "It begins with 1 of 2 layers" in " ".join(captions_of(test))
    assert data(open_view(tiny_run, heads="model", layers="1,2"))["include_layers"] == [1, 2]


def test_text_too_long_for_bertviz_is_shown_over_steps(open_view, tiny_run, monkeypatch):
    """A message gives the limit on pieces for bertviz; one head over the steps is drawn nevertheless."""
    monkeypatch.setattr("app.views.sentence.MAX_PIECES", 4)
    test = open_view(tiny_run)
    assert "at most 4. Shorten it." in unescaped(test.info[0].value) and not frames(test)
    assert "over all 3 steps" in captions_of(test)[-1]


def test_link_without_layers_shows_default_layers(open_view, tiny_run):
    """A message reports the empty choice, and one head over the steps is drawn."""
    test = open_view(tiny_run, layers="")
    assert "layers" in test.info[0].value and frames(test)
    assert "One head, step by step" in [heading.value for heading in test.header]


@pytest.mark.parametrize(
    ("text", "message"), [(" ", "The text is empty"), ("cat " * 500, "this model reads at most")], ids=("empty", "long")
)
def test_invalid_text_gets_one_warning(open_view, tiny_run, text, message):
    """An empty text or one longer than the model reads is not drawn."""
    test = open_view(tiny_run, sentence=text)
    assert message in test.warning[0].value and not frames(test) and not test.exception


def test_hostile_text_is_escaped(open_view, tiny_run):
    """The text is drawn like any other, and does not close a script of the document."""
    test = open_view(tiny_run, sentence="</script><img src=x onerror=alert(1)> [MASK]")
    assert not test.exception and "<img" not in frame(test) and frame(test).count("</script") == 5


def test_long_series_reads_log_spaced_steps_and_chosen_one(open_view, tiny_run, monkeypatch):
    """At most two maps are read at first: those of steps 0 and 16, then that of the chosen step 8."""
    monkeypatch.setattr(sentence, "MAX_MAPS", 2)
    at_its_end, between = (open_view(tiny_run, step=step, sentence="A dog ran home .") for step in ("16", "8"))
    assert any("over all 2 steps" in caption and "Of 3 steps, 2 have" in caption for caption in captions_of(at_its_end))
    assert any("over all 3 steps" in caption for caption in captions_of(between))
    history = _with_step(query.attend_over_steps(tiny_run, TEXT, 1, 2, [0, 16]), 8, _at(tiny_run, 8))
    whole = query.attend_over_steps(tiny_run, TEXT, 1, 2)
    assert history.steps.tolist() == whole.steps.tolist()
    np.testing.assert_array_equal(history.weights, whole.weights)


def _at(run: Run, step: int) -> np.ndarray:
    return query.attend(run, TEXT, step).weights[0, 1]


def test_broken_checkpoint_is_named(open_view, own_run):
    """At its step the page shows an error; at other steps, a warning that the head over the steps leaves it out."""
    (own_run.path / "checkpoints" / "step8" / "model.safetensors").unlink()
    broken = r"model\.safetensors does not exist"
    assert broken in open_view(own_run, step="8").error[0].value
    test = open_view(own_run, step="16")
    assert broken in test.warning[0].value and len(frames(test)) == 1


@pytest.mark.usefixtures("all_opened")
def test_development_of_head_downloads_as_csv_gif_and_html(open_view, tiny_run):
    labels = [button.label for button in open_view(tiny_run, layer="2").get("download_button")]
    assert [label.partition(",")[0] for label in labels] == ["CSV", "GIF", "HTML"]
