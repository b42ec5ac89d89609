"""Tests that results are read as they were written, from pending evaluations and from compacted tables."""

import json
import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from embryo_core import results
from embryo_core.errors import ResultsError
from embryo_core.measurements import AttentionMap, Findings, TaskAnswer, TaskScore, TuningPoint
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.types import Run
from tests.conftest import checkpoint_at
from tests.embryo_core.results.conftest import METRICS, STEPS, TUNED, find, put

SQUARE = np.full((2, 2), 0.5)


def test_empty_run_gives_empty_frames_with_columns(run):
    """A page of a run without results gets empty frames instead of errors, and no file is created."""
    assert list(results.read_scores(run).columns) == ["run", "metric", "step", "layer", "group", "value", "n"]
    words = ["metric", "step", "tag", "word", "band", "n", "correct"]
    assert list(results.read_words(run, "mask_prediction").columns) == words
    assert list(results.read_cloze(run).columns)[:4] == ["step", "fact", "relation", "subject"]
    curve = ["step", "task", "layer", "control", "iteration", "train_loss", "dev_f1"]
    assert list(results.read_probes(run).columns) == curve
    history = results.read_attention(run, 1, 1)
    assert len(history.steps) == 0 and history.weights.shape == (0, 0, 0) and history.sentences == 0
    assert results.read_attention_step(run, 0)[0].shape == (0, 0, 0, 0)
    assert results.read_attention_steps(run)[1].size == 0
    assert results.read_sources(run) == {} and results.steps_by_metric(run)["attention"] == set()
    results.compact(run)
    assert not run.results.exists()


@pytest.mark.parametrize("compacted", [False, True])
def test_scores_words_and_facts_are_read_as_written(run, compacted):
    """Every row is read once, in sorted order."""
    for step in (8, 0, 2):
        for metric in METRICS:
            results.write(checkpoint_at(run, step), metric, find(metric, step))
    if compacted:
        results.compact(run)
    written = [(step, score) for step in (0, 2, 8) for metric in METRICS for score in find(metric, step).scores]
    scores = results.read_scores(run)
    plain = scores.astype(object).where(scores.notna(), None)
    read = {(r.run, r.step, r.metric, r.value, r.n, r.group, r.layer) for r in plain.itertuples()}
    assert read == {("egg", step, s.metric, s.value, s.n, s.group, s.layer) for step, s in written}
    assert len(scores) == len(written) and scores["metric"].is_monotonic_increasing
    assert set(results.read_scores(run, "world_knowledge")["metric"]) == {"world_knowledge"}

    assert len(results.read_words(run, "mask_prediction")) == 36

    history = results.read_cloze(run, relation="P1", fact="f4")
    assert list(history["step"]) == [0, 2, 8]
    answers = [answer for step in (0, 2, 8) for answer in find("world_knowledge", step).cloze if answer.fact == "f4"]
    assert list(history["rank"]) == [answer.rank for answer in answers]
    assert list(results.read_cloze(run, fact="f4")["rank"]) == list(history["rank"])
    assert len(results.read_cloze(run)) == 30


def write_again(run: Run, table: str, rows: int | None = None) -> None:
    """Rewrite a compacted table with this many rows in a row group, or all in one as earlier versions did."""
    path = run.results / f"{table}.parquet"
    put(path, pq.read_table(path), row_group_size=rows)


@pytest.mark.parametrize("earlier", [False, True])
def test_selected_scores_equal_those_among_all(run, earlier):
    """They are selected by name, names or prefix, from files with a row group per metric and from earlier files."""
    for metric in METRICS:
        results.write(checkpoint_at(run, 2), metric, find(metric, 2))
    results.compact(run)
    if earlier:
        write_again(run, "scores")
    scores = results.read_scores(run)
    names = sorted(set(scores["metric"]))
    assert pq.ParquetFile(run.results / "scores.parquet").num_row_groups == (1 if earlier else len(names))
    assert results.read_metrics(run) == names and len(names) > 2
    prefix = names[0][:4]
    expected = {(): [], (names[0],): names[:1], tuple(names[1:3]): names[1:3]}
    selections = [(results.read_scores(run, given), held) for given, held in expected.items()]
    selections += [(results.read_scores(run, prefix=prefix), [name for name in names if name.startswith(prefix)])]
    selections += [(results.read_scores(run, names[1]), names[1:2])]
    for rows, held in selections:
        pd.testing.assert_frame_equal(rows, scores[scores["metric"].isin(held)].reset_index(drop=True))


def test_scores_of_categories_equal_scores_of_texts(run):
    """The categories of metrics have no unused names; an unknown prefix gives no rows."""
    for step in (8, 0, 2):
        results.write(checkpoint_at(run, step), "mask_prediction", find("mask_prediction", step))
        results.write(checkpoint_at(run, step), "world_knowledge", find("world_knowledge", step))
    results.compact(run)
    some = [{"prefix": prefix} for prefix in ("world_knowledge", "mask", "none")]
    for which in [*some, {}, {"metric": ["mask_prediction", "none"]}, {"metric": "world_knowledge"}, {"metric": []}]:
        actual, expected = results.read_scores(run, **which, categories=True), results.read_scores(run, **which)
        assert set(actual["metric"].cat.categories) == set(expected["metric"])
        pd.testing.assert_frame_equal(actual.astype({"run": "str", "metric": "str", "group": "str"}), expected)
    assert results.read_scores(run, prefix="none", categories=True).empty


@pytest.mark.parametrize("rows", [1, 4, None])
def test_relation_does_not_depend_on_row_groups(run, rows):
    """A relation may be split into several row groups, or share one with all others as in earlier files."""
    for step in (0, 2, 8):
        results.write(checkpoint_at(run, step), "world_knowledge", find("world_knowledge", step))
    results.compact(run)
    write_again(run, "cloze", rows)
    for relation, answers in results.read_cloze(run).groupby("relation"):
        expected = answers.reset_index(drop=True)
        pd.testing.assert_frame_equal(results.read_cloze(run, relation), expected)
        frame = results.read_relation(run, relation).astype({"fact": "str", "prediction": "str"})
        pd.testing.assert_frame_equal(frame, expected[frame.columns])


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize(
    ("group", "belongs"),
    [
        ("noun", lambda word: word.tag == "NN"),
        ("verb", lambda word: word.tag == "VBD"),
        ("rank 50-99", lambda word: word.band == "rank 50-99"),
        ("rank 1550-1599", lambda word: False),
        ("all", lambda word: True),
    ],
)
def test_words_of_a_group_are_read(run, group, belongs, compacted):
    """A group is selected by tag or by frequency band at one step; it may have no words."""
    for step in (8, 0, 2):
        results.write(checkpoint_at(run, step), "mask_prediction", find("mask_prediction", step))
    if compacted:
        results.compact(run)
    words = results.read_words(run, "mask_prediction", group, step=2)
    plain = words.astype(object).where(words.notna(), None)
    read = {(w.step, w.tag, w.word, w.n, w.correct, w.band) for w in plain.itertuples()}
    group_words = [word for word in find("mask_prediction", 2).words if belongs(word)]
    assert read == {(2, w.tag, w.word, w.n, w.correct, w.band) for w in group_words}
    assert len(words) == len(group_words)


@pytest.mark.parametrize("compacted", [False, True])
def test_training_curves_of_probes_are_read(run, compacted):
    """All curves or those of one task, layer and step are selected; points are in the order of iterations."""
    for step in (8, 0):
        results.write(checkpoint_at(run, step), "edge_probing", find("edge_probing", step))
    if compacted:
        results.compact(run)
    frame = results.read_probes(run)
    written = {
        (step, *(getattr(point, name) for name in frame.columns[1:]))
        for step in (0, 8)
        for point in find("edge_probing", step).probes
    }
    assert set(frame.itertuples(index=False, name=None)) == written and len(frame) == len(written) == 24
    assert frame["control"].dtype == bool
    one = results.read_probes(run, task="pos", layer=2, step=8)
    expected = {row for row in written if row[:3] == (8, "pos", 2)}
    assert set(one.itertuples(index=False, name=None)) == expected and len(one) == len(expected) == 2
    key = ["task", "layer", "control", "step", "iteration"]
    assert frame.equals(frame.sort_values(key, ignore_index=True))


@pytest.mark.parametrize("compacted", [False, True])
def test_attention_is_read_by_head_step_or_all(run, compacted):
    """One head's history, one step's heads, and all maps equal the findings rounded to float16."""
    for step in STEPS:
        results.write(checkpoint_at(run, step), "attention", find("attention", step))
    if compacted:
        results.compact(run)
    written = {(step, m.layer, m.head): m.weights for step in STEPS for m in find("attention", step).attention}
    for layer in (1, 2):
        for head in (1, 2, 3):
            history = results.read_attention(run, layer, head)
            assert list(history.steps) == list(STEPS) and history.sentences == 7
            assert history.weights.dtype == np.float32
            for step, weights in zip(history.steps, history.weights):
                np.testing.assert_array_equal(weights, written[step, layer, head].astype(np.float16))
    steps, weights, sentences = results.read_attention_steps(run)
    assert weights.shape == (4, 2, 3, 4, 4) and list(steps) == list(STEPS) and sentences == 7
    for i, step in enumerate(STEPS):
        one, _ = results.read_attention_step(run, step)
        np.testing.assert_array_equal(one, weights[i])
        for layer, head in np.ndindex(2, 3):
            np.testing.assert_array_equal(one[layer, head], written[step, layer + 1, head + 1].astype(np.float16))
    for head in (1, 2, 3):
        steps, layers, _ = results.read_attention_steps(run, STEPS[1:3], head)
        assert steps.tolist() == list(STEPS[1:3])
        np.testing.assert_array_equal(layers[:, :, 0], weights[1:3, :, head - 1])


def test_attention_history_has_minimum_number_of_sentences(run):
    """All its maps are averaged over at least this number of sentences."""
    for step, sentences in ((0, 9), (2, 5), (8, 7)):
        results.write(
            checkpoint_at(run, step), "attention", Findings(attention=[AttentionMap(1, 1, SQUARE, sentences)])
        )
    assert results.read_attention(run, 1, 1).sentences == 5 and results.read_attention_step(run, 8)[1] == 7


def test_scores_have_name_of_copied_run(run, tmp_path):
    """A copy under another name, such as the demo, reads the results as its own."""
    results.write(checkpoint_at(run, 0), "mask_prediction", find("mask_prediction", 0))
    shutil.copytree(run.results, run.results.with_name("chick"))
    chick = Run("chick", tmp_path / "runs" / "chick", "albert", "mlm+sop", {}, "0" * 64, {}, STEPS, "test")
    assert set(results.read_scores(chick)["run"]) == {"chick"}


def test_maps_of_two_lengths_are_refused_as_history(run):
    """The message names both lengths and the command that evaluates them again; a single step can be read."""
    for step, length in ((0, 2), (8, 3)):
        maps = [AttentionMap(1, 1, np.ones((length, length)), 5)]
        results.write(checkpoint_at(run, step), "attention", Findings(attention=maps))
    assert results.read_attention_step(run, 8)[0].shape == (1, 1, 3, 3)
    with pytest.raises(ResultsError, match=r"length \(2, 3\).*evaluate egg --metrics attention --overwrite"):
        results.read_attention(run, 1, 1)


def test_missing_head_is_reported(run):
    """Missing heads are never filled in."""
    maps = [AttentionMap(i, j, SQUARE, 5) for i, j in ((1, 1), (1, 2), (2, 1))]
    results.write(checkpoint_at(run, 0), "attention", Findings(attention=maps))
    with pytest.raises(ResultsError, match="3 maps, not 2 layers of 2 heads"):
        results.read_attention_step(run, 0)


def test_finetuning_results_are_read_as_written(run):
    """Scores, curves, answers and spans of one task have their steps."""
    for step in (8, 0):
        results.write(checkpoint_at(run, step), TUNED, find(TUNED, step))
    findings = find(TUNED, 8)
    pairs = (
        (results.read_task_scores, findings.task_scores),
        (results.read_tuning, findings.tuning),
        (results.read_answers, findings.answers),
        (results.read_spans, findings.spans),
    )
    for read, given in pairs:
        rows = read(run, "squad")
        own = sorted(tuple(vars(row).values()) for row in given if row.task == "squad")
        assert sorted(map(tuple, rows[rows["step"] == 8].drop(columns="step").to_numpy().tolist())) == own


@pytest.mark.parametrize("compacted", [False, True])
def test_seeds_with_other_data_are_left_out(run, compacted):
    """In every table of fine-tuning, only seeds with the data of the task's first seed are read."""
    for seed, data in ((1, "a"), (2, "b"), (3, "a")):
        scores = [TaskScore("rte", seed, "model", "accuracy", 0.5, 7)]
        answers, points = [TaskAnswer("rte", seed, 0, 1.0, 0.0)], [TuningPoint("rte", seed, 1, 0.5, 0.5)]
        name = f"finetuning:rte:{seed}"
        findings = Findings(task_scores=scores, answers=answers, tuning=points)
        results.write(checkpoint_at(run, 8), name, findings, {"sha256": data}, {})
    if compacted:
        results.compact(run)
    for read in (results.read_task_scores, results.read_answers, results.read_tuning):
        assert read(run, "rte")["seed"].tolist() == [1, 3]


# === Example questions ===


MANY = json.dumps([{"text": "A [MASK] .", "word": "cat"}] * 21)


def test_examples_are_read_in_written_order(own_run: Run) -> None:
    """There are none before the first write; a later write replaces them."""
    assert results.read_example_questions(own_run) == []
    for since in (8, None):
        written = [ExampleQuestion("A [MASK] .", "cat", since), ExampleQuestion("The [MASK] .", "dog", 16)]
        results.write_examples(own_run, written)
        assert results.read_example_questions(own_run) == written


@pytest.mark.parametrize("content", ["", "5", '[{"text": "A ."}]', '[{"text": 1, "word": "a"}]', "[[[[]]]]", MANY])
def test_invalid_examples_file_is_refused(own_run: Run, content: str) -> None:
    """The message names the file; a file with more questions than a page has buttons is invalid, too."""
    own_run.results.mkdir(parents=True, exist_ok=True)
    (own_run.results / "examples.json").write_text(content)
    with pytest.raises(ResultsError, match=r"examples\.json"):
        results.read_example_questions(own_run)
