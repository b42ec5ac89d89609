"""Texts of development examples, read again from the data where they are at hand: results hold none."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from embryo_core import corpora, results
from embryo_core.finetune.forms import GLUE, SQUAD, evaluation
from embryo_core.finetune.tasks import read_split, text_columns
from embryo_core.types import Run


def find_data(run: Run, task: str, roots: Iterable[Path]) -> Path | None:
    """The folder of the very data that a task's results are of, in `corpora/` of these folders; None without one."""
    noted = {
        source.get("sha256")
        for name, source in results.read_sources(run).items()
        if name.startswith(evaluation(task, ""))
    }
    own = Path("glue", task) if task in GLUE else Path(task)
    for folder in (root / "corpora" / own for root in roots):
        if folder.is_dir() and corpora.open_source(folder).sha256 in noted:
            return folder
    return None


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
