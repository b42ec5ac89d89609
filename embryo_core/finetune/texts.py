"""Texts of development examples, read again from the data where they are at hand: results hold none.

Where data are is asked of this user's folders and own settings alone. A run may be a stranger's: it names a hash, and
never a path.
"""

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import pandas as pd
from msgspec import Meta

from embryo_core import corpora, results, runs
from embryo_core.errors import CorpusError
from embryo_core.finetune.forms import GLUE, SQUAD, evaluation, is_name
from embryo_core.finetune.tasks import data_sha256, read_split, text_columns
from embryo_core.runs.value_types import Sha256, Text
from embryo_core.types import Run

MOST = 1000  # folders that are remembered
Folders = Annotated[dict[Sha256, Text], Meta(max_length=MOST)]


def find_data(run: Run, task: str, roots: Iterable[Path]) -> Path | None:
    """The folder of the very data that a task's results are of; None without one.

    It is in `corpora/` of these folders, or where this user fine-tuned on it.
    """
    noted = {
        str(source.get("sha256"))
        for name, source in results.read_sources(run).items()
        if name.startswith(evaluation(task, ""))
    }
    known = _remembered() if noted else {}
    there = [Path(known[sha256]) for sha256 in sorted(noted & known.keys())]
    if is_name(task):  # a stranger's results may have anything there, such as a path
        own = Path("glue", task) if task in GLUE else Path(task)
        there = [*(root / "corpora" / own for root in roots), *there]
    for folder in there:
        if noted and folder.is_dir() and _is_of(task, folder, noted):
            return folder
    return None


def remember(sha256: str, folder: Path) -> None:
    """Note in this user's settings where the data of this hash are; without a word where these cannot be written."""
    with suppress(OSError, UnicodeEncodeError), runs.locked(runs.settings_folder()):
        known = _remembered() | {sha256: os.path.realpath(folder)}
        runs.write_json(_list(), dict([*known.items()][-MOST:]))


def _remembered() -> dict[str, str]:
    """Folders by the hash of the data in them; none where the list cannot be read."""
    try:
        return runs.read_json(_list(), _list().parent, Folders, CorpusError) if _list().is_file() else {}
    except CorpusError:
        return {}


def _list() -> Path:
    return runs.settings_folder() / "tasks.json"


def _is_of(task: str, folder: Path, noted: Collection[str]) -> bool:
    """Whether results are of these data; those of earlier versions note the hash of the whole folder."""
    try:
        return data_sha256(task, folder) in noted or corpora.open_source(folder).sha256 in noted
    except CorpusError:  # it lacks a split
        return corpora.open_source(folder).sha256 in noted


def read_texts(task: str, folder: Path) -> pd.DataFrame:
    """A column for each text; the index is the example's row. SQuAD: question, context and answer by the question's id.

    Raises CorpusError.
    """
    form = GLUE.get(task)
    columns = read_split(folder, form.validation if form else "validation")
    if task == SQUAD:
        answers = [", ".join(dict.fromkeys(one["text"])) for one in columns["answers"]]
        texts = {name: columns[name] for name in ("question", "context")} | {"answers": answers}
        return pd.DataFrame(texts, index=pd.Index(columns["id"], name="id"))
    names = form.texts if form else text_columns(folder, columns)
    return pd.DataFrame({name: columns[name] for name in names})
