"""The Words page in Streamlit's own test runner: with results, without, and with a search."""

import shutil
from collections.abc import Callable
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from embryo_core import runs
from tests.app.conftest import captions_of
from tests.embryo_core.figures.test_words import plant


@pytest.fixture
def look(open_page: Callable[..., AppTest]) -> Callable[..., AppTest]:
    """Open the page on the data root of a run, with parameters in the URL."""
    return partial(open_page, "words")


def test_the_page_shows_one_word_and_every_word(look, own_run):
    """With its age; words without one are listed too, and a search finds them."""
    plant(own_run)
    test = look(own_run, listed_word="dog")
    assert not test.exception and not test.error
    assert any("“dog” is acquired at about step" in caption for caption in captions_of(test))
    assert any("8 of 10 words" in line.value for line in test.markdown)
    assert len(test.dataframe[0].value) == 11
    assert list(look(own_run, word_search="zoo").dataframe[0].value["word"]) == ["zoo"]


def test_two_runs_are_compared(look, own_run):
    """The captions have the agreement of their orders."""
    copy = runs.read_run(shutil.copytree(own_run.path, own_run.path.with_name("later")))
    plant(own_run)
    plant(copy, 0.3)
    test = look(own_run, run="tiny", beside="later")
    assert not test.exception and not test.error
    assert any("later" in caption for caption in captions_of(test))


def test_a_run_without_surprisals_says_what_to_run(look, own_run):
    test = look(own_run)
    assert "--metrics word_surprisal --words PATH --text PATH" in test.code[0].value
