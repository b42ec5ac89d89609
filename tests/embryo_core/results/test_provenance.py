"""What is noted of the data behind results is read back, or reported."""

import pytest

from embryo_core import results, runs
from embryo_core.errors import ResultsError


@pytest.mark.parametrize("facts", [5, {"note": 5}, {"note": ["a"]}, {"templates": {"P1": 5}}, {"tasks": {"pos": 5}}])
def test_what_is_noted_of_the_data_has_its_types(run, facts):
    """Captions put notes into sentences and templates into questions: another type is reported, not shown."""
    runs.write_json(run.results / "sources.json", {"attention": facts})
    with pytest.raises(ResultsError, match=r"sources\.json is not valid"):
        results.read_sources(run)


def test_broken_sources_are_explained(run):
    """sources.json that is not JSON is reported with its name."""
    run.results.mkdir(parents=True)
    (run.results / "sources.json").write_text("{")
    with pytest.raises(ResultsError, match=r"sources\.json is not valid"):
        results.read_sources(run)
