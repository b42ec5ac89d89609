"""What a browser makes of the texts of a run from a stranger: letters, and nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from app.captions.markdown import JOINER
from embryo_core.types import Run
from tests.browser.conftest import Visitor, serve
from tests.hostile import NAME, NOTE, make_hostile


def test_foreign_texts_become_no_link_image_or_request(
    tiny_results: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visit: Callable[[str], Visitor]
) -> None:
    """A category, notes and a run's name are shown as they are; no page asks another host for anything."""
    make_hostile(tiny_results, tmp_path, monkeypatch)
    with serve(tmp_path) as address:
        visitor = visit(address)
        for page, text in {"tokens": NOTE, "knowledge": NOTE, "query": NAME, "attention": NOTE}.items():
            visitor.open(page, text="the+[MASK]+cat")
            main = visitor.page.get_by_test_id("stMain")
            if page == "query":
                expect(main.get_by_test_id("stMetric").first).to_be_visible()
            expect(main.locator("a[href*='evil'], a[href*='127.0.0.1:9'], img, .katex")).to_have_count(0)
            expect(main.get_by_test_id("stIconMaterial").filter(has_text="home")).to_have_count(0)
            assert text in main.inner_text().replace(JOINER, ""), page
