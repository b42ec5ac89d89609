"""Audits a run's checkpoints: files, tensors, and their way through training (docs/sources.md has the method)."""

from embryo_core.audit.auditing import audit

__all__ = ["audit"]
