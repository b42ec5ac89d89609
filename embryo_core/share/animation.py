"""A head's history written to a file as an animation: the suffix says whether as a GIF or as a page."""

from pathlib import Path

from embryo_core.curves.step_scales import Scale
from embryo_core.errors import ResultsError
from embryo_core.share.gif import gif_bytes
from embryo_core.share.head_history import HeadHistory
from embryo_core.share.page import html_page

SUFFIXES = (".gif", ".html")


def write_animation(history: HeadHistory, path: Path, scale: Scale = "linear") -> None:
    """Write the animation. Raises ResultsError for another suffix or an unwritable path."""
    check_suffix(path)
    content = gif_bytes(history, scale) if path.suffix.lower() == ".gif" else html_page(history, scale).encode()
    try:
        path.write_bytes(content)
    except OSError as reason:
        raise ResultsError(f"{path} cannot be written ({reason.strerror}); give another path with -o.") from None


def check_suffix(path: Path) -> None:
    """Raise ResultsError unless animations can be written to files of this name."""
    if path.suffix.lower() not in SUFFIXES:
        raise ResultsError(f"'{path}' ends in none of {', '.join(SUFFIXES)}; an animation is written as one of these.")
