"""The words of the Overview."""

from app.captions import overview as captions
from embryo_core.types import Run


def test_checkpoints_without_weights_are_reported(tiny_run: Run) -> None:
    """What they lack cannot be computed, so that nothing is missing."""
    words = captions.coverage(tiny_run, 3, 1, [])
    assert "1 have lost their weights" in words and words.endswith("every checkpoint with weights: all metrics.")
    assert captions.coverage(tiny_run, 3, 0, []).endswith("Computed at every checkpoint: all metrics.")


def test_the_command_names_each_source_once(tiny_run: Run) -> None:
    """Metrics that read the same data share one option."""
    missing = {"mask_prediction": "treebank", "attention": "treebank", "world_knowledge": "lama"}
    assert captions.command(tiny_run, missing) == (
        "python -m embryo_core evaluate tiny --metrics mask_prediction attention world_knowledge "
        "--treebank PATH --lama PATH"
    )
