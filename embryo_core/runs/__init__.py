"""Runs on disk: where they are, what they hold, and the manifests of their checkpoints."""

from embryo_core.runs.files import read_json_lines, replacing, sha256, write_json
from embryo_core.runs.layout import (
    REPOSITORY,
    broken,
    checkpoint,
    checkpoints,
    list_runs,
    open_run,
    read_log,
    read_run,
    roots,
    step_grid,
    verify,
    write_manifest,
    write_run,
)

__all__ = [
    "REPOSITORY",
    "broken",
    "checkpoint",
    "checkpoints",
    "list_runs",
    "open_run",
    "read_json_lines",
    "read_log",
    "read_run",
    "replacing",
    "roots",
    "sha256",
    "step_grid",
    "verify",
    "write_json",
    "write_manifest",
    "write_run",
]
