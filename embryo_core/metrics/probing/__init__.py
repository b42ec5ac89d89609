"""Linear probes: the data, the features, the control task, and the probes themselves (Section 4)."""

from embryo_core.metrics.probing.data import ProbingData, ProbingTask, read_tasks

__all__ = ["ProbingData", "ProbingTask", "read_tasks"]
