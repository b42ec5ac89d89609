"""Tests of reading sources.json, which describes the data behind results."""

import pytest

from embryo_core import results, runs
from embryo_core.errors import ResultsError


@pytest.mark.parametrize("facts", [5, {"note": 5}, {"note": ["a"]}, {"templates": {"P1": 5}}, {"tasks": {"pos": 5}}])
def test_invalid_types_in_sources_are_refused(run, facts):
    """Captions use notes as sentences and templates as questions, so that another type would break a page."""
    runs.write_json(run.results / "sources.json", {"attention": facts})
    with pytest.raises(ResultsError, match=r"sources\.json is not valid"):
        results.read_sources(run)


def test_invalid_json_of_sources_is_reported(run):
    """The message names sources.json."""
    run.results.mkdir(parents=True)
    (run.results / "sources.json").write_text("{")
    with pytest.raises(ResultsError, match=r"sources\.json is not valid"):
        results.read_sources(run)
