"""Tests of compared runs in a browser: layout at three widths, accessibility, and the choice of a run."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from embryo_core.types import Run
from tests.browser.conftest import serve
from tests.browser.test_access import GRAVE


@pytest.fixture(scope="module")
def app_of_two(tiny_results: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of the app on the tiny run and a copy "twin"."""
    root = tmp_path_factory.mktemp("two")
    for name in (tiny_results.name, "twin"):
        shutil.copytree(tiny_results.path, Path(root) / "runs" / name)
        shutil.copytree(tiny_results.results, Path(root) / "results" / name)
    with serve(root) as address:
        yield address


@pytest.mark.slow
@pytest.mark.parametrize("page", ["compare", "tokens", "attention", "findings", "probing", "knowledge"])
def test_pages_of_two_runs_fit_window_and_are_accessible(visit, app_of_two: str, page: str):
    """At 1,400, 1,024 and 390 pixels no page scrolls sideways, and axe-core finds no serious or critical violation."""
    visitor = visit(app_of_two)
    for width, scheme in ((1400, "light"), (1024, "dark"), (390, "light")):
        visitor.page.set_viewport_size({"width": width, "height": 1000})
        visitor.page.emulate_media(color_scheme=scheme)
        visitor.open(page, beside="twin", axis="tokens")
        assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        violations = Axe().run(visitor.page).response["violations"]
        assert not [f"{width}, {violation['id']}" for violation in violations if violation["impact"] in GRAVE]


def test_compared_run_is_chosen_in_overlay_menu(visit, app_of_two: str):
    """The choice is written to the URL and kept on the next page."""
    visitor = visit(app_of_two)
    visitor.open("tokens")
    visitor.page.get_by_role("button", name="Overlay").click()
    visitor.page.get_by_role("combobox", name="Compared runs").click()
    visitor.page.get_by_role("option", name="twin").click()
    visitor.expect_query(beside="twin")
    visitor.page.keyboard.press("Escape")
    visitor.page.keyboard.press("Escape")
    visitor.follow("Probing")
    visitor.expect_query(beside="twin")
    visitor.follow("Compare")  # it compares the twin without a choice, so its address need not name it
    expect(visitor.page.get_by_role("heading", name="Agreement of the orders")).to_be_visible()
