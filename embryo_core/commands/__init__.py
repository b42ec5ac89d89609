"""The commands of `python -m embryo_core`: each parses its arguments, makes one call and prints."""
