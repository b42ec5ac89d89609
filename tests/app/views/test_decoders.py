"""Tests of the pages of an evaluated decoder, alone and beside a masked language model with other measures."""

import shutil
from pathlib import Path

import pytest

from embryo_core import results, runs
from embryo_core.evaluation import evaluate
from embryo_core.figures.findings import DOES_NOT_APPLY
from embryo_core.types import Run
from tests import decoders
from tests.app.conftest import captions_of
from tests.conftest import SAMPLE_DATA, shorten_probing

STEPS = (0, 5, 10)
METRICS = {
    "next_word_prediction", "world_knowledge", "attention", "head_behaviour", "edge_probing", "ngram_divergence",
    "positions",
}  # fmt: skip


@pytest.fixture(scope="module")
def evaluated_root(tiny_results: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data root with a run of tiny GPT-2 decoders and the tiny run of encoders, both with results."""
    root = tmp_path_factory.mktemp("decoders")
    run = decoders.add_series(root, "gpt2", STEPS, positions=64)
    with pytest.MonkeyPatch.context() as patch:
        shorten_probing(patch)
        evaluate(run, SAMPLE_DATA)
    shutil.copytree(tiny_results.path, root / "runs" / tiny_results.name)
    shutil.copytree(tiny_results.results, root / "results" / tiny_results.name)
    return root


@pytest.fixture
def open_decoder_page(dashboard, evaluated_root: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that opens a page of the decoder's run."""
    monkeypatch.setenv("EMBRYO_DATA", str(evaluated_root))
    return lambda page, **query: dashboard.open(page, run="gpt2", **query)


def texts_of(page) -> str:
    """Return messages, texts, headings and captions of a page as one text."""
    parts = [*page.info, *page.warning, *page.error, *page.markdown, *page.header]
    return " ".join([element.value for element in parts] + captions_of(page)).replace("\\", "")


def test_every_applicable_metric_is_computed(evaluated_root: Path) -> None:
    """Each metric has results at every step, and metrics of masked words have none."""
    done = results.steps_by_metric(runs.read_run(evaluated_root / "runs" / "gpt2"))
    assert {metric for metric, steps in done.items() if steps == set(STEPS)} == {*done} >= METRICS
    assert not {"mask_prediction", "token_reconstruction", "replaced_token_accuracy"} & {*done}


@pytest.mark.parametrize("page", ["overview", "tokens", "attention", "probing", "knowledge", "compare", "findings"])
def test_every_page_shows_decoder(open_decoder_page, page: str) -> None:
    """No page mentions measures of masked words or reconstruction, which do not apply to a decoder."""
    app = open_decoder_page(page, beside="")
    assert not app.exception and not app.error
    words = texts_of(app).lower()
    assert not any(phrase in words for phrase in ("masked words", "masked-word", "mask prediction", "reconstruction"))
    assert page == "findings" or "not been computed" not in words


def test_tokens_page_shows_next_word_prediction(open_decoder_page) -> None:
    """The page names the task and says how it is measured."""
    app = open_decoder_page("tokens", parts_of_speech="noun")
    assert "Next word prediction" in texts_of(app) and "from the words before it" in texts_of(app)


@pytest.mark.parametrize("page", ["tokens", "compare"])
def test_compared_encoder_keeps_its_own_measure(open_decoder_page, page: str) -> None:
    """The captions name each run with its measure."""
    app = open_decoder_page(page, beside="tiny", **({"parts_of_speech": "noun"} if page == "tokens" else {}))
    assert not app.exception
    words = texts_of(app)
    assert "Run gpt2 by next word prediction" in words and "Run tiny by mask prediction" in words


def test_findings_name_their_measure(open_decoder_page) -> None:
    """Findings on reconstruction are left out, and verdicts on the encoder are marked as measured by prediction."""
    table = open_decoder_page("findings", beside="tiny").dataframe[0].value
    claims = " ".join(table["finding"])
    assert "(next-word prediction)" in claims and "reconstruct" not in claims
    assert any(verdict.endswith("(prediction)") for verdict in table["verdict, run 2"])


def test_findings_that_do_not_apply_to_second_run_are_marked(dashboard, evaluated_root: Path, monkeypatch) -> None:
    """The encoder comes first, so findings on reconstruction are listed, and the decoder cannot be judged by them."""
    monkeypatch.setenv("EMBRYO_DATA", str(evaluated_root))
    table = dashboard.open("findings", run="tiny", beside="gpt2").dataframe[0].value
    reconstruction = table[table["finding"].str.contains("reconstruct")]
    assert len(reconstruction) and (reconstruction["verdict, run 2"] == DOES_NOT_APPLY).all()
