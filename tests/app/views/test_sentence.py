"""Your sentence in Streamlit's own test runner: what bertviz is given, what the captions say, what is refused."""

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
from embryo_core.types import Run
from tests.app.conftest import captions_of, unescaped

TEXT = "The cat sat on the mat ."


@pytest.fixture
def look(open_page: Callable[..., AppTest]) -> Callable[..., AppTest]:
    """Open the section on the data root of a run, with parameters in the URL."""
    return partial(open_page, "attention", section="sentence")


def frames(test: AppTest) -> list[str]:
    """Return the documents in frames."""
    components = [element.proto for element in test.get("bidi_component")]
    return [json.loads(proto.json)["html"] for proto in components if proto.component_name == "embryo.frame"]


def frame(test: AppTest) -> str:
    """Return the document that bertviz draws in."""
    (found,) = frames(test)
    return found


def data(test: AppTest) -> dict:
    """Return the data that the document embeds."""
    return json.loads(re.search(r'id="data">(.*?)</script>', frame(test), re.DOTALL)[1])


def test_the_sentence_needs_no_results(look, tiny_run):
    """A run that was not evaluated shows every layer of a sentence, drawn by bertviz, and one head over the steps."""
    test = look(tiny_run)
    assert not test.exception and not test.error and not test.warning
    assert data(test)["include_layers"] == [1, 2]
    assert "All heads at step 16" in [heading.value for heading in test.header]
    captions = " ".join(caption for caption in captions_of(test))
    assert f"({len(data(test)['tokens'])} pieces" in captions and "over all 3 steps" in captions


def test_the_view_comes_from_the_url(look, tiny_run):
    """Sentence, view, layers, and the step, which changes the weights."""
    test = look(tiny_run, sentence=TEXT, heads="model", layers="2", step="8")
    assert "total_heads" in data(test) and data(test)["include_layers"] == [2]
    assert data(test)["tokens"][0] == "[CLS]" and "step 8, layer 2." in " ".join(captions_of(test))
    assert data(look(tiny_run, sentence=TEXT, heads="model", layers="2", step="0"))["weights"] != data(test)["weights"]


def test_the_head_view_begins_with_the_layer_of_the_url(look, tiny_run):
    """Where that layer is not among the chosen ones, with the first of these."""
    assert data(look(tiny_run, layer="2"))["layer"] == 2
    assert data(look(tiny_run, layer="2", layers="1"))["layer"] == 1


def test_the_model_view_begins_with_as_many_layers_as_are_quick(look, tiny_run, monkeypatch):
    """The caption says so; the others are added by their pills."""
    monkeypatch.setattr("app.views.sentence.MAX_LINES", 2)
    test = look(tiny_run, heads="model")
    assert data(test)["include_layers"] == [1] and "It begins with 1 of 2 layers" in " ".join(captions_of(test))
    assert data(look(tiny_run, heads="model", layers="1,2"))["include_layers"] == [1, 2]


def test_a_text_too_long_for_bertviz_is_still_followed_over_the_steps(look, tiny_run, monkeypatch):
    """A message says what it would take."""
    monkeypatch.setattr("app.views.sentence.MAX_PIECES", 4)
    test = look(tiny_run)
    assert "at most 4. Shorten it." in unescaped(test.info[0].value) and not frames(test)
    assert "over all 3 steps" in captions_of(test)[-1]


def test_a_link_without_layers_shows_the_usual_ones(look, tiny_run):
    """And says so; the head over the steps stays."""
    test = look(tiny_run, layers="")
    assert "layers" in test.info[0].value and frames(test)
    assert "One head, step by step" in [heading.value for heading in test.header]


@pytest.mark.parametrize(
    ("text", "message"), [(" ", "The text is empty"), ("cat " * 500, "this model reads at most")], ids=("empty", "long")
)
def test_a_text_that_cannot_be_read_gets_one_sentence(look, tiny_run, text, message):
    """Nothing is drawn."""
    test = look(tiny_run, sentence=text)
    assert message in test.warning[0].value and not frames(test) and not test.exception


def test_hostile_text_stays_text(look, tiny_run):
    """It is read as any other and closes no script."""
    test = look(tiny_run, sentence="</script><img src=x onerror=alert(1)> [MASK]")
    assert not test.exception and "<img" not in frame(test) and frame(test).count("</script") == 5


def test_of_a_long_series_a_part_of_the_steps_and_the_chosen_one_are_read(look, tiny_run, monkeypatch):
    """Of three steps, where two would be many, the ends and the one that the time bar is set to."""
    monkeypatch.setattr(sentence, "MAPS", 2)
    at_its_end, between = (look(tiny_run, step=step, sentence="A dog ran home .") for step in ("16", "8"))
    assert any("over all 2 steps" in caption and "Of 3 steps, 2 have" in caption for caption in captions_of(at_its_end))
    assert any("over all 3 steps" in caption for caption in captions_of(between))
    history = _with_step(query.attend_over_steps(tiny_run, TEXT, 1, 2, [0, 16]), 8, _at(tiny_run, 8))
    whole = query.attend_over_steps(tiny_run, TEXT, 1, 2)
    assert history.steps.tolist() == whole.steps.tolist()
    np.testing.assert_array_equal(history.weights, whole.weights)


def _at(run: Run, step: int) -> np.ndarray:
    return query.attend(run, TEXT, step).weights[0, 1]


def test_a_broken_checkpoint_is_named(look, own_run):
    """At its own step there is nothing to draw; at others the head over the steps leaves it out."""
    (own_run.path / "checkpoints" / "step8" / "model.safetensors").unlink()
    broken = r"model\.safetensors does not exist"
    assert broken in look(own_run, step="8").error[0].value
    test = look(own_run, step="16")
    assert broken in test.warning[0].value and len(frames(test)) == 1


@pytest.mark.usefixtures("all_opened")
def test_the_development_downloads_as_table_as_gif_and_as_page(look, tiny_run):
    """The menu below the map has them."""
    labels = [button.label for button in look(tiny_run, layer="2").get("download_button")]
    assert [label.partition(",")[0] for label in labels] == ["CSV", "GIF", "HTML"]
