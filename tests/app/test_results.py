"""Tests of cached reads of results, which see a new evaluation at once."""

from app import results
from embryo_core import results as store
from embryo_core.figures import overview
from embryo_core.measurements import Findings, Score
from embryo_core.types import Run
from tests.conftest import checkpoint_at


def test_new_evaluation_invalidates_cached_scores(own_run: Run) -> None:
    """The next read returns scores that were written, replaced or compacted after the last one."""

    def write(value: float) -> None:
        score = Score("mask_prediction", value, 10, "noun")
        store.write(checkpoint_at(own_run, 8), "mask_prediction", Findings(scores=[score]))

    assert results.scores(own_run).empty
    for value in (0.1, 0.2):
        write(value)
        assert list(results.scores(own_run, "mask_prediction")["value"]) == [value]
    store.compact(own_run)
    assert list(results.scores(own_run)["value"]) == [0.2]
    write(0.3)
    assert list(results.scores(own_run)["value"]) == [0.3]


def test_growing_log_is_read_again(own_run: Run) -> None:
    """The next read has the row that pretraining appended."""
    rows = len(overview.training_log(own_run))
    with (own_run.path / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"split": "train", "step": 20, "loss": 5.0}\n')
    assert len(overview.training_log(own_run)) == rows + 1


def test_new_evaluation_invalidates_derived_head_scores(own_run: Run) -> None:
    """The table of head scores that figures use is cached too, and computed again after an evaluation."""
    assert results.head_scores(own_run).empty
    for value in (0.1, 0.2):
        score = Score("head_behaviour_same", value, 10, group="1", layer=1)
        store.write(checkpoint_at(own_run, 8), "head_behaviour", Findings(scores=[score]))
        assert list(results.head_scores(own_run)["value"]) == [value]


def test_runs_with_equal_names_have_separate_caches(tiny_results: Run, own_run: Run) -> None:
    """Two runs in different roots share a name; only one of them has results."""
    assert tiny_results.name == own_run.name
    assert not results.scores(tiny_results).empty and results.scores(own_run).empty
