"""Fine-tune checkpoints on GLUE, SQuAD and users' own tasks (Section 5)."""
