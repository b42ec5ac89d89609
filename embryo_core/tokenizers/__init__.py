"""Tokenizers: that of a run, the checks of its file, and the conversion of others; no module here imports torch."""
