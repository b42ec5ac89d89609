"""Runs on disk: their folders, their contents, and the checks of untrusted files."""

from embryo_core.runs.architecture import Architecture, DecoderConfig, model_fields
from embryo_core.runs.atomic_files import link_or_copy, locked, replacing, sha256, write_json
from embryo_core.runs.audit import AUDIT_FILE, Audit, Fault, gaps, missing_steps, read_audit, write_audit
from embryo_core.runs.checkpoint_files import is_pickled, read_config, read_header, verify, weights_file, weights_files
from embryo_core.runs.layout import (
    REPOSITORY,
    broken_runs,
    changes,
    data_folder,
    find_run,
    list_runs,
    open_run,
    read_run,
    record_counted_words,
    roots,
    write_run,
)
from embryo_core.runs.log import (
    PositionAccuracy,
    counted_tokens,
    counted_words,
    damaged_lines,
    has_counts,
    parse_row,
    read_counts,
    read_lines,
    read_log,
    read_measures,
    read_ranks,
    write_lines,
)
from embryo_core.runs.manifests import (
    GENERATOR,
    broken_checkpoints,
    checkpoint,
    checkpoints,
    checkpoints_digest,
    explain_missing_weights,
    generator,
    loadable_checkpoints,
    steps_without_weights,
    write_manifest,
)
from embryo_core.runs.pointers import (
    allowed_sources,
    check_path,
    hub_folder,
    record_added,
    remember_folder,
    remembered_folders,
    source_of,
    was_added,
)
from embryo_core.runs.prune import checkpoints_to_remove, log_grid, remove_weights, step_grid
from embryo_core.runs.schema import Configuration, ModelClass
from embryo_core.runs.snapshot import read_once, snapshot
from embryo_core.runs.trust import (
    digest,
    own_folder,
    read_bytes,
    read_checksums,
    read_json,
    state_of,
    while_unchanged,
    write_checksums,
)
from embryo_core.runs.trust_list import trust_files
