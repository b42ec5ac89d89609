"""Tests of the examples of fine-tuning tasks: their answers at each step, and the histories of these."""

import pandas as pd

from embryo_core.figures import finetuning_examples as examples
from embryo_core.types import StepUnit


def test_examples_are_classified_by_history():
    """Answers are numbers, or names of labels if these are known."""
    answers = {"learned": (0, 1, 1), "forgotten": (1, 0, 0), "oscillating": (1, 0, 1), "never learned": (0, 0, 0)}
    stored_answers = pd.DataFrame(
        [
            {"step": step, "example": i, "gold": 1.0, "answer": float(right[index])}
            for i, right in enumerate(answers.values())
            for index, step in enumerate((0, 8, 16))
        ]
    )
    histories = examples.answer_histories(stored_answers)
    assert histories["history"].tolist() == list(answers)
    assert histories.loc[1, [0, 8, 16, "gold"]].tolist() == [1, 0, 0, 1]
    named = examples.answer_histories(stored_answers, ["no", "yes"])
    assert named["history"].tolist() == list(answers)
    assert named.loc[1, ["gold", 0, 8]].tolist() == ["yes", "yes", "no"]


def test_examples_without_an_answer_at_some_step_have_no_history():
    """They would count as forgotten, or as oscillating."""
    rows = [(step, example, 1.0, 1.0) for step in (0, 8, 16) for example in range(3) if (step, example) != (16, 1)]
    stored_answers = pd.DataFrame(rows, columns=["step", "example", "gold", "answer"])
    histories = examples.answer_histories(stored_answers)["history"]
    assert histories.tolist() == ["learned", examples.PARTLY_ANSWERED, "learned"]
    spans = stored_answers.rename(columns={"example": "question", "answer": "exact"}).assign(f1=1.0)
    assert examples.span_histories(spans, None)["history"].tolist() == histories.tolist()
    caption = examples.describe_examples("rte", examples.answer_histories(stored_answers), 3, 0, with_texts=True)
    assert f"1 {examples.PARTLY_ANSWERED}" in caption.details


def test_spans_are_shown_as_words_if_paragraphs_are_known():
    """Otherwise each step has its F1; only an exact match counts as right."""
    rows = [(0, "q", 0, 0, 0.0, 0.0), (8, "q", 0, 3, 0.0, 0.5), (16, "q", 4, 7, 1.0, 1.0)]
    spans = pd.DataFrame(rows, columns=["step", "question", "start", "end", "exact", "f1"])
    histories = examples.span_histories(spans, pd.Series({"q": "The hen broods."}))
    assert histories.loc["q"].tolist() == ["learned", "(none)", "The", "hen"]
    assert examples.span_histories(spans, None).loc["q"].tolist() == ["learned", 0.0, 0.5, 1.0]


def test_regression_values_have_no_history():
    """No value is simply right or wrong; answers are rounded to two decimals, also if stored in float32."""
    stored_answers = pd.DataFrame({"step": [0, 8], "example": 0, "gold": 2.5, "answer": [2.512, 1.0]})
    assert examples.answered_values(stored_answers).loc[0].to_dict() == {"gold": 2.5, 0: 2.51, 8: 1.0}
    short = stored_answers.astype({"gold": "float32", "answer": "float32"})  # as the store has them
    assert examples.answered_values(short).loc[0].to_dict() == {"gold": 2.5, 0: 2.51, 8: 1.0}


def test_long_series_show_some_steps_and_the_chosen_one():
    """The history still covers all steps, and the shown columns are named after their steps."""
    stored_answers = pd.DataFrame(
        {"step": range(100), "example": 0, "gold": 1.0, "answer": [*[0.0] * 60, 1.0, *[0.0] * 39]}
    )
    table = examples.answer_histories(stored_answers)
    assert table.loc[0, "history"] == "forgotten" and len(table.columns) == 102
    shown = examples.select_columns_and_sort(table, 60, StepUnit.UPDATES)
    steps = [int(name.removeprefix("step ")) for name in shown.columns[2:]]
    assert list(shown.columns[:2]) == ["gold", "history"] and shown.loc[0, "step 60"] == 1
    assert (
        steps == sorted(steps)
        and {0, 60, 99} <= {*steps}
        and examples.MAX_STEPS <= len(steps) <= examples.MAX_STEPS + 1
    )
    assert examples.select_columns_and_sort(table[["gold", "history", 3, 60]], 60, StepUnit.UPDATES).columns[
        2:
    ].tolist() == [
        "step 3",
        "step 60",
    ]
