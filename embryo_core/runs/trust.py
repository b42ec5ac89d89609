"""What of a run's folder is believed, and why: the folder may come from a stranger.

Embryo changes only what belongs to the run itself. A link inside a folder, to another run or to any folder of this
machine, would have a command overwrite or remove files there, so every writer asks `own_folder` first. The folders
above a run's own (`runs/`, `results/`, `cache/`) are the user's, and may be links.
"""

import os
import stat
from collections.abc import Collection
from pathlib import Path

from embryo_core.errors import EmbryoError

JUNCTION = 0xA0000003  # st_reparse_tag of a Windows junction, which os.path.islink does not know


def is_link(path: Path | str) -> bool:
    """Return whether a path is a symbolic link or a Windows junction."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISLNK(found.st_mode) or getattr(found, "st_reparse_tag", 0) == JUNCTION


def own_folder(folder: Path, within: Path, error: type[EmbryoError], entries: bool = True) -> Path:
    """Return a folder (or file) that a command is about to change.

    Raise `error` if it is a link, lies below one inside the folder `within`, or if one of its `entries` is a link.
    """
    way = [folder, *(parent for parent in folder.parents if parent.is_relative_to(within))]
    for place in reversed(way):
        if is_link(place):
            raise _link(place, error)
    if entries and folder.is_dir():
        for entry in os.scandir(folder):
            if entry.is_symlink() or (os.name == "nt" and is_link(entry.path)):
                raise _link(entry.path, error)
    return folder


def refuse_foreign(folder: Path, own: Collection[str], error: type[EmbryoError]) -> None:
    """Raise `error` if a folder that is about to be removed holds anything but files with names of its `own`."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    except NotADirectoryError:
        names = [""]
    for name in names:
        if name not in own or not stat.S_ISREG(os.lstat(folder / name).st_mode):
            raise error(
                f"{shown(folder / name)} is not a file that Embryo wrote, and its folder is to be removed; move it "
                "elsewhere, then give the same command."
            )


def remove_own(folder: Path, own: Collection[str], error: type[EmbryoError]) -> None:
    """Remove a folder if it holds nothing but files with names of its `own`. Raise `error` otherwise."""
    refuse_foreign(folder, own, error)
    if folder.is_dir():
        for name in os.listdir(folder):
            (folder / name).unlink()
        folder.rmdir()


def _link(path: Path | str, error: type[EmbryoError]) -> EmbryoError:
    return error(
        f"{shown(path)} is a link, and a command changes only files of the run itself; remove the link, or put a copy "
        "of what it leads to in its place."
    )


def shown(path: Path | str) -> str:
    """Return a path or name for a message, with control characters and bytes that are no text escaped."""
    text = str(path)
    return text if text.isprintable() else ascii(text)
