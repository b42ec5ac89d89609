"""Audit the checkpoints of a run: files, tensors, and the path of the weights through training (docs/sources.md)."""

from embryo_core.audit.auditing import audit, explain_unanswerable
