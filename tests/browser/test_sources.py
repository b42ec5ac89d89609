"""Tests in a browser of checkpoints from elsewhere: a folder written by the Trainer of transformers."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from embryo_core.evaluation import evaluate
from embryo_core.sources import add
from tests.browser.conftest import serve
from tests.browser.test_pages import PAGES
from tests.conftest import SAMPLE_DATA
from tests.embryo_core.sources.conftest import train, write_byte_level


@pytest.mark.slow
def test_trainer_checkpoints_open_on_every_page(visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The folder is added and evaluated; no page shows an error, and each opens at the last saved step."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path / "data"))
    train(tmp_path / "trained", steps=4)
    tokenizer = write_byte_level(tmp_path / "byte-level")
    run = add([str(tmp_path / "trained")], "trained", tokenizer=str(tokenizer)).run
    assert not evaluate(run, SAMPLE_DATA, limit=20).failures
    with serve(tmp_path / "data") as address:
        visitor = visit(address)
        visitor.open()
        for title in ("Findings", *PAGES[1:], "Compare", PAGES[0]):
            visitor.follow(title)
            expect(visitor.page.locator(".reading .step")).to_have_text("step 4")
            expect(visitor.page.get_by_test_id("stAlertContentError")).to_have_count(0)
