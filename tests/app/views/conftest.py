"""Helpers of the tests of pages: open the tested page, ask a text, collect shown figures, and compare two runs."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from app import figures
from embryo_core import results, runs
from embryo_core.figures import query_captions
from embryo_core.figures.figure import Figure
from embryo_core.measurements import Findings, Score
from embryo_core.types import Run
from tests.conftest import checkpoint_at

TEXT = "the cat sat on the [MASK] ."


@pytest.fixture
def open_view(open_page: Callable[..., AppTest], request: pytest.FixtureRequest) -> Callable[..., AppTest]:
    """Return a function that opens the page of a test module on the data root of a run, with parameters in the URL."""
    return partial(open_page, request.path.stem.removeprefix("test_"))


@pytest.fixture
def ask(open_page, tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Return a function that opens a link to the Query page with a text, by default on the tiny run without results.

    All answers are listed: those of the tiny run, whose weights are random, would be left out as noise.
    """
    monkeypatch.setattr(query_captions, "MAX_NOISE_PROBABILITY", 0.0)

    def open_link(text: str = TEXT, run: Run = tiny_run, **parameters: str) -> AppTest:
        app = open_page("query", run, text=text, **parameters)
        assert not app.exception
        return app

    return open_link


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Return a list that fills with the Figures that the page shows."""
    shown_figures, show = [], figures.show
    monkeypatch.setattr(figures, "show", lambda figure, **how: (shown_figures.append(figure), show(figure, **how)))
    return shown_figures


def box(app: AppTest, label: str):
    """Return the select box of this label."""
    return next(element for element in app.selectbox if element.label == label)


def words(table: pd.DataFrame) -> list[str]:
    """Return the words of a table of ranked answers."""
    return table["token"].tolist()


# === Two runs ===

PLANTED = 0.87654  # a score that only the twin has


@pytest.fixture
def two_runs(planted_root: Path, tmp_path: Path) -> Run:
    """Return the tiny run with its results, in a copy of `planted_root` that the test may change."""
    shutil.copytree(planted_root, tmp_path, dirs_exist_ok=True)
    return runs.read_run(tmp_path / "runs" / "tiny")


@pytest.fixture(scope="module")
def planted_root(tiny_results: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a data root with the tiny run, its results, and a copy "twin" with another dropout and one other score."""
    root = tmp_path_factory.mktemp("two")
    for name in (tiny_results.name, "twin"):
        run = Path(shutil.copytree(tiny_results.path, root / "runs" / name))
        shutil.copytree(tiny_results.results, root / "results" / name)
    other = runs.read_run(run)
    runs.write_run(other_design(other))
    scores = results.read_scores(other, "mask_prediction")
    for step, rows in scores.groupby("step"):
        new_scores = [
            Score("mask_prediction", PLANTED if step == 16 and row.group == "noun" else row.value, row.n, row.group)
            for row in rows.itertuples()
        ]
        results.write(checkpoint_at(other, int(step)), "mask_prediction", Findings(scores=new_scores))
    return root


def other_design(run: Run) -> Run:
    """Return the same run with a higher dropout."""
    run.config["hidden_dropout_prob"] = 0.5
    return run
