"""Tests of an evaluation that cannot write: a full disk, or another evaluation on other data, stops it at once."""

import errno

import pyarrow.parquet as pq
import pytest

from embryo_core import results, runs
from embryo_core.cli import main
from embryo_core.errors import DatasetMismatch
from embryo_core.evaluation import Report, evaluate
from embryo_core.metrics.word_prediction import TokenReconstruction
from embryo_core.types import Run
from tests.conftest import SAMPLE_DATA

NAME = "token_reconstruction"
TREEBANK = {"treebank": SAMPLE_DATA["treebank"]}


def test_full_disk_stops_the_evaluation(own_run: Run, monkeypatch, capsys):
    """After the first result that cannot be written nothing more is computed, and written results stay."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    evaluate(own_run, TREEBANK, [NAME], steps=[0], limit=3)
    tried = []

    def write(*_, **__) -> None:
        tried.append(1)
        raise OSError(errno.ENOSPC, "No space left on device")

    command = ["evaluate", own_run.name, "--treebank", str(TREEBANK["treebank"]), "--limit", "3"]
    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", write)
        assert main(command) == 2
    output = capsys.readouterr().err
    last = output.splitlines()[-1]
    assert last.startswith("Error: ") and "No space left on device" in last and "continues from there" in last
    assert len(tried) == 1 and "Traceback" not in output
    assert results.steps_by_metric(own_run)[NAME] == {0}
    assert main([*command, "--metrics", NAME]) == 0
    assert results.steps_by_metric(own_run)[NAME] == {0, 8, 16}


def test_only_one_of_two_concurrent_evaluations_continues(own_run: Run, monkeypatch):
    """Both find no results; one records its data and writes, and the other is refused at its first write."""
    read = TokenReconstruction.read

    def read_last(self, *arguments):
        data = read(self, *arguments)
        with monkeypatch.context() as patch:
            patch.setattr(TokenReconstruction, "read", read)
            evaluate(own_run, TREEBANK, [NAME], steps=[0], limit=2)
        return data

    monkeypatch.setattr(TokenReconstruction, "read", read_last)
    with pytest.raises(DatasetMismatch, match=r"limit 2\), received .*limit 3\); give the same data"):
        evaluate(own_run, TREEBANK, [NAME], limit=3)
    assert results.steps_by_metric(own_run)[NAME] == {0}
    assert results.read_sources(own_run)[NAME]["limit"] == 2


@pytest.mark.parametrize("overwrite", [False, True])
def test_results_of_two_sets_of_data_are_never_mixed(own_run: Run, monkeypatch, overwrite: bool):
    """An evaluation whose data another one replaced stops at its next write, even with --overwrite."""
    write = results.write
    alone = runs.read_run(own_run.path)

    def write_after_another(checkpoint, *arguments) -> None:
        if checkpoint.step == 8:
            with monkeypatch.context() as patch:
                patch.setattr(results, "write", write)
                evaluate(own_run, TREEBANK, [NAME], steps=[16], limit=2, overwrite=True)
        write(checkpoint, *arguments)

    monkeypatch.setattr(results, "write", write_after_another)
    with pytest.raises(DatasetMismatch, match=r"limit 2\), received .*limit 3\)"):
        evaluate(own_run, TREEBANK, [NAME], limit=3, overwrite=overwrite)
    monkeypatch.setattr(results, "write", write)
    assert results.steps_by_metric(own_run)[NAME] == {16} and results.read_sources(own_run)[NAME]["limit"] == 2
    scores = results.read_scores(own_run)
    assert evaluate(alone, TREEBANK, [NAME], steps=[16], limit=2, overwrite=True) == Report(computed=1)
    assert results.read_scores(own_run).equals(scores)
