"""Folders of task data: download them from the Hugging Face Hub, and find those with the texts of stored results.

Results contain no texts. A run may be untrusted, so its results record a hash of the data, never a path, and the data
are searched for only in this user's folders and settings.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pandas as pd

from embryo_core import corpora, results, runs
from embryo_core.errors import CorpusError
from embryo_core.finetune.squad import read_squad
from embryo_core.finetune.task_specs import GLUE, SQUAD, is_task_name, results_name, validation_split
from embryo_core.finetune.tasks import data_sha256, read_split, read_task, text_columns
from embryo_core.results import write_foreign
from embryo_core.types import Run

# Pinned to a commit, so that the content never changes. SQuAD is version 2.0, as in the paper.
SOURCES = {
    "glue": ("nyu-mll/glue", "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"),
    SQUAD: ("rajpurkar/squad_v2", "3ffb306f725f7d2ce8394bc1873b24868140c412"),
}


# === Downloading ===


def fetch_tasks(source: str, into: Path) -> list[Path]:
    """Download "glue" or "squad" below the folder `into`; return the folder of each task. Existing folders are kept.

    A task's folder appears only when it is complete. Raises CorpusError without a connection, without the package
    datasets, or if the content is wrong.
    """
    tasks = {name: into / source / name for name in GLUE} if source == "glue" else {SQUAD: into / source}
    for name, folder in tasks.items():
        if folder.exists():
            continue
        with runs.replacing(folder) as temporary:
            temporary.mkdir()
            _download(source, name, temporary)
            try:
                read_squad(temporary) if name == SQUAD else read_task(name, temporary)
            except CorpusError as reason:
                raise CorpusError(
                    f"The data fetched from {SOURCES[source][0]} are not those of '{name}' "
                    f"({str(reason).rstrip('.')}); try again, or download them by hand."
                ) from None
    return list(tasks.values())


def _download(source: str, name: str, folder: Path) -> None:
    """Download the training and validation splits of a task as parquet files. Raises CorpusError."""
    from httpx2 import HTTPError

    try:
        import datasets
    except ImportError:
        raise CorpusError(f"Fetching {source} needs the package datasets; run: pip install datasets") from None
    repository, commit = SOURCES[source]
    options = {"name": None if name == SQUAD else name, "revision": commit, "cache_dir": str(folder.parent / "cache")}
    for split in ("train", validation_split(name)):
        try:
            rows = datasets.load_dataset(repository, split=split, **options)
        except (OSError, ValueError, HTTPError, datasets.exceptions.DatasetsError) as reason:
            why = " ".join(str(reason).split())[:200]
            raise CorpusError(
                f"'{name}' could not be fetched from {repository} on the Hugging Face Hub ({why}); try again."
            ) from None
        write_foreign(rows, folder / f"{split}.parquet")


# === Finding the data of results ===


def find_task_data(run: Run, task: str, roots: Iterable[Path]) -> Path | None:
    """Return a folder with exactly the data of a task's results, or None.

    The search covers `corpora` below each root, and the folders on which this user fine-tuned before.
    """
    recorded_hashes = {
        str(source.get("sha256"))
        for name, source in results.read_sources(run).items()
        if name.startswith(results_name(task, ""))
    }
    subfolder = Path("glue", task) if task in GLUE else Path(task)
    # untrusted results may contain any name, even a path
    candidates = [root / "corpora" / subfolder for root in roots] if is_task_name(task) else []
    return corpora.find_data(recorded_hashes, candidates, partial(_hashes, task))


def _hashes(task: str, folder: Path) -> Iterator[str]:
    """Yield the hash of the data, and that of the whole folder, which results of old versions have."""
    with suppress(CorpusError):  # a split is missing
        yield data_sha256(task, folder)
    yield corpora.open_source(folder).sha256


def read_texts(task: str, folder: Path) -> pd.DataFrame:
    """Read the texts of the validation examples, indexed by row, or for SQuAD by question id. Raises CorpusError."""
    columns = read_split(folder, validation_split(task))
    if task == SQUAD:
        answers = [", ".join(dict.fromkeys(answer["text"])) for answer in columns["answers"]]
        texts = {name: columns[name] for name in ("question", "context")} | {"answers": answers}
        return pd.DataFrame(texts, index=pd.Index(columns["id"], name="id"))
    names = GLUE[task].texts if task in GLUE else text_columns(folder, columns)
    return pd.DataFrame({name: columns[name] for name in names})
