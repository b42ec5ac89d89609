"""The suffix of a file says what is written."""

from pathlib import Path

import pytest

from embryo_core.errors import ResultsError
from embryo_core.share import write_animation


def test_the_suffix_says_what_is_written(history, tmp_path):
    """GIF or HTML, in any case."""
    write_animation(history, tmp_path / "head.GIF")
    write_animation(history, tmp_path / "head.html", "log")
    assert (tmp_path / "head.GIF").read_bytes().startswith(b"GIF89a")
    assert (tmp_path / "head.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("name", "message"),
    [("head.mp4", "ends in none of .gif, .html"), ("head", "ends in none"), ("none/head.gif", "cannot be written")],
)
def test_what_cannot_be_written_is_refused(history, tmp_path: Path, name, message):
    """Another suffix, no suffix, no such folder."""
    with pytest.raises(ResultsError, match=message):
        write_animation(history, tmp_path / name)
