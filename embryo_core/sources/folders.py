"""Find checkpoints in local folders: a Trainer's output, or folders or weight files with a step in their names."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from msgspec import ValidationError, convert

from embryo_core.engine.tensor_names import first_with_heads
from embryo_core.errors import BrokenCheckpoint, RunError
from embryo_core.runs import GENERATOR, check_path
from embryo_core.runs.checkpoint_files import WEIGHTS
from embryo_core.runs.value_types import AnyFileName
from embryo_core.sources.patterns import KNOWN_PATTERNS, Counts, conversion_hint, match_names, unmatched
from embryo_core.sources.shards import INDEXES, shard_names
from embryo_core.sources.source_series import SourceCheckpoint, SourceSeries, with_unnumbered
from embryo_core.sources.trainer import read_state
from embryo_core.types import Pointer

MAX_NAMES = 100_000  # at most this number of names in a folder are examined


def find_in(folder: Path, patterns: Sequence[str]) -> SourceSeries:
    """Return the checkpoints in a folder whose names match a pattern. Raises RunError if there are none."""
    if not folder.is_dir():
        raise RunError(
            f"{folder} is not a folder; give one that holds checkpoints, hf:OWNER/NAME, or a list of STEP:PATH."
        )
    depth = max((pattern.count("/") for pattern in patterns), default=0)
    below = sorted(folder.glob("/".join("*" * (depth + 1))))
    names = [path.relative_to(folder).as_posix() for path in below][:MAX_NAMES]
    matched = match_names(names, patterns)
    if not matched:
        tried, more = ", ".join(patterns or KNOWN_PATTERNS), conversion_hint(_files_of_others(folder))
        raise RunError(f"{folder} has no checkpoint whose name matches {tried}; name its form with --pattern.{more}")
    series = SourceSeries([], unmatched=[] if patterns else unmatched(names, matched))
    for name, counts in matched.items():
        try:
            series.found.append(checkpoint_at(folder / name, counts))
        except (RunError, BrokenCheckpoint) as reason:
            series.incomplete[counts.first[0]] = str(reason)
    try:  # the folder itself may hold a model, such as a Trainer's final one
        return with_unnumbered(series, checkpoint_at(folder, Counts()), read_state(folder))
    except (RunError, BrokenCheckpoint):
        return series


def checkpoint_at(path: Path, counts: Counts) -> SourceCheckpoint:
    """Return the checkpoint in a folder, or of a weight file beside its config.json. Raises RunError."""
    checkpoint = _at(path, counts)
    inside = (path if path.is_dir() else path.parent) / GENERATOR
    return replace(checkpoint, generator=_at(inside, counts)) if (inside / "config.json").is_file() else checkpoint


def _at(path: Path, counts: Counts) -> SourceCheckpoint:
    """Return the model in a folder, or of a weight file, without its generator. Raises RunError."""
    folder = path if path.is_dir() else path.parent
    weights = _weights(folder) if path.is_dir() else path
    if not (folder / "config.json").is_file() or not weights.is_file():
        more = conversion_hint(_files_of_others(folder))
        raise RunError(f"{path} holds no checkpoint: it needs config.json and one of {', '.join(WEIGHTS)}.{more}")
    config, file = (Path(os.path.realpath(path)) for path in (folder / "config.json", weights))
    check_path(file)
    try:
        convert(file.name, AnyFileName)
    except ValidationError:
        raise RunError(f"{file} has a name with control characters; rename it.") from None
    index = file if weights.name in INDEXES else None
    first, *parts = [os.path.realpath(folder / name) for name in shard_names(file)] if index else [str(file)]
    return SourceCheckpoint(
        counts, config, config.parent, Pointer(first, parts=(*parts,)), str(file), folder=folder, index=index
    )


def _weights(folder: Path) -> Path:
    """Return the weight file, or else the index of shards; of two weight files, the one with the head."""
    files, indexes = ([folder / name for name in names if (folder / name).is_file()] for names in (WEIGHTS, INDEXES))
    if len(files) > 1:
        return first_with_heads(files, folder / "config.json")
    return [*files, *indexes, folder / WEIGHTS[0]][0]


def _files_of_others(folder: Path) -> Iterable[str]:
    """Return the names of files in a folder and two levels below, where Megatron writes its files."""
    return [path.name for depth in range(3) for path in islice(folder.glob("*/" * depth + "*"), MAX_NAMES)]
