"""Tests of the Fine-tuning page in a browser: its figures, links to a task, and the texts of examples."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from embryo_core import corpora
from embryo_core.types import Run
from tests.browser.conftest import serve
from tests.conftest import copy_run
from tests.embryo_core.finetune.conftest import write_split
from tests.tuned import store_questions, store_tuning


@pytest.fixture(scope="module")
def tuned_app(tiny_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a run with results on RTE, whose data are available, and on SQuAD, whose data are not; yield its URL."""
    root = tmp_path_factory.mktemp("tuned")
    run = copy_run(tiny_run, root)
    texts = ["A hen broods .", "It rains .", "Snow fell .", "The sun shines ."]
    folder = write_split(root / "corpora/glue/rte", "validation", sentence1=texts, sentence2=texts, label=[1, 1, 0, 1])
    store_tuning(run, "rte", corpora.open_source(folder).sha256, ("entailment", "not_entailment"))
    store_questions(run)
    with serve(run.path.parents[1]) as address:
        yield address


def test_links_open_figures_and_examples_of_task(visit, tuned_app):
    """RTE, SQuAD F1 and SQuAD exact match have curves; a click opens the figure of the fine-tuning itself.

    Examples of RTE are listed with their texts, those of SQuAD without, since its data are missing.
    """
    visitor = visit(tuned_app)
    query = {"task": "rte", "example_history": "oscillating"}
    visitor.open("finetuning", step="8", published="on", **query)
    visitor.expect_query(**query)
    plot = visitor.page.locator(".js-plotly-plot").first
    names = plot.evaluate("(plot) => plot.data.map((trace) => trace.name)")
    assert {"RTE", "SQuAD", "SQuAD EM", "RTE, baseline", "SQuAD, ALBERT-base"} <= set(names)
    table = visitor.page.get_by_test_id("stDataFrame").last
    table.scroll_into_view_if_needed()
    expect(table.get_by_text("The sun shines .").first).to_be_attached()
    expect(visitor.page.get_by_text("fetch glue")).to_have_count(0)
    visitor.page.get_by_text("How it was fine-tuned").click()
    expect(visitor.page.locator(".js-plotly-plot")).to_have_count(2)
    ticks = visitor.page.locator(".js-plotly-plot").last.locator(".xtick text")
    for number in range(3):  # 0 and the two updates, none hidden since the expander was closed
        expect(ticks.nth(number)).to_be_visible()
    visitor.rest()
    visitor.open("finetuning", task="squad")
    expect(visitor.page.get_by_text("Examples of SQuAD")).to_be_visible()
    visitor.settle()
