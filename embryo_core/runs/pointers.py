"""Access of a run to files outside its folder: lists in the user's settings, and pointers to weights.

A run's folder may be untrusted, and a pointer in it could lead to any file or repository. `python -m embryo_core add`
records in the user's settings which run may read which folders and repositories. Other pointers raise an error. Data of
an evaluation are identified by the hash of their content, never by a path.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, to_builtins

from embryo_core.errors import BrokenCheckpoint, BrokenUserList, RunError
from embryo_core.runs.atomic_files import locked, write_json
from embryo_core.runs.trust import State, read_unchanged, state_of
from embryo_core.runs.value_types import Sha256, Text
from embryo_core.types import Pointer, Run

HUB = "hf:"  # prefix of the name of a repository
BLOBS_FOLDER = "blobs"  # folder in the cache of huggingface_hub; repositories link to its files
ADDED_FILE = "added.json"
TASKS_FILE = "tasks.json"
MAX_FOLDERS = 1000  # remembered folders of data
Folders = Annotated[dict[Sha256, Text], Meta(max_length=MAX_FOLDERS)]
Added = Annotated[dict[Text, Annotated[frozenset[Text], Meta(max_length=100_000)]], Meta(max_length=100_000)]


def settings_folder() -> Path:
    """Return the folder of the user's lists; a command that writes one holds the lock on the folder."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(home) / "embryo"


def read_list(name: str, value_type: Any) -> dict[str, Any]:
    """Return one of the user's lists, cached until it changes; {} if it is missing. Raises BrokenUserList."""
    path = settings_folder() / name
    return read_unchanged(str(path), path.parent, value_type, BrokenUserList)[0] if list_state(name) else {}


def list_state(name: str) -> State:
    """Return a value that changes whenever one of the user's lists changes; () if it is missing."""
    return state_of(settings_folder() / name)


def add_to_list(name: str, value_type: Any, entries: Mapping[str, Any]) -> Path:
    """Add entries to one of the user's lists, replacing equal keys; return its file. Raises BrokenUserList."""
    path = settings_folder() / name
    with locked(path.parent):
        write_json(path, {**to_builtins(read_list(name, value_type), order="sorted"), **entries})
    return path


def remember_folder(sha256: str, folder: Path) -> None:
    """Record the folder of data with this hash in the user's settings; do nothing if these cannot be written."""
    with suppress(OSError, UnicodeEncodeError), locked(settings_folder()):
        folders = remembered_folders() | {sha256: os.path.realpath(folder)}
        write_json(settings_folder() / TASKS_FILE, dict([*folders.items()][-MAX_FOLDERS:]))


def remembered_folders() -> dict[str, str]:
    """Return the recorded folders by the hash of their data; {} if the list cannot be read."""
    try:
        return read_list(TASKS_FILE, Folders)
    except BrokenUserList:
        return {}


def record_added(run: Path, locations: Iterable[str]) -> None:
    """Record that the user added a run, which may read these locations. Raises BrokenUserList, RunError."""
    paths: list[Path | str] = [run, *locations]
    for path in paths:
        check_path(path)
    add_to_list(ADDED_FILE, Added, {os.path.realpath(run): sorted(set(locations))})


def check_path(path: Path | str) -> None:
    """Raise RunError for a path with bytes that are not UTF-8, since no file of a run can contain it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise RunError(f"The path {path} has bytes that are no UTF-8 text; rename its folder.") from None


def was_added(run: Path) -> bool:
    """Return whether the user added the run in this folder."""
    return os.path.realpath(run) in read_list(ADDED_FILE, Added)


def allowed_sources(run: Path) -> frozenset[str]:
    """Return the folders and "hf:" repositories from which a run may read weights."""
    return read_list(ADDED_FILE, Added).get(os.path.realpath(run), frozenset())


def source_of(pointer: Pointer) -> str:
    """Return the folder or "hf:" repository of a pointer."""
    return HUB + pointer.repository if pointer.repository else str(Path(pointer.file).parent)


def follow(run: Run, pointer: Pointer, manifest: Path) -> tuple[Path, Path]:
    """Return the file of a pointer, and the folder that it must be in. Raises BrokenCheckpoint if not allowed."""
    named = pointer.repository or os.path.isabs(pointer.file)
    if named and source_of(pointer) in allowed_sources(run.path):
        if pointer.repository:
            return cached_file(pointer), hub_folder(pointer.repository)
        return Path(pointer.file), Path(pointer.file).parent
    where = f"{HUB}{pointer.repository}@{pointer.commit[:7]}" if pointer.repository else pointer.file
    raise BrokenCheckpoint(
        f"{manifest} points to {where}, outside the run, and this user did not add the run from there; "
        f"if you trust it, add it again with: python -m embryo_core add SOURCE --name {run.name}"
    )


def cached_file(pointer: Pointer) -> Path:
    """Return the path of a repository's file in the cache of huggingface_hub, whether it was fetched or not."""
    return hub_folder(pointer.repository) / "snapshots" / pointer.commit / pointer.file


def hub_store(path: Path, repository: str) -> Path:
    """Return the folder that a file in the cache must be in: its repository's, or the shared store of blobs."""
    folder = hub_folder(repository)
    shared = os.path.realpath(folder.parent / BLOBS_FOLDER)
    return Path(shared) if Path(os.path.realpath(path)).is_relative_to(shared) else folder


def hub_folder(repository: str) -> Path:
    """Return the folder of a repository in the cache of huggingface_hub, by that library's environment variables."""
    home = os.environ.get("HF_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface"
    )
    cache = os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    return Path(cache) / f"models--{repository.replace('/', '--')}"
