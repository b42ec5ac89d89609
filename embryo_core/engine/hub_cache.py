"""Fetch files of Hub repositories into the cache of huggingface_hub when they are needed; remove them on request."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from math import ceil, inf
from pathlib import Path
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, TypeVar

from embryo_core.errors import BrokenCheckpoint, EmbryoError, MissingWeights, first_line
from embryo_core.runs import generator, hub_folder
from embryo_core.runs.pointers import HUB, cached_file
from embryo_core.types import Checkpoint, Pointer
from embryo_core.words import name_step

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

RETRY_AFTER = 30  # seconds after a failure during which the Hub is not asked again
TOO_MANY_REQUESTS = 429  # HTTP status: too many requests
MAX_WAIT_SECONDS = 15 * 60  # a request fails if the Hub asks to wait longer
MAX_WAITS = 20  # waits of one request
Response = TypeVar("Response")

_unreached = -inf, ""  # time and reason of the last failure to reach the Hub


def fetch_checkpoint(checkpoint: Checkpoint) -> list[Pointer]:
    """Fetch a checkpoint's weights; return the pointers not cached before. Raises MissingWeights, BrokenCheckpoint."""
    missing = uncached_pointers(checkpoint)
    for pointer in missing:
        fetch(pointer, f"{HUB}{pointer.repository} at {name_step(checkpoint.step, checkpoint.run.step_unit)}")
    return missing


def prefetch_checkpoints(
    checkpoints: Sequence[Checkpoint], remove: bool
) -> Iterator[tuple[Checkpoint, EmbryoError | None]]:
    """Yield each checkpoint with None once its weights are cached, or with the error if they cannot be fetched.

    The weights of the next checkpoint are fetched meanwhile. With `remove`, fetched weights are removed once the caller
    continues or stops.
    """

    def remove_fetched(checkpoint: Future[tuple[list[Pointer], EmbryoError | None]]) -> None:
        for pointer in checkpoint.result()[0] if remove else ():
            discard(pointer)

    with ThreadPoolExecutor(1) as pool:
        fetches = [pool.submit(_try_to_fetch, checkpoint) for checkpoint in checkpoints[:1]]
        try:
            for i, checkpoint in enumerate(checkpoints):
                _, reason = fetches[0].result()
                fetches += [
                    pool.submit(_try_to_fetch, next_checkpoint) for next_checkpoint in checkpoints[i + 1 : i + 2]
                ]
                yield checkpoint, reason
                remove_fetched(fetches.pop(0))
        finally:
            for pending in fetches:
                remove_fetched(pending)


def _try_to_fetch(checkpoint: Checkpoint) -> tuple[list[Pointer], EmbryoError | None]:
    """Fetch a checkpoint; return the pointers that were fetched, or the error if one cannot be fetched."""
    try:
        return fetch_checkpoint(checkpoint), None
    except (BrokenCheckpoint, MissingWeights) as reason:
        return [], reason


def uncached_pointers(checkpoint: Checkpoint) -> list[Pointer]:
    """Return the pointers to weights of a checkpoint or its generator that are not cached. Raises BrokenCheckpoint."""
    if checkpoint.pointer is None or not checkpoint.pointer.repository:
        return []
    inner = generator(checkpoint)
    pointers = [file for holder in (checkpoint, inner) if holder and holder.pointer for file in holder.pointer.files]
    return [pointer for pointer in pointers if pointer.repository and not cached_file(pointer).exists()]


def discard(pointer: Pointer) -> None:
    """Remove weights from the cache; other files of the checkpoint and weights of other revisions stay.

    Weights fetched by Xet are in a store that all repositories share; huggingface_hub removes them from it.
    """
    from huggingface_hub.utils._shared_blobs import sweep_shared_blob  # private, but the version is pinned

    file, home = cached_file(pointer), hub_folder(pointer.repository)
    blob = blob_of(file)
    file.unlink(missing_ok=True)
    if blob.parent == Path(os.path.abspath(home / "blobs")) and blob not in map(blob_of, home.glob("snapshots/**/*")):
        shared_blob = blob_of(blob)
        blob.unlink(missing_ok=True)
        if shared_blob != blob:
            sweep_shared_blob(shared_blob, cache_dir=home.parent)


def blob_of(path: Path) -> Path:
    """Return the path of the content of a file in a snapshot: the target of its link, or the file itself."""
    return Path(os.path.abspath(path.parent / os.readlink(path))) if path.is_symlink() else path


def is_offline() -> bool:
    """Return whether huggingface_hub is in offline mode."""
    from huggingface_hub import is_offline_mode

    return is_offline_mode()


def fetch(pointer: Pointer, label: str = "") -> Path:
    """Return the file that a pointer names, from the cache or the Hub. Raises MissingWeights if that fails.

    `label` describes the commit in the error's message, by a step or a revision. huggingface_hub tries to reach the Hub
    for half a minute; after a failure, the Hub is not asked again for RETRY_AFTER seconds, so that a long series does
    not wait at each step.
    """
    global _unreached
    from httpx2 import ConnectError, HTTPError, TimeoutException  # not wrapped by huggingface_hub
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

    if (file := cached_file(pointer)).exists():
        return file
    name, repository, commit = pointer.file, pointer.repository, pointer.commit
    failed_at, why = _unreached
    if monotonic() >= failed_at + RETRY_AFTER:
        try:
            cache = hub_folder(repository).parent
            return Path(retry_while_busy(lambda: hf_hub_download(repository, name, revision=commit, cache_dir=cache)))
        except LocalEntryNotFoundError as error:
            reason: BaseException | None = error.__cause__  # the Hub's answer, or the connection's error
        except (HTTPError, OSError) as error:
            reason = error
        if reason is None or isinstance(reason, OfflineModeIsEnabled):
            why = "is not in the local cache, and the network is off"
        else:
            why = f"cannot be fetched ({why_refused(reason)})"
        if isinstance(reason, ConnectError | TimeoutException):
            _unreached = monotonic(), why
    raise MissingWeights(
        f"{name} of {label or f'{HUB}{repository}@{commit[:7]}'} {why}; fetch it while online, or leave out that step."
    )


def retry_while_busy(request: Callable[[], Response]) -> Response:
    """Return the Hub's answer; on status 429, wait as long as it asks and retry. Raises the errors of `request`."""
    from huggingface_hub.errors import HfHubHTTPError

    for _ in range(MAX_WAITS):
        try:
            return request()
        except HfHubHTTPError as reason:
            wait = _wait(reason)
            if wait is None or wait > MAX_WAIT_SECONDS:
                raise
            print(f"The Hub is busy and asks to wait {wait:,} s.", file=sys.stderr)
            sleep(wait)
    return request()


def _wait(reason: "HfHubHTTPError") -> int | None:
    """Return the seconds that the Hub asks to wait; None if it does not."""
    from huggingface_hub.utils import parse_ratelimit_headers

    if reason.response.status_code != TOO_MANY_REQUESTS:
        return None
    headers = reason.response.headers
    retry_after, limit = headers.get("Retry-After", "").strip(), parse_ratelimit_headers(headers)
    if retry_after.isdecimal():
        return int(retry_after)
    try:
        return max(0, ceil(parsedate_to_datetime(retry_after).timestamp() - time()))
    except ValueError:
        return limit.reset_in_seconds if limit else None


def why_refused(reason: BaseException) -> str:
    """Return in a few words why the Hub refused a request, with a remedy if there is one."""
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    if isinstance(reason, GatedRepoError):
        return "it is gated: ask for access on its page, and log in with: hf auth login"
    if isinstance(reason, RepositoryNotFoundError):
        return "no repository has that name, or it is private: log in with: hf auth login"
    if isinstance(reason, HfHubHTTPError) and (wait := _wait(reason)):
        return f"it is busy, and asks to wait {wait:,} s; then give the same command again, which continues from here"
    return first_line(reason)
