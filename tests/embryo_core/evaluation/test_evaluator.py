"""Tests of evaluation: it computes what is missing, skips what is broken, mixes no data, and survives being killed."""

import json
import lzma
import multiprocessing
import os
import shutil
import signal
from dataclasses import replace
from functools import partial

import pytest
import torch
from transformers import ElectraConfig, ElectraForPreTraining

from embryo_core import corpora, results, runs
from embryo_core.engine.capabilities import MASKED_LANGUAGE_MODEL
from embryo_core.engine.model import Model
from embryo_core.errors import CorpusError, MissingCapability, ResultsError, UnknownMetric, UnknownStep
from embryo_core.evaluation import Report
from embryo_core.evaluation import evaluate as evaluate_all
from embryo_core.metrics import METRICS
from embryo_core.metrics.head_behaviour import HeadBehaviour
from embryo_core.results.tables import TABLES
from embryo_core.types import Run
from tests.conftest import SAMPLE_DATA, copy_run, shorten_probing

LACKING = {"replaced_tokens", "next_words"}  # no ALBERT has these capabilities
NAMES = [metric.name for metric in METRICS if not LACKING & metric.needs]
TREEBANK, PROBING = SAMPLE_DATA["treebank"], SAMPLE_DATA["probing"]
evaluate = partial(evaluate_all, limit=3)  # a few sentences, facts and examples

pytestmark = pytest.mark.usefixtures("short_probing")


def files(run: Run) -> dict[str, bytes]:
    """Return the content of every file of a run's results by its path."""
    return {str(p.relative_to(run.results)): p.read_bytes() for p in sorted(run.results.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def evaluated_run(tiny_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a copy of the tiny run evaluated on all data at once; tests only read it."""
    run = copy_run(tiny_run, tmp_path_factory.mktemp("evaluated"))
    with pytest.MonkeyPatch.context() as patch:
        shorten_probing(patch)
        assert evaluate(run, SAMPLE_DATA) == Report(computed=3 * len(NAMES))
    return run


def test_all_metrics_are_computed_at_all_checkpoints(evaluated_run):
    """By default every metric is computed and compacted, and its data are recorded."""
    assert all(results.steps_by_metric(evaluated_run)[name] == {0, 8, 16} for name in NAMES)
    own = {table.name for table in TABLES if table.command == "evaluate"} - {"variants"}  # no fact is right
    written = ["facts", "counts", "positions", *own]
    assert set(files(evaluated_run)) == {"sources.json"} | {
        f"{name}.parquet{end}" for name in written for end in ("", ".sha256")
    }
    noted = results.read_sources(evaluated_run)["mask_prediction"]
    assert (noted["data"], noted["limit"], noted["sentences"]) == ("treebank.conllu", 3, 3)
    assert "3 sentences of treebank.conllu" in noted["note"]


def test_finished_results_are_skipped(own_run):
    """A second evaluation computes nothing, needs no data, and leaves every byte as it was."""
    evaluate(own_run, SAMPLE_DATA, ["attention"], steps=[8])
    assert evaluate(own_run, SAMPLE_DATA, ["attention"]) == Report(computed=2, done_before=1)
    before = files(own_run)
    assert evaluate(own_run, {}, ["attention"]) == Report(done_before=3)
    assert files(own_run) == before


def test_order_of_evaluations_does_not_matter(own_run, evaluated_run):
    """Metric by metric and step by step gives the files of one evaluation, byte for byte."""
    for name in reversed(NAMES):
        evaluate(own_run, SAMPLE_DATA, [name], steps=[16])
    for step in (0, 8):
        evaluate(own_run, SAMPLE_DATA, NAMES[::2], steps=[step])
        evaluate(own_run, SAMPLE_DATA, NAMES[1::2], steps=[step])
    assert files(own_run) == files(evaluated_run)


def test_overwrite_computes_again(own_run):
    """The repeated evaluation writes the same files."""
    evaluate(own_run, SAMPLE_DATA, ["mask_prediction"])
    before = files(own_run)
    assert evaluate(own_run, SAMPLE_DATA, ["mask_prediction"], overwrite=True).computed == 3
    assert files(own_run) == before


# === Broken checkpoints, wrong requests ===


def test_broken_checkpoints_are_reported_and_skipped(own_run):
    """A truncated file and an unreadable manifest cost only their own step; after a repair a rerun fills the gap."""
    weights = runs.checkpoint(own_run, 8).path / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:1000])
    (runs.checkpoint(own_run, 0).path / "manifest.json").write_text("{")
    report = evaluate(own_run, SAMPLE_DATA, ["mask_prediction"])
    assert report.computed == 1
    assert len(report.failures) == 2
    assert "step0" in report.failures[0] and "is not valid" in report.failures[0]
    assert "step8" in report.failures[1] and "truncated" in report.failures[1]
    weights.write_bytes(whole)
    assert evaluate(own_run, SAMPLE_DATA, ["mask_prediction"], steps=[8, 16]) == Report(computed=1, done_before=1)


def test_failing_metric_does_not_stop_the_others(own_run, monkeypatch):
    """The failure names the metric and the step."""

    def fail(*_):
        raise ArithmeticError("out of numbers")

    monkeypatch.setattr(METRICS[0], "compute", fail)
    report = evaluate(own_run, SAMPLE_DATA, steps=[8])
    assert report == Report(len(NAMES) - 1, 0, [f"Metric '{NAMES[0]}' failed at step 8: out of numbers"])


def test_metrics_with_a_shared_pass_fail_separately(own_run, monkeypatch):
    """Attentions are computed once for both metrics; if one fails, the other is computed alone."""
    batches = []
    attentions = Model.attentions
    monkeypatch.setattr(Model, "attentions", lambda *a: batches.append(1) or attentions(*a))
    evaluate(own_run, SAMPLE_DATA, ["attention"], steps=[8])
    once = len(batches)
    evaluate(own_run, SAMPLE_DATA, ["attention", "head_behaviour"], steps=[16])
    assert len(batches) == 2 * once

    def fail(*_):
        raise ArithmeticError("out of numbers")

    monkeypatch.setattr(HeadBehaviour, "observer", fail)
    report = evaluate(own_run, SAMPLE_DATA, ["attention", "head_behaviour"], steps=[0])
    assert report == Report(1, 0, ["Metric 'head_behaviour' failed at step 0: out of numbers"])


def test_treebank_is_read_once(own_run, monkeypatch):
    """All metrics that use the treebank share one reading for all three checkpoints."""
    reading = [metric for metric in METRICS if metric.source == "treebank" and metric.needs <= MASKED_LANGUAGE_MODEL]
    read = []
    read_treebank = corpora.read_treebank
    counted = "embryo_core.metrics.treebank_words.read_treebank"
    monkeypatch.setattr(counted, lambda path: read.append(path) or read_treebank(path))
    assert evaluate(own_run, {"treebank": TREEBANK}).computed == 3 * len(reading) >= 15
    assert read == [TREEBANK]


def test_unknown_names_and_steps_are_refused_before_writing(own_run):
    """The error suggests the nearest known name or step."""
    with pytest.raises(UnknownMetric, match="Did you mean 'attention'"):
        evaluate(own_run, SAMPLE_DATA, ["atention"])
    with pytest.raises(UnknownStep, match="nearest is 8"):
        evaluate(own_run, SAMPLE_DATA, steps=[9])
    assert not own_run.results.exists()


def test_run_without_checkpoints_is_reported(own_run):
    shutil.rmtree(own_run.path / "checkpoints")
    with pytest.raises(UnknownStep, match="has no checkpoint yet"):
        evaluate(own_run, SAMPLE_DATA)


def test_missing_data_name_the_fetch_command(own_run):
    """Facts do not come with the repository's code."""
    with pytest.raises(CorpusError, match="--lama PATH, or run: python -m embryo_core fetch lama"):
        evaluate(own_run, {}, ["world_knowledge"])


def test_metrics_are_chosen_by_capabilities(own_run, monkeypatch):
    """A model that predicts no words is evaluated on its attention; naming a metric that needs words is an error."""
    monkeypatch.setattr("embryo_core.engine.capabilities.checkpoint_capabilities", lambda _: frozenset({"attentions"}))
    assert evaluate(own_run, SAMPLE_DATA, steps=[8]) == Report(computed=2)
    assert set(results.read_sources(own_run)) == {"attention", "head_behaviour"}
    with pytest.raises(
        MissingCapability, match="'world_knowledge' needs masked_words or next_words, which no such checkpoint"
    ):
        evaluate(own_run, SAMPLE_DATA, ["attention", "world_knowledge"])


def test_discriminator_gets_metrics_of_states_and_attention(own_run):
    """ELECTRA's discriminator predicts no masked words, so metrics that need them are left out."""
    torch.manual_seed(1)
    sizes = {"vocab_size": 700, "hidden_size": 24, "embedding_size": 16, "intermediate_size": 48}
    model = ElectraForPreTraining(ElectraConfig(**sizes, num_hidden_layers=2, num_attention_heads=2))
    for checkpoint in runs.checkpoints(own_run):
        model.save_pretrained(checkpoint.path)
        runs.write_manifest(checkpoint.path, checkpoint.step, checkpoint.sequences, checkpoint.tokens)
    computed = {"attention", "head_behaviour", "edge_probing", "positions", "geometry"}
    assert evaluate(own_run, SAMPLE_DATA) == Report(computed=3 * len(computed))
    assert {name for name in NAMES if results.steps_by_metric(own_run)[name]} == computed
    assert list(results.read_attention(own_run, layer=2, head=2).steps) == [0, 8, 16]
    scores = results.read_scores(own_run, "edge_probing_f1")
    assert set(scores["layer"]) == {0, 1, 2} and scores["value"].between(0, 1).all()


def test_unreadable_config_fails_only_its_checkpoint(own_run):
    """Weights that cannot be read are handled the same way."""
    (own_run.path / "checkpoints" / "step8" / "config.json").write_text("{")
    report = evaluate(own_run, SAMPLE_DATA, ["token_reconstruction"], steps=[0, 8])
    assert report.computed == 1 and "config.json" in report.failures[0]


# === One set of data ===


def test_results_of_other_data_are_never_mixed_in(own_run):
    """Another limit or file needs --overwrite, which then replaces all steps, not only the requested ones."""
    names = ["token_reconstruction", "mask_prediction", "attention"]
    evaluate(own_run, SAMPLE_DATA, names[1:])
    evaluate(own_run, SAMPLE_DATA, names[:1], steps=[8])
    before = files(own_run)
    with pytest.raises(ResultsError, match=r"limit 3\), received .*limit 2\); give the same data, or --overwrite"):
        evaluate(own_run, SAMPLE_DATA, names, steps=[16], limit=2)
    assert files(own_run) == before
    evaluate(own_run, SAMPLE_DATA, ["mask_prediction"], steps=[16], overwrite=True, limit=2)
    assert results.steps_by_metric(own_run)["mask_prediction"] == {16}
    assert results.steps_by_metric(own_run)["attention"] == {0, 8, 16}
    assert results.read_sources(own_run)["mask_prediction"]["limit"] == 2


def test_compressed_treebank_counts_as_the_same_data(own_run, tmp_path):
    """Neither compression nor the file's name matters."""
    (tmp_path / "packed.conllu.xz").write_bytes(lzma.compress(TREEBANK.read_bytes()))
    evaluate(own_run, {"treebank": tmp_path / "packed.conllu.xz"}, ["attention"], steps=[8])
    assert evaluate(own_run, {"treebank": TREEBANK}, ["attention"]) == Report(computed=2, done_before=1)


def test_finished_metrics_need_no_data(own_run, tmp_path):
    """Other data do not matter to finished metrics, but a given path has to exist; pending metrics continue."""
    evaluate(own_run, {"treebank": TREEBANK}, ["attention"])
    (tmp_path / "other").mkdir()
    assert evaluate(own_run, {"treebank": tmp_path / "other"}, ["attention"]) == Report(done_before=3)
    for name in ("treebank", "pairs"):
        with pytest.raises(CorpusError, match="none does not exist"):
            evaluate(own_run, {name: tmp_path / "none"}, ["attention"])
    assert evaluate(own_run, {"lama": SAMPLE_DATA["lama"]}, ["attention", "world_knowledge"]).computed == 3


def test_unreadable_new_data_keep_old_results(own_run, tmp_path):
    """A treebank that cannot be read is reported before --overwrite removes any result."""
    evaluate(own_run, SAMPLE_DATA, ["mask_prediction"])
    before = files(own_run)
    (tmp_path / "bad.conllu").write_text("nothing\n")
    with pytest.raises(CorpusError, match=r"bad.conllu, line 1"):
        evaluate(own_run, {"treebank": tmp_path / "bad.conllu"}, ["mask_prediction"], overwrite=True)
    assert files(own_run) == before


# === Edge probing, and tasks of the user ===


def test_metrics_without_data_are_left_out_unless_named(own_run):
    """A metric that is named without its data is an error; so is an evaluation without any data."""
    report = evaluate(own_run, {"treebank": TREEBANK}, steps=[8])
    without = "world_knowledge lama_variants minimal_pairs word_surprisal edge_probing ngram_divergence".split()
    assert report == Report(len(NAMES) - len(without), left_out=without)
    assert evaluate(own_run, {}, steps=[8]).left_out == without  # the others are done
    with pytest.raises(CorpusError, match=r"'edge_probing' needs data .* --probing PATH\.$"):
        evaluate(own_run, {"treebank": TREEBANK}, ["attention", "edge_probing"])
    with pytest.raises(CorpusError, match="'token_reconstruction' needs data"):
        evaluate(own_run, {}, steps=[16])


def test_probing_task_of_the_user_is_evaluated_separately(own_run):
    """The task is computed, recorded and replaced independently of edge probing; its scores are grouped by its name."""
    evaluate(own_run, SAMPLE_DATA, ["edge_probing"], steps=[16])
    before = results.read_scores(own_run)
    mine = {"probing:mine": PROBING / "srl"}
    assert evaluate(own_run, mine, [], steps=[16]) == Report(computed=1)
    assert evaluate(own_run, mine, ["edge_probing:mine"], steps=[16]) == Report(done_before=1)
    scores = results.read_scores(own_run)
    assert set(scores["group"]) == {"pos", "constituent", "coref", "srl", "mine"}
    assert set(scores.loc[scores["group"] == "mine", "metric"]) == set(before["metric"])
    assert results.read_sources(own_run)["edge_probing:mine"]["data"] == "srl"
    assert set(results.read_probes(own_run)["task"]) == set(scores["group"])
    other = {"probing:mine": PROBING / "coref"}
    with pytest.raises(ResultsError, match=r"Results of 'edge_probing:mine' .* are of srl"):
        evaluate(own_run, other, [], steps=[8])
    evaluate(own_run, other, [], steps=[16], overwrite=True)
    assert results.read_sources(own_run)["edge_probing:mine"]["data"] == "coref"
    first_scores = results.read_scores(own_run)
    assert first_scores[first_scores["group"] != "mine"].reset_index(drop=True).equals(before)


def test_protocols_are_never_mixed(own_run):
    """The protocols of edge probing differ like two sets of data; other metrics ignore the protocol."""
    evaluate(own_run, SAMPLE_DATA, ["edge_probing", "attention"], steps=[16])
    paper = {"protocol": "paper"}
    with pytest.raises(ResultsError, match=r"limit 3, fast protocol\), received .*limit 3, paper protocol"):
        evaluate(own_run, SAMPLE_DATA, ["edge_probing"], steps=[8], options=paper)
    assert evaluate(own_run, SAMPLE_DATA, ["attention"], steps=[16], options=paper) == Report(done_before=1)


@pytest.mark.parametrize("name", ["pos", "my task", "../x", ""])
def test_invalid_task_names_are_reported(own_run, name):
    """A task may not have the name of a built-in task, and its name has to be a word."""
    with pytest.raises(CorpusError, match=f"cannot be named '{name}'"):
        evaluate(own_run, {f"probing:{name}": PROBING / "pos"})


# === Kill -9 ===


def evaluate_and_die(run: Run, written: int) -> None:
    """Evaluate, but kill the process once `written` results are written and the next is computed."""
    write, left = results.write, written

    def write_or_die(*arguments) -> None:
        nonlocal left
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        write(*arguments)

    results.write = write_or_die
    shorten_probing(pytest.MonkeyPatch())
    evaluate(run, SAMPLE_DATA)


@pytest.mark.slow
def test_killed_and_resumed_evaluation_writes_identical_files(own_run, evaluated_run):
    """After each of three kills by SIGKILL, written results stay and the next evaluation computes the rest."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["embryo_core.evaluation", "embryo_core.engine.model"])
    for written in (0, 3, 5):
        process = context.Process(target=evaluate_and_die, args=(own_run, written))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert evaluate(own_run, SAMPLE_DATA) == Report(computed=3 * len(NAMES) - 8, done_before=8)
    assert files(own_run) == files(evaluated_run)


def test_unsupported_family_is_named(own_run, sample):
    """Nothing is written."""
    for checkpoint in runs.checkpoints(own_run):
        config = checkpoint.path / "config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | {"model_type": "t5"}))
    with pytest.raises(MissingCapability, match="family 't5'"):
        evaluate_all(replace(own_run, family="t5"), {"treebank": sample / "treebank.conllu"})
    assert not own_run.results.exists()
