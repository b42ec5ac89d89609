"""Tokenizers: loading, checks of tokenizer.json, and conversion of foreign ones; no module here imports torch."""
