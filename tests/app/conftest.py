"""The dashboard without a browser: open a page as a link does, go to another as its navigation does."""

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
from embryo_core.figures.file_words import TAGS
from embryo_core.types import Run

# Each AppTest looks through all installed packages for components, which takes longer than a page: once is enough.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
# After each page Streamlit clears Keras's session and collects garbage, a second each where tests of pretraining have
# loaded TensorFlow. The server does neither: no page loads Keras, and app/.streamlit/config.toml, which AppTest does
# not read, switches the collection off.
script_runner._clean_problem_modules = lambda: None
config.set_option("runner.postScriptGC", False)

MAIN = Path(__file__).resolve().parents[2] / "app" / "main.py"


def captions_of(app: AppTest) -> list[str]:
    """Return all captions of a page as a reader sees them, each with what is behind its info mark."""
    return [unescaped(f"{caption.value} {caption.help or ''}".strip()) for caption in app.caption]


def unescaped(markdown: str) -> str:
    """Return Markdown without its backslashes."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown)


def words_of(heatmap: go.Heatmap) -> list[list[str]]:
    """Return what is written in the cells, whatever its colour."""
    return [[TAGS.sub("", text) for text in row] for row in heatmap.text]


class Dashboard:
    """The whole dashboard, on the data roots that EMBRYO_DATA names."""

    def open(self, page: str, main: Path = MAIN, **query: str) -> AppTest:
        """Return a new session that opens this page ("overview", ...) of main.py with these query parameters."""
        app = AppTest.from_file(str(main), default_timeout=60)
        app.query_params.update(query)
        return self._run(app, page)

    def go(self, app: AppTest, page: str) -> AppTest:
        """Return the same session on another page; as in the browser, the query parameters are gone on arrival."""
        for name in list(app.query_params):
            del app.query_params[name]
        return self._run(app, page)

    def _run(self, app: AppTest, page: str) -> AppTest:
        # AppTest.switch_page knows only pages that are files; st.Page names a function by the hash of its URL path.
        app._page_hash = calc_hash("" if page == "overview" else page)
        return app.run()


@pytest.fixture(autouse=True)
def main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest puts the page in the place of `__main__`, where a process started by a later test would run it again."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture(autouse=True)
def seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page looks at its files itself: tests change them and draw again within a second."""
    monkeypatch.setattr(drawing, "SEEN_FOR", 0)


@pytest.fixture
def all_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw what is in each menu and each section, as after a reader has opened it."""
    for container in (ExpanderContainer, PopoverContainer):
        monkeypatch.setattr(container, "open", property(lambda _: True, lambda _, value: None))


@pytest.fixture
def dashboard() -> Dashboard:
    """Return the dashboard without any run (see `only_test_data`)."""
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
    """Open a page of the dashboard on the data root of a run, with parameters in the URL."""

    def open_on(page: str, run: Run, /, **query: str) -> AppTest:
        monkeypatch.setenv("EMBRYO_DATA", str(run.path.parent.parent))
        return Dashboard().open(page, **query)

    return open_on
