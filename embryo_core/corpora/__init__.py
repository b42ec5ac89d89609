"""Annotated data on disk to Examples and Facts: treebanks, edge-probing tasks, LAMA's T-REx, plain text."""

from embryo_core.corpora.files import FETCHED, open_source, read_text
from embryo_core.corpora.lama import RELATIONS, read_lama
from embryo_core.corpora.probing import read_probing
from embryo_core.corpora.treebank import TREEBANK, read_treebank

__all__ = [
    "FETCHED",
    "RELATIONS",
    "TREEBANK",
    "open_source",
    "read_lama",
    "read_probing",
    "read_text",
    "read_treebank",
]
