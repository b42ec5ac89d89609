"""GLUE and SQuAD are fetched through datasets at one commit, and a task's folder comes once it is whole."""

from pathlib import Path

import datasets
import httpx2
import pytest

from embryo_core.commands.fetch import fetch
from embryo_core.errors import CorpusError
from embryo_core.finetune import hub
from embryo_core.finetune.questions import read_questions
from embryo_core.finetune.tasks import read_task
from tests.embryo_core.finetune.conftest import sentences, write_squad


class Hub:
    """In place of the Hugging Face Hub: small tasks in their own columns; what is in `missing` cannot be reached."""

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
        columns = {text: texts for text in hub.GLUE[name].texts}
        return datasets.Dataset.from_dict({**columns, self.label: labels})


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A Hub that datasets reads."""
    found = Hub(write_squad(tmp_path / "there", unanswerable=True))
    monkeypatch.setattr(datasets, "load_dataset", found.load)
    return found


def test_glue_is_a_folder_for_each_task(stand_in: Hub, tmp_path: Path):
    """MNLI with the matched validation; WNLI is none of them; what is there is not asked for again."""
    folders = fetch("glue", tmp_path / "corpora")
    assert [folder.name for folder in folders] == list(hub.GLUE)
    assert all(len(read_task(folder.name, folder).train.texts) == 12 for folder in folders)
    assert ("nyu-mll/glue", "mnli", "validation_matched") in stand_in.asked
    assert {path.name for path in folders[0].parent.iterdir()} == set(hub.GLUE)
    asked = len(stand_in.asked)
    assert fetch("glue", tmp_path / "corpora") == folders and len(stand_in.asked) == asked


def test_squad_is_version_2(stand_in: Hub, tmp_path: Path):
    """Where `finetune` looks for it."""
    assert fetch("squad", tmp_path / "corpora") == [tmp_path / "corpora" / "squad"]
    assert read_questions(tmp_path / "corpora" / "squad").unanswerable
    assert stand_in.asked == [("rajpurkar/squad_v2", None, "train"), ("rajpurkar/squad_v2", None, "validation")]


def test_a_broken_connection_is_one_sentence(stand_in: Hub, tmp_path: Path):
    """Whatever kind of exception it is."""
    stand_in.missing, stand_in.reason = ("sst2", "validation"), httpx2.ReadError("peer closed the connection")
    with pytest.raises(CorpusError, match="'sst2' could not be fetched .*peer closed the connection"):
        fetch("glue", tmp_path)


def test_a_task_that_came_in_part_leaves_no_folder(stand_in: Hub, tmp_path: Path):
    """Tasks before it stay, and the next call goes on."""
    stand_in.missing = ("sst2", "validation")
    with pytest.raises(CorpusError, match=r"'sst2' could not be fetched from nyu-mll/glue .*no route to the Hub"):
        fetch("glue", tmp_path)
    assert [path.name for path in (tmp_path / "glue").iterdir()] == ["cola"]
    stand_in.missing = None
    assert len(fetch("glue", tmp_path)) == len(hub.GLUE)


def test_nothing_at_all_leaves_nothing(stand_in: Hub, tmp_path: Path):
    """Not even an empty folder."""
    stand_in.missing = (None, "train")
    with pytest.raises(CorpusError, match="'squad' could not be fetched"):
        fetch("squad", tmp_path / "corpora")
    assert not (tmp_path / "corpora").exists()


def test_what_is_not_the_task_is_refused(stand_in: Hub, tmp_path: Path):
    """One sentence with what is missing, and no folder."""
    stand_in.label = "target"
    with pytest.raises(CorpusError, match=r"What nyu-mll/glue sent is not 'cola': .* no column 'label'"):
        fetch("glue", tmp_path)
    assert not (tmp_path / "glue").exists()
