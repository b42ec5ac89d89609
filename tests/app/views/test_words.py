"""Tests of the Words page: with results, with a search, and with two runs."""

import shutil

from embryo_core import runs
from tests.app.conftest import captions_of
from tests.embryo_core.figures.test_words import plant


def test_page_shows_chosen_word_and_list_of_all(open_view, own_run):
    """The caption gives the word's age of acquisition; words without an age are listed too, and a search finds them."""
    plant(own_run)
    test = open_view(own_run, listed_word="dog")
    assert not test.exception and not test.error
    assert any("“dog” is acquired at about step" in caption for caption in captions_of(test))
    assert any("8 of 10 words" in line.value for line in test.markdown)
    assert len(test.dataframe[0].value) == 11
    assert list(open_view(own_run, word_search="zoo").dataframe[0].value["word"]) == ["zoo"]


def test_two_runs_are_compared(open_view, own_run):
    """The captions name the other run."""
    copy = runs.read_run(shutil.copytree(own_run.path, own_run.path.with_name("later")))
    plant(own_run)
    plant(copy, 0.3)
    test = open_view(own_run, run="tiny", beside="later")
    assert not test.exception and not test.error
    assert any("later" in caption for caption in captions_of(test))
