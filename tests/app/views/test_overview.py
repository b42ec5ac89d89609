"""Tests of the Overview page: its introduction, curves, folded sections, and commands for missing results."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from embryo_core import runs
from embryo_core.runs import Audit, Fault
from embryo_core.types import Run
from tests.app.conftest import captions_of, unescaped


def test_card_counts_checkpoints_and_tokens(dashboard_with_results, tiny_run: Run) -> None:
    """The numbers are those of the manifests and of the log at the chosen step."""
    page = dashboard_with_results.open("overview", step="8", open="card")
    figures = {metric.label: metric.value for metric in page.metric}
    assert figures["Checkpoints"] == f"3 of {len(tiny_run.planned_steps)} planned"
    assert figures["Last step"] == "16"
    assert figures["Tokens seen"] == "4,096"
    n = next(row["n_masked"] for row in runs.read_log(tiny_run) if row["split"] == "heldout" and row["step"] == 8)
    assert figures[f"Held-out accuracy, step 8, n = {n:,}"] == "8.0 %"


def test_complete_results_show_no_command(dashboard_with_results) -> None:
    """A caption says that all metrics have been computed."""
    page = dashboard_with_results.open("overview", open="computed")
    assert any("All metrics" in caption for caption in captions_of(page)) and not page.code


def test_ngram_distances_are_shown_if_computed(dashboard_with_results) -> None:
    """A caption names the unigram phase."""
    page = dashboard_with_results.open("overview", open="ngrams")
    assert "Distance from unigrams and bigrams" in [unescaped(heading.value) for heading in page.header]
    assert any("the unigram phase" in caption for caption in captions_of(page))


def test_position_measures_are_shown_if_computed(dashboard_with_results) -> None:
    """The page has a figure of the embeddings and one of the states."""
    page = dashboard_with_results.open("overview", open="embeddings,similarity")
    headings = [unescaped(heading.value) for heading in page.header]
    assert {"Position and word embeddings", "Similarity of states within a sentence"} <= set(headings)


def test_page_without_results_shows_evaluation_command(dashboard_without_results) -> None:
    """The command names the run, the missing metrics and their data."""
    page = dashboard_without_results.open("overview", open="computed")
    assert not page.exception
    assert page.code[0].value.startswith("python -m embryo_core evaluate tiny --metrics ")
    assert "--treebank PATH --lama PATH" in page.code[0].value


def test_checkpoints_without_weights_need_no_command(dashboard_with_results, own_run: Run, monkeypatch) -> None:
    """A caption counts the checkpoints whose weights were removed; no command could evaluate them."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parent.parent))
    for checkpoint in runs.checkpoints(own_run):
        runs.remove_weights(checkpoint)
    page = dashboard_with_results.open("overview", open="computed")
    assert not page.exception and not page.code
    assert any(": 3, none of them" in caption for caption in captions_of(page))


def test_accuracy_by_position_is_shown_if_measured(dashboard_without_results, own_run: Run) -> None:
    """The caption is of the picked masking; a log without such measures has no such section."""
    title = "Accuracy on masked pieces by length and position"
    assert title not in [
        unescaped(heading.value) for heading in dashboard_without_results.open("overview", open="length").header
    ]
    log, groups = own_run.path / "log.jsonl", [{"first": 0, "last": 63, "accuracy": 0.25, "n": 40}]
    measures = [
        {"length": 32, "masking": masking, "positions": groups} for masking in ("training", "single pieces 15 %")
    ]
    row = {"split": "heldout", "step": 8, "masked_lm_loss": 5.6, "masked_lm_accuracy": 0.08, "measures": measures}
    log.write_text(log.read_text() + json.dumps(row) + "\n")
    page = dashboard_without_results.open("overview", masking="training", open="length")
    assert not page.exception and title in [unescaped(heading.value) for heading in page.header]
    (caption,) = [each for each in captions_of(page) if "masked as in training" in each]
    assert "40 (32 tokens, positions 0 to 31)" in caption


def test_larger_sample_is_default_and_link_picks_another(dashboard_without_results, own_run: Run) -> None:
    """The log has accuracies on two samples of one text at each of five steps."""
    log, rows = own_run.path / "log.jsonl", []
    for step in range(8, 13):
        groups = [[{"first": 0, "last": 31, "accuracy": 0.25, "n": n}] for n in (40, 4000)]
        measures = [{"length": 32, "masking": "training", "positions": each} for each in groups]
        rows.append({"split": "heldout", "step": step, "masked_lm_loss": 5.6, "measures": measures})
    log.write_text(log.read_text() + "".join(json.dumps(row) + "\n" for row in rows))
    for picked, n in (({}, "4,000"), ({"pieces": "40"}, "40")):
        page = dashboard_without_results.open("overview", open="length", **picked)
        assert not page.exception
        (caption,) = [each for each in captions_of(page) if "masked as in training" in each]
        assert f" {n} (32 tokens, positions 0 to 31)" in caption


def test_run_without_log_gets_messages(dashboard_without_results, own_run: Run) -> None:
    """Each of two figures is replaced by a message that names log.jsonl; the page has no error."""
    (own_run.path / "log.jsonl").unlink()
    page = dashboard_without_results.open("overview")
    assert not page.exception
    assert sum("log.jsonl" in unescaped(info.value) for info in page.info) == 2


@pytest.mark.parametrize(
    ("objective", "title"),
    [
        ("sentence_order", "Sentence-order accuracy"),
        ("next_sentence", "Next-sentence accuracy"),
        ("replaced_token", "Replaced-token accuracy"),
        ("none", None),
    ],
)
def test_last_curve_is_of_second_objective(dashboard_without_results, own_run: Run, objective, title):
    """The log names the objective; a run that learns masked words alone has no such curve."""
    log = own_run.path / "log.jsonl"
    log.write_text(log.read_text().replace("sentence_order", objective))
    page = dashboard_without_results.open("overview", open="objective")
    assert not page.exception
    titles = [unescaped(heading.value) for heading in page.header if "accuracy" in heading.value]
    assert titles == ["Masked-word accuracy", *([title] if title else [])]


def test_odd_last_section_has_full_width() -> None:
    """Of three sections two share a row, and the third has the row below."""

    def page() -> None:
        from functools import partial

        import streamlit as st

        from app.views.overview import _two_in_a_row

        _two_in_a_row(*(partial(st.header, name) for name in ("first", "second", "third")))

    app = AppTest.from_function(page).run()
    assert [column.header[0].value for column in app.columns] == ["first", "second", "third"]
    assert [column.weight for column in app.columns] == [0.5, 0.5, 1]


def open_overview(dashboard, run, monkeypatch):
    """Return the Overview of a run that a test has changed."""
    monkeypatch.setenv("EMBRYO_DATA", str(run.path.parent.parent))
    page = dashboard.open("overview")
    assert not page.exception
    return page


def test_audit_faults_are_listed_with_command(dashboard_with_results, own_run, monkeypatch):
    """The sentence about a fault is escaped."""
    runs.write_audit(own_run, Audit((Fault((8,), "tensor", "The *bias* at step 8 is odd."),), 3))
    page = open_overview(dashboard_with_results, own_run, monkeypatch)
    (section,) = [expander for expander in page.expander if "audit" in expander.label]
    assert section.label == "The audit found 1 fault in this run's checkpoints; curves break there."
    assert "\\*bias\\* at step 8" in section.markdown[0].value
    assert section.code[0].value == "python -m embryo_core audit tiny"


def test_audit_without_faults_has_no_section(dashboard_with_results, own_run, monkeypatch):
    """The run was audited, and no fault was found."""
    runs.write_audit(own_run, Audit((), 3))
    page = open_overview(dashboard_with_results, own_run, monkeypatch)
    assert not [expander for expander in page.expander if "audit" in expander.label]


def test_folded_section_is_drawn_only_when_open(dashboard_with_results) -> None:
    """The URL names the open fold; with the card folded, none of its numbers is drawn."""
    page = dashboard_with_results.open("overview", open="card")
    assert page.metric and page.query_params["open"] == "card"
    assert len(page.metric) > len(dashboard_with_results.open("overview").metric) == 0


def test_page_opens_with_model_and_findings(dashboard_with_results, tiny_results: Run) -> None:
    """The introduction has the model, its size and a link to the paper; buttons lead to findings."""
    page = dashboard_with_results.open("overview")
    (watch,) = [element.value for element in page.markdown if "grow up" in element.value]
    assert "ALBERT" in watch and "aclanthology.org" in watch and "parameters" in watch
    assert {"reconstruction_before_prediction", "knowledge_fluctuates"} <= {button.key for button in page.button}
