"""`fetch`: public evaluation data."""

import argparse

from embryo_core import runs
from embryo_core.corpora import FETCHED

HELP = "download public evaluation data into data/corpora"
CORPORA = runs.REPOSITORY / "data" / "corpora"


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The data."""
    command.add_argument(
        "what", choices=(*FETCHED, "ontonotes"), help="OntoNotes is licensed: tells where to get it"
    )


def execute(options: argparse.Namespace) -> int:
    """Download, and print the folders."""
    from embryo_core.fetch import fetch

    for path in fetch(options.what, CORPORA):
        print(path)
    return 0
