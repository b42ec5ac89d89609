"""Folders of evaluation data that this user has used, by the hash of their content.

Results hold no texts, and a run may come from a stranger: it names a hash, never a path.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from embryo_core.errors import BrokenList
from embryo_core.runs.atomic_files import locked, write_json
from embryo_core.runs.pointers import read_list, settings_folder
from embryo_core.runs.value_types import Sha256, Text

TASKS = "tasks.json"
MAX_FOLDERS = 1000  # that are remembered
Folders = Annotated[dict[Sha256, Text], Meta(max_length=MAX_FOLDERS)]


def remember_folder(sha256: str, folder: Path) -> None:
    """Note in this user's settings where the data of this hash are; do nothing if these cannot be written."""
    with suppress(OSError, UnicodeEncodeError), locked(settings_folder()):
        known = remembered_folders() | {sha256: os.path.realpath(folder)}
        write_json(settings_folder() / TASKS, dict([*known.items()][-MAX_FOLDERS:]))


def remembered_folders() -> dict[str, str]:
    """Return folders by the hash of their data; nothing if the list cannot be read."""
    try:
        return read_list(TASKS, Folders)
    except BrokenList:
        return {}
