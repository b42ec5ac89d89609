"""The figures of the overview draw exactly the numbers of the log and of what has been computed."""

import pandas as pd

from embryo_core.figures import overview
from embryo_core.figures.axis import StepAxis
from embryo_core.types import StepUnit


def test_training_curves_are_the_log() -> None:
    """Training and held-out rows become one trace each, with their own values and n."""
    log = pd.DataFrame(
        [("heldout", 0, 0.0, 200), ("train", 4, 0.1, None), ("train", 8, 0.2, None), ("heldout", 8, 0.15, 200)],
        columns=["split", "step", "masked_lm_accuracy", "n"],
    )
    train, heldout = overview.training_curve(
        log, "masked_lm_accuracy", "accuracy", StepAxis("linear", step_unit=StepUnit.UPDATES)
    ).data
    assert (list(train.x), list(train.y)) == ([4, 8], [0.1, 0.2])
    assert (list(heldout.x), list(heldout.y)) == ([0, 8], [0.0, 0.15])
    assert heldout.customdata[1].tolist() == [8, 200]


def test_a_log_without_heldout_rows_has_one_curve() -> None:
    """A run that has not measured held-out text yet shows training only."""
    log = pd.DataFrame([("train", 4, 6.0, None)], columns=["split", "step", "masked_lm_loss", "n"])
    assert (
        len(overview.training_curve(log, "masked_lm_loss", "loss", StepAxis("log", step_unit=StepUnit.UPDATES)).data)
        == 1
    )


def test_guessing_has_its_line() -> None:
    """Where chance is known it is dashed from the first step to the last."""
    log = pd.DataFrame(
        [("train", 4, 0.6, None), ("train", 8, 0.7, None)], columns=["split", "step", "sentence_order_accuracy", "n"]
    )
    axis = StepAxis("linear", step_unit=StepUnit.UPDATES)
    chance = overview.training_curve(log, "sentence_order_accuracy", "accuracy", axis, ("chance", 0.5)).data[-1]
    assert chance.name == "chance" and chance.showlegend
    assert (list(chance.x), list(chance.y), chance.line.dash) == ([4, 8], [0.5, 0.5], "dash")


def test_always_original_is_drawn_where_it_was_logged() -> None:
    """A dashed line through the held-out measures that have it, and none in a log that does not."""
    log = pd.DataFrame(
        [("heldout", 4, 0.6, None), ("train", 4, 0.6, None), ("heldout", 6, 0.7, 0.87), ("heldout", 8, 0.9, 0.9)],
        columns=["split", "step", "replaced_token_accuracy", "baseline"],
    ).assign(n=10)
    axis = StepAxis("linear", step_unit=StepUnit.UPDATES)
    line = overview.training_curve(log, "replaced_token_accuracy", "accuracy", axis).data[-1]
    assert (line.name, line.showlegend, line.line.dash) == ("always “original”", True, "dash")
    assert (list(line.x), list(line.y), list(line.customdata)) == ([6, 8], [0.87, 0.9], [6, 8])
    assert line.hovertemplate.startswith("always “original”, step %{customdata:,}: ")
    words = overview.training_curve(
        log, "replaced_token_accuracy", "", StepAxis("linear", step_unit=StepUnit.WORDS)
    ).data[-1]
    assert words.hovertemplate.startswith("always “original”, %{customdata:,} words: ")
    old = overview.training_curve(log.drop(columns="baseline"), "replaced_token_accuracy", "accuracy", axis)
    assert [trace.name for trace in old.data] == ["training", "held-out"]


def test_coverage_marks_what_is_computed() -> None:
    """Each metric and checkpoint is one mark, in the trace of what is computed or of what is not."""
    done = pd.DataFrame(
        [("attention", 0, True), ("attention", 8, False), ("world knowledge", 0, True)],
        columns=["metric", "step", "done"],
    )
    there, missing = overview.coverage(done, StepAxis("linear", step_unit=StepUnit.UPDATES)).data
    assert list(zip(there.y, there.x)) == [("attention", 0), ("world knowledge", 0)]
    assert list(zip(missing.y, missing.x)) == [("attention", 8)]


def test_coverage_has_room_for_the_name_of_every_row() -> None:
    """The more metrics, the higher: Plotly leaves out names that would touch."""
    done = pd.DataFrame([(str(i), 0, True) for i in range(20)], columns=["metric", "step", "done"])
    few, many = (
        overview.coverage(rows, StepAxis("linear", step_unit=StepUnit.UPDATES)).layout.height
        for rows in (done[:2], done)
    )
    assert many - few == 18 * overview.ROW >= 18 * 20
