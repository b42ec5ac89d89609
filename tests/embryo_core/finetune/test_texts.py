"""Texts of development examples come from the very data that were scored on, and from nowhere else."""

from pathlib import Path

import pytest

from embryo_core import corpora, results
from embryo_core.errors import CorpusError
from embryo_core.finetune.forms import evaluation
from embryo_core.finetune.tasks import data_sha256
from embryo_core.finetune.texts import find_data, read_texts, remember
from embryo_core.types import Run
from tests.embryo_core.finetune.conftest import sentences, write_cola, write_pairs, write_split, write_squad


def note(run: Run, task: str, folder: Path) -> None:
    """As if the run had been fine-tuned on these data."""
    identity = {"data": folder.name, "sha256": corpora.open_source(folder).sha256, "limit": None}
    results.begin(run, evaluation(task, 1), identity, {"note": ""}, overwrite=False)


@pytest.mark.parametrize(("task", "place"), [("cola", "glue/cola"), ("mine", "mine")])
def test_data_are_found_in_a_data_folder(own_run: Run, tmp_path: Path, task: str, place: str):
    """GLUE's in corpora/glue/, others in corpora/; the first folder may have none."""
    folder = write_cola(tmp_path / "second" / "corpora" / place)
    note(own_run, task, folder)
    assert find_data(own_run, task, [tmp_path / "first", tmp_path / "second"]) == folder
    assert find_data(own_run, task, [tmp_path / "first"]) is None


def test_other_data_are_not_taken_for_them(own_run: Run, tmp_path: Path):
    """Nor are data of a task that has no results."""
    folder = write_cola(tmp_path / "corpora" / "glue" / "cola")
    assert find_data(own_run, "cola", [tmp_path]) is None
    note(own_run, "cola", folder)
    write_cola(folder, n=20)
    assert find_data(own_run, "cola", [tmp_path]) is None


def test_data_are_found_where_this_user_fine_tuned_on_them(own_run: Run, tmp_path: Path):
    """By the user's own settings; a folder whose content is another by now is not."""
    folder = write_cola(tmp_path / "elsewhere")
    note(own_run, "mine", folder)
    assert find_data(own_run, "mine", []) is None
    remember(data_sha256("mine", folder), folder)
    assert find_data(own_run, "mine", []) == folder
    write_cola(folder, n=20)
    assert find_data(own_run, "mine", []) is None


def test_a_path_that_a_run_names_is_never_read(own_run: Run, tmp_path: Path):
    """Whatever else its notes hold, or the list is not."""
    folder = write_cola(tmp_path / "elsewhere")
    identity = {"data": str(folder), "sha256": data_sha256("mine", folder), "folder": str(folder), "limit": None}
    results.begin(own_run, evaluation("mine", 1), identity, {"note": ""}, overwrite=False)
    assert find_data(own_run, "mine", []) is None
    (tmp_path / "settings" / "embryo").mkdir(parents=True)
    (tmp_path / "settings" / "embryo" / "tasks.json").write_text("[")
    assert find_data(own_run, "mine", []) is None


@pytest.mark.parametrize("absolute", [True, False])
def test_a_path_in_place_of_a_tasks_name_is_never_followed(own_run: Run, tmp_path: Path, absolute: bool):
    """Results of a stranger's may name any: the folder is the right data, and not where data are looked for."""
    folder = write_cola(tmp_path / "elsewhere")
    (tmp_path / "corpora").mkdir()
    task = str(folder) if absolute else "../elsewhere"
    note(own_run, task, folder)
    assert find_data(own_run, task, [tmp_path]) is None
    assert (tmp_path / "corpora" / task).resolve() == folder


def test_a_pair_has_two_columns_by_its_row(tmp_path: Path):
    """Of the validation data; MNLI's are the matched ones, an own task's are known by their columns."""
    texts, _ = sentences(20, seed=4)
    found = read_texts("mnli", write_pairs(tmp_path / "mnli", 3, "validation_matched"))
    assert list(found) == ["premise", "hypothesis"] and found["premise"].tolist() == texts
    mine = write_split(tmp_path / "mine", "validation", sentence=["a", "b"], label=[0, 1])
    assert read_texts("mine", mine)["sentence"].tolist() == ["a", "b"]


def test_questions_have_paragraph_and_answers_by_their_id(tmp_path: Path):
    """None where a question has none."""
    found = read_texts("squad", write_squad(tmp_path, unanswerable=True))
    assert list(found.index) == ["q0", "q1", "q2", "q3"]
    assert found["answers"].tolist() == ["house", "", "king", "Snow"]
    assert all(answer.lower() in found["context"][i].lower() for i, answer in found["answers"].items())


def test_data_that_cannot_be_read_are_told(tmp_path: Path):
    """As when they are tuned on."""
    with pytest.raises(CorpusError, match="no validation.parquet"):
        read_texts("cola", tmp_path)
