"""Tests of figures for notebooks: they are those of embryo_core/figures with the dashboard's options."""

from dataclasses import replace
from pathlib import Path

import pytest

import embryo_core as embryo
from embryo_core import results, share
from embryo_core.errors import EmbryoError, FigureError
from embryo_core.figures import tokens
from embryo_core.figures.axis import AxisChoice
from embryo_core.measurements import Findings, Score
from embryo_core.plots import Plots
from embryo_core.types import Run
from tests.conftest import checkpoint_at, copy_run


def test_plot_equals_the_figure_function(tiny_results: Run):
    """By default it shows the paper's parts of speech that were measured, on the chosen axis."""
    plot = embryo.open(tiny_results.path).plot
    figure = plot("linear").tokens()
    groups = [group for group in tokens.SETS["parts of speech"] if group in set(figure.table["group"])]
    expected = tokens.accuracy([tiny_results], AxisChoice("linear"), "mask_prediction", groups)
    assert figure.table.equals(expected.table) and figure.plot.layout.xaxis.type != "log"
    assert plot.tokens(groups=["noun"]).table["group"].unique().tolist() == ["noun"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("training", {}),
        ("ngrams", {}),
        ("positions", {}),
        ("heads", {"pattern": "previous"}),
        ("geometry", {"measure": "anisotropy"}),
        ("ages", {}),
        ("grammar", {}),
        ("probing", {}),
        ("layers", {"task": "pos"}),
        ("knowledge", {}),
        ("finetuning", {}),
        ("answers", {"text": "The [MASK] sat .", "track": "cat"}),
        ("lens", {"text": "The [MASK] sat ."}),
    ],
)
def test_every_figure_has_rows_and_caption(tiny_results: Run, name: str, options: dict):
    """Each figure can be displayed in a notebook."""
    figure = getattr(Plots((tiny_results,)), name)(**options)
    assert len(figure.table) and figure.caption.summary
    assert {"text/html", "text/plain"} <= set(figure._repr_mimebundle_())


@pytest.mark.parametrize(
    ("pattern", "rule"), [("previous", "step 0 +0.05"), ("entropy", "step 0 -0.5"), ("dependent_to_head", "best fixed")]
)
def test_heads_are_judged_by_the_rule_of_their_pattern(tiny_results: Run, pattern: str, rule: str):
    """A weight, an entropy or a distance has no level of syntax."""
    (note,) = Plots((tiny_results,)).heads(pattern).plot.layout.annotations
    assert note.text.startswith(rule)


def test_attention_has_the_maps_of_the_first_run(tiny_results: Run):
    """A notebook and the dashboard show the same page, with a slider over the steps."""
    animation = Plots((tiny_results,)).attention(2, 1)
    history = share.read_averaged(tiny_results, 2, 1)
    assert share.html_page(animation.history) == share.html_page(history)


def test_runs_are_drawn_together(tiny_run: Run, tmp_path: Path):
    """The dashboard overlays them in the same way; a choice of design has a figure of what it changed."""
    runs = []
    for name, layers in (("a", 2), ("b", 3)):
        config = tiny_run.config | {"num_hidden_layers": layers}
        run = replace(copy_run(tiny_run, tmp_path / name), name=name, config=config)
        for step in (0, 8):
            scores = [Score("mask_prediction", step / 20, 50, group) for group in ("noun", "all")]
            results.write(checkpoint_at(run, step), "mask_prediction", Findings(scores=scores))
        runs.append(run)
    plot = embryo.compare(runs).plot
    assert set(plot.tokens().table["run"]) == {"a", "b"}
    (changed,) = plot.differences()
    assert changed.table["run"].unique().tolist() == ["b"] and plot("log", "share").axis.unit == "share"


@pytest.mark.parametrize(
    ("name", "options", "known"),
    [
        ("tokens", {"metric": "nonsense"}, "mask_prediction"),
        ("tokens", {"groups": ["nonsense"]}, "noun"),
        ("knowledge", {"relations": ["P0"]}, "P36"),
        ("heads", {"pattern": "nonsense"}, "previous"),
        ("layers", {"task": "nonsense"}, "pos"),
        ("attention", {"layer": 9}, "1 to 2"),
        ("training", {"quantity": "nonsense"}, "loss"),
        ("geometry", {"measure": "nonsense"}, "anisotropy"),
        ("finetuning", {"tasks": ["nonsense"]}, "rte"),
    ],
)
def test_unknown_option_lists_the_known_ones(tiny_results: Run, name: str, options: dict, known: str):
    """An unknown option never gives an empty figure."""
    with pytest.raises(EmbryoError, match=known):
        getattr(Plots((tiny_results,)), name)(**options)


def test_single_run_has_no_differences_or_early_signals(tiny_results: Run):
    plot = Plots((tiny_results,))
    assert plot.differences() == []
    with pytest.raises(FigureError, match="measure"):
        plot.early_signals()
