"""The tokens page: what its pickers show, and the words behind a point."""

from embryo_core import results
from embryo_core.types import Run


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
        "word": "a",
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
    """The table holds exactly the words of the category at the step."""
    page = dashboard_with_results.open("tokens", words="noun", step="16")
    expected = results.read_words(tiny_results, "mask_prediction", group="noun", step=16)
    shown = page.dataframe[0].value
    assert sorted(shown["word"]) == sorted(expected["word"])
    assert shown["n"].sum() == expected["n"].sum()
    assert shown["correct"].sum() == expected["correct"].sum()


def test_search_narrows_the_words(dashboard_with_results) -> None:
    """The search keeps the words that hold the text, whatever its case, and takes it literally."""
    page = dashboard_with_results.open("tokens", words="noun", word="E")
    found = list(page.dataframe[0].value["word"])
    assert found and all("e" in word.lower() for word in found)
    page.text_input(key="pick_word").set_value("(").run()
    assert not page.exception
    assert len(page.dataframe[0].value) == 0


def test_the_caption_names_the_data_and_n(dashboard_with_results) -> None:
    """The caption of the curves says what they were computed on."""
    captions = [caption.value for caption in dashboard_with_results.open("tokens").caption]
    assert any("treebank.conllu" in caption and "n = " in caption for caption in captions)
