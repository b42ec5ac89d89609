"""Tests of the style that all charts share: text, colours, looks of runs, and abbreviated numbers."""

import plotly.graph_objects as go
from streamlit.elements.lib.streamlit_plotly_theme import GRAY_90

from embryo_core.figures import style
from embryo_core.figures.cells import luminance


def test_text_has_the_colour_of_page_text() -> None:
    """Streamlit draws ticks and titles in pale grey; it replaces this colour by that of its text, in either mode."""
    layout = style.finish(go.Figure(), "accuracy").layout
    fonts = [axis.tickfont for axis in (layout.xaxis, layout.yaxis)]
    fonts += [axis.title.font for axis in (layout.xaxis, layout.yaxis)]
    assert {font.color for font in (layout.font, layout.hoverlabel.font, *fonts)} == {style.INK} == {GRAY_90}


def test_palette_shows_on_light_and_dark_pages() -> None:
    """Every colour has a contrast of at least 3 : 1, which WCAG asks of marks (1.4.11)."""
    for colour in style.PALETTE:
        light = luminance([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        for page in (1.0, luminance([0x19 / 255, 0x18 / 255, 0x16 / 255])):
            low, high = sorted((light, page))
            assert (high + 0.05) / (low + 0.05) >= 3, colour


def test_runs_of_one_figure_look_different() -> None:
    """There are as many looks as combinations of symbol and lightness."""
    looks = [style.run_look(i) for i in range(len(style.RUN_SYMBOLS) * len(style.RUN_OPACITIES))]
    assert len(set(looks)) == len(looks) and looks[0] == ("circle", 1)


def test_colliding_abbreviations_are_written_in_full() -> None:
    """The steps of a run that continues another late are near each other; equal numbers do not collide."""
    assert style.abbreviate_all([118_000, 118_001, 119_000, 2_000_000]) == ["118,000", "118,001", "119 k", "2 M"]
    assert style.abbreviate_all([20_000, 20_000, 950]) == ["20 k", "20 k", "950"], "one number twice is no other"


def test_abbreviations_have_at_most_three_digits() -> None:
    """A number is rounded before its unit is chosen."""
    numbers = [9_999, 10_000, 999_499, 999_500, 999_990_000, 1_234_567]
    assert list(map(style.abbreviate, numbers)) == ["9,999", "10 k", "999 k", "1 M", "1 G", "1.23 M"]
