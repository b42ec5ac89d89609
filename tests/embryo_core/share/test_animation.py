"""Tests of writing an animation in the format that the file's suffix names."""

from pathlib import Path

import pytest

from embryo_core.errors import ResultsError
from embryo_core.share import write_animation


def test_suffix_selects_the_format(history, tmp_path):
    """An upper-case suffix is accepted."""
    write_animation(history, tmp_path / "head.GIF")
    write_animation(history, tmp_path / "head.html", "log")
    assert (tmp_path / "head.GIF").read_bytes().startswith(b"GIF89a")
    assert (tmp_path / "head.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("name", "message"),
    [("head.mp4", "ends in none of .gif, .html"), ("head", "ends in none"), ("none/head.gif", "cannot be written")],
)
def test_unwritable_files_are_refused(history, tmp_path: Path, name, message):
    """The suffix is unknown or missing, or the folder does not exist."""
    with pytest.raises(ResultsError, match=message):
        write_animation(history, tmp_path / name)
