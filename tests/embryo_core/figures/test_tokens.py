"""The figures of the tokens page draw exactly the numbers of their frames."""

import numpy as np
import pandas as pd
import pytest

from embryo_core.compare import acquisition
from embryo_core.figures import style, tokens
from embryo_core.figures.step_axis import StepAxis

STEPS = [0, 1, 2, 4]
FREQUENT = pd.DataFrame(
    [("determiner", "the", 0.4, 50), ("noun", "time", 0.1, 50)], columns=["group", "answer", "value", "n"]
)


@pytest.fixture
def scores() -> pd.DataFrame:
    """Two categories over four steps; nouns never reach anything."""
    values = {"determiner": [0.0, 0.1, 0.4, 0.5], "noun": [0.0, 0.0, 0.0, 0.0], "verb": [0.0, 0.0, 0.1, 0.2]}
    rows = [(step, group, v, 50) for group, series in values.items() for step, v in zip(STEPS, series)]
    return pd.DataFrame(rows, columns=["step", "group", "value", "n"])


def trace(figure, name):
    return next(t for t in figure.data if t.name == name)


def test_raw_curves_are_the_scores(scores: pd.DataFrame) -> None:
    """Without rescaling, what is shown is the measured accuracy."""
    data = tokens.curves(scores, ["determiner"], rescaled=False)
    assert list(data["shown"]) == [0.0, 0.1, 0.4, 0.5]
    assert (data["low"] <= data["accuracy"]).all() and (data["accuracy"] <= data["high"]).all()


def test_rescaled_curves_end_at_one(scores: pd.DataFrame) -> None:
    """Rescaled values are relative to the last step; a category that ends at zero has none and is left out."""
    data = tokens.curves(scores, ["determiner", "noun", "verb"], rescaled=True)
    assert set(data["group"]) == {"determiner", "verb"}
    assert list(data.loc[data["group"] == "verb", "shown"]) == pytest.approx([0, 0, 0.5, 1])


def test_the_category_with_most_change_is_found(scores: pd.DataFrame) -> None:
    """By the accuracy as measured, also where curves are rescaled."""
    assert tokens.most_changed(tokens.curves(scores, ["verb", "determiner"], rescaled=True)) == "determiner"


def test_the_figure_draws_the_frame(scores: pd.DataFrame) -> None:
    """The bold line with markers is what was measured, within its band; a hover tells n."""
    data = tokens.curves(scores, ["determiner"], rescaled=False)
    figure = tokens.accuracy_figure(data, StepAxis("linear"))
    line = trace(figure, "determiner")
    assert list(line.x) == STEPS
    assert list(line.y) == list(data["shown"]) and line.mode == "lines+markers"
    assert [row[5] for row in line.customdata] == [50] * 4
    assert line.line.color == style.PARTS_OF_SPEECH["determiner"]
    assert list(trace(figure, "determiner, 95 % band").y) == [*data["high"], *data["low"][::-1]]


@pytest.mark.parametrize(("few", "ends"), [(2, [STEPS[0], STEPS[-1]]), (1, [STEPS[-1]])])
def test_baselines_are_lines_of_few_categories_and_strokes_of_many(scores, monkeypatch, few, ends) -> None:
    """They stand at the share of the most frequent word; a category without one has none."""
    monkeypatch.setattr(tokens, "FEW", few)
    data = tokens.curves(scores, ["determiner", "verb", "noun"], rescaled=False)
    figure = tokens.accuracy_figure(tokens.with_baselines(data, FREQUENT, False), StepAxis("linear"))
    drawn = {line.legendgroup: line for line in figure.data if line.name.endswith(", baseline")}
    assert {name: set(line.y) for name, line in drawn.items()} == {"determiner": {0.4}, "noun": {0.1}}
    assert all(list(line.x) == ends for line in drawn.values())
    assert "always “the” is right for 40.0 % of 50 words" in drawn["determiner"].hovertemplate


def test_baselines_are_divided_as_their_curves(scores) -> None:
    """By the accuracy at the last step."""
    data = tokens.curves(scores, ["determiner"], rescaled=True)
    assert set(tokens.with_baselines(data, FREQUENT, True)["shown_baseline"]) == {0.4 / 0.5}


def test_bands_are_optional(scores: pd.DataFrame) -> None:
    """Without bands there is one line for each category."""
    data = tokens.curves(scores, ["determiner", "verb"], rescaled=False)
    assert len(tokens.accuracy_figure(data, StepAxis("log"), bands=False).data) == 2


def test_step_zero_has_a_place_on_a_log_axis(scores: pd.DataFrame) -> None:
    """On a log axis step 0 stands at a half and is labelled 0."""
    data = tokens.curves(scores, ["determiner"], rescaled=False)
    figure = tokens.accuracy_figure(data, StepAxis("log"))
    assert list(trace(figure, "determiner").x) == [0.5, 1, 2, 4]
    assert figure.layout.xaxis.ticktext[0] == "0"


def test_acquisition_is_ordered_by_onset(scores: pd.DataFrame) -> None:
    """The category that reaches half of its last accuracy first comes first; one without an onset comes last."""
    order = acquisition(tokens.curves(scores, ["noun", "verb", "determiner"], rescaled=False))
    assert list(order["group"]) == ["determiner", "verb", "noun"]
    figure = tokens.acquisition_figure(order, STEPS, StepAxis("linear"))
    known = order.dropna(subset="onset")
    assert {t.name: list(t.x) for t in figure.data} == {
        row.group: [row.earliest, row.onset, row.latest] for row in known.itertuples()
    }


def test_no_category_gives_an_empty_frame(scores: pd.DataFrame) -> None:
    """A category without results is left out, and none at all gives an empty frame with its columns."""
    data = tokens.curves(scores, ["rank 50-99"], rescaled=False)
    assert data.empty and "shown" in data


def test_every_number_drawn_is_finite(scores: pd.DataFrame) -> None:
    """Nothing in the frame is missing or infinite, also for a category that stays at zero."""
    data = tokens.curves(scores, ["determiner", "noun"], rescaled=False)
    assert np.isfinite(data[["accuracy", "low", "high", "shown"]].to_numpy(float)).all()


def test_categories_are_offered_in_the_sets_of_the_paper(scores: pd.DataFrame) -> None:
    """A set of which there are scores is whole; scores of none of them are a set of their own."""
    assert tokens.category_sets(scores) == {"parts of speech": list(style.PARTS_OF_SPEECH)}
    own = scores.assign(group=scores["group"].map({"noun": "a"}).fillna("e"))
    assert {name: set(groups) for name, groups in tokens.category_sets(own).items()} == {"categories": {"a", "e"}}


def test_ties_are_drawn_as_ties(scores: pd.DataFrame) -> None:
    """Categories of one onset share a place and a ground behind their rows; the next one's place counts them all."""
    tied = pd.concat([scores, scores[scores["group"] == "verb"].assign(group="adverb")])
    late = scores[scores["group"] == "verb"].assign(group="pronoun", value=[0.0, 0.0, 0.0, 0.9])
    data = tokens.curves(pd.concat([tied, late]), ["verb", "pronoun", "adverb"], rescaled=False)
    order = acquisition(data)
    assert order[["place", "group"]].to_numpy().tolist() == [[1, "adverb"], [1, "verb"], [3, "pronoun"]]
    figure = tokens.acquisition_figure(order, STEPS, StepAxis("linear"))
    assert [t.y[0] for t in figure.data] == ["1= adverb", "1= verb", "3. pronoun"]
    (ground,) = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert (ground.y0, ground.y1) == (0.55, 2.45)  # the two rows above the last
    assert not any(trace.showlegend for trace in figure.data)  # the rows have their names


@pytest.mark.parametrize(("counted_in", "per"), [("updates", "1,000 steps"), ("words", "1,000 words")])
def test_a_slope_is_told_by_what_steps_count(scores: pd.DataFrame, counted_in: str, per: str) -> None:
    """Only the paper's rule has one."""
    for rule, told in (("paper", f"<br>slope 0.2 per {per} (95 %: 0.1 to 0.3)"), ("half", "")):
        order = acquisition(tokens.curves(scores, ["verb"], rescaled=False), rule)
        steep = {"slope": 0.2, "slope_low": 0.1, "slope_high": 0.3} if told else {}
        figure = tokens.acquisition_figure(order.assign(**steep), STEPS, StepAxis("linear", counted_in=counted_in))
        assert figure.data[0].customdata[0][3].endswith(told or " words")


def test_verb_forms_are_those_of_the_papers_table_4() -> None:
    """VB is one of them; VBP can be chosen besides."""
    assert tokens.usual("verb forms", tokens.SETS["verb forms"]) == ["VB", "VBD", "VBG", "VBN", "VBZ"]
    assert "VBP" in tokens.SETS["verb forms"]


def test_single_tags_are_a_set_where_there_are_more_than_verb_forms(scores: pd.DataFrame) -> None:
    """The paper's one tag for each part of speech is drawn first, in that part's colour."""
    forms = pd.concat([scores, scores.assign(group="VB")])
    assert list(tokens.category_sets(forms)) == ["parts of speech", "verb forms"]
    singles = pd.concat([forms, scores.assign(group="NNS")])
    found = tokens.category_sets(singles)["single tags"]
    assert {"NN", "NNS", "NNP", "JJ"} < set(found)
    first = tokens.usual("single tags", found)
    assert [style.colour(tag) for tag in first] == [
        style.PARTS_OF_SPEECH[name]
        for name in ("conjunction", "determiner", "preposition", "adjective", "noun", "proper noun", "pronoun")
        + ("adverb", "verb")
    ]


def test_no_two_tags_look_alike() -> None:
    """A colour that two of them share comes with two symbols."""
    looks = [(style.colour(tag), style.SYMBOL_OF[tag]) for tag in tokens.SETS["single tags"]]
    assert len(set(looks)) == len(looks)


@pytest.fixture
def words() -> pd.DataFrame:
    """Determiners at two steps as the store counts them, capitals apart."""
    rows = [(8, "The", 10, 10), (8, "the", 40, 40), (8, "a", 50, 1), (16, "the", 50, 30), (16, "a", 50, 30)]
    frame = pd.DataFrame(rows, columns=["step", "word", "n", "correct"])
    return frame.assign(metric="mask_prediction", tag="DT", band=None)


def test_words_of_an_uncased_model_are_counted_without_case(words: pd.DataFrame) -> None:
    """Capitals are merged, sums stay; a cased model's words stay as written."""
    merged = tokens.merged_by_case(words, cased=False)
    at_8 = merged.loc[merged["step"] == 8, ["word", "n", "correct"]]
    assert at_8.to_numpy().tolist() == [["the", 50, 50], ["a", 50, 1]]
    assert tokens.merged_by_case(words, cased=True).equals(words)


def test_the_commonest_right_answer_has_its_share(words: pd.DataFrame) -> None:
    """Of the right answers, beside its share of all words; a step without any is left out."""
    none = words[:1].assign(step=0, correct=0)
    found = tokens.commonest_answers(tokens.merged_by_case(pd.concat([none, words]), cased=False))
    assert found["step"].tolist() == [8, 16] and found["word"][0] == "the"
    assert found["share"].tolist() == pytest.approx([50 / 51, 0.5]) and found["of_words"].tolist() == [0.5, 0.5]
