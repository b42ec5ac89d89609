"""Helpers of the tests of pages: open the tested page, ask a text on the Query page, and collect shown figures."""

from collections.abc import Callable
from functools import partial

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app import figures
from embryo_core.figures import query_captions
from embryo_core.figures.figure import Figure
from embryo_core.types import Run

TEXT = "the cat sat on the [MASK] ."


@pytest.fixture
def look(open_page: Callable[..., AppTest], request: pytest.FixtureRequest) -> Callable[..., AppTest]:
    """Return a function that opens the page of a test module on the data root of a run, with parameters in the URL."""
    return partial(open_page, request.path.stem.removeprefix("test_"))


@pytest.fixture
def ask(open_page, tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Return a function that opens a link to the Query page with a text, by default on the tiny run without results.

    All answers are listed: those of the tiny run, whose weights are random, would be left out as noise.
    """
    monkeypatch.setattr(query_captions, "MAX_NOISE_PROBABILITY", 0.0)

    def open_link(text: str = TEXT, run: Run = tiny_run, **parameters: str) -> AppTest:
        app = open_page("query", run, text=text, **parameters)
        assert not app.exception
        return app

    return open_link


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Return a list that fills with the Figures that the page shows."""
    found, show = [], figures.show
    monkeypatch.setattr(figures, "show", lambda figure, **how: (found.append(figure), show(figure, **how)))
    return found


def box(app: AppTest, label: str):
    """Return the select box of this label."""
    return next(found for found in app.selectbox if found.label == label)


def words(table: pd.DataFrame) -> list[str]:
    """Return the words of a table of ranked answers."""
    return table["token"].tolist()
