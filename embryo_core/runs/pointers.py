"""Weights that a run points to: followed only where this user added the run, as a list outside the run's folder says.

A run's folder may come from a stranger, and a pointer in it could lead to any file or repository. `python -m
embryo_core add` notes in the user's own settings which run may read which folders and repositories. A pointer of any
other run is refused with a sentence; so is one that leads out of the noted folders.
"""

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from embryo_core.errors import BrokenCheckpoint, BrokenList, RunError
from embryo_core.runs.files import write_json
from embryo_core.runs.locks import locked
from embryo_core.runs.reading import read_json
from embryo_core.runs.settings import settings_folder
from embryo_core.runs.trust import shown
from embryo_core.runs.value_types import Text
from embryo_core.types import Pointer, Run

HUB = "hf:"  # before the name of a repository
SHARED = "blobs"  # in the cache of huggingface_hub: files that its repositories link to, by the hash of Xet
Added = Annotated[dict[Text, Annotated[list[Text], Meta(max_length=100_000)]], Meta(max_length=100_000)]


def allow(run: Path, locations: Iterable[str]) -> None:
    """Note that this user added the run in this folder: it may read weights in these folders and "hf:" repositories.

    Raises BrokenList, and RunError for a path that is no text, which the list cannot hold.
    """
    for place in (run, *locations):
        check_text(place)
    with locked(settings_folder()):
        known = {} if not _list().is_file() else read_json(_list(), _list().parent, Added, BrokenList)
        write_json(_list(), known | {os.path.realpath(run): sorted(set(locations))})


def check_text(path: Path | str) -> None:
    """Raise RunError for a path with bytes that are no UTF-8: no file of a run can name it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise RunError(f"The path {shown(path)} has bytes that are no UTF-8 text; rename its folder.") from None


def was_added(run: Path) -> bool:
    """Whether this user added the run in this folder."""
    return os.path.realpath(run) in _added()


def places(run: Path) -> frozenset[str]:
    """The folders and "hf:" repositories from which the run in this folder may read weights."""
    return _added().get(os.path.realpath(run), frozenset())


def place_of(pointer: Pointer) -> str:
    """The folder, or "hf:" repository, that a pointer leads to."""
    return HUB + pointer.repository if pointer.repository else str(Path(pointer.file).parent)


def follow(run: Run, pointer: Pointer, manifest: Path) -> tuple[Path, Path]:
    """The file that a pointer leads to, which may have to be fetched, and the folder that it has to be in.

    Raises BrokenCheckpoint where this user did not add the run, or added other folders.
    """
    named = pointer.repository or os.path.isabs(pointer.file)
    if named and place_of(pointer) in _added().get(str(run.path), ()):
        if pointer.repository:
            folder = hub_folder(pointer.repository)
            return folder / "snapshots" / pointer.commit / pointer.file, folder
        return Path(pointer.file), Path(pointer.file).parent
    where = f"{HUB}{pointer.repository}@{pointer.commit[:7]}" if pointer.repository else shown(pointer.file)
    raise BrokenCheckpoint(
        f"{shown(manifest)} points to {where}, outside the run, and this user did not add the run from there; where "
        f"you trust it, add it again with: python -m embryo_core add SOURCE --name {run.name}"
    )


def hub_store(path: Path, repository: str) -> Path:
    """The folder that a file in the cache has to be in: its repository's, or the store of all that links lead to."""
    folder = hub_folder(repository)
    shared = os.path.realpath(folder.parent / SHARED)
    return Path(shared) if Path(os.path.realpath(path)).is_relative_to(shared) else folder


def hub_folder(repository: str) -> Path:
    """The folder of a repository in the cache of huggingface_hub, whose settings are these variables."""
    home = os.environ.get("HF_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface"
    )
    cache = os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    return Path(cache) / f"models--{repository.replace('/', '--')}"


def _list() -> Path:
    return settings_folder() / "added.json"


def _added() -> dict[str, frozenset[str]]:
    """Places by the folder of the run; read again only when the list is another: every query lists all checkpoints."""
    try:
        found = os.stat(_list())
    except OSError:
        return {}
    return _parse(_list(), found.st_ino, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=8)
def _parse(path: Path, *_state: int) -> dict[str, frozenset[str]]:
    return {run: frozenset(places) for run, places in read_json(path, path.parent, Added, BrokenList).items()}
