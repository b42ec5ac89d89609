"""Fine-tuning over pretraining: GLUE, SQuAD and tasks of one's own, from every checkpoint (Section 5)."""
