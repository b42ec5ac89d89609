"""Tests that results are complete or absent, and none is lost, if writers are killed or work concurrently."""

import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from embryo_core import results
from tests.conftest import checkpoint_at
from tests.embryo_core.results.conftest import find, make_run, tree

# === Killed writers ===


def begin(root: Path) -> None:
    """Write compacted results of step 0, with a newer pending part of the same step."""
    run = make_run(root)
    for metric in ("mask_prediction", "attention"):
        results.write(checkpoint_at(run, 0), metric, find(metric, 0), {"data": "one"}, {})
    results.compact(run)
    results.write(checkpoint_at(run, 0), "mask_prediction", find("mask_prediction", 0, seed=1), {"data": "one"}, {})


def work(root: Path) -> None:
    """Do what an evaluation does: skip done steps, write the rest, overwrite a metric of other data, and compact."""
    run = make_run(root)
    if 8 not in results.steps_by_metric(run)["attention"]:
        results.write(checkpoint_at(run, 8), "attention", find("attention", 8), {"data": "one"}, {})
    findings = find("mask_prediction", 0, seed=2)
    results.write(checkpoint_at(run, 0), "mask_prediction", findings, {"data": "other"}, {}, overwrite=True)
    results.compact(run)


def work_and_die(root: Path, operation: int) -> None:
    """Do the work, but be killed at the `operation`-th file operation or return from a pyarrow writer."""
    seen = 0

    def count() -> None:
        nonlocal seen
        seen += 1
        if seen == operation:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(event: str, arguments: tuple) -> None:
        on_files = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.listdir", "shutil.rmtree"}
        if event in on_files and str(root) in str(arguments[0]):
            count()

    def profile(frame, event: str, argument: object) -> None:
        writer = frame.f_code.co_filename.endswith(os.path.join("pyarrow", "parquet", "core.py"))
        if event == "return" and writer and frame.f_code.co_name in {"__init__", "write_table", "close"}:
            count()

    sys.addaudithook(audit)
    sys.setprofile(profile)
    work(root)


@pytest.fixture(scope="module")
def context():
    """Return a context whose processes are forked from one that has imported the store and has no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["embryo_core.results", __name__])
    return context


@pytest.fixture
def begun_root(tmp_path: Path) -> Path:
    """Return a root with results to copy for each kill."""
    begin(tmp_path / "begun")
    return tmp_path / "begun"


@pytest.fixture
def whole(begun_root: Path, tmp_path: Path) -> dict[str, bytes]:
    """Return the files after the work was done without a kill."""
    shutil.copytree(begun_root, tmp_path / "whole")
    work(tmp_path / "whole")
    return tree(tmp_path / "whole")


def assert_evaluations_are_whole(root: Path) -> None:
    """Check that scores, words and maps of each finished evaluation come from one `find`, never from a mixture."""
    run = make_run(root)
    for step in results.steps_by_metric(run)["mask_prediction"]:
        scores = results.read_scores(run, "mask_prediction")
        words = results.read_words(run, "mask_prediction", step=step)
        values = set(scores[scores["step"] == step]["value"]), dict(zip(words["word"], words["correct"]))
        written = [find("mask_prediction", step, seed) for seed in (0, 1, 2)]
        assert values in [({s.value for s in g.scores}, {w.word: w.correct for w in g.words}) for g in written]
    assert 0 in results.steps_by_metric(run)["attention"]
    for step in results.steps_by_metric(run)["attention"]:
        weights, _ = results.read_attention_step(run, step)
        for head_map in find("attention", step).attention:
            np.testing.assert_array_equal(
                weights[head_map.layer - 1, head_map.head - 1], head_map.weights.astype(np.float16)
            )


@pytest.mark.slow
def test_writer_killed_at_any_operation_resumes_to_same_files(begun_root, whole, tmp_path, context):
    """SIGKILL comes at every third file operation; what is left is complete, and a rerun gives the same bytes."""
    for operation in range(1, 1000, 3):
        root = Path(shutil.copytree(begun_root, tmp_path / "killed"))
        process = context.Process(target=work_and_die, args=(root, operation))
        process.start()
        process.join()
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        assert_evaluations_are_whole(root)
        work(root)
        assert tree(root) == whole, f"killed at operation {operation}"
        shutil.rmtree(root)
    assert operation > 40 and tree(root) == whole


def test_writer_killed_at_random_times_resumes_to_same_files(begun_root, whole, tmp_path, context):
    """A kill by time also happens while a file is half written."""
    chance = random.Random(5)
    for i in range(5):
        root = Path(shutil.copytree(begun_root, tmp_path / f"killed{i}"))
        process = context.Process(target=work, args=(root,))
        process.start()
        time.sleep(0.005 + 0.1 * chance.random())
        process.kill()
        process.join()
        assert_evaluations_are_whole(root)
        work(root)
        assert tree(root) == whole


def test_temporary_tables_of_killed_writer_are_removed(tmp_path):
    """The next compaction removes them, whatever it writes; a file with an unknown name is kept."""
    run = make_run(tmp_path)
    results.write(checkpoint_at(run, 0), "attention", find("attention", 0))
    results.compact(run)
    whole = tree(run.results)
    for name in ("scores.parquet.tmp", "facts.parquet.sha256.tmp", "sources.json.tmp", "notes.tmp"):
        (run.results / name).write_text("half")
    results.compact(run)
    assert (run.results / "notes.tmp").read_text() == "half"
    (run.results / "notes.tmp").unlink()
    assert tree(run.results) == whole


# === Concurrent processes ===


def write_many(root: Path, metric: str) -> None:
    """Write twelve steps of a metric, and compact after every third."""
    run = make_run(root)
    for step in range(12):
        results.write(checkpoint_at(run, step), metric, find(metric, step))
        if step % 3 == 2:
            results.compact(run)


def test_concurrent_writers_and_reader_lose_nothing(tmp_path, context):
    """Two processes write and compact the same run while a third reads; the files equal those of a single process."""
    run = make_run(tmp_path)
    metrics = ("mask_prediction", "token_reconstruction")
    processes = [context.Process(target=write_many, args=(tmp_path, metric)) for metric in metrics]
    for process in processes:
        process.start()
    seen = 0
    while any(process.is_alive() for process in processes):
        count = len(results.read_scores(run))
        assert count >= seen and count % 4 == 0
        seen = count
    assert [process.exitcode for process in processes] == [0, 0]
    results.compact(run)
    alone = make_run(tmp_path / "alone")
    for metric in metrics:
        write_many(tmp_path / "alone", metric)
    results.compact(alone)
    assert tree(alone.results) == tree(run.results)
