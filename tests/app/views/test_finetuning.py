"""Tests of the Fine-tuning page: with results, without, with a broken file, and with hostile names."""

import pytest

from embryo_core import corpora
from embryo_core import results as store
from embryo_core.errors import ResultsError
from embryo_core.measurements import Findings, TaskScore
from embryo_core.types import Run
from tests.app.conftest import captions_of
from tests.conftest import checkpoint_at
from tests.embryo_core.finetune.conftest import write_split, write_squad
from tests.tuned import store_questions, store_tuning


@pytest.fixture
def tuned_run(own_run: Run) -> Run:
    """Return a run with results on a GLUE task and on a user's task."""
    store_tuning(own_run, "rte")
    store_tuning(own_run, "my-task")
    return own_run


def test_table_shows_how_much_pretraining_a_task_needs(open_view, tuned_run):
    """A row has the score at the chosen and the last step, the best step, and when 95 % of the last was reached."""
    test = open_view(tuned_run, step="8")
    assert not test.exception and not test.error
    table = test.dataframe[0].value.set_index("task")
    assert list(table.index) == ["my-task", "RTE"]
    assert (table.loc["RTE", "now"], table.loc["RTE", "last"], table.loc["RTE", "best"]) == (0.75, 1.0, 16)
    assert table.loc["RTE", "95 %"].startswith("16 (")
    assert any("a single seed" in caption for caption in captions_of(test))
    assert not any("GLUE average" in caption for caption in captions_of(test))  # of a single task of GLUE


def test_examples_are_filtered_by_history(open_view, tuned_run):
    """The histories are those of facts; the URL names the chosen one, and a caption the command that fetches texts."""
    test = open_view(tuned_run, task="rte", example_history="oscillating")
    listed = test.dataframe[-1].value
    assert listed[["step 0", "step 8", "step 16", "gold"]].to_dict("index") == {
        3: {"step 0": 1, "step 8": 0, "step 16": 1, "gold": 1}
    }
    assert any("python -m embryo_core fetch glue" in caption for caption in captions_of(test))
    assert test.query_params["example_history"] in ("oscillating", ["oscillating"])


def test_texts_of_examples_are_read_from_task_data(open_view, own_run):
    """Texts and names of labels are shown, and the command that fetches them is not; the results have no texts."""
    folder = own_run.path.parents[1] / "corpora" / "glue" / "rte"
    texts = list("abcd")
    write_split(folder, "validation", sentence1=texts, sentence2=texts[::-1], label=[1, 1, 0, 1])
    store_tuning(own_run, "rte", corpora.open_source(folder).sha256, ("entailment", "not_entailment"))
    test = open_view(own_run)
    listed = test.dataframe[-1].value
    assert listed.loc[0, ["sentence1", "sentence2", "gold", "step 0"]].tolist() == [
        "a", "d", "not_entailment", "entailment"
    ]  # fmt: skip
    assert not any("fetch glue" in caption for caption in captions_of(test))


def test_squad_has_exact_match_beside_f1(open_view, own_run):
    """Each score has the step at which it reached 95 % of its last value, and each question has a history."""
    store_questions(own_run)
    test = open_view(own_run, step="8")
    assert not test.exception and not test.error
    table = test.dataframe[0].value.set_index("task")
    assert table["now"].to_dict() == {"SQuAD": 0.5, "SQuAD EM": 0.0}
    assert table["95 %"].tolist() == ["16 (16 to 16)"] * 2
    assert test.dataframe[-1].value.loc["q0", ["history", "step 8"]].tolist() == ["learned", 0.5]
    assert any("python -m embryo_core fetch squad" in caption for caption in captions_of(test))


def test_squad_answers_are_words_if_paragraphs_are_available(open_view, own_run):
    """The row of a question has its text, the gold answers and the answer at each step."""
    folder = write_squad(own_run.path.parents[1] / "corpora" / "squad")
    store_questions(own_run, corpora.open_source(folder).sha256)
    listed = open_view(own_run).dataframe[-1].value
    assert listed.loc["q0", ["question", "answers", "step 0", "step 16"]].tolist() == [
        "What is house ?", "house", "(none)", "kin"
    ]  # fmt: skip


def test_error_of_one_task_leaves_others(open_view, tuned_run, monkeypatch):
    """A warning names the task; the table and the list of examples are drawn."""
    read = store.read_reached

    def broken_outcome(run, task, metric, spans=False):
        if task == "rte":
            raise ResultsError("Some steps lack answers to examples of the task.")
        return read(run, task, metric, spans)

    monkeypatch.setattr(store, "read_reached", broken_outcome)
    test = open_view(tuned_run, step="8")
    assert not test.exception and not test.error
    assert [warning.value.replace("\\", "").split(":")[0] for warning in test.warning] == ["RTE"]
    table = test.dataframe[0].value.set_index("task")
    assert table.loc["my-task", "95 %"].startswith("16 (") and len(table) == 2
    assert "gold" in test.dataframe[-1].value


def test_seeds_on_different_data_are_never_averaged(open_view, tuned_run):
    """The second seed records other data than the first, so it is left out and named in a caption."""
    scores = [TaskScore("rte", 2, "model", "accuracy", 0.0, 9)]
    data = {"sha256": "1" * 64, "protocol": "quick"}
    store.write(checkpoint_at(tuned_run, 8), "finetuning:rte:2", Findings(task_scores=scores), data, {"labels": []})
    test = open_view(tuned_run, step="8")
    table = test.dataframe[0].value.set_index("task")
    assert table.loc["RTE", ["now", "n", "seeds"]].tolist() == [0.75, 4, 1]
    assert any("first seed: RTE with seed 2" in caption for caption in captions_of(test))


def test_empty_choice_of_tasks_gets_message(open_view, tuned_run):
    """A link that names no known task is reported too."""
    test = open_view(tuned_run, tasks="none")
    assert not test.exception and any("'none'" in info.value.replace("\\", "") for info in test.info)
    test.session_state["permalink"]["tasks"] = ""  # as the reader does who clears the pills
    test.session_state["permalink_link"] = (None, set())
    test.run()
    assert any("Choose at least one task" in info.value for info in test.info)


def test_task_in_link_hidden_by_filter_is_reported(open_view, tuned_run):
    """The message names the filter that hides an existing task, and the URL is unchanged."""
    test = open_view(tuned_run, tasks="my-task", task="rte")
    sentence = "The link has the task 'rte', which is hidden by the choice of Tasks; showing 'my-task'."
    assert sentence in [info.value.replace("\\", "") for info in test.info] and test.query_params["task"] == "rte"
    gone = open_view(tuned_run, tasks="my-task", task="gone")
    assert any("'gone', which is not here" in info.value.replace("\\", "") for info in gone.info)


def test_page_without_results_shows_fine_tuning_command(open_view, tiny_run):
    """A message says that the run has not been fine-tuned."""
    test = open_view(tiny_run)
    assert not test.exception and not test.error
    assert "has not been fine-tuned yet" in test.info[0].value.replace("\\", "")
    assert "python -m embryo_core finetune tiny" in test.code[0].value


def test_broken_file_is_named_in_message(open_view, own_run):
    """A results file that is not Parquet leads to an error message instead of a traceback."""
    own_run.results.mkdir(parents=True)
    (own_run.results / "task_scores.parquet").write_bytes(b"not parquet")
    test = open_view(own_run)
    assert not test.exception
    assert "task_scores.parquet" in test.error[0].value.replace("\\", "")


def test_task_names_are_never_rendered_as_markup(open_view, own_run):
    """Results from elsewhere may give a task any name."""
    store_tuning(own_run, "![x](https:)")
    test = open_view(own_run)
    assert not test.exception
    written = [element.value for element in (*test.markdown, *test.header, *test.caption)]
    written += [caption.help or "" for caption in test.caption]
    assert not any("![x](" in text for text in written)
