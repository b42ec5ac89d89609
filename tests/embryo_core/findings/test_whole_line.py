"""Tests from parquet files to verdicts: planted runs are recognised, and comparisons are recomputed independently."""

import pytest

from embryo_core import runs
from embryo_core.findings import FINDINGS, judge
from embryo_core.types import Run
from tests import demo
from tests.embryo_core.findings import planted
from tests.embryo_core.findings.recomputed import RECOMPUTED, Tables, verdict

MADE = {
    "shows": planted.shows,
    "contradicts": planted.contradicts,
    "noise, 1": lambda root: planted.noise(root, 1),
    "noise, 2": lambda root: planted.noise(root, 2),
}
EXPECTED = {"shows": "reproduced", "contradicts": "contradicted"}  # of every finding


NAMES = [pytest.param(name, marks=pytest.mark.slow if name == "noise, 2" else ()) for name in MADE]


@pytest.fixture(scope="module", params=NAMES)
def planted_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Run]:
    """Return the name of a planted run, and the run."""
    return request.param, MADE[request.param](tmp_path_factory.mktemp("planted"))


def test_planted_runs_have_the_expected_verdicts(planted_run: tuple[str, Run]):
    """All findings are reproduced by the run made to show them, and contradicted by the run with permuted labels."""
    name, run = planted_run
    verdicts = {judgement.finding.name: judgement.verdict for judgement in judge(run)}
    if name in EXPECTED:
        assert verdicts == {finding.name: EXPECTED[name] for finding in FINDINGS}
    else:
        assert len(set(verdicts.values())) > 1


def test_comparisons_match_an_independent_computation(planted_run: tuple[str, Run]):
    """Values, intervals, cases and verdicts of all findings are recomputed from the parquet files alone."""
    _agree(planted_run[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["albert-reference", "bert-reference"])
def test_demo_matches_an_independent_computation(name: str):
    """The demo has real scores, in which nothing is planted."""
    _agree(runs.read_run(demo.read().path.parent / name))


def _agree(run: Run) -> None:
    tables = Tables(run.results, run.path)
    assert RECOMPUTED.keys() == {finding.name for finding in FINDINGS}
    for judgement in judge(run):
        expected = list(RECOMPUTED[judgement.finding.name](tables))
        comparisons = [(c.value, c.low, c.high, c.n, c.tied) for c in judgement.comparisons]
        assert len(comparisons) == len(expected), judgement.finding.name
        for mine, theirs in zip(expected, comparisons, strict=True):
            assert theirs == pytest.approx(mine, abs=1e-7), judgement.finding.name
        assert judgement.verdict == verdict(expected), judgement.finding.name
