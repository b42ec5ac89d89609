"""Audit the checkpoints of a run: files, tensors, and their path through training (docs/sources.md has the method)."""

from embryo_core.audit.auditing import audit
