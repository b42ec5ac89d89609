"""Tests of the Coverage figure, which shows computed metrics by checkpoint, and of the command for the rest."""

import pandas as pd

from embryo_core.figures import coverage
from embryo_core.figures.axis import AxisChoice, StepAxis
from embryo_core.types import Run, StepUnit


def test_computed_and_missing_metrics_are_marked() -> None:
    """Each metric and checkpoint has one mark; the plot grows with its rows, so that their names do not overlap."""
    axis = StepAxis("linear", step_unit=StepUnit.UPDATES)
    rows = [("attention", 0, True), ("attention", 8, False), ("world knowledge", 0, True)]
    plot = coverage.plot_coverage(pd.DataFrame(rows, columns=["metric", "step", "done"]), axis)
    there, missing = plot.data
    assert list(zip(there.y, there.x)) == [("attention", 0), ("world knowledge", 0)]
    assert list(zip(missing.y, missing.x)) == [("attention", 8)]
    many = pd.DataFrame([(str(i), 0, True) for i in range(20)], columns=["metric", "step", "done"])
    assert coverage.plot_coverage(many, axis).layout.height - plot.layout.height >= 18 * 20


def test_command_computes_the_missing_metrics(tiny_run: Run, tiny_results: Run) -> None:
    """Metrics that read the same data share one option; with full results nothing is missing."""
    capabilities = frozenset({"masked_words", "words", "states", "attentions"})
    figure = coverage.coverage([tiny_run], AxisChoice("log"), capabilities)
    assert not figure.table.loc[figure.table["metric"] != "checkpoint", "done"].any()
    command = coverage.evaluate_command(tiny_run, coverage.missing_metrics(tiny_run, capabilities))
    assert command.startswith(f"python -m embryo_core evaluate {tiny_run.name} --metrics ")
    assert command.count("--treebank PATH") == command.count("--lama PATH") == 1
    assert not coverage.missing_metrics(tiny_results, capabilities)


def test_caption_counts_checkpoints_without_weights(tiny_run: Run) -> None:
    """The caption also says how many of these have results; if every checkpoint has weights, it says nothing."""
    for with_results, said in ((0, "5, none"), (2, "5, 2"), (5, "5, all")):
        assert said in str(coverage.describe_coverage(tiny_run, 8, 5, with_results, []))
    assert "Without weights" not in str(coverage.describe_coverage(tiny_run, 3, 0, 0, []))
