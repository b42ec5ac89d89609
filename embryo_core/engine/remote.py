"""Files of Hub repositories through the cache of huggingface_hub: fetched when they are needed, removed on request."""

import os
from math import inf
from pathlib import Path
from time import monotonic

from embryo_core.errors import MissingWeights, first_line
from embryo_core.runs import generator, hub_folder
from embryo_core.runs.pointers import HUB
from embryo_core.types import Checkpoint, Pointer

AGAIN = 30  # seconds

_unreached = -inf, ""  # when the Hub was last not reached, and what is said of it


def fetch(pointer: Pointer) -> Path:
    """The file that a pointer names, fetched unless it is in the cache. Raises MissingWeights where that fails."""
    return fetch_file(pointer.repository, pointer.commit, pointer.file)


def fetch_checkpoint(checkpoint: Checkpoint) -> list[Pointer]:
    """Bring a checkpoint's weights, its generator's too, into the cache; those that were not there before.

    Raises as `fetch`, and BrokenCheckpoint where the generator's are not to be found.
    """
    missing = not_cached(checkpoint)
    for pointer in missing:
        fetch(pointer)
    return missing


def not_cached(checkpoint: Checkpoint) -> list[Pointer]:
    """Where on the Hub those weights of a checkpoint are that have to be fetched first. Raises BrokenCheckpoint."""
    if checkpoint.pointer is None or not checkpoint.pointer.repository:
        return []
    inner = generator(checkpoint)
    pointers = [one.pointer for one in (checkpoint, inner) if one and one.pointer]
    return [pointer for pointer in pointers if pointer.repository and not cached(pointer)]


def discard(pointer: Pointer) -> None:
    """Remove weights from the cache; other files of the checkpoint stay, and weights that another revision has too.

    Weights that Xet brought are in a store of all repositories, from which the library itself removes them.
    """
    from huggingface_hub.utils._shared_blobs import sweep_shared_blob  # no public name; its version is pinned

    file, home = _in_cache(pointer), hub_folder(pointer.repository)
    blob = blob_of(file)
    file.unlink(missing_ok=True)
    if blob.parent == Path(os.path.abspath(home / "blobs")) and blob not in map(blob_of, home.glob("snapshots/**/*")):
        stored = blob_of(blob)
        blob.unlink(missing_ok=True)
        if stored != blob:
            sweep_shared_blob(stored, cache_dir=home.parent)


def cached(pointer: Pointer) -> bool:
    """Whether the file that a pointer names is in the cache."""
    return _in_cache(pointer).exists()


def _in_cache(pointer: Pointer) -> Path:
    return hub_folder(pointer.repository) / "snapshots" / pointer.commit / pointer.file


def blob_of(path: Path) -> Path:
    """Where huggingface_hub keeps the content of a file in a snapshot: one link away, or the file itself."""
    return Path(os.path.abspath(path.parent / os.readlink(path))) if path.is_symlink() else path


def offline() -> bool:
    """Whether huggingface_hub is told to do without the network."""
    from huggingface_hub import is_offline_mode

    return is_offline_mode()


def fetch_file(repository: str, commit: str, name: str) -> Path:
    """One file of a repository at a commit, from the cache or the Hub. Raises MissingWeights where neither has it.

    huggingface_hub tries for half a minute to reach the Hub. One that it did not reach is not asked again for AGAIN
    seconds, so that a series of many steps does not wait for each.
    """
    global _unreached
    from httpx2 import ConnectError, HTTPError, TimeoutException  # what huggingface_hub asks with lets them through
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

    if (found := _in_cache(Pointer(name, repository, commit))).exists():
        return found
    since, why = _unreached
    if monotonic() >= since + AGAIN:
        try:
            return Path(hf_hub_download(repository, name, revision=commit, cache_dir=hub_folder(repository).parent))
        except LocalEntryNotFoundError as error:
            reason = error.__cause__  # what the Hub answered, or what became of the connection
        except (HTTPError, OSError) as error:
            reason = error
        off = reason is None or isinstance(reason, OfflineModeIsEnabled)
        why = "is not in the local cache, and the network is off" if off else f"cannot be fetched ({refusal(reason)})"
        if isinstance(reason, ConnectError | TimeoutException):
            _unreached = monotonic(), why
    raise MissingWeights(
        f"{name} of {HUB}{repository}@{commit[:7]} {why}; fetch it where there is one, or leave out that step."
    )


def refusal(reason: BaseException) -> str:
    """Why the Hub did not answer, in a few words."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    if isinstance(reason, GatedRepoError):
        return "it is gated: ask for access on its page, and log in with: hf auth login"
    if isinstance(reason, RepositoryNotFoundError):
        return "there is none of that name, or it is private: log in with: hf auth login"
    return first_line(reason)
