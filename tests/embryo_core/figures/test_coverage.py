"""What has been computed: a mark for each metric and checkpoint, and the command for the rest."""

import pandas as pd

from embryo_core.figures import coverage
from embryo_core.figures.axis import Axis, StepAxis
from embryo_core.types import Run, StepUnit


def test_coverage_marks_what_is_computed() -> None:
    """Each metric and checkpoint is one mark; a plot is high enough for the name of every row."""
    axis = StepAxis("linear", step_unit=StepUnit.UPDATES)
    rows = [("attention", 0, True), ("attention", 8, False), ("world knowledge", 0, True)]
    plot = coverage.plot_coverage(pd.DataFrame(rows, columns=["metric", "step", "done"]), axis)
    there, missing = plot.data
    assert list(zip(there.y, there.x)) == [("attention", 0), ("world knowledge", 0)]
    assert list(zip(missing.y, missing.x)) == [("attention", 8)]
    many = pd.DataFrame([(str(i), 0, True) for i in range(20)], columns=["metric", "step", "done"])
    assert coverage.plot_coverage(many, axis).layout.height - plot.layout.height >= 18 * 20


def test_coverage_of_a_run_has_the_command_for_the_rest(tiny_run: Run, tiny_results: Run) -> None:
    """Metrics that read the same data share one option; with full results there is no figure."""
    capabilities = frozenset({"masked_words", "words", "states", "attentions"})
    figure = coverage.coverage([tiny_run], Axis("log"), capabilities)
    assert not figure.table.loc[figure.table["metric"] != "checkpoint", "done"].any()
    command = coverage.evaluate_command(tiny_run, coverage.missing_metrics(tiny_run, capabilities))
    assert command.startswith(f"python -m embryo_core evaluate {tiny_run.name} --metrics ")
    assert command.count("--treebank PATH") == command.count("--lama PATH") == 1
    assert not coverage.missing_metrics(tiny_results, capabilities)


def test_the_caption_of_coverage_counts_checkpoints_without_weights(tiny_run: Run) -> None:
    """And how many of them have results."""
    for with_results, said in ((0, "5, none"), (2, "5, 2"), (5, "5, all")):
        assert said in str(coverage.describe_coverage(tiny_run, 8, 5, with_results, []))
    assert "Without weights" not in str(coverage.describe_coverage(tiny_run, 3, 0, 0, []))
