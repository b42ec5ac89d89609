"""What every chart shares: text that is as dark as that of the page, and runs that can be distinguished."""

import plotly.graph_objects as go
from streamlit.elements.lib.streamlit_plotly_theme import GRAY_90

from embryo_core.figures import style
from embryo_core.figures.cells import luminance


def test_text_is_as_dark_as_that_of_the_page() -> None:
    """Streamlit's own ticks and titles are a pale grey; it replaces this colour by that of its text, in either mode."""
    layout = style.finish(go.Figure(), "accuracy").layout
    fonts = [axis.tickfont for axis in (layout.xaxis, layout.yaxis)]
    fonts += [axis.title.font for axis in (layout.xaxis, layout.yaxis)]
    assert {font.color for font in (layout.font, layout.hoverlabel.font, *fonts)} == {style.INK} == {GRAY_90}


def test_every_colour_shows_on_a_light_and_on_a_dark_page() -> None:
    """By 3 : 1 at least, which WCAG asks of marks (1.4.11)."""
    for colour in style.PALETTE:
        light = luminance([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        for page in (1.0, luminance([0x19 / 255, 0x18 / 255, 0x16 / 255])):
            low, high = sorted((light, page))
            assert (high + 0.05) / (low + 0.05) >= 3, colour


def test_runs_of_one_figure_look_different() -> None:
    """As many as there are symbols times shades."""
    looks = [style.run_look(i) for i in range(len(style.RUN_SYMBOLS) * len(style.LIGHTNESS))]
    assert len(set(looks)) == len(looks) and looks[0] == ("circle", 1)


def test_numbers_written_alike_are_written_in_full() -> None:
    """And only they: steps of a run that went on late are near each other."""
    assert style.abbreviate_all([118_000, 118_001, 119_000, 2_000_000]) == ["118,000", "118,001", "119 k", "2 M"]
    assert style.abbreviate_all([20_000, 20_000, 950]) == ["20 k", "20 k", "950"], "one number twice is no other"
