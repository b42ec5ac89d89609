"""Tests of the data of fine-tuning tasks, which are searched for, and read again when they change."""

import shutil
from pathlib import Path

import pytest

from app import task_data
from embryo_core import corpora, runs
from embryo_core.finetune import task_folders
from embryo_core.types import Run
from tests.embryo_core.finetune.conftest import write_split
from tests.tuned import store_tuning


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the tasks whose data are searched for; a search reads the data completely."""
    searched_tasks, find = [], task_folders.find_task_data

    def counted(run: Run, task: str, roots: list[Path]) -> Path | None:
        searched_tasks.append(task)
        return find(run, task, roots)

    monkeypatch.setattr(task_folders, "find_task_data", counted)
    return searched_tasks


@pytest.fixture
def remembered_folder(own_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of task data outside all data roots, which the user's settings remember."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    folder = tmp_path / "elsewhere" / "rte"
    write_split(folder, "validation", sentence1=list("abcd"), sentence2=list("dcba"), label=[1, 1, 0, 1])
    sha256 = corpora.open_source(folder).sha256
    store_tuning(own_run, "rte", sha256, ("entailment", "not_entailment"))
    runs.remember_folder(sha256, folder)
    return folder


def test_unchanged_data_are_searched_for_once(own_run: Run, remembered_folder: Path, searched: list[str]) -> None:
    """New files elsewhere in the data root start no further search."""
    for _ in range(2):
        assert task_data.read_texts(own_run, "rte")["sentence1"].tolist() == list("abcd")
        assert len(task_data.read_examples(own_run, "rte", 1)) == 4
        write_split(own_run.path.parents[1] / "corpora" / "download" / "x", "train", sentence1=["a"], label=[0])
    assert searched == ["rte"]


def test_changed_data_are_no_longer_shown(own_run: Run, remembered_folder: Path, searched: list[str]) -> None:
    """The folder is only remembered by the settings; its new texts are not those behind the results."""
    assert task_data.read_texts(own_run, "rte") is not None
    write_split(remembered_folder, "validation", sentence1=list("efgh"), sentence2=list("dcba"), label=[1, 1, 0, 1])
    assert task_data.read_texts(own_run, "rte") is None and len(searched) == 2


def test_restored_data_are_found_after_retry_interval(
    own_run: Run, remembered_folder: Path, searched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing data are searched for only every RETRY_SECONDS seconds, not at each step."""
    away = shutil.move(remembered_folder, remembered_folder.with_name("away"))
    for _ in range(3):
        assert task_data.read_texts(own_run, "rte") is None
    assert len(searched) == 1
    shutil.move(away, remembered_folder)
    monkeypatch.setattr(task_data, "RETRY_SECONDS", 0)
    assert task_data.read_texts(own_run, "rte") is not None and len(searched) == 2
