"""Fixtures that run the dashboard without a browser: a page is opened as by a link, the next as by the navigation."""

import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import plotly.graph_objects as go
import pytest
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer
from streamlit.elements.lib.mutable_popover_container import PopoverContainer
from streamlit.runtime.scriptrunner import script_runner
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from app import drawing
from embryo_core.figures.file_words import TAG_PATTERN
from embryo_core.types import Run

# Each AppTest scans all installed packages for components, which takes longer than a page, so the scan is cached.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
# After each page Streamlit clears Keras's session and collects garbage, a second each where tests of pretraining have
# loaded TensorFlow. The server does neither: no page loads Keras, and app/.streamlit/config.toml, which AppTest does
# not read, switches the collection off.
script_runner._clean_problem_modules = lambda: None
config.set_option("runner.postScriptGC", False)

MAIN = Path(__file__).resolve().parents[2] / "app" / "main.py"


def captions_of(app: AppTest) -> list[str]:
    """Return all captions of a page as a reader sees them, each with the help text of its info mark."""
    return [unescaped(f"{caption.value} {caption.help or ''}".strip()) for caption in app.caption]


def unescaped(markdown: str) -> str:
    """Return Markdown without its backslashes."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown)


def words_of(heatmap: go.Heatmap) -> list[list[str]]:
    """Return the texts of the cells without their colour tags."""
    return [[TAG_PATTERN.sub("", text) for text in row] for row in heatmap.text]


class Dashboard:
    """Open pages of the whole dashboard on the data roots that EMBRYO_DATA names."""

    def open(self, page: str, main: Path = MAIN, **query: str) -> AppTest:
        """Return a new session in which this page ("overview", ...) of main.py is open with these query parameters."""
        app = AppTest.from_file(str(main), default_timeout=60)
        app.query_params.update(query)
        return self._run(app, page)

    def go(self, app: AppTest, page: str) -> AppTest:
        """Return the same session on another page; as in a browser, navigation clears the query parameters."""
        for name in list(app.query_params):
            del app.query_params[name]
        return self._run(app, page)

    def _run(self, app: AppTest, page: str) -> AppTest:
        # AppTest.switch_page knows only pages that are files; st.Page names a function by the hash of its URL path.
        app._page_hash = calc_hash("" if page == "overview" else page)
        return app.run()


@pytest.fixture(autouse=True)
def main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore `__main__`, which AppTest replaces by the page: a process started by a later test would run it again."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture(autouse=True)
def seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each page look at its files anew, since tests change files and draw again within a second."""
    monkeypatch.setattr(drawing, "SEEN_FOR", 0)


@pytest.fixture
def all_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the content of every menu and section as if a reader had opened it."""
    for container in (ExpanderContainer, PopoverContainer):
        monkeypatch.setattr(container, "open", property(lambda _: True, lambda _, value: None))


@pytest.fixture
def dashboard() -> Dashboard:
    """Return the dashboard on a data root without runs (see `only_test_data`)."""
    return Dashboard()


@pytest.fixture
def dashboard_with_results(tiny_results: Run, monkeypatch: pytest.MonkeyPatch) -> Dashboard:
    """Return the dashboard on the tiny run with all its results."""
    monkeypatch.setenv("EMBRYO_DATA", str(tiny_results.path.parent.parent))
    return Dashboard()


@pytest.fixture
def dashboard_without_results(own_run: Run, monkeypatch: pytest.MonkeyPatch) -> Dashboard:
    """Return the dashboard on a copy of the tiny run (`own_run`) that has not been evaluated."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parent.parent))
    return Dashboard()


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Return a function that opens a page on the data root of a run, with parameters in the URL."""

    def open_on(page: str, run: Run, /, **query: str) -> AppTest:
        monkeypatch.setenv("EMBRYO_DATA", str(run.path.parent.parent))
        return Dashboard().open(page, **query)

    return open_on
