"""Checkpoints of others as a run: found where they are, told apart by their step, pointed to."""

from embryo_core.sources.add import add

__all__ = ["add"]
