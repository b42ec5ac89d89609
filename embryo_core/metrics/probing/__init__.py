"""Linear probes: their targets, their features, and their training (Section 4)."""
