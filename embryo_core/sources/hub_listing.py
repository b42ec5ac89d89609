"""Listings of the Hub, or offline of its local cache: repositories, revisions, commits, and files with SHA-256."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from embryo_core.engine.hub_cache import blob_of, is_offline, retry_while_busy, why_refused
from embryo_core.errors import RunError
from embryo_core.runs import hub_folder
from embryo_core.runs.pointers import HUB
from embryo_core.sources.patterns import FIELD_PATTERN

if TYPE_CHECKING:
    from huggingface_hub import HfApi

Answer = TypeVar("Answer")
Files = dict[str, str | None]  # name -> SHA-256, if known
COMMIT_PATTERN = re.compile(r"[0-9a-f]{40}")
SHA256_PATTERN = re.compile(r"[0-9a-f]{64}")


def revisions(repository: str) -> dict[str, str]:
    """Return the commit of each branch and tag. Raises RunError."""
    if not is_offline():
        refs = _call_hub(repository, lambda api: api.list_repo_refs(repository))
        return {ref.name: ref.target_commit for ref in (*refs.branches, *refs.tags)}
    if not hub_folder(repository).is_dir():
        raise RunError(f"{HUB}{repository} is not {where()}; unset HF_HUB_OFFLINE, or name one that is there.")
    folder = hub_folder(repository) / "refs"
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    contents = {path.relative_to(folder).as_posix(): path.read_text("ascii", errors="replace") for path in files}
    commits = {name: content.strip() for name, content in contents.items()}
    return {name: commit for name, commit in commits.items() if COMMIT_PATTERN.fullmatch(commit)}


def repositories(pattern: str) -> list[str]:
    """Return the owner's repositories, which may match a pattern OWNER/NAME-{step}. Raises RunError."""
    owner, _, _ = pattern.rpartition("/")
    if not is_offline():
        start = FIELD_PATTERN.split(pattern)[0].rpartition("/")[2]
        return [model.id for model in _call_hub(pattern, lambda api: list(api.list_models(author=owner, search=start)))]
    folders = hub_folder(pattern).parent.glob("models--*")
    return [folder.name.removeprefix("models--").replace("--", "/", 1) for folder in folders]


def history(repository: str, head: str) -> list[tuple[str, str]]:
    """Return (commit, title) up to `head`, the newest first. Raises RunError.

    The cache has neither titles nor an order: offline, these are all cached commits to which no other revision points.
    """
    if not is_offline():
        commits = _call_hub(repository, lambda api: api.list_repo_commits(repository, revision=head))
        return [(commit.commit_id, commit.title) for commit in commits]
    cached = {path.name for path in (hub_folder(repository) / "snapshots").iterdir()}
    return [(commit, "") for commit in sorted(cached - ({*revisions(repository).values()} - {head}))]


def files(repository: str, commit: str) -> Files:
    """Return the files at a commit, each with its SHA-256, or None if unknown. Raises RunError."""
    if not is_offline():
        info = _call_hub(repository, lambda api: api.model_info(repository, revision=commit, files_metadata=True))
        return {sibling.rfilename: sibling.lfs.sha256 if sibling.lfs else None for sibling in info.siblings or ()}
    folder = hub_folder(repository) / "snapshots" / commit
    # A blob's name is the Hub's hash of it; `blob_of` follows links from blob to blob.
    blobs = {path.relative_to(folder).as_posix(): blob_of(path).name for path in folder.rglob("*") if not path.is_dir()}
    return {name: blob if SHA256_PATTERN.fullmatch(blob) else None for name, blob in blobs.items()}


def where() -> str:
    """Return the searched place for messages: "on the Hub" or "in the local cache"."""
    return "in the local cache (the network is off)" if is_offline() else "on the Hub"


def _call_hub(repository: str, question: "Callable[[HfApi], Answer]") -> Answer:
    """Call the Hub's API, and return its answer. Raises RunError if the call fails."""
    from httpx2 import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError

    try:
        return retry_while_busy(lambda: question(HfApi()))
    except (HTTPError, HFValidationError, OSError) as reason:
        raise RunError(
            f"The Hub does not list {HUB}{repository} ({why_refused(reason)}); check the name, or set HF_HUB_OFFLINE=1."
        ) from None
