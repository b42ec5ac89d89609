"""The words of the Tokens page."""

import pandas as pd

from embryo_core.figures.captions import tokens as captions


def test_a_metric_without_a_description_has_its_title_and_data() -> None:
    """A metric that the page has never heard of is still introduced by its name, its data and its n."""
    data = pd.DataFrame({"group": ["a", "a", "e"], "n": [10, 10, 1_200]})
    words = captions.accuracy("vowels", "Vowels", "12 sentences", data, ["a", "e"], rescaled=False, bands=False)
    assert words.startswith("Vowels. Data: 12 sentences; n = 10 (a) to 1,200 (e) words per category.")
    assert "Line: as measured" in words
    assert "band" not in words and "last step" not in words and "Left out" not in words


def test_chosen_categories_without_a_curve_are_told() -> None:
    """Relative to a last value of 0 there is none; as measured there is none where nothing was evaluated."""
    data = pd.DataFrame({"group": ["a", "a", "e"], "n": [10, 10, 1_200]})
    for rescaled, why in ((True, "0 at the last step"), (False, "not evaluated")):
        words = captions.accuracy("vowels", "Vowels", "12 sentences", data, ["a", "i_o", "e"], rescaled, bands=False)
        assert f". Left out: i\\_o, {why}. Click" in words


def test_a_word_with_two_tags_is_counted_once() -> None:
    """Its occurrences are all counted."""
    words = pd.DataFrame({"word": ["all", "all", "the"], "correct": [1, 2, 3], "n": [2, 2, 4]})
    assert captions.words(words[:2], words).startswith("1 of 2 words; 3 of 4 occurrences predicted correctly.")


def test_the_order_of_acquisition_names_what_has_no_onset() -> None:
    """Categories that end at 0 are listed; where there are none, nothing is said of them."""
    order = pd.DataFrame({"group": ["noun", "verb"], "onset": pd.array([8, None], dtype="Int64")})
    assert captions.acquisition(order, "half").endswith("Without an onset: verb.")
    assert "Without" not in captions.acquisition(order[:1], "half")


def test_a_category_right_by_one_word_carries_the_remark() -> None:
    """Above 90 % of at least ten right answers; nothing is said of the others."""
    rows = [("determiner", 32, "the", 973, 1.0, 0.49), ("determiner", 64, "the", 973, 0.95, 0.49)]
    others = [("pronoun", 32, "i", 3, 1.0, 0.3), ("determiner", 128, "the", 973, 0.9, 0.49)]
    columns = ["group", "step", "word", "right", "share", "of_words"]
    found = captions.one_word(pd.DataFrame(rows + others, columns=columns))
    assert "determiner at steps 32 to 64: “the”, 49 % of the category's words" in found and "pronoun" not in found
    assert captions.one_word(pd.DataFrame(others, columns=columns)) == ""
