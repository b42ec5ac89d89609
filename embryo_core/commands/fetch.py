"""`fetch` downloads public evaluation data."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from embryo_core import runs
from embryo_core.commands.arguments import Command
from embryo_core.corpora import FETCHED
from embryo_core.errors import CorpusError, unknown

ONTONOTES = (
    "OntoNotes 5.0 is licensed and cannot be fetched; get it from the Linguistic Data Consortium "
    "(https://catalog.ldc.upenn.edu/LDC2013T19) in CoNLL-2012 form, then run: "
    "python -m embryo_core evaluate RUN --treebank PATH"
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the argument of `fetch`: the name of the data."""
    command.add_argument(
        "what", choices=(*FETCHED, "ontonotes"), help="data to download; for ontonotes, print where to get it"
    )


def execute(options: argparse.Namespace) -> int:
    """Download the data and print their paths."""
    for path in fetch(options.what, runs.data_folder("corpora")):
        print(path)
    return 0


def fetch(name: str, into: Path) -> list[Path]:
    """Download "treebank", "lama", "glue" or "squad" into the folder `into`, if missing; return the paths.

    Raises CorpusError without a connection, for unexpected content, and for "ontonotes", which is licensed; the message
    says where to get the data.
    """
    if name == "ontonotes":
        raise CorpusError(ONTONOTES)
    if name not in FETCHED:
        raise CorpusError(unknown("corpus", name, [*FETCHED, "ontonotes"]))
    from embryo_core.corpora.fetch import fetch_lama, fetch_treebank  # imports pooch
    from embryo_core.finetune.task_folders import fetch_tasks

    with _no_empty_folder(into / name):
        match name:
            case "treebank":
                return fetch_treebank(into / "treebank")
            case "lama":
                return [fetch_lama(into / "lama")]
            case _:
                return fetch_tasks(name, into)


@contextmanager
def _no_empty_folder(path: Path) -> Iterator[None]:
    """Remove folders that a download made and left empty."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        yield
    finally:
        for folder in made:
            with suppress(OSError):  # the folder is missing, or not empty
                folder.rmdir()


FETCH = Command("fetch", "download public evaluation data into data/corpora", add_arguments, execute)
