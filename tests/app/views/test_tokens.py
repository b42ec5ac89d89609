"""Tests of the Tokens page: its pickers, and the words behind a point."""

from app.views import tokens
from embryo_core import results
from embryo_core.figures import coverage
from embryo_core.groups import describe_tag
from embryo_core.measurements import Findings, Score
from embryo_core.metric import Metric
from embryo_core.types import Run
from tests.app.conftest import captions_of, unescaped
from tests.conftest import checkpoint_at


def test_link_restores_every_picker(dashboard_with_results) -> None:
    """Task, unit, bands, categories, words and search are read from the URL and written to it again."""
    expected = {
        "step": "8",
        "scale": "linear",
        "metric": "token_reconstruction",
        "unit": "raw",
        "bands": "off",
        "parts_of_speech": "determiner,noun",
        "words": "noun",
        "search": "a",
    }
    page = dashboard_with_results.open("tokens", **expected)
    assert not page.exception
    assert {name: page.query_params[name] for name in expected} == expected
    assert page.selectbox(key="pick_words").options == ["determiner", "noun"]


def test_choice_is_kept_in_url_and_session(dashboard_with_results) -> None:
    """A chosen category is in the URL of the page, and is restored after a visit to another page."""
    page = dashboard_with_results.open("tokens")
    page.selectbox(key="pick_words").set_value("noun").run()
    assert page.query_params["words"] == "noun"
    dashboard_with_results.go(page, "overview")
    assert "words" not in page.query_params
    dashboard_with_results.go(page, "tokens")
    assert page.selectbox(key="pick_words").value == "noun"


def test_default_categories_are_not_in_url(dashboard_with_results) -> None:
    """The URL lists categories only if the reader has chosen some of the family's."""
    page = dashboard_with_results.open("tokens")
    assert "parts_of_speech" not in page.query_params
    page.button_group(key="pick_parts_of_speech").set_value(["noun"]).run()
    assert page.query_params["parts_of_speech"] == "noun"


def test_word_table_matches_stored_results(dashboard_with_results, tiny_results: Run) -> None:
    """The table has the words of one category at one step, with the names of their tags.

    For an uncased model, words that differ only in case are counted together.
    """
    page = dashboard_with_results.open("tokens", words="noun", step="16")
    expected = results.read_words(tiny_results, "mask_prediction", group="noun", step=16)
    table = page.dataframe[0].value
    merged = {(describe_tag(tag), word.lower()) for tag, word in expected[["tag", "word"]].to_numpy()}
    assert sorted(map(tuple, table[["tag", "word"]].to_numpy())) == sorted(merged)
    assert table["n"].sum() == expected["n"].sum()
    assert table["correct"].sum() == expected["correct"].sum()


def test_search_covers_all_categories(dashboard_with_results) -> None:
    """A search ignores case and takes its text literally; each row has its category."""
    page = dashboard_with_results.open("tokens", words="noun", search="E")
    hits = page.dataframe[0].value
    assert len(hits) and all("e" in word.lower() for word in hits["word"])
    assert set(hits["category"]) > {"noun"}
    page.text_input(key="pick_search").set_value("(").run()
    assert not page.exception
    assert len(page.dataframe[0].value) == 0


def test_caption_names_data_and_n(dashboard_with_results) -> None:
    """The curves are computed on a treebank, which their caption names."""
    captions = [caption for caption in captions_of(dashboard_with_results.open("tokens"))]
    assert any("treebank" in caption and "n = " in caption for caption in captions)


class VowelPrediction(Metric):
    """Define a toy metric of the Tokens page, whose categories no other metric has."""

    name, page, source, needs = "vowel_prediction", "tokens", "treebank", frozenset()
    read = compute = None  # its results are written by the test


def test_new_metric_appears_without_change_to_page(dashboard_without_results, own_run: Run, monkeypatch) -> None:
    """A metric in METRICS whose page is "tokens" gets a title and its categories; the Overview has its command."""
    for module in (tokens, coverage):
        monkeypatch.setattr(module, "METRICS", (VowelPrediction(),))
    monkeypatch.setattr(coverage, "get_metrics", lambda names: (VowelPrediction(),))
    for step, value in ((0, 0.1), (16, 0.4)):
        scores = [Score("vowel_prediction", value, 50, group) for group in ("a", "e")]
        results.write(checkpoint_at(own_run, step), "vowel_prediction", Findings(scores=scores))
    page = dashboard_without_results.open("tokens")
    assert not page.exception and not page.error
    assert unescaped(page.header[0].value) == "Vowel prediction accuracy by category"
    assert page.query_params["family"] == "categories" and page.selectbox(key="pick_words").options == ["a", "e"]
    app = dashboard_without_results.open("overview", open="computed")
    assert "--metrics vowel_prediction --treebank PATH" in app.code[-1].value
