"""Fixtures: scores for findings, as curves of a given onset for any metric, group and layer."""

import pandas as pd
import pytest

from embryo_core.findings.evidence import Evidence
from embryo_core.types import Run
from tests.embryo_core.results.conftest import make_run

STEPS = (0, 1, 2, 4, 8, 16, 32, 64, 128)
N = 10_000


@pytest.fixture
def run(tmp_path) -> Run:
    """Return a run without checkpoints and results."""
    return make_run(tmp_path)


def evidence(run: Run, *rows: tuple, steps: tuple[int, ...] = STEPS) -> Evidence:
    """Return evidence with only these scores: rows of metric, group, layer and the values at these steps."""
    frames = [
        pd.DataFrame({"metric": metric, "step": steps, "layer": layer, "group": group, "value": values, "n": N})
        for metric, group, layer, values in rows
    ]
    scored_evidence = Evidence(run)
    scores = pd.concat(frames, ignore_index=True)
    of_metric = scores.assign(layer=scores["layer"].astype("Int64")).groupby("metric")
    scored_evidence.__dict__["metrics"] = set(scores["metric"])
    scored_evidence.__dict__["scores"] = lambda metric: (
        of_metric.get_group(metric) if metric in of_metric.groups else scores[:0]
    )
    return scored_evidence


def risen(at: int, low: float = 0.0, high: float = 0.8, steps: tuple[int, ...] = STEPS) -> list[float]:
    """Return the value `low` before the step `at`, and `high` from there on."""
    return [high if step >= at else low for step in steps]
