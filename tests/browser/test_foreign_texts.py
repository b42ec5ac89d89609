"""Tests that a browser shows hostile texts of a run as plain text."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from embryo_core.figures.markdown import JOINER
from embryo_core.types import Run
from tests.browser.conftest import Visitor, serve
from tests.hostile import NAME, NOTE, make_hostile

LIVE = "a[href*='evil'], a[href*='127.0.0.1:9'], img:not([src*='/media/']), .katex"  # maps of the run are in /media/


@pytest.mark.slow
def test_hostile_texts_create_no_link_image_or_request(
    tiny_results: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visit: Callable[[str], Visitor]
) -> None:
    """A category, notes and a run's name are shown literally, and no page sends a request to another host."""
    make_hostile(tiny_results, tmp_path, monkeypatch)
    with serve(tmp_path) as address:
        visitor = visit(address)
        for page, text in {"tokens": NOTE, "knowledge": NOTE, "query": NAME, "attention": NOTE}.items():
            visitor.open(page, text="the+[MASK]+cat")
            main = visitor.page.get_by_test_id("stMain")
            if page == "query":
                expect(main.locator(".js-plotly-plot").first).to_be_visible()
            expect(main.locator(LIVE)).to_have_count(0)
            expect(main.get_by_test_id("stIconMaterial").filter(has_text="home")).to_have_count(0)
            shown = main.inner_text() + "".join(behind_marks(visitor))
            assert text in shown.replace(JOINER, ""), page


def behind_marks(visitor: Visitor) -> Iterator[str]:
    """Yield the help text of each caption's info mark, after a check that it has no link, image or formula."""
    said = visitor.page.get_by_test_id("stTooltipContent")
    for mark in visitor.page.get_by_test_id("stCaptionContainer").get_by_test_id("stTooltipHoverTarget").all():
        mark.hover()
        expect(said).to_be_visible()
        expect(said.locator(LIVE)).to_have_count(0)
        yield said.inner_text()
        visitor.page.mouse.move(0, 0)
        expect(said).to_have_count(0)
