"""Tests that writing replaces earlier results, and that compacted files do not depend on the order of work."""

import random
import sys

import pytest

from embryo_core import results, runs
from embryo_core.errors import DatasetMismatch, ResultsError
from embryo_core.measurements import Findings, Score
from embryo_core.results.rows import read_table, steps_of_file
from embryo_core.results.tables import CLOZE, TABLES
from embryo_core.results.write import replace_table
from tests.conftest import checkpoint_at
from tests.embryo_core.results.conftest import METRICS, STEPS, TUNED, find, make_run, tree, truncated


def test_rerun_replaces_all_rows_of_its_step(run):
    """Rows that the new findings no longer have are removed, from pending and from compacted results."""
    for step in STEPS:
        results.write(checkpoint_at(run, step), "mask_prediction", find("mask_prediction", step))
    results.compact(run)
    again = Findings(scores=[Score("mask_prediction", 0.125, 4, "all")])
    for compacted in (False, True):
        results.write(checkpoint_at(run, 2), "mask_prediction", again)
        if compacted:
            results.compact(run)
        scores = results.read_scores(run)
        assert scores[scores["step"] == 2]["value"].to_list() == [0.125]
        assert len(scores) == 4 * 3 + 1
        assert results.read_words(run, "mask_prediction", step=2).empty
        assert len(results.read_words(run, "mask_prediction")) == 36
        assert results.steps_by_metric(run)["mask_prediction"] == set(STEPS)


def test_table_without_rows_is_removed(run):
    """When a rerun finds no words, compaction removes the table of words."""
    results.write(checkpoint_at(run, 2), "mask_prediction", find("mask_prediction", 2))
    results.compact(run)
    results.write(
        checkpoint_at(run, 2), "mask_prediction", Findings(scores=[Score("mask_prediction", 0.125, 4, "all")])
    )
    results.compact(run)
    assert sorted(tree(run.results)) == ["scores.parquet", "scores.parquet.sha256"]


def test_files_do_not_depend_on_order_of_writing(tmp_path):
    """Evaluations with the same findings give the same bytes, whatever the order of work and of compactions."""
    one, other = make_run(tmp_path / "one"), make_run(tmp_path / "other")
    work = [(metric, step) for step in STEPS for metric in METRICS]
    for metric, step in work:
        results.write(checkpoint_at(one, step), metric, find(metric, step))
    results.compact(one)
    for i, (metric, step) in enumerate(random.Random(1).sample(work, len(work))):
        results.write(checkpoint_at(other, step), metric, find(metric, step, seed=9))
        results.write(checkpoint_at(other, step), metric, find(metric, step))
        if i % 5 == 0:
            results.compact(other)
    results.compact(other)
    assert tree(one.results) == tree(other.results)
    names = (*(table.name for table in TABLES), "facts", "counts", "reached", "reached_spans", "positions")
    expected = {f"{name}.parquet{end}" for name in names for end in ("", ".sha256")}
    assert set(tree(one.results)) == expected


def test_sources_are_stored_per_metric(run):
    """A metric's description of its data replaces the earlier one and does not change those of other metrics."""
    for metric, name, sentences in (("attention", "a", 7), ("mask_prediction", "b", 3), ("attention", "c", 9)):
        results.note_dataset(run, metric, {"data": f"{name}.conllu"}, {"sentences": sentences})
    assert results.read_sources(run) == {
        "attention": {"data": "c.conllu", "sentences": 9},
        "mask_prediction": {"data": "b.conllu", "sentences": 3},
    }


def test_results_of_other_data_require_overwrite(run):
    """Without it, and if the new findings are invalid, results and sources stay; other metrics are never affected."""
    for metric in ("attention", "mask_prediction"):
        results.write(checkpoint_at(run, 8), metric, find(metric, 8), {"sha256": "a" * 64}, {"sentences": 7})
    noted, other = results.read_sources(run), {"data": "b.conllu", "sha256": "b" * 64}
    with pytest.raises(DatasetMismatch, match=r"are of data \(sha256 aaaaaaaaaaaa.*received b.conllu"):
        results.note_dataset(run, "attention", other, {})
    for summary in (None, {}):
        with pytest.raises(DatasetMismatch):
            results.write(checkpoint_at(run, 16), "attention", find("attention", 16), other, summary)
    assert results.steps_by_metric(run)["attention"] == {8} and results.read_sources(run) == noted
    with pytest.raises(ResultsError):
        results.write(checkpoint_at(run, 16), "attention", Findings(), other, {}, overwrite=True)
    assert results.steps_by_metric(run)["attention"] == {8} and results.read_sources(run) == noted
    results.write(checkpoint_at(run, 16), "attention", find("attention", 16), other, {}, overwrite=True)
    assert results.steps_by_metric(run)["attention"] == {16} and results.steps_by_metric(run)["mask_prediction"] == {8}
    assert results.read_sources(run) == noted | {"attention": other}


@pytest.mark.parametrize("table", ["scores", "words", "cloze"])
def test_broken_table_stops_compaction_without_loss(run, table):
    """The broken table and all pending evaluations are kept; removing it and evaluating again repairs the results."""
    results.write(checkpoint_at(run, 0), "world_knowledge", find("world_knowledge", 0))
    results.write(checkpoint_at(run, 0), "mask_prediction", find("mask_prediction", 0))
    results.compact(run)
    results.write(checkpoint_at(run, 8), "world_knowledge", find("world_knowledge", 8))
    path = run.results / f"{table}.parquet"
    path.write_bytes(truncated(path.read_bytes()))
    broken = path.read_bytes()
    with pytest.raises(ResultsError, match=f"{table}.parquet cannot be read"):
        results.compact(run)
    assert path.read_bytes() == broken and (run.results / "parts" / "world_knowledge" / "step8").is_dir()
    path.unlink()
    path.with_name(path.name + ".sha256").unlink()
    for metric, step in (("world_knowledge", 0), ("mask_prediction", 0), ("world_knowledge", 8)):
        results.write(checkpoint_at(run, step), metric, find(metric, step))
    results.compact(run)
    assert len(results.read_scores(run)) == 14 and len(results.read_cloze(run)) == 20


def test_results_are_stored_next_to_runs(run):
    """Results of a run are in the same data root as the run."""
    results.write(checkpoint_at(run, 0), "m", Findings(scores=[Score("m", 1.0, 1)]))
    assert (run.path.parent.parent / "results" / "egg" / "parts" / "m" / "step0" / "scores.parquet").is_file()
    assert runs.list_runs() == []


def test_steps_added_to_long_series_stay_pending(run, tmp_path, monkeypatch):
    """Pending steps, answers to facts included, are read as usual; finally the tables equal those written at once."""
    monkeypatch.setattr(sys.modules["embryo_core.results.write"], "STEPS_PER_PENDING", 2)
    work = [(metric, step) for step in STEPS for metric in ("mask_prediction", "world_knowledge")]
    later = [(metric, step) for metric in ("mask_prediction", "world_knowledge") for step in (9, 16)]
    for metric, step in work:
        results.write(checkpoint_at(run, step), metric, find(metric, step))
    results.compact(run)
    for (metric, step), waits in zip(later, (True, False) * 2, strict=True):
        before = tree(run.results)
        results.write(checkpoint_at(run, step), metric, find(metric, step))
        results.compact(run)
        assert (run.results / "parts").is_dir() == waits
        assert {name: content for name, content in tree(run.results).items() if name in before} == before or not waits
        assert step in results.steps_by_metric(run)[metric] and step in set(results.read_scores(run)["step"])
    other = make_run(tmp_path / "other")
    for metric, step in (*work, *later):
        results.write(checkpoint_at(other, step), metric, find(metric, step))
    results.compact(other)
    assert tree(run.results) == tree(other.results)


def test_rewritten_table_is_identical(run):
    """A table that is read and written again has the same bytes and steps; without rows there is no file."""
    for metric, step in (
        ("world_knowledge", 8),
        ("attention", 2),
        ("world_knowledge", 0),
        (TUNED, 1),
        ("edge_probing", 0),
    ):
        results.write(checkpoint_at(run, step), metric, find(metric, step))
    results.compact(run)
    before = tree(run.results)
    for table in TABLES:
        replace_table(run, table, [read_table(run, table)])
    assert tree(run.results) == before
    assert steps_of_file(run, CLOZE) == {"world_knowledge": [0, 8]}
    replace_table(run, CLOZE, iter([CLOZE.schema.empty_table()]))
    assert steps_of_file(run, CLOZE) == {} and not (run.results / "cloze.parquet").exists()


def test_overwrite_discards_results_of_other_data_only(run):
    """Results are compared by the hash in sources.json; those of the same data and those of other metrics stay."""
    for metric in ("mask_prediction", "attention"):
        results.write(checkpoint_at(run, 2), metric, find(metric, 2), {"sha256": "a" * 64}, {})
    results.note_dataset(run, "mask_prediction", {"sha256": "a" * 64}, {"sentences": 7}, overwrite=True)
    assert results.steps_by_metric(run)["mask_prediction"] == {2}
    results.note_dataset(run, "mask_prediction", {"sha256": "b" * 64}, overwrite=True)
    assert not results.steps_by_metric(run)["mask_prediction"] and results.steps_by_metric(run)["attention"] == {2}
    assert results.read_sources(run) == {"attention": {"sha256": "a" * 64}}


def test_incomparable_evaluations_are_found_by_sources():
    """They differ from the task's first seed in identifying fields, or have no sources while other seeds have."""
    sources = {
        "finetuning:a:1": {"sha256": "x", "learning_rate": 1e-4, "note": "one"},
        "finetuning:a:2": {"sha256": "x", "learning_rate": 2e-4},
        "finetuning:a:10": {"sha256": "x", "learning_rate": 1e-4, "note": "ten"},
    }
    names = [*sources, "finetuning:a:11", "finetuning:b:1", "finetuning:b:2"]
    assert results.incomparable_evaluations(names, sources) == ["finetuning:a:2", "finetuning:a:11"]
    assert results.incomparable_evaluations(names, {}) == []
