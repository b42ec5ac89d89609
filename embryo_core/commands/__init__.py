"""The commands of `python -m embryo_core`: a file each, which parses, makes one call and prints."""
