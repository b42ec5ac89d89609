"""Checkpoints on the Hugging Face Hub, pinned to commits.

A series is published as the revisions, folders or commits of one repository, or as one repository per checkpoint. All
access goes through the cache of huggingface_hub; with HF_HUB_OFFLINE, only the cache is listed and read.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from embryo_core.engine.hub_cache import fetch
from embryo_core.engine.tensor_names import first_with_heads
from embryo_core.errors import BrokenCheckpoint, BrokenTrainerState, RunError, printable
from embryo_core.runs import GENERATOR
from embryo_core.runs.checkpoint_files import WEIGHTS
from embryo_core.runs.pointers import HUB, cached_file, hub_store
from embryo_core.runs.schema import TrainerState
from embryo_core.sources.hub_listing import COMMIT_PATTERN, Files, files, history, repositories, revisions, where
from embryo_core.sources.patterns import (
    FIELD_PATTERN,
    Counts,
    conversion_hint,
    match_folders,
    match_names,
    match_titles,
    unmatched,
)
from embryo_core.sources.shards import INDEXES, shard_names
from embryo_core.sources.source_series import SourceCheckpoint, SourceSeries, with_unnumbered
from embryo_core.sources.trainer import STATE_FILE, read_state
from embryo_core.tokenizers.checks import TOKENIZER_FILES, TOKENIZER_SETTINGS
from embryo_core.types import Pointer

Item = TypeVar("Item")
Answer = TypeVar("Answer")
AT_ONCE = 8  # parallel requests to the Hub
MAX_COMMITS = 2000  # at most this number of a branch's newest commits are examined


@dataclass(frozen=True)
class HubFolder:
    """A folder of a repository at a commit, and its name in messages."""

    name: str
    repository: str
    commit: str
    folder: str = ""  # path in the repository, "" or with a slash at the end

    def pointer(self, name: str) -> Pointer:
        """Return the pointer to a file, whose path is relative to the folder."""
        return Pointer(self.folder + name, self.repository, self.commit)

    def files(self) -> Files:
        """Return the files below the folder, with paths relative to it. Raises RunError."""
        return _below(files(self.repository, self.commit), self.folder)


def find(name: str, patterns: Sequence[str]) -> SourceSeries:
    """Return the checkpoints of the repository OWNER/NAME, or of all repositories OWNER/NAME-{step}k.

    In one repository they are the revisions with a step in their names, else the folders of the main branch, else its
    commits. OWNER/NAME/FOLDER@REVISION is searched only for folders and commits. Raises RunError if no checkpoint is
    found, and if the Hub does not answer.
    """
    if FIELD_PATTERN.search(name):
        if not (matched := match_names(repositories(name), [name])):
            raise _not_found(name, "repository", "")
        return _series({_resolve_folder(name): counts for name, counts in matched.items()})
    refs = revisions(_split(name)[0])
    top = _resolve_folder(name, refs)
    numbered = {} if "@" in name or top.folder else match_names(refs, patterns)
    if numbered:
        hub_folders = {
            replace(top, name=f"{top.name}@{revision}", commit=refs[revision]): counts
            for revision, counts in numbered.items()
        }
        rest = () if patterns else unmatched(refs, numbered)
        return _with_main(_series(hub_folders, rest), top)
    if not top.commit:
        raise _not_found(name, "revision", "")
    all_files = files(top.repository, top.commit)
    folders = _folders(_below(all_files, top.folder))
    if below := match_folders(folders, patterns):
        hub_folders = {
            replace(top, name=f"{top.name}/{folder}", folder=f"{top.folder}{folder}/"): c for folder, c in below.items()
        }
        return _with_main(_series(hub_folders, () if patterns else unmatched(folders, below), all_files), top)
    if hub_folders := _commits(top, patterns):
        return _with_main(_series(hub_folders), top)
    raise _not_found(name, "revision, folder or commit", conversion_hint(all_files))


def checkpoint_at(name: str, counts: Counts) -> SourceCheckpoint:
    """Return the checkpoint at OWNER/NAME/FOLDER@REVISION, by default of the main branch.

    Raises RunError, or BrokenCheckpoint if there is none.
    """
    hub_folder = _resolve_folder(name)
    return _checkpoint(hub_folder, counts, hub_folder.files())


def fetch_tokenizer(name: str) -> Path:
    """Fetch the tokenizer at OWNER/NAME/FOLDER@REVISION; return its folder in the cache. Raises RunError."""
    hub_folder = _resolve_folder(name)
    return tokenizer_above(hub_folder.pointer("config.json"))


def tokenizer_above(pointer: Pointer) -> Path:
    """Fetch the tokenizer from a file's folder or the nearest parent that has one; return its folder in the cache."""
    names = files(pointer.repository, pointer.commit)
    parents = ["" if str(parent) == "." else f"{parent}/" for parent in Path(pointer.file).parents]
    folder = next((parent for parent in parents if any(parent + name in names for name in TOKENIZER_FILES)), parents[0])
    for name in sorted({*TOKENIZER_FILES, *TOKENIZER_SETTINGS} & _below(names, folder).keys()):
        fetch(replace(pointer, file=folder + name))
    return cached_file(replace(pointer, file=folder))


# === Places ===


def _split(name: str) -> tuple[str, str, str]:
    """Return repository, folder and revision of OWNER/NAME/FOLDER@REVISION; "" for a part that is missing."""
    path, _, revision = name.partition("@")
    owner, *rest = path.strip("/").split("/")
    return "/".join([owner, *rest[:1]]), "".join(f"{part}/" for part in rest[1:]), revision


def _resolve_folder(name: str, refs: dict[str, str] | None = None) -> HubFolder:
    """Resolve a name; the commit is "" if there is no main branch. Raises RunError for an unknown revision."""
    repository, folder, revision = _split(name)
    if COMMIT_PATTERN.fullmatch(revision):
        return HubFolder(HUB + name, repository, revision, folder)
    refs = revisions(repository) if refs is None else refs
    if revision not in refs and (revision or not refs):
        listed = ", ".join(sorted(refs)[:10]) or "none"
        raise RunError(f"{HUB}{repository} has no revision '{revision}' {where()}; known: {listed}.")
    return HubFolder(HUB + name, repository, refs.get(revision or "main", ""), folder)


def _folders(names: Iterable[str]) -> list[str]:
    """Return the folders with a config.json or weights, without those of generators."""
    wanted = {"config.json", *WEIGHTS, *INDEXES}
    folders = {folder for folder, _, file in (name.rpartition("/") for name in names) if folder and file in wanted}
    return sorted(folder for folder in folders if folder.rpartition("/")[2] != GENERATOR)


def _commits(top: HubFolder, patterns: Sequence[str]) -> dict[HubFolder, Counts]:
    """Return the newest commit of each step, which is read from the titles or, if none has one, trainer_state.json."""
    titles = history(top.repository, top.commit)[:MAX_COMMITS]
    matched = match_titles((title for _, title in titles), patterns)
    title_counts = [
        (replace(top, name=f"{top.name} '{printable(title)}'", commit=commit), matched.get(title))
        for commit, title in titles
    ]
    if not matched and not patterns:
        states = _side_by_side(lambda entry: _state(entry[0], entry[0].files()), title_counts)
        title_counts = [
            (commit_folder, Counts(step=state.global_step) if state else None)
            for (commit_folder, _), state in zip(title_counts, states)
        ]
    newest: dict[int, tuple[HubFolder, Counts]] = {}
    for hub_folder, counts in title_counts:
        if counts:
            newest.setdefault(counts.first[0], (hub_folder, counts))
    return dict(newest.values())


# === Checkpoints ===


def _series(
    hub_folders: dict[HubFolder, Counts], rest: Iterable[str] = (), all_files: Files | None = None
) -> SourceSeries:
    """Return the checkpoints at these folders; `all_files` are the repository's files if all share one commit.

    Raises RunError or MissingWeights if the Hub does not answer, rather than leave gaps in a series.
    """
    series = SourceSeries([], unmatched=[*rest])

    def look(entry: tuple[HubFolder, Counts]) -> SourceCheckpoint | str:
        hub_folder, counts = entry
        try:
            return _checkpoint(
                hub_folder, counts, hub_folder.files() if all_files is None else _below(all_files, hub_folder.folder)
            )
        except BrokenCheckpoint as reason:
            return str(reason)

    for counts, answer in zip(hub_folders.values(), _side_by_side(look, [*hub_folders.items()]), strict=True):
        if isinstance(answer, SourceCheckpoint):
            series.found.append(answer)
        else:
            series.incomplete[counts.first[0]] = answer
    return series


def _with_main(series: SourceSeries, top: HubFolder) -> SourceSeries:
    """Add to a series the model in the searched folder itself, by default in the main branch; its name has no step."""
    if not top.commit:
        return series
    hashes = top.files()
    try:
        last = _checkpoint(top, Counts(), hashes)
    except BrokenCheckpoint:
        return series
    return with_unnumbered(series, last, _state(top, hashes))


def _checkpoint(hub_folder: HubFolder, counts: Counts, hashes: Files) -> SourceCheckpoint:
    """Return the checkpoint in a folder with these files. Raises BrokenCheckpoint if files are missing."""
    model, inside = _model(hub_folder, counts, hashes), f"{GENERATOR}/"
    return (
        replace(model, generator=_model(hub_folder, counts, hashes, inside))
        if f"{inside}config.json" in hashes
        else model
    )


def _model(hub_folder: HubFolder, counts: Counts, hashes: Files, inside: str = "") -> SourceCheckpoint:
    """Return the model in the subfolder `inside` of a folder: "" for itself, or a path ending with a slash."""
    weights = next((inside + name for name in (*WEIGHTS, *INDEXES) if inside + name in hashes), None)
    if weights is None or f"{inside}config.json" not in hashes:
        raise BrokenCheckpoint(
            f"{hub_folder.name} has no {inside}config.json, or none of {', '.join((*WEIGHTS, *INDEXES))}, "
            f"{where()}.{conversion_hint(hashes)}"
        )
    config = fetch(hub_folder.pointer(f"{inside}config.json"), hub_folder.name)
    weight_names = [inside + name for name in WEIGHTS]
    if set(weight_names) <= set(hashes):  # of two weight files, choose the one with the head, if the cache has them
        cached = [cached_file(hub_folder.pointer(name)) for name in weight_names]
        weights = weight_names[cached.index(first_with_heads(cached, config))]
    files = [weights]
    index = None
    if weights.removeprefix(inside) in INDEXES:
        index = Path(os.path.realpath(fetch(hub_folder.pointer(weights), hub_folder.name)))
        files = [inside + name for name in shard_names(index)]
        if lacking := [file for file in files if file not in hashes]:
            raise BrokenCheckpoint(f"{hub_folder.name} has no {lacking[0]}, which {weights} names, {where()}.")
    first, *parts = [hub_folder.folder + file for file in files]
    pointer = Pointer(first, hub_folder.repository, hub_folder.commit, (*parts,))
    weight_hashes = tuple(hashes[file] for file in files)
    return SourceCheckpoint(
        counts, config, hub_store(config, hub_folder.repository), pointer, hub_folder.name, weight_hashes, index=index
    )


def _state(hub_folder: HubFolder, hashes: Files) -> TrainerState | None:
    """Return the Trainer's state among these files; None if it is missing or cannot be read."""
    if STATE_FILE not in hashes:
        return None
    path = fetch(hub_folder.pointer(STATE_FILE), hub_folder.name)
    try:
        return read_state(path.parent)
    except BrokenTrainerState:
        return None


def _below(hashes: Files, folder: str) -> Files:
    return {name.removeprefix(folder): sha256 for name, sha256 in hashes.items() if name.startswith(folder)}


def _side_by_side(look: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
    """Return `look(item)` for each item, computed in parallel; an error cancels the remaining calls."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        return list(pool.map(look, items))
    finally:
        pool.shutdown(cancel_futures=True)


def _not_found(name: str, kinds: str, more: str) -> RunError:
    one = f"; if it is one checkpoint, name its step, STEP:{HUB}{name}" if "@" in name else ""
    return RunError(
        f"{HUB}{name} has no {kinds} whose name has a step, {where()}; name its form with --pattern{one}.{more}"
    )
