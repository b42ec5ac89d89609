"""Tests of the Findings page: with results, without, and the button that opens another page."""

import json

import pytest

from embryo_core.figures.file_panels import LETTER
from embryo_core.figures.findings import verdict_name
from embryo_core.findings import FINDINGS, judge
from tests.app.conftest import captions_of


def test_every_finding_has_row_and_counts(open_page, tiny_results):
    """The table has the verdicts of `judge`, and a link to a finding shows its verdict, counts and prediction."""
    judgements = judge(tiny_results)
    for judgement in judgements:
        test = open_page("findings", tiny_results, finding=judgement.finding.name)
        assert not test.exception and not test.error
        assert test.dataframe[0].value["verdict"].tolist() == [
            verdict_name(judgement.verdict) for judgement in judgements
        ]
        text = " ".join(element.value for element in test.markdown)
        assert verdict_name(judgement.verdict).capitalize() in text
        if judgement.comparisons:
            assert f"{judgement.hold_count} of {len(judgement.comparisons)} comparison" in text
            assert any(judgement.finding.predicts in caption for caption in captions_of(test))


def test_verdict_column_fits_longest_verdict(open_page, tiny_results):
    columns = json.loads(open_page("findings", tiny_results).dataframe[0].proto.columns)
    assert columns["verdict"]["width"] >= len(verdict_name("partly")) * LETTER * 0.9


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.name)
def test_button_opens_page_of_finding(open_page, tiny_results, finding):
    """The page opens with the parameters of the finding's `view`."""
    test = open_page("findings", tiny_results, finding=finding.name)
    button = next(button for button in test.button if button.label.startswith("See it on"))
    assert finding.page in button.label
    button.click().run()
    assert not test.exception
    for name, value in finding.view.items():
        assert test.query_params[name] in (value, [value])


def test_page_without_results_shows_evaluation_command(open_page, own_run):
    """The chosen finding names the command that computes what it needs."""
    test = open_page("findings", own_run)
    assert not test.exception and not test.error
    assert any(element.value.startswith("python -m embryo_core evaluate") for element in test.code)
