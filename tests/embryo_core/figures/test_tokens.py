"""Tests of the accuracy by category: its tables, its figure, and their captions."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pytest

from embryo_core.errors import FigureError
from embryo_core.figures import style, tokens
from embryo_core.figures.axis import AxisChoice
from embryo_core.figures.figure import Figure
from embryo_core.types import Run

STEPS = [0, 1, 2, 4]
FREQUENT = pd.DataFrame(
    [("determiner", "the", 0.4, 50), ("noun", "time", 0.1, 50)], columns=["group", "answer", "value", "n"]
)


@pytest.fixture
def scores() -> pd.DataFrame:
    """Return three categories over four steps; nouns stay at 0."""
    values = {"determiner": [0.0, 0.1, 0.4, 0.5], "noun": [0.0, 0.0, 0.0, 0.0], "verb": [0.0, 0.0, 0.1, 0.2]}
    rows = [(step, group, v, 50) for group, series in values.items() for step, v in zip(STEPS, series)]
    return pd.DataFrame(rows, columns=["step", "group", "value", "n"])


def test_raw_curves_hold_the_scores(scores: pd.DataFrame) -> None:
    """Without rescaling, the measured accuracy is shown."""
    data = tokens.accuracy_curves(scores, ["determiner"], rescaled=False)
    assert list(data["shown"]) == [0.0, 0.1, 0.4, 0.5]
    assert (data["low"] <= data["accuracy"]).all() and (data["accuracy"] <= data["high"]).all()


def test_rescaled_curves_end_at_one(scores: pd.DataFrame) -> None:
    """Values are divided by that of the last step; a category that ends at 0 is left out."""
    data = tokens.accuracy_curves(scores, ["determiner", "noun", "verb"], rescaled=True)
    assert set(data["group"]) == {"determiner", "verb"}
    assert list(data.loc[data["group"] == "verb", "shown"]) == pytest.approx([0, 0, 0.5, 1])


def test_most_changed_category_is_found(scores: pd.DataFrame) -> None:
    """The measured accuracy counts, even if curves are rescaled."""
    table = tokens.accuracy_curves(scores, ["verb", "determiner"], rescaled=True)
    assert tokens.most_changed(table, 1) == ["determiner"]


def test_baselines_are_rescaled_with_their_curves(scores) -> None:
    """They are divided by the accuracy at the last step."""
    data = tokens.accuracy_curves(scores, ["determiner"], rescaled=True)
    assert set(tokens.with_baselines(data, FREQUENT, True)["shown_baseline"]) == {0.4 / 0.5}


def test_unknown_category_gives_an_empty_table(scores: pd.DataFrame) -> None:
    """The table still has its columns."""
    data = tokens.accuracy_curves(scores, ["rank 50-99"], rescaled=False)
    assert data.empty and "shown" in data


def test_every_drawn_number_is_finite(scores: pd.DataFrame) -> None:
    """This also holds for a category that stays at 0."""
    data = tokens.accuracy_curves(scores, ["determiner", "noun"], rescaled=False)
    assert np.isfinite(data[["accuracy", "low", "high", "shown"]].to_numpy(float)).all()


def test_categories_come_in_the_sets_of_the_paper(scores: pd.DataFrame) -> None:
    """A set is whole if any of it has scores; if no category is in a set, all of them form one."""
    assert tokens.category_sets(scores) == {"parts of speech": list(style.PARTS_OF_SPEECH)}
    own = scores.assign(group=scores["group"].map({"noun": "a"}).fillna("e"))
    assert {name: set(groups) for name, groups in tokens.category_sets(own).items()} == {"categories": {"a", "e"}}


def test_default_verb_forms_are_those_of_table_4() -> None:
    """The paper's table has VB but not VBP, which can be chosen too."""
    assert tokens.default_categories("verb forms", tokens.SETS["verb forms"]) == ["VB", "VBD", "VBG", "VBN", "VBZ"]
    assert "VBP" in tokens.SETS["verb forms"]


def test_single_tags_are_a_set_beyond_verb_forms(scores: pd.DataFrame) -> None:
    """By default there is one tag for each part of speech, as in the paper, in the colour of that part."""
    forms = pd.concat([scores, scores.assign(group="VB")])
    assert list(tokens.category_sets(forms)) == ["parts of speech", "verb forms"]
    singles = pd.concat([forms, scores.assign(group="NNS")])
    categories = tokens.category_sets(singles)["single tags"]
    assert {"NN", "NNS", "NNP", "JJ"} < set(categories)
    first = tokens.default_categories("single tags", categories)
    assert [style.colour(tag) for tag in first] == [
        style.PARTS_OF_SPEECH[name]
        for name in "conjunction|determiner|preposition|adjective|noun|proper noun|pronoun|adverb|verb".split("|")
    ]


def test_no_two_tags_look_alike() -> None:
    """Tags that share a colour have different symbols."""
    looks = [(style.colour(tag), style.SYMBOL_OF[tag]) for tag in tokens.SETS["single tags"]]
    assert len(set(looks)) == len(looks)


@pytest.fixture
def words() -> pd.DataFrame:
    """Return determiners at two steps as the store counts them, with capitalized words apart."""
    rows = [(8, "The", 10, 10), (8, "the", 40, 40), (8, "a", 50, 1), (16, "the", 50, 30), (16, "a", 50, 30)]
    frame = pd.DataFrame(rows, columns=["step", "word", "n", "correct"])
    return frame.assign(metric="mask_prediction", tag="DT", band=None)


def test_words_of_uncased_models_are_merged_across_case(words: pd.DataFrame) -> None:
    """Counts are added up; words of a cased model stay as written."""
    merged = tokens.merge_case(words, cased=False)
    at_8 = merged.loc[merged["step"] == 8, ["word", "n", "correct"]]
    assert at_8.to_numpy().tolist() == [["the", 50, 50], ["a", 50, 1]]
    assert tokens.merge_case(words, cased=True).equals(words)


def test_most_common_right_answer_has_its_share(words: pd.DataFrame) -> None:
    """Its share of right answers is beside its share of all words; a step without right answers is left out."""
    none = words[:1].assign(step=0, correct=0)
    answers = tokens.commonest_answers(tokens.merge_case(pd.concat([none, words]), cased=False))
    assert answers["step"].tolist() == [8, 16] and answers["word"][0] == "the"
    assert answers["share"].tolist() == pytest.approx([50 / 51, 0.5]) and answers["of_words"].tolist() == [0.5, 0.5]


@pytest.fixture
def figure(tiny_results: Run) -> Callable[..., Figure]:
    """Return a function that makes the figure of the tiny run with its options."""

    def make(groups: Sequence[str] = ("determiner", "noun"), scale: str = "log", **options: bool) -> Figure:
        return tokens.accuracy([tiny_results], AxisChoice(scale), "mask_prediction", groups, **options)

    return make


def test_curves_bands_and_baselines_are_those_of_the_table(figure) -> None:
    """The bold line is measured; step 0 has a place on a log axis, and n is in the hover text."""
    built_figure = figure()
    rows = built_figure.table[built_figure.table["group"] == "noun"]
    line = next(trace for trace in built_figure.plot.data if trace.name == "noun")
    assert list(line.x) == [0.5, 8, 16] and built_figure.plot.layout.xaxis.ticktext[0] == "0"
    assert list(line.y) == list(rows["accuracy"]) and line.line.color == style.PARTS_OF_SPEECH["noun"]
    assert all(f"n = {n:,} words" in point[2] for n, point in zip(rows["n"], line.customdata))
    band = next(trace for trace in built_figure.plot.data if trace.name == "noun, 95 % band")
    assert list(band.y) == [*rows["high"], *rows["low"][::-1]]
    dashed = next(trace for trace in built_figure.plot.data if trace.name == "noun, baseline")
    assert set(dashed.y) == set(rows["baseline"]) and rows["answer"].iloc[0] in dashed.hovertemplate
    assert len(figure(bands=False).plot.data) == len(built_figure.plot.data) - 2


def test_baselines_of_many_categories_are_strokes_at_the_right(figure) -> None:
    """Each stroke is a single point at the last step."""
    built_figure = figure(tuple(style.PARTS_OF_SPEECH))
    strokes = [trace for trace in built_figure.plot.data if trace.name and trace.name.endswith(", baseline")]
    assert len(strokes) > 3 and {tuple(trace.x) for trace in strokes} == {(16,)}


def test_caption_has_data_n_and_missing_categories(figure, tiny_results: Run) -> None:
    """The least and the largest n are those of the table; a category that was not evaluated is named."""
    built_figure = figure(("determiner", "noun", "rank 50-99"))
    counts = built_figure.table.groupby("group")["n"].last()
    for group in (counts.idxmin(), counts.idxmax()):
        assert f"{counts[group]:,} ({group})" in built_figure.caption.data
    assert "treebank.conllu" in built_figure.caption.data
    assert ("rank 50-99" in built_figure.caption.details) == ("rank 50-99" not in counts)
    assert built_figure.runs == (tiny_results.name,) and built_figure.headline


def test_caption_remarks_on_single_word_categories() -> None:
    """One word must be above 90 % of at least ten right answers."""
    rows = [("determiner", 32, "the", 973, 1.0, 0.49), ("determiner", 64, "the", 973, 0.95, 0.49)]
    others = [("pronoun", 32, "i", 3, 1.0, 0.3), ("determiner", 128, "the", 973, 0.9, 0.49)]
    columns = ["group", "step", "word", "right", "share", "of_words"]
    remark = tokens.describe_single_words(pd.DataFrame(rows + others, columns=columns), "updates")
    assert all(part in remark for part in ("determiner at steps 32, 64", "“the”", "49 %"))
    assert "pronoun" not in remark
    assert tokens.describe_single_words(pd.DataFrame(others, columns=columns), "updates") == ""


def test_word_with_two_tags_is_counted_once() -> None:
    """All its occurrences still count."""
    words = pd.DataFrame({"word": ["all", "all", "the"], "correct": [1, 2, 3], "n": [2, 2, 4]})
    summary = tokens.describe_words(words[:2], words).summary
    assert "1 of 2 words" in summary and "3 of 4 occurrences" in summary


def test_figure_without_categories_is_an_error(figure, tiny_results: Run) -> None:
    """The error names the run."""
    with pytest.raises(FigureError, match=tiny_results.name):
        figure(())
