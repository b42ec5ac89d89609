"""Checksum files: the SHA-256 and the name of each file that they are of, a line each, as `sha256sum` writes them."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from embryo_core.errors import EmbryoError
from embryo_core.runs.files import replacing
from embryo_core.runs.reading import read_bytes, refusal

LINE = re.compile(rb"([0-9a-f]{64})  ([A-Za-z0-9_][A-Za-z0-9_./-]{0,200})")

Checksums = frozenset[tuple[str, str]]  # (SHA-256, name)


def write_checksums(path: Path, lines: Iterable[tuple[str, str]]) -> None:
    """Write a checksum file for these (SHA-256, name). A name may have several, where its file is being replaced."""
    with replacing(path) as temporary:
        temporary.write_text("".join(f"{sha256}  {name}\n" for sha256, name in sorted(lines)), encoding="ascii")


def read_checksums(path: Path, within: Path, error: type[EmbryoError]) -> Checksums | None:
    """What a checksum file lists; None where there is none. Raises `error` where it is no checksum file."""
    if not os.path.lexists(path):  # a writer may put it there at any moment
        return None
    try:
        lines = read_bytes(path, within, error).splitlines()
    except error:
        if os.path.lexists(path):
            raise
        return None
    found = [LINE.fullmatch(line) for line in lines]
    if not all(found):
        raise refusal(path, "is no list of checksums", error)
    return frozenset((match[1].decode(), match[2].decode()) for match in found if match)
