"""What is written is read back, whole or not at all, however the writer ends."""

import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from embryo_core import results, runs
from embryo_core.errors import ResultsError
from embryo_core.results.tables import TABLES
from embryo_core.types import AttentionMap, ClozeAnswer, Findings, ProbeCurve, Run, Score, WordCount
from tests.conftest import at

STEPS = (0, 1, 2, 8)
TAGS = ("DT", "NN", "VBD")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run without checkpoints and without results."""
    return make_run(tmp_path)


def make_run(root: Path) -> Run:
    return Run("egg", root / "runs" / "egg", "albert", "mlm+sop", {}, "0" * 64, {}, STEPS, "test")


def find(metric: str, step: int, seed: int = 0) -> Findings:
    """Findings that depend on nothing but the arguments; rows in a random order."""
    rng = np.random.default_rng([seed, step, *metric.encode()])
    findings = Findings()
    if metric == "attention":
        weights = rng.dirichlet(np.ones(4), size=(2, 3, 4))
        maps = [AttentionMap(i + 1, j + 1, weights[i, j], 7) for i in range(2) for j in range(3)]
        findings.attention = [maps[i] for i in rng.permutation(len(maps))]
        return findings
    groups = [("all", None), ("noun", None), (None, 1), (None, 2)]
    scores = [Score(metric, float(rng.random()), int(rng.integers(1, 99)), *group) for group in groups]
    findings.scores = [scores[i] for i in rng.permutation(len(scores))]
    if metric == "edge_probing":
        findings.probes = [
            ProbeCurve(("pos", "coref")[i % 2], i % 3, i % 4 > 1, i, float(rng.random()), 0.5)
            for i in rng.permutation(12)
        ]
    elif metric == "world_knowledge":
        findings.scores.append(Score("world_knowledge_coverage", 0.5, 10, "P19"))
        findings.cloze = [
            ClozeAnswer(f"f{i}", f"P{i % 3}", f"s{i}", "Rome", int(rng.integers(1, 99)), 0.25, "the", 0.5)
            for i in rng.permutation(10)
        ]
    else:
        findings.words = [
            WordCount(metric, TAGS[i % 3], f"w{i}", 3, int(rng.integers(0, 4)))
            for i in rng.permutation(12)
        ]
    return findings


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


METRICS = ("mask_prediction", "world_knowledge", "attention", "edge_probing")


# === Written is read ===


def test_reads_of_an_empty_store_have_their_columns(run):
    """A page of a run without results gets empty frames with all columns, not an error."""
    assert list(results.read_scores(run).columns) == ["run", "metric", "step", "layer", "group", "value", "n"]
    assert list(results.read_words(run, "mask_prediction").columns) == ["metric", "step", "tag", "word", "n", "correct"]
    assert list(results.read_cloze(run).columns)[:4] == ["step", "fact", "relation", "subject"]
    curve = ["step", "task", "layer", "control", "iteration", "train_loss", "dev_f1"]
    assert list(results.read_probes(run).columns) == curve
    history = results.read_attention(run, 1, 1)
    assert len(history.steps) == 0 and history.weights.shape == (0, 0, 0) and history.sentences == 0
    assert results.read_attention_step(run, 0)[0].shape == (0, 0, 0, 0)
    assert results.read_attention_steps(run)[1].size == 0
    assert results.read_sources(run) == {} and results.done(run, "attention") == set()
    results.compact(run)
    assert not run.results.exists()


@pytest.mark.parametrize("compacted", [False, True])
def test_scores_words_and_facts_come_back_as_found(run, compacted):
    """Every row comes back, sorted and once, from parts as from compacted tables."""
    for step in (8, 0, 2):
        for metric in METRICS:
            results.write(at(run, step), metric, find(metric, step))
    if compacted:
        results.compact(run)
    given = [score for step in (0, 2, 8) for metric in METRICS for score in find(metric, step).scores]
    scores = results.read_scores(run)
    plain = scores.astype(object).where(scores.notna(), None)
    read = {(r.run, r.step, r.metric, r.value, r.n, r.group, r.layer) for r in plain.itertuples()}
    assert read == {(s.run, s.step, s.metric, s.value, s.n, s.group, s.layer) for s in given}
    assert len(scores) == len(given) and scores["metric"].is_monotonic_increasing
    assert set(results.read_scores(run, "world_knowledge")["metric"]) == {"world_knowledge"}

    words = results.read_words(run, "mask_prediction", tags=["DT", "NN"], step=2)
    expected = {(w.tag, w.word, w.n, w.correct) for w in find("mask_prediction", 2).words if w.tag != "VBD"}
    assert {(w.tag, w.word, w.n, w.correct) for w in words.itertuples()} == expected
    assert len(words) == 8 and set(words["step"]) == {2}
    assert len(results.read_words(run, "mask_prediction")) == 36

    history = results.read_cloze(run, relation="P1", fact="f4")
    assert list(history["step"]) == [0, 2, 8]
    answers = [answer for step in (0, 2, 8) for answer in find("world_knowledge", step).cloze if answer.fact == "f4"]
    assert list(history["rank"]) == [answer.rank for answer in answers]
    assert list(results.read_cloze(run, fact="f4")["rank"]) == list(history["rank"])
    assert len(results.read_cloze(run)) == 30


@pytest.mark.parametrize("compacted", [False, True])
def test_training_curves_of_probes_come_back(run, compacted):
    """Of a task, of one of its layers, of a step, or all; the points of a curve in the order of iterations."""
    for step in (8, 0):
        results.write(at(run, step), "edge_probing", find("edge_probing", step))
    if compacted:
        results.compact(run)
    frame = results.read_probes(run)
    given = {
        tuple(getattr(point, name) for name in frame.columns)
        for step in (0, 8)
        for point in find("edge_probing", step).probes
    }
    assert set(frame.itertuples(index=False, name=None)) == given and len(frame) == len(given) == 24
    assert frame["control"].dtype == bool
    one = results.read_probes(run, task="pos", layer=2, step=8)
    expected = {row for row in given if row[:3] == (8, "pos", 2)}
    assert set(one.itertuples(index=False, name=None)) == expected and len(one) == len(expected) == 2
    key = ["task", "layer", "control", "step", "iteration"]
    assert frame.equals(frame.sort_values(key, ignore_index=True))


@pytest.mark.parametrize("compacted", [False, True])
def test_attention_comes_back_by_head_by_step_and_in_all(run, compacted):
    """One head's history, one step's heads, and all of them are the maps as found, to float16."""
    for step in STEPS:
        results.write(at(run, step), "attention", find("attention", step))
    if compacted:
        results.compact(run)
    given = {(m.step, m.layer, m.head): m.weights for step in STEPS for m in find("attention", step).attention}
    for layer in (1, 2):
        for head in (1, 2, 3):
            history = results.read_attention(run, layer, head)
            assert list(history.steps) == list(STEPS) and history.sentences == 7
            assert history.weights.dtype == np.float32
            for step, weights in zip(history.steps, history.weights):
                np.testing.assert_array_equal(weights, given[step, layer, head].astype(np.float16))
    steps, weights, sentences = results.read_attention_steps(run)
    assert weights.shape == (4, 2, 3, 4, 4) and list(steps) == list(STEPS) and sentences == 7
    for i, step in enumerate(STEPS):
        one, _ = results.read_attention_step(run, step)
        np.testing.assert_array_equal(one, weights[i])
        np.testing.assert_array_equal(one[1, 2], given[step, 2, 3].astype(np.float16))


def test_a_rerun_replaces_whether_compacted_or_not(run):
    """Writing a metric and step again replaces all of its rows, also those that the new findings no longer have."""
    for step in STEPS:
        results.write(at(run, step), "mask_prediction", find("mask_prediction", step))
    results.compact(run)
    again = Findings(scores=[Score("mask_prediction", 0.125, 4, "all")])
    for compacted in (False, True):
        results.write(at(run, 2), "mask_prediction", again)
        if compacted:
            results.compact(run)
        scores = results.read_scores(run)
        assert scores[scores["step"] == 2]["value"].to_list() == [0.125]
        assert len(scores) == 4 * 3 + 1
        assert results.read_words(run, "mask_prediction", step=2).empty
        assert len(results.read_words(run, "mask_prediction")) == 36
        assert results.done(run, "mask_prediction") == set(STEPS)


def test_a_table_that_lost_all_its_rows_is_removed(run):
    """When a rerun finds no words any more, compaction leaves no words behind."""
    results.write(at(run, 2), "mask_prediction", find("mask_prediction", 2))
    results.compact(run)
    results.write(at(run, 2), "mask_prediction", Findings(scores=[Score("mask_prediction", 0.125, 4, "all")]))
    results.compact(run)
    assert sorted(tree(run.results)) == ["scores.parquet"]


def test_order_and_time_of_writing_leave_no_trace_in_the_files(tmp_path):
    """Two evaluations with the same findings give the same files, byte for byte, whatever the order of work."""
    one, other = make_run(tmp_path / "one"), make_run(tmp_path / "other")
    work = [(metric, step) for step in STEPS for metric in METRICS]
    for metric, step in work:
        results.write(at(one, step), metric, find(metric, step))
    results.compact(one)
    for i, (metric, step) in enumerate(random.Random(1).sample(work, len(work))):
        results.write(at(other, step), metric, find(metric, step, seed=9))
        results.write(at(other, step), metric, find(metric, step))
        if i % 5 == 0:
            results.compact(other)
    results.compact(other)
    assert tree(one.results) == tree(other.results)
    assert sorted(tree(one.results)) == [f"{table.name}.parquet" for table in sorted(TABLES, key=lambda table: table.name)]


def test_the_run_is_named_by_its_folder(run, tmp_path):
    """A run copied under another name (as the demo is) reads its results as its own."""
    results.write(at(run, 0), "mask_prediction", find("mask_prediction", 0))
    shutil.copytree(run.results, run.results.with_name("chick"))
    chick = Run("chick", tmp_path / "runs" / "chick", "albert", "mlm+sop", {}, "0" * 64, {}, STEPS, "test")
    assert set(results.read_scores(chick)["run"]) == {"chick"}


def test_sources_are_kept_per_metric(run):
    """A metric's note of its data replaces the one before and leaves those of others."""
    results.write_sources(run, "attention", {"data": "a.conllu", "sentences": 7})
    results.write_sources(run, "mask_prediction", {"data": "b.conllu", "sentences": 3})
    results.write_sources(run, "attention", {"data": "c.conllu", "sentences": 9})
    assert results.read_sources(run) == {
        "attention": {"data": "c.conllu", "sentences": 9},
        "mask_prediction": {"data": "b.conllu", "sentences": 3},
    }


# === Refused ===

SQUARE = np.full((2, 2), 0.5)
REFUSED = {
    "nothing at all": (Findings(), "found nothing"),
    "NaN": (Findings(scores=[Score("m", float("nan"), 3)]), "value nan"),
    "infinity": (Findings(scores=[Score("m", float("-inf"), 3)]), "value -inf"),
    "n = 0": (Findings(scores=[Score("m", 0.0, 0, "noun")]), "n 0"),
    "negative n": (Findings(scores=[Score("m", 0.0, -1)]), "n -1"),
    "a word never met": (Findings(words=[WordCount("m", "NN", "w", 0, 0)]), "n 0"),
    "more hits than words": (Findings(words=[WordCount("m", "NN", "w", 2, 3)]), "correct 3"),
    "rank 0": (Findings(cloze=[ClozeAnswer("f", "P1", "s", "o", 0, 0.1, "p", 0.1)]), "rank 0"),
    "NaN probability": (
        Findings(cloze=[ClozeAnswer("f", "P1", "s", "o", 1, float("nan"), "p", 0.1)]),
        "probability nan",
    ),
    "NaN weight": (Findings(attention=[AttentionMap(1, 1, SQUARE * np.nan, 3)]), "weights 2x2"),
    "a weight beyond float16": (Findings(attention=[AttentionMap(1, 1, SQUARE * 1e6, 3)]), "weights 2x2"),
    "no square": (Findings(attention=[AttentionMap(1, 1, np.ones((2, 3)), 3)]), "weights 2x3"),
    "no sentences": (Findings(attention=[AttentionMap(1, 1, SQUARE, 0)]), "sentences 0"),
    "a loss that is NaN": (
        Findings(probes=[ProbeCurve("pos", 0, False, 1, float("nan"), 0.5)]),
        "train_loss nan",
    ),
    "F1 above 1": (Findings(probes=[ProbeCurve("pos", 0, True, 1, 0.3, 1.5)]), "dev_f1 1.5"),
    "a row twice": (Findings(scores=[Score("m", 0.5, 3), Score("m", 0.6, 3)]), "two rows"),
}


@pytest.mark.parametrize("findings, told", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_measurement_is_refused(run, findings, told):
    """One bad row among good ones refuses the whole write and leaves what was there."""
    results.write(at(run, 8), "m", Findings(scores=[Score("m", 0.75, 3, "all")]))
    before = tree(run.results)
    with pytest.raises(ResultsError, match=told) as error:
        results.write(at(run, 8), "m", findings)
    assert "nothing was written" in str(error.value) and "'m' at step 8" in str(error.value)
    assert tree(run.results) == before


def test_maps_of_two_lengths_are_explained(run):
    """Steps evaluated with different lengths cannot be one history; the message says what to run."""
    for step, length in ((0, 2), (8, 3)):
        maps = [AttentionMap(1, 1, np.ones((length, length)), 5)]
        results.write(at(run, step), "attention", Findings(attention=maps))
    assert results.read_attention_step(run, 8)[0].shape == (1, 1, 3, 3)
    with pytest.raises(ResultsError, match=r"length \(2, 3\).*evaluate egg --metrics attention --overwrite"):
        results.read_attention(run, 1, 1)


def test_a_step_that_lacks_a_head_is_explained(run):
    """Heads missing at a step are reported, never filled in."""
    maps = [AttentionMap(i, j, SQUARE, 5) for i, j in ((1, 1), (1, 2), (2, 1))]
    results.write(at(run, 0), "attention", Findings(attention=maps))
    with pytest.raises(ResultsError, match="3 maps, not 2 layers of 2 heads"):
        results.read_attention_step(run, 0)


# === Broken files ===


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


BREAKS = {"truncated": truncated, "empty": lambda _: b"", "foreign": lambda _: b"not parquet" * 99}


@pytest.mark.parametrize("damage", BREAKS.values(), ids=BREAKS.keys())
@pytest.mark.parametrize("compacted", [False, True])
def test_a_broken_file_names_itself_and_what_to_run(run, damage, compacted):
    """A file that is not what was written is reported by every read that needs it, and never overwritten."""
    for metric in METRICS:
        results.write(at(run, 8), metric, find(metric, 8))
    if compacted:
        results.compact(run)
    reads = {
        "scores": lambda: results.read_scores(run),
        "words": lambda: results.read_words(run, "mask_prediction"),
        "cloze": lambda: results.read_cloze(run, "P1"),
        "attention": lambda: results.read_attention_steps(run),
        "probes": lambda: results.read_probes(run, "pos"),
    }
    for path in sorted(run.results.rglob("*.parquet")):
        whole = path.read_bytes()
        path.write_bytes(damage(whole))
        with pytest.raises(ResultsError, match="cannot be read") as error:
            reads[path.stem]()
        message = str(error.value)
        assert str(path) in message and "run: python -m embryo_core evaluate egg --overwrite" in message
        assert "\n" not in message
        path.write_bytes(whole)


def test_a_flipped_bit_is_never_a_result(run):
    """Pages carry checksums: a file with a wrong bit reads as before or is reported, never as another number."""
    results.write(at(run, 8), "mask_prediction", find("mask_prediction", 8))
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


@pytest.mark.parametrize("table", ["scores", "words", "cloze"])
def test_a_broken_file_stops_compaction_before_anything_is_lost(run, table):
    """Compaction that meets a broken table leaves it and all parts; the message's advice mends it."""
    results.write(at(run, 0), "world_knowledge", find("world_knowledge", 0))
    results.write(at(run, 0), "mask_prediction", find("mask_prediction", 0))
    results.compact(run)
    results.write(at(run, 8), "world_knowledge", find("world_knowledge", 8))
    path = run.results / f"{table}.parquet"
    path.write_bytes(truncated(path.read_bytes()))
    broken = path.read_bytes()
    with pytest.raises(ResultsError, match=f"{table}.parquet cannot be read"):
        results.compact(run)
    assert path.read_bytes() == broken and (run.results / "parts" / "world_knowledge" / "step8").is_dir()
    path.unlink()
    for metric, step in (("world_knowledge", 0), ("mask_prediction", 0), ("world_knowledge", 8)):
        results.write(at(run, step), metric, find(metric, step))
    results.compact(run)
    assert len(results.read_scores(run)) == 14 and len(results.read_cloze(run)) == 20


def test_a_parquet_file_with_other_columns_is_refused(run):
    """A table of another program, or of another version of ours, is not taken for results."""
    run.results.mkdir(parents=True)
    pd.DataFrame({"step": [1], "value": [0.5]}).to_parquet(run.results / "scores.parquet")
    for read in (lambda: results.read_scores(run), lambda: results.done(run, "m")):
        with pytest.raises(ResultsError, match="scores.parquet cannot be read"):
            read()


def test_broken_sources_are_explained(run):
    """sources.json that is not JSON is reported with its name."""
    run.results.mkdir(parents=True)
    (run.results / "sources.json").write_text("{")
    with pytest.raises(ResultsError, match="sources.json cannot be read"):
        results.read_sources(run)


# === Killed writers ===


def begin(root: Path) -> None:
    """Results of step 0, compacted, with a newer part over them."""
    run = make_run(root)
    for metric in ("mask_prediction", "attention"):
        results.write(at(run, 0), metric, find(metric, 0))
    results.compact(run)
    results.write(at(run, 0), "mask_prediction", find("mask_prediction", 0, seed=1))


def work(root: Path) -> None:
    """What evaluation does: skip what is done, write the rest; compute one step again, and compact."""
    run = make_run(root)
    if 8 not in results.done(run, "attention"):
        results.write(at(run, 8), "attention", find("attention", 8))
    results.write(at(run, 0), "mask_prediction", find("mask_prediction", 0, seed=2))
    results.compact(run)


def work_and_die(root: Path, at: int) -> None:
    """Do the work, but be killed at the `at`-th operation on a file or return from writing into one."""
    seen = 0

    def count() -> None:
        nonlocal seen
        seen += 1
        if seen == at:
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
    """Processes forked from one that has imported the store and holds no thread."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["embryo_core.results.store", __name__])
    return context


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A root to copy for each killing."""
    begin(tmp_path / "begun")
    return tmp_path / "begun"


@pytest.fixture
def whole(begun: Path, tmp_path: Path) -> dict[str, bytes]:
    """The files that the work leaves when nobody kills it."""
    shutil.copytree(begun, tmp_path / "whole")
    work(tmp_path / "whole")
    return tree(tmp_path / "whole")


def assert_evaluations_are_whole(root: Path) -> None:
    """Scores and words of each evaluation that is done are those of one `find`, never a mixture; so are its maps."""
    run = make_run(root)
    for step in results.done(run, "mask_prediction"):
        scores = results.read_scores(run, "mask_prediction")
        words = results.read_words(run, "mask_prediction", step=step)
        found = set(scores[scores["step"] == step]["value"]), dict(zip(words["word"], words["correct"]))
        given = [find("mask_prediction", step, seed) for seed in (0, 1, 2)]
        assert found in [({s.value for s in g.scores}, {w.word: w.correct for w in g.words}) for g in given]
    assert 0 in results.done(run, "attention")
    for step in results.done(run, "attention"):
        weights, _ = results.read_attention_step(run, step)
        for one in find("attention", step).attention:
            np.testing.assert_array_equal(weights[one.layer - 1, one.head - 1], one.weights.astype(np.float16))


def test_a_writer_killed_at_any_point_is_resumed_to_the_same_files(begun, whole, tmp_path, context):
    """Kill -9 at every file operation in turn: what is left is whole, and a rerun ends with the same bytes."""
    for operation in range(1, 1000):
        root = Path(shutil.copytree(begun, tmp_path / "killed"))
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


def test_a_writer_killed_at_a_random_time_is_resumed_to_the_same_files(begun, whole, tmp_path, context):
    """The same with a clock for the killer, which also meets half-written files."""
    chance = random.Random(5)
    for i in range(15):
        root = Path(shutil.copytree(begun, tmp_path / f"killed{i}"))
        process = context.Process(target=work, args=(root,))
        process.start()
        time.sleep(0.005 + 0.1 * chance.random())
        process.kill()
        process.join()
        assert_evaluations_are_whole(root)
        work(root)
        assert tree(root) == whole


# === Several processes ===


def write_many(root: Path, metric: str) -> None:
    run = make_run(root)
    for step in range(12):
        results.write(at(run, step), metric, find(metric, step))
        if step % 3 == 2:
            results.compact(run)


def test_two_evaluations_and_a_reader_at_once_lose_nothing(tmp_path, context):
    """Two processes write and compact the same run while a third reads: every row is there, no read fails."""
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


def test_results_lie_beside_the_runs(run):
    """Results of a run go to the same root as the run."""
    results.write(at(run, 0), "m", Findings(scores=[Score("m", 1.0, 1)]))
    assert (run.path.parent.parent / "results" / "egg" / "parts" / "m" / "step0" / "scores.parquet").is_file()
    assert runs.list_runs() == []
