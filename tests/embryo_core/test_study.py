"""Tests of Study: the tables of a run's results, live answers, and documents whose examples run."""

import ast
import doctest
import json
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import embryo_core as embryo
from embryo_core import query, results
from embryo_core.curves import baselines
from embryo_core.errors import EmbryoError, ResultsError, UnknownRun, UnknownStep
from embryo_core.types import Run
from tests import demo
from tests.conftest import SAMPLE_DATA

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_tables_equal_those_of_the_results(tiny_results: Run):
    """The run is opened by its path, and each table is compared with that of its reader."""
    study = embryo.open(tiny_results.path)
    assert study.steps == (0, 8, 16) and study.run == tiny_results
    pd.testing.assert_frame_equal(study.scores("mask_prediction"), results.read_scores(tiny_results, "mask_prediction"))
    pd.testing.assert_frame_equal(
        study.words(group="noun", step=8), results.read_words(tiny_results, "mask_prediction", "noun", 8)
    )
    assert study.baselines().equals(baselines.fact_baselines(results.read_histories(tiny_results)))
    last = results.read_words(tiny_results, "mask_prediction", step=16)
    assert study.baselines("mask_prediction").equals(baselines.word_baselines(last, cased=False))
    pd.testing.assert_frame_equal(study.cloze("P36"), results.read_cloze(tiny_results, "P36"))
    pd.testing.assert_frame_equal(study.task_scores("rte"), results.read_task_scores(tiny_results, "rte"))


def test_attention_has_a_row_for_each_position_pair(tiny_results: Run):
    """Each row has a weight of the head's history, its step and its two positions."""
    rows = embryo.open(tiny_results.path).attention(2, 1)
    history = results.read_attention(tiny_results, 2, 1)
    assert len(rows) == history.weights.size
    steps = history.steps.tolist()
    for row in rows.sample(50, random_state=1).itertuples():
        assert row.weight == history.weights[steps.index(row.step), row.origin, row.target]


def test_query_answers_at_last_or_given_step(tiny_results: Run):
    """Ranked answers of both masks equal those of `query.ask`."""
    study, text = embryo.open(tiny_results.path), "The [MASK] sat on the [MASK] ."
    for step, asked in ((None, 16), (8, 8)):
        answers = query.ask(tiny_results, text, [asked], 3)
        expected = [answers.best(asked, mask) for mask in (1, 2)]
        rows = study.query(text, step, k=3)
        assert [list(group["token"]) for _, group in rows.groupby("mask")] == [
            [answer.token for answer in mask] for mask in expected
        ]
        assert rows["rank"].tolist() == [1, 2, 3] * 2


def test_ask_returns_answers_of_all_steps_in_one_table(tiny_results: Run):
    """Tables equal those of `query.ask` and `query.ask_layers`; that of a tracked word has only this word."""
    study, text = embryo.open(tiny_results.path), "The [MASK] sat on the [MASK] ."
    pd.testing.assert_frame_equal(study.ask(text).drop(columns="given"), query.ask(tiny_results, text).table)
    tracked = study.ask(text, [8, 16], track="rivers", mask=2)
    assert tracked["step"].tolist() == [8, 16] and {*tracked["mask"]} == {2} and {*tracked["token"]} == {"rivers"}
    layers = study.lens(text, 2, [16], k=3)
    pd.testing.assert_frame_equal(layers.drop(columns="given"), query.ask_layers(tiny_results, text, 2, [16], 3).table)


def test_run_without_results_has_empty_tables(own_run: Run):
    """Attention maps have no empty form, so the error names the command that computes them."""
    study = embryo.open(own_run.path)
    assert study.scores().empty and study.scores("mask_prediction").empty and study.words().empty
    with pytest.raises(ResultsError, match="evaluate"):
        study.attention(1, 1)
    assert set(study.findings()["verdict"]) == {"undecided"}


def test_unknown_run_is_named(tiny_results: Run):
    with pytest.raises(UnknownRun, match="no-such-run"):
        embryo.open("no-such-run")


def test_document_examples_print_what_it_shows(monkeypatch: pytest.MonkeyPatch):
    """Every example of docs/python.md runs on the demo."""
    monkeypatch.setenv("EMBRYO_DATA", str(demo.FOLDER))
    text = DOCUMENT.read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, "docs/python.md", str(DOCUMENT), 0)
    assert len(test.examples) > 10
    messages: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=messages.append)
    assert not runner.failures, "".join(messages)


def test_conditional_answers_name_the_given_words(tiny_results: Run):
    """Masks after the first are answered given the best joint answer for the masks before."""
    table = embryo.open(tiny_results.path).ask("The [MASK] sat on the [MASK] .", k=3)
    assert set(table[table["mask"] < 2]["given"]) == {""}
    for step, rows in table.groupby("step"):
        best = rows[(rows["mask"] == query.TOGETHER) & (rows["rank"] == 1)]["token"].iloc[0]
        assert set(rows[rows["mask"] == 2]["given"]) == {best.split(query.SEPARATOR)[0]}, step


def test_lens_has_the_answers_of_each_layer(tiny_results: Run):
    """The answers of the last layer are those of the model."""
    study, text = embryo.open(tiny_results.path), "The [MASK] sat ."
    table = study.lens(text, k=2)
    assert set(table["layer"]) == {0, 1, 2} and set(table["step"]) == {0, 8, 16}
    last, own = table[table["layer"] == 2], study.ask(text, k=2)
    assert last["token"].tolist() == own[own["listed"]]["token"].tolist()


def test_study_gives_checkpoint_and_model(tiny_results: Run):
    """User code gets the folder for transformers and the facade for arrays."""
    study = embryo.open(tiny_results.path)
    assert study.checkpoint(8).path == tiny_results.path / "checkpoints" / "step8"
    assert study.model(8).checkpoint == study.checkpoint(8)
    with pytest.raises(UnknownStep, match="8"):
        study.checkpoint(9)


def test_study_html_shows_the_design(tiny_results: Run):
    """Markup in names is escaped."""
    card = embryo.Study(replace(tiny_results, objective="masked <b> + order"))._repr_html_()
    assert "albert" in card and "<b>" not in card and "hidden size" in card


def test_metric_scores_include_all_measures(tiny_results: Run):
    """The rows have the names of the measures."""
    study = embryo.open(tiny_results.path)
    scores, every = study.scores("head_behaviour"), study.scores()
    assert {*scores["metric"]} == {name for name in every["metric"] if name.startswith("head_behaviour_")} != set()
    assert len(scores) == every["metric"].isin(scores["metric"]).sum()


@pytest.mark.parametrize(
    ("read", "known"),
    [
        (lambda study: study.scores("nonsense"), "mask_prediction"),
        (lambda study: study.words(group="nonsense"), "noun"),
        (lambda study: study.words(step=5), "16"),
        (lambda study: study.attention(3, 1), "1 to 2"),
        (lambda study: study.task_scores("nonsense"), "rte"),
        (lambda study: embryo.evaluate(study, ["nonsense"]), "mask_prediction"),
        (lambda study: embryo.evaluate(study, nonsense=1), "as_written"),
    ],
)
def test_unknown_names_list_the_known_ones(tiny_results: Run, read, known: str):
    """No reader answers with an empty table instead."""
    with pytest.raises(EmbryoError, match=known):
        read(embryo.open(tiny_results.path))


def test_run_is_added_evaluated_and_compared(tiny_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The functions of a notebook lead from a folder of checkpoints to a table of two runs."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path))
    study = embryo.add(tiny_run.path / "checkpoints", "mine", tokenizer=str(tiny_run.tokenizer))
    report = embryo.evaluate(study, ["mask_prediction"], {"treebank": SAMPLE_DATA["treebank"]}, [8, 16], progress=False)
    assert report.computed == 2 and study.scores("mask_prediction")["step"].unique().tolist() == [8, 16]
    assert embryo.list_runs()[["run", "checkpoints", "last step"]].values.tolist() == [["mine", 3, 16]]
    compared = embryo.compare(["mine", tiny_run])
    assert compared.acquisition["run"].unique().tolist() == ["mine"]
    assert {"mine", tiny_run.name} <= set(compared.design) and "mine" in compared._repr_html_()
    assert compared.differences.empty or compared.differences["difference"].isna().all()


def test_every_exported_name_exists():
    """A name that is not exported raises AttributeError."""
    assert all(getattr(embryo, name) is not None for name in embryo.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        embryo.nonsense  # noqa: B018


def test_notebook_runs(monkeypatch: pytest.MonkeyPatch):
    """Every cell of docs/example.ipynb runs on the demo, and the values of its last lines can be displayed."""
    monkeypatch.setenv("EMBRYO_DATA", str(demo.FOLDER))
    cells = json.loads(DOCUMENT.with_name("example.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    shown = []
    for cell in cells:
        if cell["cell_type"] == "code":
            *lines, last = ast.parse("".join(cell["source"])).body
            exec(compile(ast.Module(lines, []), "cell", "exec"), names)  # noqa: S102
            if isinstance(last, ast.Expr):
                shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
            else:
                exec(compile(ast.Module([last], []), "cell", "exec"), names)  # noqa: S102
    kinds = {type(value).__name__ for value in shown}
    assert {"Study", "DataFrame", "Figure", "ComparedRuns"} <= kinds
    assert all(hasattr(value, "_repr_html_") or hasattr(value, "_repr_mimebundle_") for value in shown)
