"""Files of evaluation data: open, decompress, read lines, and hash their content."""

import gzip
import hashlib
import io
import json
import lzma
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from embryo_core import runs
from embryo_core.errors import CorpusError
from embryo_core.metric import Source

FETCHED = ("treebank", "lama", "glue", "squad")  # data that `python -m embryo_core fetch` downloads
# Suffix of a compressed file -> function that opens it.
OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".gz": gzip.open}
MAX_TEXT_BYTES = 2**29  # bytes of a decompressed text; a limit, because a small file may expand to any size
MAX_TEXT_LINES = 2**23  # lines of a text; a limit, because each takes a hundred bytes of memory, even if blank
MAX_LINE_LENGTH = 2**20  # characters of a line of JSON
Lines = list[tuple[str, str]]  # location ("ewt.conllu, line 7") and text of each line


def read_text(folder: Path, split: str) -> list[str]:
    """Read the non-blank lines of `<split>.txt` (train, heldout), or of its .xz or .gz. Raises CorpusError."""
    return [line for _, line in read_lines(split_file(folder, f"{split}.txt")) if line.strip()]


def find_file(folder: Path, name: str) -> Path | None:
    """Return the file with this name in a folder, plain or compressed; None if both are missing."""
    files = (folder / f"{name}{suffix}" for suffix in ("", *OPENERS))
    return next((file for file in files if file.is_file()), None)


def split_file(folder: Path, name: str) -> Path:
    """Return the path of a split, plain or compressed. Raises CorpusError if it is missing."""
    path = find_file(folder, name)
    if path is None:
        names = ", ".join(sorted(p.name for p in folder.iterdir())) if folder.is_dir() else ""
        siblings = f"; its folder holds {names or 'no file'}" if folder.is_dir() else ", nor does its folder"
        raise CorpusError(f"{folder / name} (or .xz, .gz) does not exist{siblings}. Add that split.")
    return path


def find_fetched(sources: Collection[str]) -> dict[str, Path]:
    """Return the folders in data/corpora named after `sources`, by name; for a treebank, the file of its test split."""
    folders = {folder.name: folder for folder in runs.data_folder("corpora").glob("*/") if folder.name in sources}
    return {name: next(iter(sorted(folder.glob("*-test.conllu"))), folder) for name, folder in folders.items()}


def require(path: Path) -> None:
    """Raise CorpusError if the path is neither a file nor a folder."""
    if not path.exists():
        raise CorpusError(
            f"{path} does not exist; name a file or folder that does, or fetch: python -m embryo_core fetch -h"
        )


def open_source(path: Path, limit: int | None = None, **options: Any) -> Source:
    """Return the data at a path as a Source for metrics. Raises CorpusError if they are missing or unreadable."""
    require(path)
    return Source(path, _content_sha256(path), limit, options)


def find_data(
    hashes: Collection[str], candidates: Iterable[Path], hashes_of: Callable[[Path], Iterable[str]] | None = None
) -> Path | None:
    """Return the first path whose data have one of these hashes, or None.

    The search covers the `candidates`, then the data with such a hash that this user named before. `hashes_of` returns
    the hashes of the data at a path, by default that of their content.
    """
    remembered = runs.remembered_folders()
    known = [Path(remembered[sha256]) for sha256 in sorted({*hashes} & remembered.keys())]
    for path in (*candidates, *known) if hashes else ():
        with suppress(CorpusError):
            found = hashes_of(path) if hashes_of else [open_source(path).sha256]
            if any(sha256 in hashes for sha256 in found):
                return path
    return None


def _content_sha256(path: Path) -> str:
    """Return the SHA-256 of a file or folder, regardless of its name, compression and hidden files."""
    if path.is_file():
        with _opened(path) as file:
            return runs.sha256(file)
    inside = sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file())
    names = {without_compression(str(name)): name for name in inside if not any(p.startswith(".") for p in name.parts)}
    listing = "".join(f"{_content_sha256(path / names[name])}  {name}\n" for name in names)
    return hashlib.sha256(listing.encode()).hexdigest()


def without_compression(name: str) -> str:
    """Return the name of a file without .xz or .gz."""
    return next((name.removesuffix(suffix) for suffix in OPENERS if name.endswith(suffix)), name)


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader | lzma.LZMAFile | gzip.GzipFile]:
    """Open a file, decompressed. Raises CorpusError if it cannot be read."""
    if not path.is_file():  # reading a pipe would block forever
        raise CorpusError(f"{path} is not a regular file; name one that is.")
    try:
        with OPENERS[path.suffix](path) if path.suffix in OPENERS else path.open("rb") as file:
            yield file
    except (OSError, EOFError, lzma.LZMAError, zlib.error, UnicodeDecodeError) as reason:
        raise CorpusError(f"{path} cannot be read ({reason}); fetch it again, or convert it to UTF-8 text.") from None


def read_lines(path: Path) -> Lines:
    """Read the lines of a UTF-8 file without trailing blanks, each with its location; skip a byte order mark.

    Raises CorpusError if the file is unreadable or exceeds MAX_TEXT_BYTES or MAX_TEXT_LINES.
    """
    with _opened(path) as file:
        content = file.read(MAX_TEXT_BYTES + 1)
        if len(content) > MAX_TEXT_BYTES or content.count(b"\n") + content.count(b"\r") > MAX_TEXT_LINES:
            most = f"{MAX_TEXT_BYTES:,} bytes or {MAX_TEXT_LINES:,} lines of text"
            raise CorpusError(f"{path} has more than {most}, the maximum; split it into several files.")
        text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig")
        return [(f"{path}, line {number}", line.rstrip()) for number, line in enumerate(text, 1)]


def read_json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read the objects of a JSON Lines file, each with its location; skip blank lines. Raises CorpusError."""
    for location, line in read_lines(path):
        if not line:
            continue
        if len(line) > MAX_LINE_LENGTH:
            raise CorpusError(
                f"{location} has {len(line):,} characters; the maximum is {MAX_LINE_LENGTH:,}. Remove it."
            )
        try:
            row = json.loads(line)
            if "\\u" in line:
                json.dumps(row, ensure_ascii=False).encode()  # raises ValueError for a lone surrogate
        except (ValueError, RecursionError) as reason:
            raise CorpusError(f"{location} is not JSON ({reason}); expected one object per line.") from None
        if not isinstance(row, dict):
            raise CorpusError(f"{location}: expected a JSON object, received {line[:60]!r}.")
        yield location, row
