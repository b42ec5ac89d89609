"""The words of the Overview."""

from embryo_core.figures.captions import overview as captions
from embryo_core.types import Run


def test_checkpoints_without_weights_are_reported(tiny_run: Run) -> None:
    """What they lack cannot be computed, so that nothing is missing."""
    for with_results, told in ((0, "5, none of them"), (2, "5, 2 of them"), (5, "5, all of them")):
        words = captions.coverage(tiny_run, 8, 5, with_results, [])
        assert f"Without weights, hollow on the time bar: {told} with results." in words
        assert words.endswith("every checkpoint with weights: all metrics.")
    assert captions.coverage(tiny_run, 3, 0, 0, []).endswith("Computed at every checkpoint: all metrics.")


def test_the_command_names_each_source_once(tiny_run: Run) -> None:
    """Metrics that read the same data share one option."""
    missing = {"mask_prediction": "treebank", "attention": "treebank", "world_knowledge": "lama"}
    assert captions.command(tiny_run, missing) == (
        "python -m embryo_core evaluate tiny --metrics mask_prediction attention world_knowledge "
        "--treebank PATH --lama PATH"
    )


def test_the_total_loss_tells_what_training_minimizes() -> None:
    """A weight of 1 is not worth a word."""
    assert captions.total_loss({"sentence_order_weight": 1.0}).endswith("which training minimizes.")
    words = captions.total_loss({"sentence_order_weight": 0.5})
    assert words.endswith("training minimizes it with the sentence-order loss × 0.5.")
    weights = captions.weighted({"generator_weight": 1.0, "discriminator_weight": 50.0})
    assert weights == "the discriminator's loss × 50" and not captions.weighted({})
