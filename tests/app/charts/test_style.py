"""What every chart shares: text that is as dark as that of the page, and runs that are told apart."""

import plotly.graph_objects as go
from streamlit.elements.lib.streamlit_plotly_theme import GRAY_90

from app.charts import style


def test_text_is_as_dark_as_that_of_the_page() -> None:
    """Streamlit's own ticks and titles are a pale grey; it replaces this colour by that of its text, in either mode."""
    layout = style.finish(go.Figure(), "accuracy").layout
    fonts = [axis.tickfont for axis in (layout.xaxis, layout.yaxis)]
    fonts += [axis.title.font for axis in (layout.xaxis, layout.yaxis)]
    assert {font.color for font in (layout.font, layout.hoverlabel.font, *fonts)} == {style.INK} == {GRAY_90}


def test_runs_of_one_figure_look_different() -> None:
    """As many as there are symbols times shades."""
    looks = [style.run_look(i) for i in range(len(style.RUN_SYMBOLS) * len(style.LIGHTNESS))]
    assert len(set(looks)) == len(looks) and looks[0] == ("circle", 1)
