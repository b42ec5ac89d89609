"""Tests of the section of the Attention page on what a head does."""

import pytest
from streamlit.testing.v1 import AppTest

from embryo_core import results
from embryo_core.evaluation import evaluate
from embryo_core.figures import patterns
from embryo_core.words import percent
from tests.app.conftest import captions_of, unescaped
from tests.app.views.conftest import box


def open_section(dashboard, **query: str) -> AppTest:
    """Return the page with this section, at the last step unless `query` names another."""
    test = dashboard.open("attention", section="heads", **query)
    assert not test.exception and not test.error
    return test


def captions(test: AppTest) -> str:
    """Return all captions as one text."""
    return "\n".join(caption for caption in captions_of(test))


def test_captions_name_data_and_n(dashboard_with_results, tiny_results):
    """The section opens on the strongest pattern and its head; captions give the note on the treebank."""
    test = open_section(dashboard_with_results)
    note = results.read_sources(tiny_results)["head_behaviour"]["note"]
    n = results.read_scores(tiny_results, "head_behaviour_previous")["n"].max()
    assert note.lower() in captions(test).lower() and f"n = {n:,}" in captions(test)
    scores = results.read_scores(tiny_results, prefix=patterns.PREFIX, categories=True)
    pattern, layer, head = patterns.strongest(patterns.behaviour_curves(scores))
    headings = [unescaped(heading.value) for heading in test.header]
    assert headings[:2] == [f"{patterns.PATTERNS[pattern].label}, step 16", "Present since step"]
    assert f"All patterns of layer {layer}, head {head}" in headings


def test_link_restores_view(dashboard_with_results):
    """A link restores pattern, rule, layer and head, and a chosen pattern is written to the URL."""
    test = open_section(dashboard_with_results, pattern="entropy", change="-0.1", layer="2", head="2", step="8")
    assert "Entropy, step 8" in [unescaped(heading.value) for heading in test.header]
    assert "at least 0.1 below its value at step 0" in captions(test)
    assert "Layer 2, head 2, bold, among all 4 heads" in captions(test)
    test.button_group(key="pick_pattern").set_value("sep").run()
    assert test.query_params["pattern"] in ("sep", ["sep"])
    assert "at least 0.05 above its value at step 0" in captions(test)


@pytest.mark.parametrize(
    ("step", "columns"), [("0", ["now", "last"]), ("8", ["first", "now", "last"]), ("16", ["first", "last"])]
)
def test_table_has_each_step_once(dashboard_with_results, step, columns):
    """The columns are the first, the chosen and the last step; a chosen first or last step is not repeated."""
    (table,) = open_section(dashboard_with_results, step=step).dataframe
    assert list(table.value.columns) == ["pattern", *columns, "history", "appears"]


def test_syntax_is_compared_with_best_fixed_offset(dashboard_with_results, tiny_results):
    """The caption gives the offset and the accuracy of the stored baseline."""
    test = open_section(dashboard_with_results, pattern="dependent_to_head")
    baseline = results.read_scores(tiny_results, "head_behaviour_fixed_offset").iloc[0]
    share = percent(baseline["value"])
    assert f"Always answering the word at {baseline['group']} is right for {share}" in captions(test)


def test_treebank_without_heads_offers_no_syntax(dashboard_without_results, own_run, sample, tmp_path):
    """Patterns that were not measured cannot be chosen, even by a link."""
    rows = [line.split("\t") for line in (sample / "treebank.conllu").read_text(encoding="utf-8").splitlines()]
    lines = ["\t".join([*row[:6], "_", *row[7:]]) if len(row) == 10 else row[0] for row in rows]
    (tmp_path / "plain.conllu").write_text("\n".join(lines), encoding="utf-8")
    evaluate(own_run, {"treebank": tmp_path / "plain.conllu"}, ["head_behaviour"])
    test = open_section(dashboard_without_results, pattern="dependent_to_head")
    options = " ".join(map(str, test.button_group(key="pick_pattern").options))
    assert "Entropy" in options and "Syntax" not in options
    assert "no syntactic heads" in captions(test)


@pytest.mark.parametrize("query", [{"pattern": "<img src=x>"}, {"change": "9e999"}, {"layer": "77", "head": "-1"}])
def test_invalid_values_in_link_show_defaults(dashboard_with_results, query):
    """The pickers have the values that they have without a link."""
    names = ("Layer", "Head", "Present once it has")
    usual, test = (open_section(dashboard_with_results, **parameters) for parameters in ({}, query))
    assert [box(test, name).value for name in names] == [box(usual, name).value for name in names]
    chosen = [page.button_group(key="pick_pattern").value for page in (test, usual)]
    assert chosen[0] == chosen[1]


def test_section_without_results_shows_evaluation_command(dashboard_without_results):
    """A message says that the behaviour of heads has not been measured."""
    test = open_section(dashboard_without_results)
    assert "has not been measured yet" in test.info[0].value
    assert "python -m embryo_core evaluate tiny --metrics head_behaviour" in test.code[0].value
