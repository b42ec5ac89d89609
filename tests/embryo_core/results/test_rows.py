"""Tests that a table whose content was changed is reported and never read as other numbers."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embryo_core import results
from embryo_core.errors import ResultsError
from embryo_core.measurements import Findings, Score
from embryo_core.results.parquet_files import write_checksum
from embryo_core.results.write import SUMMARIES
from tests.conftest import checkpoint_at
from tests.embryo_core.results.conftest import METRICS, find, put, truncated

SUMMED_UP = [summary.file for summary in SUMMARIES]
BREAKS = {"truncated": truncated, "empty": lambda _: b"", "foreign": lambda _: b"not parquet" * 99}


@pytest.mark.parametrize("damage", BREAKS.values(), ids=BREAKS.keys())
@pytest.mark.parametrize("compacted", [False, True])
def test_broken_table_is_named_with_command_to_repair_it(run, damage, compacted):
    """Every reader that needs the table reports it in one line."""
    for metric in METRICS:
        results.write(checkpoint_at(run, 8), metric, find(metric, 8))
    if compacted:
        results.compact(run)
    reads = {
        "scores": lambda: results.read_scores(run),
        "words": lambda: results.read_words(run, "mask_prediction"),
        "cloze": lambda: results.read_cloze(run, "P1"),
        "variants": lambda: results.read_variant_answers(run, "P1", "f"),
        "surprisals": lambda: results.read_surprisals(run),
        "grams": lambda: results.read_gram_matrices(run),
        "pairs": lambda: results.read_pair_scores(run, "p"),
        "attention": lambda: results.read_attention_steps(run),
        "probes": lambda: results.read_probes(run, "pos"),
        "task_scores": lambda: results.read_task_scores(run),
        "tuning": lambda: results.read_tuning(run, "rte"),
        "answers": lambda: results.read_answers(run, "rte"),
        "spans": lambda: results.read_spans(run, "squad"),
    }
    of_finetune = ("task_scores", "tuning", "answers", "spans")
    for path in sorted(path for path in run.results.rglob("*.parquet") if path.name not in SUMMED_UP):
        whole = path.read_bytes()
        path.write_bytes(damage(whole))
        with pytest.raises(ResultsError, match="cannot be read") as error:
            reads[path.stem]()
        message = str(error.value)
        command = "finetune" if path.stem in of_finetune else "evaluate"
        assert str(path) in message and f"run: python -m embryo_core {command} egg --overwrite" in message
        assert "\n" not in message
        path.write_bytes(whole)


def test_flipped_bit_never_changes_a_result(run):
    """With one wrong bit, the table is read as before or refused because of its checksum."""
    results.write(checkpoint_at(run, 8), "mask_prediction", find("mask_prediction", 8))
    results.compact(run)
    path, scores = run.results / "scores.parquet", results.read_scores(run)
    whole, reported = path.read_bytes(), 0
    for i in range(0, len(whole), 9):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ (1 << i % 8)]) + whole[i + 1 :])
        try:
            pd.testing.assert_frame_equal(results.read_scores(run), scores)
        except ResultsError:
            reported += 1
    assert reported > 100


def test_table_with_other_columns_is_refused(run):
    """A table of another program or version is not taken for results."""
    run.results.mkdir(parents=True)
    pd.DataFrame({"step": [1], "value": [0.5]}).to_parquet(run.results / "scores.parquet")
    write_checksum(run.results / "scores.parquet")
    with pytest.raises(ResultsError, match=r"scores\.parquet cannot be read"):
        results.read_scores(run)
    with pytest.raises(ResultsError, match=r"scores\.parquet cannot be read .it has 2 columns"):
        results.steps_by_metric(run)


def test_sparse_table_of_scores_is_refused(run, monkeypatch):
    """If every step has another group, 20 rows would become a table of 400 cells."""
    for step in range(20):
        results.write(checkpoint_at(run, step), "m", Findings(scores=[Score("m", 0.5, 1, f"group {step}")]))
    monkeypatch.setattr("embryo_core.results.checks.MAX_CELLS", 399)
    with pytest.raises(ResultsError, match="20 rows would be a table of 400 cells"):
        results.read_scores(run)


@pytest.mark.parametrize("compacted", [False, True])
def test_duplicate_key_is_refused(run, compacted):
    """A curve or a table has no place for a second row; missing values count as part of a key."""
    results.write(checkpoint_at(run, 8), "mask_prediction", find("mask_prediction", 8))
    if compacted:
        results.compact(run)
    (path,) = run.results.rglob("scores.parquet")
    once = pq.read_table(path)
    put(path, pa.concat_tables([once, once]))
    with pytest.raises(ResultsError, match="two rows have the same metric, step, layer, group"):
        results.read_scores(run)
