"""Linear probes: the data, the features, the control task, and the probes themselves (Section 4)."""
