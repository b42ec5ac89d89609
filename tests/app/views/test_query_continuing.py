"""Tests of the Query page on decoders, which continue a text, alone and beside encoders, which fill masks."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.views import query_ask
from embryo_core import query, runs
from embryo_core.figures.figure import Figure
from embryo_core.figures.markdown import literal
from embryo_core.query import TOGETHER
from embryo_core.types import Run
from tests.app.conftest import captions_of
from tests.app.views.conftest import box, words
from tests.decoders import add_series

TEXT = "The cat sat on the"
STEPS = (0, 5, 10)


@pytest.fixture(scope="module")
def decoder(shared: Callable[..., Path]) -> Run:
    """Return a run whose checkpoints are tiny GPT-2 decoders."""
    return runs.read_run(shared("page-gpt2", lambda root: add_series(root, "gpt2", STEPS)) / "runs" / "gpt2")


@pytest.fixture
def ask(
    decoder: Run, tiny_run: Run, tmp_path: Path, dashboard, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., AppTest]:
    """Return a function that opens a link to the page on the decoders; the data root also has a run of encoders."""
    for run in (decoder, tiny_run):
        shutil.copytree(run.path, tmp_path / "runs" / run.name)
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    return lambda **parameters: dashboard.open("query", **{"run": "gpt2"} | parameters)


def test_page_opens_on_text_to_continue(ask) -> None:
    """The box is labelled for continuing a text, and no example has a [MASK]."""
    app = ask()
    assert not app.exception and not app.error and not app.warning and app.metric
    assert app.text_area[0].label == query_ask.CONTINUE.label and app.text_area[0].value == query.START
    assert not any("MASK" in button.label for button in app.button)


def test_answers_and_continuations_match_library(ask, decoder: Run, shown: list[Figure]) -> None:
    """The page shows next pieces and greedy continuation at the chosen step, and a table of continuations by step."""
    app = ask(text=TEXT, step="5", word="rivers", open="lens")
    answers = query.ask(decoder, TEXT)
    best, (greedy,) = answers.best(5), answers.best(5, TOGETHER)
    assert words(app.dataframe[0].value) == [answer.token for answer in best]
    assert any(element.value == f"{TEXT} **{literal(greedy.token)}**" for element in app.markdown)
    table = next(frame.value for frame in app.dataframe if "continuation" in frame.value)
    assert table["step"].tolist() == list(STEPS)
    assert table["continuation"].tolist() == [answers.best(step, TOGETHER)[0].token for step in STEPS]
    (tracked,) = [caption for caption in captions_of(app) if caption.startswith("Tracked")]
    assert "chain rule" in tracked and "widened" not in tracked
    assert [figure.name for figure in shown] == ["gpt2-query-probability", "gpt2-query-lens"]
    assert {*shown[0].table["mask"], *shown[1].table["mask"]} == {"after the text"}
    assert "final norm" in str(shown[1].caption)


@pytest.mark.parametrize(("text", "said"), [("The cat sat on the [MASK] .", "continues a text"), ("", "is empty")])
def test_text_that_cannot_be_continued_gets_one_message(ask, text: str, said: str) -> None:
    """Decoders do not fill a [MASK], and an empty text is not asked."""
    app = ask(text=text)
    (message,) = [*app.warning, *app.info]
    assert said in message.value and not app.metric


@pytest.mark.parametrize(("first", "other"), [("gpt2", "tiny"), ("tiny", "gpt2")])
def test_encoder_and_decoder_are_compared_side_by_side(ask, first: str, other: str) -> None:
    """Each model gets the text in its form: the encoder with a [MASK], the decoder up to the place of the mask."""
    forms = {"gpt2": "The capital of France is", "tiny": "The capital of France is [MASK] ."}
    app = ask(text=forms[first], run=first, compare="run", other=other)
    assert not app.warning and not app.error and box(app, "The other run").value == other
    headings = [element.value for element in app.markdown]
    assert all(f"**{name}**: {literal(text)}" in headings for name, text in forms.items())
