"""A run as data: the tables of the results, live answers, and a document whose examples run."""

import doctest
import re
from pathlib import Path

import pandas as pd
import pytest

import embryo_core as embryo
from embryo_core import query, results
from embryo_core.corpora import baselines
from embryo_core.errors import UnknownRun
from embryo_core.types import Run
from tests import demo

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_tables_are_those_of_the_results(tiny_results: Run):
    """Opened by its path; each table as its reader gives it."""
    study = embryo.open(tiny_results.path)
    assert study.steps == (0, 8, 16) and study.run == tiny_results
    pd.testing.assert_frame_equal(study.scores("mask_prediction"), results.read_scores(tiny_results, "mask_prediction"))
    pd.testing.assert_frame_equal(
        study.words(group="noun", step=8), results.read_words(tiny_results, "mask_prediction", "noun", 8)
    )
    assert study.baselines().equals(baselines.of_facts(results.read_histories(tiny_results)))
    last = results.read_words(tiny_results, "mask_prediction", step=16)
    assert study.baselines("mask_prediction").equals(baselines.of_words(last, cased=False))
    pd.testing.assert_frame_equal(study.cloze("P36"), results.read_cloze(tiny_results, "P36"))
    pd.testing.assert_frame_equal(study.task_scores("rte"), results.read_task_scores(tiny_results, "rte"))


def test_attention_has_a_row_for_each_pair_of_positions(tiny_results: Run):
    """Every weight of a head's history stands beside its step and its two positions."""
    rows = embryo.open(tiny_results.path).attention(2, 1)
    history = results.read_attention(tiny_results, 2, 1)
    assert len(rows) == history.weights.size
    steps = history.steps.tolist()
    for row in rows.sample(50, random_state=1).itertuples():
        assert row.weight == history.weights[steps.index(row.step), row.origin, row.target]


def test_a_question_is_answered_at_the_last_step_or_another(tiny_results: Run):
    """Both masks, ranked, as `query.ask` has them."""
    study, text = embryo.open(tiny_results.path), "The [MASK] sat on the [MASK] ."
    for step, asked in ((None, 16), (8, 8)):
        found = query.ask(tiny_results, text, [asked], 3)
        expected = [found.best(asked, mask) for mask in (1, 2)]
        rows = study.query(text, step, k=3)
        assert [list(group["token"]) for _, group in rows.groupby("mask")] == [
            [one.token for one in mask] for mask in expected
        ]
        assert rows["rank"].tolist() == [1, 2, 3] * 2


def test_answers_at_all_steps_are_one_table(tiny_results: Run):
    """Those of `query.ask`, of a tracked word, and of each layer."""
    study, text = embryo.open(tiny_results.path), "The [MASK] sat on the [MASK] ."
    pd.testing.assert_frame_equal(study.ask(text), query.ask(tiny_results, text).table)
    tracked = study.ask(text, [8, 16], track="rivers", mask=2)
    assert tracked["step"].tolist() == [8, 16] and {*tracked["mask"]} == {2} and {*tracked["token"]} == {"rivers"}
    layers = study.ask(text, [16], mask=2, layers=True, k=3)
    pd.testing.assert_frame_equal(layers, query.ask_layers(tiny_results, text, 2, [16], 3).table)


def test_a_run_without_results_has_empty_tables(own_run: Run):
    """Nothing measured is an empty table with its columns, no error."""
    study = embryo.open(own_run.path)
    assert study.scores().empty and study.words().empty and study.attention(1, 1).empty
    assert set(study.findings()["verdict"]) == {"cannot be said"}


def test_an_unknown_run_is_told(tiny_results: Run):
    """The name that was asked for stands in the error."""
    with pytest.raises(UnknownRun, match="no-such-run"):
        embryo.open("no-such-run")


def test_the_document_is_true(monkeypatch: pytest.MonkeyPatch):
    """Every example of docs/python.md prints what stands there, on the demo."""
    monkeypatch.setenv("EMBRYO_DATA", str(demo.FOLDER))
    text = DOCUMENT.read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, "docs/python.md", str(DOCUMENT), 0)
    assert len(test.examples) > 10
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
