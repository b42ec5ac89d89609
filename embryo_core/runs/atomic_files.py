"""Atomic writes of files and folders, which are written under a temporary name and renamed; locks on folders."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from embryo_core.errors import EmbryoError

LOCK_FILE = ".lock.tmp"  # with the suffix of temporary files, so that no reader takes it for content
UNFINISHED = ".tmp"  # suffix of a file that is being written, or was left by a killed writer
TABLE_PATTERN = re.compile(r"\w+\.parquet(\.sha256)?")
OWN_FILES = frozenset(  # names of Embryo's files, besides tables, in folders that are replaced or removed
    "run.json log.jsonl audit.json frequencies.tsv config.json manifest.json model.safetensors pytorch_model.bin "
    "tokenizer.json tokenizer_config.json special_tokens_map.json added_tokens.json vocab.txt vocab.json merges.txt "
    "spiece.model sentencepiece.bpe.model spm.model tokenizer.model tokens.bin sentences.npy documents.npy".split()
)


def refuse_foreign_files(folder: Path, error: type[EmbryoError] = EmbryoError) -> None:
    """Raise `error` if a folder has, at any depth, a file whose name is not one that Embryo writes there."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for parent, _, names in os.walk(folder):
        for name in sorted(names):
            if (finished := name.removesuffix(UNFINISHED)) not in OWN_FILES and not TABLE_PATTERN.fullmatch(finished):
                raise error(
                    f"{os.path.join(parent, name)!r} is not a file that Embryo wrote, and {folder.name} is to be "
                    "replaced or removed; move it elsewhere, then give the same command."
                )


@contextmanager
def replacing(path: Path, refuse: Callable[[Path], None] = refuse_foreign_files) -> Iterator[Path]:
    """Yield a temporary path next to `path`; its content replaces `path` when the block ends without an error.

    Until then `path` is unchanged. Leftovers of a killed writer under the temporary name are removed, and a folder that
    it had moved away is restored. A file is replaced atomically; an existing folder is renamed first, so that no reader
    sees half of it. All writers use the same temporary name, so if several may run, the caller holds a lock (`locked`).
    Raises EmbryoError, before anything is written, if `refuse` finds a file that Embryo did not write in a folder that
    would be removed.
    """
    temporary, old = path.with_name(path.name + UNFINISHED), path.with_name(path.name + ".old" + UNFINISHED)
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
    for location in (path, temporary, old):
        refuse(location)
    if old.is_dir() and not os.path.lexists(path):
        os.rename(old, path)
    for location in (temporary, old):
        remove(location)
    try:
        yield temporary
        if path.is_dir() and temporary.is_dir():  # a file never replaces a folder
            refuse(path)
            os.rename(path, old)
        os.replace(temporary, path)
        remove(old)
    except BaseException:
        if old.is_dir() and not os.path.lexists(path):
            os.rename(old, path)
        remove(temporary)
        raise


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file; no reader ever sees half of it."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def link_or_copy(source: str, target: str) -> None:
    """Make a hard link to a file, which takes no space; copy it where linking fails, as between disks."""
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copy2(source, target)


def sha256(file: Path | BufferedIOBase) -> str:
    """Return the hexadecimal SHA-256 of a file, or of the content of an open one."""
    if isinstance(file, Path):
        with file.open("rb") as opened:
            return sha256(opened)
    return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def locked(folder: Path, busy: EmbryoError | None = None, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock on a folder, which is created if needed; a process that ends or is killed releases its lock.

    While another process holds the lock, raise `busy`, or call `waiting` and wait.
    """
    from filelock import lock_descriptor  # imported here, since it is slow

    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
    if os.name != "nt":
        opened = os.open(folder, os.O_RDONLY | os.O_NONBLOCK)
    else:  # Windows cannot open a folder: lock a file in it
        opened = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT)
    try:
        if not lock_descriptor(opened, blocking=False):
            if busy:
                raise busy
            waiting()
            lock_descriptor(opened)
        yield
    finally:
        os.close(opened)


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with its content, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink(missing_ok=True)
