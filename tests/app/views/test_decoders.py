"""Pages of a decoder that was evaluated: alone, and beside a masked language model, with measures named apart."""

import shutil
from pathlib import Path

import pytest

from embryo_core import results, runs
from embryo_core.evaluate import evaluate
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
def evaluated(tiny_results: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data root with a GPT-2 that knows some of the sample, and the tiny run, both with results."""
    root = tmp_path_factory.mktemp("decoders")
    run = decoders.add_series(root, "gpt2", STEPS, positions=64)
    with pytest.MonkeyPatch.context() as patch:
        shorten_probing(patch)
        evaluate(run, SAMPLE_DATA)
    shutil.copytree(tiny_results.path, root / "runs" / tiny_results.name)
    shutil.copytree(tiny_results.results, root / "results" / tiny_results.name)
    return root


@pytest.fixture
def opened(dashboard, evaluated: Path, monkeypatch: pytest.MonkeyPatch):
    """Open a page of the decoder's run."""
    monkeypatch.setenv("EMBRYO_DATA", str(evaluated))
    return lambda page, **query: dashboard.open(page, run="gpt2", **query)


def said(page) -> str:
    """Return all words of a page."""
    parts = [*page.info, *page.warning, *page.error, *page.markdown, *page.header]
    return " ".join([one.value for one in parts] + captions_of(page)).replace("\\", "")


def test_every_metric_that_applies_is_computed(evaluated: Path) -> None:
    """At each step, and no others."""
    done = results.done(runs.read_run(evaluated / "runs" / "gpt2"))
    assert {metric for metric, steps in done.items() if steps == set(STEPS)} == {*done} >= METRICS
    assert not {"mask_prediction", "token_reconstruction", "replaced_token_accuracy"} & {*done}


@pytest.mark.parametrize("page", ["overview", "tokens", "attention", "probing", "knowledge", "compare", "findings"])
def test_every_page_shows_a_decoder(opened, page: str) -> None:
    """None of them says that masked words, or reconstruction, have not been measured."""
    shown = opened(page, beside="")
    assert not shown.exception and not shown.error
    words = said(shown).lower()
    assert not any(one in words for one in ("masked words", "masked-word", "mask prediction", "reconstruction"))
    assert page == "findings" or "not been computed" not in words


def test_tokens_are_scored_by_next_words(opened) -> None:
    """The task is named, and how it is measured."""
    shown = opened("tokens", parts_of_speech="noun")
    assert "Next word prediction" in said(shown) and "from the words before it" in said(shown)


@pytest.mark.parametrize("page", ["tokens", "compare"])
def test_an_encoder_beside_it_is_measured_by_its_own_prediction(opened, page: str) -> None:
    """And the caption names both measures."""
    shown = opened(page, beside="tiny", **({"parts_of_speech": "noun"} if page == "tokens" else {}))
    assert not shown.exception
    words = said(shown)
    assert "Run gpt2 by next word prediction" in words and "Run tiny by mask prediction" in words


def test_findings_name_their_measure(opened) -> None:
    """Those on reconstruction are missing, and of the other run marked by its measure."""
    shown = opened("findings", beside="tiny").dataframe[0].value
    claims = " ".join(shown["finding"])
    assert "(next-word prediction)" in claims and "reconstruct" not in claims
    assert any(verdict.endswith("(prediction)") for verdict in shown["verdict, run 2"])


def test_findings_that_do_not_apply_to_the_other_run_say_so(dashboard, evaluated: Path, monkeypatch) -> None:
    """With the encoder first."""
    monkeypatch.setenv("EMBRYO_DATA", str(evaluated))
    shown = dashboard.open("findings", run="tiny", beside="gpt2").dataframe[0].value
    reconstruction = shown[shown["finding"].str.contains("reconstruct")]
    assert len(reconstruction) and (reconstruction["verdict, run 2"] == DOES_NOT_APPLY).all()
