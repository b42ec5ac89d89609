"""Evaluate a run: compute metrics at its checkpoints, on this machine or on a cluster, and write the results."""

from embryo_core.evaluation.evaluator import Report, evaluate, run_locally
