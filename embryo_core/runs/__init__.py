"""Runs on disk: where they are, what they hold, and how files from strangers are read."""

from embryo_core.runs.architecture import Architecture, of_the_model
from embryo_core.runs.audit import AUDIT, Audit, Fault, gaps, missing_steps, read_audit, write_audit
from embryo_core.runs.changes import changes
from embryo_core.runs.checksums import Checksums, read_checksums, write_checksums
from embryo_core.runs.files import UNFINISHED, replacing, sha256, write_json
from embryo_core.runs.grids import log_grid, step_grid
from embryo_core.runs.layout import (
    REPOSITORY,
    broken_runs,
    data_folder,
    list_runs,
    open_run,
    read_run,
    roots,
    write_run,
)
from embryo_core.runs.locks import locked
from embryo_core.runs.log import counted_tokens, damaged_lines, parse_row, read_counts, read_lines, read_log, read_ranks
from embryo_core.runs.manifests import (
    GENERATOR,
    broken,
    checkpoint,
    checkpoints,
    checkpoints_digest,
    generator,
    left_out,
    loadable,
    write_manifest,
)
from embryo_core.runs.measures import Measured, read_measures
from embryo_core.runs.pointers import allow, check_text, hub_folder, place_of, places, was_added
from embryo_core.runs.reading import digest, locate, open_inside, read_bytes, read_json, refusal
from embryo_core.runs.schema import ModelClass, Shown, Sources
from embryo_core.runs.settings import settings_folder
from embryo_core.runs.snapshot import read_once, snapshot
from embryo_core.runs.thin import remove_weights, to_remove
from embryo_core.runs.trust import own_folder, refuse_foreign, remove_own, shown
from embryo_core.runs.verifying import read_config, verify
from embryo_core.runs.weight_files import is_pickled, tensor_shapes, weights_file

__all__ = [
    "AUDIT",
    "GENERATOR",
    "REPOSITORY",
    "UNFINISHED",
    "Architecture",
    "Audit",
    "Checksums",
    "Fault",
    "Measured",
    "ModelClass",
    "Shown",
    "Sources",
    "allow",
    "broken",
    "broken_runs",
    "changes",
    "check_text",
    "checkpoint",
    "checkpoints",
    "checkpoints_digest",
    "counted_tokens",
    "damaged_lines",
    "data_folder",
    "digest",
    "gaps",
    "generator",
    "hub_folder",
    "is_pickled",
    "left_out",
    "list_runs",
    "loadable",
    "locate",
    "locked",
    "log_grid",
    "missing_steps",
    "of_the_model",
    "open_inside",
    "open_run",
    "own_folder",
    "parse_row",
    "place_of",
    "places",
    "read_audit",
    "read_bytes",
    "read_checksums",
    "read_config",
    "read_counts",
    "read_json",
    "read_lines",
    "read_log",
    "read_measures",
    "read_once",
    "read_ranks",
    "read_run",
    "refusal",
    "refuse_foreign",
    "remove_own",
    "remove_weights",
    "replacing",
    "roots",
    "settings_folder",
    "sha256",
    "shown",
    "snapshot",
    "step_grid",
    "tensor_shapes",
    "to_remove",
    "verify",
    "was_added",
    "weights_file",
    "write_audit",
    "write_checksums",
    "write_json",
    "write_manifest",
    "write_run",
]
