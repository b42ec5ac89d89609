"""Compared runs in a browser: at three widths, light and dark, on one axis under one time bar."""

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
    """Return the app on the tiny run and a copy "twin"."""
    root = tmp_path_factory.mktemp("two")
    for name in (tiny_results.name, "twin"):
        shutil.copytree(tiny_results.path, Path(root) / "runs" / name)
        shutil.copytree(tiny_results.results, Path(root) / "results" / name)
    with serve(root) as address:
        yield address


@pytest.mark.slow
@pytest.mark.parametrize("page", ["compare", "tokens", "attention", "findings", "probing", "knowledge"])
def test_pages_of_two_runs_have_room_and_nothing_grave(visit, app_of_two: str, page: str):
    """At 1,400, 1,024 and 390 pixels nothing sticks out; light and dark, axe-core finds nothing serious."""
    visitor = visit(app_of_two)
    for width, scheme in ((1400, "light"), (1024, "dark"), (390, "light")):
        visitor.page.set_viewport_size({"width": width, "height": 1000})
        visitor.page.emulate_media(color_scheme=scheme)
        visitor.open(page, beside="twin", axis="tokens")
        assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        found = Axe().run(visitor.page).response["violations"]
        assert not [f"{width}, {one['id']}" for one in found if one["impact"] in GRAVE]


def test_runs_are_chosen_in_the_head_of_a_page(visit, app_of_two: str):
    """The choice goes into the address and along to the next page."""
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
