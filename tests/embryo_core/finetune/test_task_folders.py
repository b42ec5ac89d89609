"""Tests that task data are downloaded at a fixed commit, and found later only if they are exactly those scored."""

from pathlib import Path

import datasets
import httpx2
import pytest

from embryo_core import corpora, results, runs
from embryo_core.commands.fetch import fetch
from embryo_core.errors import CorpusError
from embryo_core.finetune.squad import read_squad
from embryo_core.finetune.task_folders import find_task_data, read_texts
from embryo_core.finetune.task_specs import GLUE, results_name
from embryo_core.finetune.tasks import data_sha256, read_task
from embryo_core.types import Run
from tests.embryo_core.finetune.conftest import sentences, write_cola, write_pairs, write_split, write_squad

# === Downloading ===


class Hub:
    """Replace the Hugging Face Hub by small tasks in their own columns; the split `missing` cannot be reached."""

    def __init__(self, squad: Path):
        self.squad = squad
        self.asked: list[tuple[str, str | None, str]] = []
        self.missing: tuple[str | None, str] | None = None
        self.reason: Exception = ConnectionError("no route to the Hub")
        self.label = "label"

    def load(self, repository: str, name: str | None, split: str, revision: str, cache_dir: str) -> datasets.Dataset:
        self.asked.append((repository, name, split))
        assert len(revision) == 40
        if (name, split) == self.missing:
            raise self.reason
        if name is None:
            return datasets.Dataset.from_parquet(str(self.squad / f"{split}.parquet"), cache_dir=cache_dir)
        texts, labels = sentences(12, seed=1)
        labels = [float(label) for label in labels] if name == "stsb" else labels
        if name == "mnli":
            labels = [i % 3 for i in range(12)]
        columns = {text: texts for text in GLUE[name].texts}
        return datasets.Dataset.from_dict({**columns, self.label: labels})


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """Let `datasets` read from a small Hub."""
    hub = Hub(write_squad(tmp_path / "there", unanswerable=True))
    monkeypatch.setattr(datasets, "load_dataset", hub.load)
    return hub


def test_glue_has_a_folder_per_task(stand_in: Hub, tmp_path: Path):
    """MNLI has the matched validation, WNLI is left out, and folders that exist are not downloaded again."""
    folders = fetch("glue", tmp_path / "corpora")
    assert [folder.name for folder in folders] == list(GLUE)
    assert all(len(read_task(folder.name, folder).train.texts) == 12 for folder in folders)
    assert ("nyu-mll/glue", "mnli", "validation_matched") in stand_in.asked
    assert {path.name for path in folders[0].parent.iterdir()} == set(GLUE)
    asked = len(stand_in.asked)
    assert fetch("glue", tmp_path / "corpora") == folders and len(stand_in.asked) == asked


def test_squad_is_version_2(stand_in: Hub, tmp_path: Path):
    """The data are stored in corpora/squad, where `finetune` finds them."""
    assert fetch("squad", tmp_path / "corpora") == [tmp_path / "corpora" / "squad"]
    assert read_squad(tmp_path / "corpora" / "squad").unanswerable
    assert stand_in.asked == [("rajpurkar/squad_v2", None, "train"), ("rajpurkar/squad_v2", None, "validation")]


def test_broken_connection_is_reported(stand_in: Hub, tmp_path: Path):
    """An exception of the HTTP client is reported like any other."""
    stand_in.missing, stand_in.reason = ("sst2", "validation"), httpx2.ReadError("peer closed the connection")
    with pytest.raises(CorpusError, match=r"'sst2' could not be fetched .*peer closed the connection"):
        fetch("glue", tmp_path)


def test_incomplete_task_leaves_no_folder(stand_in: Hub, tmp_path: Path):
    """Tasks before it stay, and the next call downloads the rest."""
    stand_in.missing = ("sst2", "validation")
    with pytest.raises(CorpusError, match=r"'sst2' could not be fetched from nyu-mll/glue .*no route to the Hub"):
        fetch("glue", tmp_path)
    assert [path.name for path in (tmp_path / "glue").iterdir()] == ["cola"]
    stand_in.missing = None
    assert len(fetch("glue", tmp_path)) == len(GLUE)


def test_failed_first_download_leaves_nothing(stand_in: Hub, tmp_path: Path):
    """Even the parent folder is not created."""
    stand_in.missing = (None, "train")
    with pytest.raises(CorpusError, match="'squad' could not be fetched"):
        fetch("squad", tmp_path / "corpora")
    assert not (tmp_path / "corpora").exists()


def test_data_without_the_columns_of_a_task_are_refused(stand_in: Hub, tmp_path: Path):
    """The error names the missing column, and no folder is left."""
    stand_in.label = "target"
    with pytest.raises(CorpusError, match=r"nyu-mll/glue .* 'cola' .* no column 'label'"):
        fetch("glue", tmp_path)
    assert not (tmp_path / "glue").exists()


# === Finding the data of results ===


def note(run: Run, task: str, folder: Path) -> None:
    """Record a fine-tuning of the run on these data."""
    identity = {"data": folder.name, "sha256": corpora.open_source(folder).sha256, "limit": None}
    results.note_dataset(run, results_name(task, 1), identity, {"note": ""})


@pytest.mark.parametrize(("task", "place"), [("cola", "glue/cola"), ("mine", "mine")])
def test_data_are_found_in_a_data_folder(own_run: Run, tmp_path: Path, task: str, place: str):
    """GLUE's are in corpora/glue/ and others in corpora/; the first data folder may have none."""
    folder = write_cola(tmp_path / "second" / "corpora" / place)
    note(own_run, task, folder)
    assert find_task_data(own_run, task, [tmp_path / "first", tmp_path / "second"]) == folder
    assert find_task_data(own_run, task, [tmp_path / "first"]) is None


def test_changed_data_are_not_found(own_run: Run, tmp_path: Path):
    """Data of a task without results are not found either."""
    folder = write_cola(tmp_path / "corpora" / "glue" / "cola")
    assert find_task_data(own_run, "cola", [tmp_path]) is None
    note(own_run, "cola", folder)
    write_cola(folder, n=20)
    assert find_task_data(own_run, "cola", [tmp_path]) is None


def test_data_are_found_in_a_remembered_folder(own_run: Run, tmp_path: Path):
    """The user's settings hold the folder, which no longer counts after its content has changed."""
    folder = write_cola(tmp_path / "elsewhere")
    note(own_run, "mine", folder)
    assert find_task_data(own_run, "mine", []) is None
    runs.remember_folder(data_sha256("mine", folder), folder)
    assert find_task_data(own_run, "mine", []) == folder
    write_cola(folder, n=20)
    assert find_task_data(own_run, "mine", []) is None


def test_path_noted_in_a_run_is_never_read(own_run: Run, tmp_path: Path):
    """The results may be untrusted; a damaged list of remembered folders does not change this."""
    folder = write_cola(tmp_path / "elsewhere")
    identity = {"data": str(folder), "sha256": data_sha256("mine", folder), "folder": str(folder), "limit": None}
    results.note_dataset(own_run, results_name("mine", 1), identity, {"note": ""})
    assert find_task_data(own_run, "mine", []) is None
    (tmp_path / "settings" / "embryo").mkdir(parents=True)
    (tmp_path / "settings" / "embryo" / "tasks.json").write_text("[")
    assert find_task_data(own_run, "mine", []) is None


@pytest.mark.parametrize("absolute", [True, False])
def test_path_as_a_task_name_is_never_followed(own_run: Run, tmp_path: Path, absolute: bool):
    """Untrusted results may name any path, even one that leads to the right data from a data folder."""
    folder = write_cola(tmp_path / "elsewhere")
    (tmp_path / "corpora").mkdir()
    task = str(folder) if absolute else "../elsewhere"
    note(own_run, task, folder)
    assert find_task_data(own_run, task, [tmp_path]) is None
    assert (tmp_path / "corpora" / task).resolve() == folder


def test_pair_of_texts_is_read_as_two_columns(tmp_path: Path):
    """The columns are those of the validation data, for MNLI the matched ones; other tasks have their own columns."""
    texts, _ = sentences(20, seed=4)
    read_rows = read_texts("mnli", write_pairs(tmp_path / "mnli", 3, "validation_matched"))
    assert list(read_rows) == ["premise", "hypothesis"] and read_rows["premise"].tolist() == texts
    mine = write_split(tmp_path / "mine", "validation", sentence=["a", "b"], label=[0, 1])
    assert read_texts("mine", mine)["sentence"].tolist() == ["a", "b"]


def test_questions_are_read_with_paragraph_and_answer(tmp_path: Path):
    """Rows are named by the question's id; the answer is empty if the question has none."""
    texts = read_texts("squad", write_squad(tmp_path, unanswerable=True))
    assert list(texts.index) == ["q0", "q1", "q2", "q3"]
    assert texts["answers"].tolist() == ["house", "", "king", "Snow"]
    assert all(answer.lower() in texts["context"][i].lower() for i, answer in texts["answers"].items())


def test_missing_validation_data_are_reported(tmp_path: Path):
    with pytest.raises(CorpusError, match=r"no validation\.parquet"):
        read_texts("cola", tmp_path)
