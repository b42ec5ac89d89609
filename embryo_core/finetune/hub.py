"""GLUE and SQuAD as they are on the Hugging Face Hub, fetched through its package datasets."""

from pathlib import Path

from embryo_core import runs
from embryo_core.errors import CorpusError
from embryo_core.finetune.forms import GLUE, SQUAD
from embryo_core.finetune.questions import read_questions
from embryo_core.finetune.tasks import read_task
from embryo_core.results import write_foreign

# Each at one commit, so that the content is always the same. SQuAD is version 2.0, as in the paper.
SOURCES = {
    "glue": ("nyu-mll/glue", "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"),
    SQUAD: ("rajpurkar/squad_v2", "3ffb306f725f7d2ce8394bc1873b24868140c412"),
}


def fetch_tasks(what: str, into: Path) -> list[Path]:
    """Download "glue" or "squad" below the folder `into`; returns the folder of each task. What is there is kept.

    A task's folder comes once it is whole. Raises CorpusError where there is no connection, or the content is another.
    """
    tasks = {name: into / what / name for name in GLUE} if what == "glue" else {SQUAD: into / what}
    for name, folder in tasks.items():
        if not folder.exists():
            _fetch(what, name, folder)
    return list(tasks.values())


def _fetch(what: str, name: str, folder: Path) -> None:
    with runs.replacing(folder) as whole:
        whole.mkdir()
        _download(what, name, whole)
        try:
            read_questions(whole) if name == SQUAD else read_task(name, whole)
        except CorpusError as reason:
            raise CorpusError(f"What {SOURCES[what][0]} sent is not '{name}': {reason}") from None


def _download(what: str, name: str, folder: Path) -> None:
    """Write train and validation as parquet files. Raises CorpusError."""
    from httpx2 import HTTPError

    try:
        import datasets
    except ImportError:
        raise CorpusError(f"Fetching {what} needs the package datasets; run: pip install datasets") from None
    repository, commit = SOURCES[what]
    given = {"name": None if name == SQUAD else name, "revision": commit, "cache_dir": str(folder.parent / "cache")}
    for split in ("train", GLUE[name].validation if name in GLUE else "validation"):
        try:
            rows = datasets.load_dataset(repository, split=split, **given)
        except (OSError, ValueError, HTTPError, datasets.exceptions.DatasetsError) as reason:
            why = " ".join(str(reason).split())[:200]
            raise CorpusError(
                f"'{name}' could not be fetched from {repository} on the Hugging Face Hub ({why}); try again."
            ) from None
        write_foreign(rows, folder / f"{split}.parquet")
