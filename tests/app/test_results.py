"""Cached reads see a new evaluation at once."""

from app import results
from embryo_core import results as store
from embryo_core.figures import overview
from embryo_core.types import Findings, Run, Score
from tests.conftest import at
from tests.probed import write_probes


def test_a_rerun_of_evaluate_is_seen(own_run: Run) -> None:
    """Scores written, replaced or compacted after a read are those of the next read."""

    def write(value: float) -> None:
        score = Score("mask_prediction", value, 10, "noun")
        store.write(at(own_run, 8), "mask_prediction", Findings(scores=[score]))

    assert results.scores(own_run).empty
    for value in (0.1, 0.2):
        write(value)
        assert list(results.scores(own_run, "mask_prediction")["value"]) == [value]
    store.compact(own_run)
    assert list(results.scores(own_run)["value"]) == [0.2]
    write(0.3)
    assert list(results.scores(own_run)["value"]) == [0.3]


def test_the_training_of_a_probe_is_read_by_itself(own_run: Run) -> None:
    """Of one task, layer and step, the control beside it; one that was not trained has no rows."""
    write_probes(own_run)
    table = results.probes(own_run, "srl", 2, 8)
    assert len(table) == 8 and set(table["control"]) == {False, True}
    assert set(map(tuple, table[["task", "layer", "step"]].values)) == {("srl", 2, 8)}
    assert results.probes(own_run, "coref", 2, 8).empty


def test_the_log_is_read_again_when_it_grows(own_run: Run) -> None:
    """A row that pretraining appends is in the next read."""
    rows = len(overview.training_log(own_run))
    with (own_run.path / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"split": "train", "step": 20, "loss": 5.0}\n')
    assert len(overview.training_log(own_run)) == rows + 1


def test_what_is_made_of_results_is_made_again_when_they_change(own_run: Run) -> None:
    """The scores of heads as the figures take them follow the next evaluation."""
    assert results.head_scores(own_run).empty
    for value in (0.1, 0.2):
        score = Score("head_behaviour_same", value, 10, group="1", layer=1)
        store.write(at(own_run, 8), "head_behaviour", Findings(scores=[score]))
        assert list(results.head_scores(own_run)["value"]) == [value]


def test_runs_of_one_name_in_two_roots_are_reported_apart(tiny_results: Run, own_run: Run) -> None:
    """What is kept for one is not given for the other."""
    assert tiny_results.name == own_run.name
    assert not results.scores(tiny_results).empty and results.scores(own_run).empty
