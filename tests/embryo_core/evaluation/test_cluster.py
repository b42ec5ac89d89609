"""Tests of evaluation on Ray: it writes the same bytes as one process, even if workers or nodes die."""

import importlib.util
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from embryo_core import runs
from embryo_core.errors import ConfigError, CorpusError
from embryo_core.evaluation import Report, evaluate
from embryo_core.evaluation import cluster as on_workers
from embryo_core.evaluation.cluster import run_on_ray
from embryo_core.evaluation.evaluator import Compute, Outcomes
from embryo_core.evaluation.plan import Work
from embryo_core.finetune import task_specs
from embryo_core.finetune.finetuning import finetune
from embryo_core.metrics.attention import Attention
from embryo_core.types import Checkpoint, Run
from tests.conftest import SAMPLE_DATA
from tests.embryo_core.evaluation.test_evaluator import files
from tests.embryo_core.finetune.conftest import write_cola, write_pairs

METRICS = ["token_reconstruction", "attention", "head_behaviour", "world_knowledge"]
ALL = Report(computed=3 * len(METRICS))

with_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start a Ray cluster of one node with one CPU on this machine; tests join and leave it."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # this host's address is 127.0.0.1, as on those systems
    from ray.cluster_utils import Cluster

    new_cluster = Cluster(initialize_head=True, head_node_args=node())
    yield new_cluster
    new_cluster.shutdown()


def compute_on(cluster: Any) -> Compute:
    """Return a function that computes on this cluster."""
    return partial(run_on_ray, address=cluster.address)


def node() -> dict:
    """Return the options of a node."""
    return {"num_cpus": 1, "include_dashboard": False, "node_ip_address": "127.0.0.1"}


@pytest.fixture
def expected(own_run: Run) -> dict[str, bytes]:
    """Return the files of an evaluation without Ray, and remove them."""
    assert evaluate(own_run, SAMPLE_DATA, METRICS, limit=3) == ALL
    contents = files(own_run)
    shutil.rmtree(own_run.results)
    return contents


def test_worker_discards_fetched_weights_after_computing(own_run: Run, monkeypatch: pytest.MonkeyPatch):
    """Weights discarded earlier would be fetched again and left in the cache."""
    order = []

    def ahead(checkpoints: Sequence[Checkpoint], discard: bool) -> Iterator[tuple[Checkpoint, None]]:
        yield from ((checkpoint, None) for checkpoint in checkpoints)
        order.append(f"discarded: {discard}")

    class Counting:
        def evaluate(self, checkpoint: Checkpoint, requests: Sequence[Any], missing: None) -> Iterator[str]:
            yield "found"
            order.append("computed")

    monkeypatch.setattr(on_workers, "prefetch_checkpoints", ahead)
    monkeypatch.setattr(on_workers, "_evaluator", lambda device, dtype: Counting())
    work = runs.checkpoint(own_run, 8), []
    assert on_workers._evaluate_in_worker(work, "cpu", "float32", discard=True) == ["found"]
    assert order == ["computed", "discarded: True"]


@pytest.mark.slow
@with_ray
def test_one_and_two_nodes_write_the_files_of_one_process(cluster, own_run, expected):
    """Sources, scores, words, maps and facts are identical."""
    assert evaluate(own_run, SAMPLE_DATA, METRICS, limit=3, compute=compute_on(cluster)) == ALL
    assert files(own_run) == expected
    second = cluster.add_node(**node())
    try:
        again = evaluate(own_run, SAMPLE_DATA, METRICS, limit=3, overwrite=True, compute=compute_on(cluster))
    finally:
        cluster.remove_node(second)
    assert again == ALL and files(own_run) == expected


@pytest.mark.slow
@with_ray
def test_killed_node_loses_no_result(cluster, own_run, expected):
    """The other node computes the missing checkpoints, and no result is written twice."""
    second = cluster.add_node(**node())

    def compute(pending: Sequence[Work]) -> Outcomes:
        for number, outcome in enumerate(run_on_ray(pending, cluster.address)):
            if number == 0:
                cluster.remove_node(second, allow_graceful=False)
            yield outcome

    assert evaluate(own_run, SAMPLE_DATA, METRICS, limit=3, compute=compute) == ALL
    assert files(own_run) == expected


@pytest.mark.slow
@with_ray
def test_fine_tuning_on_ray_writes_the_files_of_one_process(cluster, own_run, tmp_path, monkeypatch):
    """Two tasks use MNLI's weights and one does not; the weights are removed once all are done."""
    for task, settings in task_specs.PAPER_SETTINGS.items():
        monkeypatch.setitem(task_specs.PAPER_SETTINGS, task, replace(settings, updates=3, warmup=1, batch=8))
    folders = {
        "mnli": write_pairs(tmp_path / "mnli", 3, "validation_matched"),
        "rte": write_pairs(tmp_path / "rte", 2),
        "cola": write_cola(tmp_path / "cola"),
    }
    assert finetune(own_run, folders, [0, 16], protocol="paper", jobs=1) == Report(computed=6)
    expected = files(own_run)
    shutil.rmtree(own_run.results)
    assert finetune(own_run, folders, [0, 16], protocol="paper", ray=cluster.address) == Report(computed=6)
    assert files(own_run) == expected
    assert not list((own_run.path.parents[1] / "cache").rglob("*.safetensors"))


class Dying(Attention):
    """Metric that kills its process at step 8."""

    def compute(self, model, data):
        if model.checkpoint.step == 8:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().compute(model, data)


@pytest.mark.slow
@with_ray
def test_checkpoint_that_kills_its_workers_is_given_up(cluster, own_run, monkeypatch):
    """The other checkpoints are kept; the failure names the step and says that the same command continues."""
    monkeypatch.setattr("embryo_core.metrics.METRICS", [Dying()])
    treebank = {"treebank": SAMPLE_DATA["treebank"]}
    report = evaluate(own_run, treebank, limit=3, compute=compute_on(cluster))
    assert report.computed == 2
    (failure,) = report.failures
    assert failure.startswith("Step 8 ") and "4 workers" in failure and "same command" in failure


@pytest.mark.slow
@with_ray
def test_worker_errors_are_reported_like_local_ones(cluster, own_run, tmp_path):
    """The errors are a treebank that cannot be read and a damaged checkpoint."""
    (tmp_path / "bad.conllu").write_text("nothing\n")
    with pytest.raises(CorpusError, match=r"bad\.conllu, line 1"):
        evaluate(own_run, {"treebank": tmp_path / "bad.conllu"}, ["attention"], compute=compute_on(cluster))
    assert not own_run.results.exists()
    (runs.checkpoint(own_run, 8).path / "model.safetensors").unlink()
    report = evaluate(own_run, SAMPLE_DATA, ["attention"], limit=3, compute=compute_on(cluster))
    assert report.computed == 2 and "model.safetensors does not exist" in report.failures[0]


@with_ray
@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_unreachable_cluster_is_reported_at_once(own_run, monkeypatch, tmp_path, address):
    """The error gives a remedy, also for a user with a token, and nothing is written."""
    monkeypatch.setattr("ray.init", lambda **_: pytest.fail("Ray tries for minutes"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    answer = rf"No Ray cluster answers at '{address}' .* ray start --head\."
    with pytest.raises(ConfigError, match=f"{answer}$"):
        evaluate(own_run, SAMPLE_DATA, ["attention"], limit=3, compute=partial(run_on_ray, address=address))
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("a token")
    with pytest.raises(ConfigError, match=f"{answer} .* put RAY_AUTH_MODE=token before the command"):
        evaluate(own_run, SAMPLE_DATA, ["attention"], limit=3, compute=partial(run_on_ray, address=address))
    assert not own_run.results.exists()


def test_missing_ray_names_the_command_that_installs_it(own_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install -r requirements-cluster\.txt"):
        evaluate(own_run, SAMPLE_DATA, ["attention"], limit=3, compute=partial(run_on_ray, address="127.0.0.1:6379"))
