"""Readers of evaluation data: treebanks, edge-probing tasks, LAMA's T-REx, plain text."""

from embryo_core.corpora.data_files import FETCHED, find_data, find_fetched, open_source, read_text, require
from embryo_core.corpora.lama import read_lama
from embryo_core.corpora.treebank import TREEBANK_FORM, read_probing, read_treebank
