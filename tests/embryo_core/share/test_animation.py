"""Tests of an animation: its files, in the format that the suffix names, and what a notebook displays."""

import html
import re
from pathlib import Path

import pytest

from embryo_core.errors import ResultsError
from embryo_core.share import Animation, html_page


def test_suffix_selects_the_format(history, tmp_path):
    """An upper-case suffix is accepted."""
    assert Animation(history).save(tmp_path / "head.GIF").read_bytes().startswith(b"GIF89a")
    page = Animation(history, "log").save(str(tmp_path / "head.html"))
    assert page == tmp_path / "head.html" and page.read_text(encoding="utf-8") == html_page(history, "log")


def test_notebook_displays_the_saved_page(sentence):
    """The page is the document of a frame, and none of its tokens ends the attribute that contains it."""
    (page,) = re.findall(r'<iframe srcdoc="([^"<>]*)"', Animation(sentence)._repr_html_())
    assert html.unescape(page) == html_page(sentence)


@pytest.mark.parametrize(
    ("name", "message"),
    [("head.mp4", "ends in none of .gif, .html"), ("head", "ends in none"), ("none/head.gif", "cannot be written")],
)
def test_unwritable_files_are_refused(history, tmp_path: Path, name, message):
    """The suffix is unknown or missing, or the folder does not exist."""
    with pytest.raises(ResultsError, match=message):
        Animation(history).save(tmp_path / name)
