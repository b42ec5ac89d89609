"""Evaluation of a run: metrics computed at its checkpoints, here or on a cluster, and written."""

from embryo_core.evaluate.evaluation import Report, evaluate, here

__all__ = ["Report", "evaluate", "here"]
