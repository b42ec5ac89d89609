"""Linear probes: the targets they label, the features they see, and their training (Section 4)."""
