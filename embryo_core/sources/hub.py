"""Checkpoints on the Hugging Face Hub: revisions of one repository, or a family of repositories, pinned to commits.

Everything goes through the cache of huggingface_hub; with HF_HUB_OFFLINE only the cache is listed and read.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from embryo_core.engine.hub_cache import blob_of, fetch, fetch_file, offline, refusal
from embryo_core.errors import BrokenCheckpoint, MissingWeights, RunError
from embryo_core.runs import GENERATOR, hub_folder
from embryo_core.runs.checkpoint_files import WEIGHTS
from embryo_core.runs.pointers import HUB, hub_store
from embryo_core.sources.found import Found, Series
from embryo_core.sources.patterns import FIELD, Counts, left_alone, match_names
from embryo_core.sources.shards import INDEXES, shard_names
from embryo_core.types import Pointer

if TYPE_CHECKING:
    from huggingface_hub import HfApi

Answer = TypeVar("Answer")
COMMIT = re.compile(r"[0-9a-f]{40}")
SHA256 = re.compile(r"[0-9a-f]{64}")


def find(name: str, patterns: Sequence[str]) -> Series:
    """Return the checkpoints of OWNER/NAME, one for each revision, or of OWNER/NAME-{step}k, one for each repository.

    Raises RunError if there are none.
    """
    if "@" in name:
        raise RunError(f"{HUB}{name} is one revision; name its step, STEP:{HUB}{name}, or leave '@' and its name out.")
    family = FIELD.search(name)
    commits = {} if family else _revisions(name)
    matched = match_names(_repositories(name), [name]) if family else match_names(commits, patterns)
    if not matched:
        raise RunError(
            f"{HUB}{name} has no {'repository' if family else 'revision'} whose name has a step, {_where()}; name "
            "its form with --pattern."
        )
    series = Series([], left_alone=[] if family or patterns else left_alone(commits, matched))
    for one, counts in matched.items():
        try:
            series.found.append(_pinned(one, "main", counts) if family else _at_commit(name, commits[one], counts))
        except (RunError, MissingWeights, BrokenCheckpoint) as reason:
            series.incomplete[counts.first[0]] = str(reason)
    return series


def at(name: str, counts: Counts) -> Found:
    """Return the checkpoint at OWNER/NAME@REVISION, or at the main branch of OWNER/NAME."""
    repository, _, revision = name.partition("@")
    return _pinned(repository, revision or "main", counts)


def fetch_small(pointer: Pointer, names: Iterable[str]) -> Path:
    """Fetch these files and the usual settings, as far as the repository has them; return the folder of the commit."""
    more = "tokenizer_config.json special_tokens_map.json added_tokens.json merges.txt config.json".split()
    wanted = {*names, *more}
    for name in sorted(wanted & set(_names(pointer.repository, pointer.commit))):
        fetch_file(pointer.repository, pointer.commit, name)
    return hub_folder(pointer.repository) / "snapshots" / pointer.commit


# === The Hub, or its cache ===


def _revisions(repository: str) -> dict[str, str]:
    """Return the commit of each branch and tag."""
    if not offline():
        refs = _asked(repository, lambda api: api.list_repo_refs(repository))
        return {ref.name: ref.target_commit for ref in (*refs.branches, *refs.tags)}
    if not hub_folder(repository).is_dir():
        raise RunError(f"{HUB}{repository} is not {_where()}; unset HF_HUB_OFFLINE, or name one that is there.")
    folder = hub_folder(repository) / "refs"
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    contents = {path.relative_to(folder).as_posix(): path.read_text("ascii", errors="replace") for path in files}
    commits = {name: content.strip() for name, content in contents.items()}
    return {name: commit for name, commit in commits.items() if COMMIT.fullmatch(commit)}


def _repositories(pattern: str) -> list[str]:
    """Return the names of repositories that may match a pattern: those of its owner."""
    owner, _, _ = pattern.rpartition("/")
    if not offline():
        start = FIELD.split(pattern)[0].rpartition("/")[2]
        return [model.id for model in _asked(pattern, lambda api: list(api.list_models(author=owner, search=start)))]
    folders = hub_folder(pattern).parent.glob("models--*")
    return [folder.name.removeprefix("models--").replace("--", "/", 1) for folder in folders]


def _pinned(repository: str, revision: str, counts: Counts) -> Found:
    commits = {} if COMMIT.fullmatch(revision) else _revisions(repository)
    if not COMMIT.fullmatch(revision) and revision not in commits:
        known = ", ".join(sorted(commits)[:10]) or "none"
        raise RunError(f"{HUB}{repository} has no revision '{revision}' {_where()}; known: {known}.")
    return _at_commit(repository, commits.get(revision, revision), counts)


def _at_commit(repository: str, commit: str, counts: Counts) -> Found:
    names = _names(repository, commit)
    found = _in_folder(repository, commit, counts, names, "")
    inside = f"{GENERATOR}/"
    if f"{inside}config.json" in names:
        return replace(found, generator=_in_folder(repository, commit, counts, names, inside))
    return found


def _in_folder(repository: str, commit: str, counts: Counts, names: dict[str, str | None], folder: str) -> Found:
    """Return the model in a folder of a commit, "" or one that ends with a slash. Raises RunError if there is none."""
    weights = next((folder + name for name in (*WEIGHTS, *INDEXES) if folder + name in names), None)
    if weights is None or f"{folder}config.json" not in names:
        raise RunError(
            f"{HUB}{repository}@{commit[:7]} has no {folder}config.json, or none of {', '.join(WEIGHTS)}, {_where()}."
        )
    config = fetch_file(repository, commit, f"{folder}config.json")
    pointer = Pointer(weights, repository, commit)
    found = Found(counts, config, hub_store(config, repository), pointer, names[weights])
    if weights.removeprefix(folder) not in INDEXES:
        return found
    parts = shard_names(Path(os.path.realpath(fetch(pointer))))
    return replace(found, parts=tuple(Pointer(folder + name, repository, commit) for name in parts))


def _names(repository: str, commit: str) -> dict[str, str | None]:
    """Return the files at a commit, with the SHA-256 of those for which the Hub or the cache knows it."""
    if not offline():
        found = _asked(repository, lambda api: api.model_info(repository, revision=commit, files_metadata=True))
        return {one.rfilename: one.lfs.sha256 if one.lfs else None for one in found.siblings or ()}
    folder = hub_folder(repository) / "snapshots" / commit
    files = [path for path in folder.rglob("*") if not path.is_dir()]
    # A blob has the Hub's own hash as its name, and may link to another blob.
    blobs = {path.relative_to(folder).as_posix(): blob_of(path).name for path in files}
    return {name: blob if SHA256.fullmatch(blob) else None for name, blob in blobs.items()}


def _where() -> str:
    return "in the local cache (the network is off)" if offline() else "on the Hub"


def _asked(repository: str, question: "Callable[[HfApi], Answer]") -> Answer:
    """Return the Hub's answer. Raises RunError if there is none."""
    from httpx2 import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError

    try:
        return question(HfApi())
    except (HTTPError, HFValidationError, OSError) as reason:
        raise RunError(
            f"The Hub does not list {HUB}{repository} ({refusal(reason)}); check the name, or set HF_HUB_OFFLINE=1."
        ) from None
