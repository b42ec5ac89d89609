"""Tests that text from a run is never rendered on a page as an image, link, icon, formula or tag."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from embryo_core.figures.growth import PAPER_URL
from embryo_core.figures.markdown import JOINER
from embryo_core.types import Run
from tests.hostile import make_hostile

PAGES = ("overview", "tokens", "attention", "probing", "knowledge", "finetuning", "query")
READ_AS_MARKDOWN = "title header caption markdown info warning error success".split()
FOLDS = "card,computed,embeddings,length,lens,ngrams,objective,phases,similarity"  # of the Overview and Query
OWN_LINK = f"[Chiang, Huang and Lee, 2020]({PAPER_URL})"  # the one link that the Overview has on purpose


@pytest.fixture
def hostile(tiny_results: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return the tiny run with its results, with a hostile name, hostile notes on its data and a hostile category."""
    return make_hostile(tiny_results, tmp_path, monkeypatch)


def as_markdown(app: AppTest) -> Iterator[str]:
    """Yield all texts of a page that the browser reads as Markdown."""
    for kind in READ_AS_MARKDOWN:
        yield from (element.value for element in app.get(kind))
    for metric in app.metric:
        yield from (metric.label, metric.value)
    for group in app.get("button_group"):
        yield from group.options


@pytest.mark.parametrize("page", PAGES)
def test_foreign_texts_are_escaped_on_every_page(page: str, hostile: Run, dashboard) -> None:
    """On a run with results, markup is escaped, and addresses and icon names are broken up for Streamlit."""
    app = dashboard.open(page, text="the [MASK] cat .", compare="none", open=FOLDS)
    assert not app.exception and not app.error
    check(app)


@pytest.mark.parametrize("page", PAGES)
def test_foreign_texts_are_escaped_in_messages(page: str, hostile: Run, dashboard) -> None:
    """Messages that name files of the run are escaped: checkpoints, results or the run are broken or missing."""
    (hostile.path / "checkpoints" / "step8" / "model.safetensors").write_bytes(b"")
    weights = "model.safetensors" if page in ("attention", "query") else ""
    check(dashboard.open(page, text="the [MASK] cat .", step="8", section="sentence", open=FOLDS), weights)
    for path in hostile.results.glob("*.parquet"):
        path.write_bytes(b"none")
    check(dashboard.open(page, text="the [MASK] cat .", open=FOLDS), weights if page == "query" else ".parquet")
    shutil.rmtree(hostile.results)
    check(dashboard.open(page, open=FOLDS))
    (hostile.path / "run.json").write_text("5")
    check(dashboard.open(page), "run.json")


def check(app: AppTest, file: str = "") -> None:
    """Check that no text of the page has unescaped markup of the hostile texts, or an unbroken address or icon name.

    If `file` is given, a message must name this file of the run.
    """
    assert not app.exception
    messages = [text.value.replace("\\", "") for kind in ("info", "warning", "error") for text in app.get(kind)]
    assert not file or any("__b__" in text and f"{file} " in text for text in messages), messages
    for text in (text.replace(OWN_LINK, "") for text in as_markdown(app)):
        assert not re.search(r"!\[|\]\(|<img|\$|\*a\*", re.sub(r"\\.", "", text)), text
        shown = text.replace("\\", "")
        assert not re.search(r"https?://|www\.|a@evil|:material.home:", shown), text
        assert not re.search(r"127|evil", shown) or JOINER in shown, text
