"""Tests of what all pages share: the view, the choice of a step, and messages about what a run lacks."""

import json

import pytest

from app.view import View
from embryo_core import runs
from embryo_core.figures.axis import StepAxis
from embryo_core.types import Change, Run, StepUnit


@pytest.mark.parametrize(
    ("chosen", "shown"), [(0, 4), (3, 4), (4, 4), (7, 4), (8, 8), (100, 16)], ids=lambda step: f"{step}"
)
def test_last_evaluated_step_up_to_chosen_one_is_shown(chosen: int, shown: int) -> None:
    """A choice before the first evaluated step shows the first; the steps may be unordered and repeated."""
    assert View(None, (), chosen, "log").evaluated_step([8, 4, 16, 4]) == shown


def test_step_without_weights_is_answered_by_earlier_checkpoint(open_page, own_run: Run) -> None:
    """The page names the last earlier checkpoint that has weights, or says that no checkpoint has any.

    At other steps the line is empty but has the same height, so that nothing below moves while the time bar plays.
    """
    page = open_page("query", own_run, step="8", text="The [MASK] runs .")
    assert not any("no weights" in caption.value for caption in page.caption)
    runs.remove_weights(runs.checkpoint(own_run, 8))
    for step, sentence in (("8", "Step 8 kept no weights; these answers are from step 0."), ("16", "")):
        page = open_page("query", own_run, step=step, text="The [MASK] runs .")
        assert sentence in [caption.value for caption in page.caption] and not page.info
        assert f"At step {0 if step == '8' else 16}" in [heading.value for heading in page.header]
        assert not page.exception
    for step in (0, 16):
        runs.remove_weights(runs.checkpoint(own_run, step))
    page = open_page("query", own_run, text="The [MASK] runs .")
    assert "No checkpoint" in page.info[0].value and not page.exception


def test_removed_weights_are_a_caption_and_damaged_ones_a_warning(open_page, own_run: Run) -> None:
    """Weights of step 0 were removed on purpose, those of step 8 are damaged."""
    runs.remove_weights(runs.checkpoint(own_run, 0))
    (runs.checkpoint(own_run, 8).path / "model.safetensors").write_bytes(b"damaged")
    page = open_page("query", own_run, text="The [MASK] runs .")
    captions = [caption.value.replace("\\", "") for caption in page.caption]
    assert "2 of 3 checkpoints kept their weights." in captions
    (warning,) = page.warning
    assert "step8" in warning.value and not page.exception


def test_axis_of_view_follows_run_step_and_scale(own_run: Run) -> None:
    """The axis also has the changes in training that the run's configuration records."""
    assert View(own_run, (), 8, "linear").axis == StepAxis("linear", step_unit=StepUnit.UPDATES)
    own_run.config["short_steps"] = 8
    runs.write_run(own_run)
    assert View(own_run, (), 8, "linear").axis.changes == (Change(8, "sequences of 32 tokens"),)


@pytest.mark.parametrize(
    ("page", "section", "config", "sentence"),
    [
        ("tokens", None, {"architectures": ["AlbertForTokenClassification"]}, "predict no words"),
        ("knowledge", None, {"architectures": ["AlbertForTokenClassification"]}, "predict no words"),
        ("query", None, {"architectures": ["AlbertForTokenClassification"]}, "predict no masked words"),
        ("attention", "maps", {"model_type": "fnet"}, "do not output the attention weights"),
        ("attention", "heads", {"model_type": "fnet"}, "do not output the attention weights"),
        ("attention", "sentence", {"model_type": "fnet"}, "do not output the attention weights"),
    ],
)
def test_unsupported_measures_are_explained_without_command(open_page, own_run, page, section, config, sentence):
    """The page says what the run's architecture cannot give; no command could compute it."""
    file = runs.checkpoints(own_run)[-1].path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | config))
    app = open_page(page, own_run, **({"section": section} if section else {}))
    assert not app.exception and not app.error and not app.code
    assert [sentence in info.value for info in app.info] == [True]


def test_unreadable_model_config_does_not_hide_command(open_page, own_run):
    """The page shows the command that computes its results, as for a model that predicts words."""
    (runs.checkpoints(own_run)[-1].path / "config.json").write_text("{")
    (command,) = open_page("knowledge", own_run).code
    assert "--metrics world_knowledge --lama PATH" in command.value
