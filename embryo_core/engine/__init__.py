"""Models of checkpoints behind one interface, from token ids to numpy arrays."""
