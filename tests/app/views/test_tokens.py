"""The tokens page: what its pickers show, and the words behind a point."""

from app.views import tokens
from embryo_core import results
from embryo_core.figures import coverage, tags
from embryo_core.metric import Metric
from embryo_core.types import Findings, Run, Score
from tests.app.conftest import captions_of, unescaped
from tests.conftest import at


def test_a_link_restores_every_picker(dashboard_with_results) -> None:
    """Task, unit, bands, categories, words and search come back from the URL."""
    wanted = {
        "step": "8",
        "scale": "linear",
        "metric": "token_reconstruction",
        "unit": "raw",
        "bands": "off",
        "parts_of_speech": "determiner,noun",
        "words": "noun",
        "search": "a",
    }
    page = dashboard_with_results.open("tokens", **wanted)
    assert not page.exception
    assert {name: page.query_params[name] for name in wanted} == wanted
    assert page.selectbox(key="pick_words").options == ["determiner", "noun"]


def test_a_choice_is_kept_in_the_url(dashboard_with_results) -> None:
    """Choosing a category puts it into the URL, and it survives a visit to another page."""
    page = dashboard_with_results.open("tokens")
    page.selectbox(key="pick_words").set_value("noun").run()
    assert page.query_params["words"] == "noun"
    dashboard_with_results.go(page, "overview")
    assert "words" not in page.query_params
    dashboard_with_results.go(page, "tokens")
    assert page.selectbox(key="pick_words").value == "noun"


def test_defaults_of_long_pickers_stay_out_of_the_url(dashboard_with_results) -> None:
    """The categories are in the URL only where they are not all of the family's."""
    page = dashboard_with_results.open("tokens")
    assert "parts_of_speech" not in page.query_params
    page.button_group(key="pick_parts_of_speech").set_value(["noun"]).run()
    assert page.query_params["parts_of_speech"] == "noun"


def test_the_words_are_those_of_the_store(dashboard_with_results, tiny_results: Run) -> None:
    """The table holds exactly the words of the category at the step, counted without case for an uncased model.

    Tags have their names.
    """
    page = dashboard_with_results.open("tokens", words="noun", step="16")
    expected = results.read_words(tiny_results, "mask_prediction", group="noun", step=16)
    shown = page.dataframe[0].value
    merged = {(tags.with_tag_name(tag), word.lower()) for tag, word in expected[["tag", "word"]].to_numpy()}
    assert sorted(map(tuple, shown[["tag", "word"]].to_numpy())) == sorted(merged)
    assert shown["n"].sum() == expected["n"].sum()
    assert shown["correct"].sum() == expected["correct"].sum()


def test_search_looks_in_all_categories(dashboard_with_results) -> None:
    """It keeps the words that hold the text, whatever its case, and takes it literally; each row has its category."""
    page = dashboard_with_results.open("tokens", words="noun", search="E")
    found = page.dataframe[0].value
    assert len(found) and all("e" in word.lower() for word in found["word"])
    assert set(found["category"]) > {"noun"}
    page.text_input(key="pick_search").set_value("(").run()
    assert not page.exception
    assert len(page.dataframe[0].value) == 0


def test_the_caption_names_the_data_and_n(dashboard_with_results) -> None:
    """The caption of the curves says what they were computed on."""
    captions = [caption for caption in captions_of(dashboard_with_results.open("tokens"))]
    assert any("treebank" in caption and "n = " in caption for caption in captions)


class VowelPrediction(Metric):
    """A toy metric of the Tokens page, with categories that no other has."""

    name, page, source, needs = "vowel_prediction", "tokens", "treebank", frozenset()
    read = compute = None  # its results are written by the test


def test_a_metric_of_the_page_is_there_without_a_line_in_the_page(
    dashboard_without_results, own_run: Run, monkeypatch
) -> None:
    """A metric in METRICS whose page is "tokens" has its title, its own categories and its curve."""
    for module in (tokens, coverage):
        monkeypatch.setattr(module, "METRICS", (VowelPrediction(),))
    monkeypatch.setattr(coverage, "get_metrics", lambda names: (VowelPrediction(),))
    for step, value in ((0, 0.1), (16, 0.4)):
        scores = [Score("vowel_prediction", value, 50, group) for group in ("a", "e")]
        results.write(at(own_run, step), "vowel_prediction", Findings(scores=scores))
    page = dashboard_without_results.open("tokens")
    assert not page.exception and not page.error
    assert unescaped(page.header[0].value) == "Vowel prediction accuracy by category"
    assert page.query_params["family"] == "categories" and page.selectbox(key="pick_words").options == ["a", "e"]
    shown = dashboard_without_results.open("overview", open="computed")
    assert "--metrics vowel_prediction --treebank PATH" in shown.code[-1].value
