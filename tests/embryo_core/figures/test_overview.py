"""Tests of the Overview figures, which draw curves of the training log."""

import json
import os
from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from embryo_core import runs
from embryo_core.curves.phases import Phase
from embryo_core.errors import FigureError
from embryo_core.figures import overview
from embryo_core.figures.axis import AxisChoice
from embryo_core.types import Run
from tests.conftest import copy_run

Row = dict[str, object]


@pytest.fixture
def with_log(own_run: Run) -> Callable[[list[Row]], Run]:
    """Return a function that gives the tiny run a log with these rows."""

    def write(rows: list[Row]) -> Run:
        (own_run.path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return own_run

    return write


def row(split: str, step: int, **values: object) -> Row:
    """Return a row of a log."""
    return {"split": split, "step": step, "masked_lm_loss": 5.0} | values


def test_training_curves_hold_the_log(tiny_run: Run) -> None:
    """Training and held-out rows are separate curves with their own values and n; the held-out one is thicker."""
    figure = overview.training_curve([tiny_run], AxisChoice("linear"), "masked_lm_accuracy")
    log = pd.DataFrame(runs.read_log(tiny_run))
    drawn = {trace.name: trace for trace in figure.plot.data}
    for split, name in (("train", "training"), ("heldout", "held-out")):
        rows = log[(log["split"] == split) & log["masked_lm_accuracy"].notna()]
        assert list(drawn[name].x) == list(rows["step"]) and list(drawn[name].y) == list(rows["masked_lm_accuracy"])
    assert drawn["held-out"].line.width > drawn["training"].line.width
    assert "n = 200" in drawn["held-out"].customdata[0][2] and "200 masked pieces" in figure.caption.data


def test_seeds_have_the_held_out_text_of_one(tiny_run: Run, tmp_path) -> None:
    """The n of the mean is a sum, and the text is the same; a first run without a log has no headline."""
    seed = replace(copy_run(tiny_run, tmp_path), name="seed", config=tiny_run.config | {"seed": 99})
    figure = overview.training_curve([tiny_run, seed], AxisChoice(), "masked_lm_loss")
    assert "mean of 2 seeds" in figure.table["run"].iloc[0] and "the same 200 masked" in figure.caption.data
    assert figure.headline
    (seed.path / "log.jsonl").unlink()
    assert not overview.training_curve([seed, tiny_run], AxisChoice(), "masked_lm_loss").headline


def test_shared_baseline_is_one_line(with_log) -> None:
    """Chance is dashed from the first step to the last, and is a column of the table."""
    rows = [row(split, step, sentence_order_accuracy=0.6) for step in (4, 8) for split in ("train", "heldout")]
    figure = overview.training_curve([with_log(rows)], AxisChoice("linear"), "sentence_order_accuracy")
    (chance,) = [trace for trace in figure.plot.data if trace.line.dash == "dash"]
    assert (list(chance.x), list(chance.y), chance.name) == ([4, 8], [0.5, 0.5], "chance")
    assert set(figure.table["baseline"]) == {0.5}


def test_logged_baseline_is_drawn_where_it_was_logged(with_log) -> None:
    """The accuracy of calling every token original has a separate curve; older rows lack it."""
    rows = [row("heldout", 4, replaced_token_accuracy=0.6), row("train", 4, replaced_token_accuracy=0.6)]
    later = {6: (0.7, 0.87), 8: (0.9, 0.9)}
    rows += [
        row("heldout", step, replaced_token_accuracy=value, replaced_token_baseline=baseline)
        for step, (value, baseline) in later.items()
    ]
    figure = overview.training_curve([with_log(rows)], AxisChoice("linear"), "replaced_token_accuracy")
    (dashed,) = [trace for trace in figure.plot.data if trace.name == "held-out, baseline"]
    assert (list(dashed.x), list(dashed.y), dashed.line.dash) == ([6, 8], [0.87, 0.9], "dash")


def test_counts_of_replaced_tokens_come_from_measures(with_log) -> None:
    """Held-out rows have the count in their first measure; measures of another form are ignored."""
    measures = [{"replaced_token_n": 4095}]
    rows = [row("heldout", 4, replaced_token_accuracy=0.6, measures=measures)]
    rows.append(row("heldout", 8, replaced_token_accuracy=0.7, measures=[None]))
    run = with_log(rows)
    assert overview.quantity_table(run, "replaced_token_accuracy")["n"].dropna().tolist() == [4095]
    assert "4,095 tokens" in overview.training_curve([run], AxisChoice("log"), "replaced_token_accuracy").caption.data


def test_log_is_cached_until_it_changes(with_log) -> None:
    """A run without a log has an empty table and no figure."""
    run = with_log([row("train", 4)])
    assert overview.training_log(run) is overview.training_log(run)
    with_log([row("train", 4), row("heldout", 4)])
    assert len(overview.training_log(run)) == 2
    (run.path / "log.jsonl").unlink()
    assert overview.training_log(run).empty and overview.logged_quantities(run) == list(
        overview.WORD_QUANTITIES["masked_words"]
    )
    with pytest.raises(FigureError, match=run.name):
        overview.training_curve([run], AxisChoice("log"), "masked_lm_loss")


def test_log_rewritten_with_the_same_size_and_time_is_read_again(with_log) -> None:
    """Two rewrites within one tick of the clock leave the modification time as it was."""
    run = with_log([row("train", 4)])
    assert overview.training_log(run)["step"].tolist() == [4]
    before = (run.path / "log.jsonl").stat()
    with_log([row("train", 8)])
    os.utime(run.path / "log.jsonl", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (run.path / "log.jsonl").stat().st_size == before.st_size
    assert overview.training_log(run)["step"].tolist() == [8]


@pytest.mark.parametrize(
    ("phases", "numbers"),
    [
        ([], ()),
        ([Phase("start", 1, 1, 1, 8, 0.1), Phase("first fall", 8, 4, 16, 2000, 0.5)], ()),
        ([Phase("take-off", 1534, 8, 1632, 2000, 2.0)], ("step 1,500", "8 to 1,600")),
    ],
)
def test_headline_has_the_loss_and_the_take_off(with_log, monkeypatch, phases, numbers) -> None:
    """The loss is given from its first to its last held-out value; the take-off is rounded, with its interval."""
    monkeypatch.setattr(overview, "training_phases", lambda run: phases)
    losses = {0: 9.0, 8: 7.0, 2000: 5.25}
    run = with_log([row("heldout", step, masked_lm_loss=loss) for step, loss in losses.items()])
    headline = overview.training_curve([run], AxisChoice("log"), "masked_lm_loss").headline
    assert all(number in headline for number in ("9.00", "5.25", "step 2,000", *numbers))
    assert ("take" in headline) == (bool(phases))


def test_total_loss_names_weights_other_than_1() -> None:
    """Training minimises the weighted sum; weights of 1 are not mentioned."""
    assert "×" not in overview.describe_total_loss({"sentence_order_weight": 1.0})
    assert "the sentence-order loss × 0.5" in overview.describe_total_loss({"sentence_order_weight": 0.5})
    weights = {"generator_weight": 1.0, "discriminator_weight": 50.0}
    assert overview.weighted_losses(weights) == "the discriminator's loss × 50" and not overview.weighted_losses({})
