"""Evaluate a run: compute metrics at its checkpoints, on this machine or on a cluster, and write the results."""

import sys

from embryo_core import CallablePackage
from embryo_core.evaluate.evaluation import Report, evaluate, run_locally

sys.modules[__name__].__class__ = CallablePackage  # `embryo.evaluate(...)` for notebooks
