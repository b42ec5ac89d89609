"""Random damage to files and folders, including what a malicious author could put in their place."""

import json
import os
import random
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from embryo_core import runs
from embryo_core.results.parquet_files import write_checksum
from embryo_core.types import Run

VALUES = (None, True, -1, 5, 2**31, 2**63, 2**64, 10**400, 1e308, "", "\x1b[2J", "x" * 10_000, "../..", "/etc/hostname")
TEXTS = (b"", b"5", b"null", b"[]", b"{}", b"NaN", b'{"step": Infinity}', b"[" * 100_000, b"\xff\xfe\x00", b'{"a')
NUMBERS = (0, -1, 1, 7, 1023, 2**31 - 1)
SMALL = 2**21  # bytes; a larger file, made sparse before, is not read


def damage(folders: list[Path], outside: Path, rng: random.Random) -> str:
    """Damage one random file or folder below `folders` in a random way, and return a description.

    A link leads to the counterpart below `outside`, which has the same layout as the folder that contains them all.
    """
    paths = sorted(path for folder in folders for path in folder.rglob("*"))
    if not paths:
        return "nothing is left"
    path = rng.choice(paths)
    root = Path(os.path.commonpath([folder.parents[1] for folder in folders]))
    return damage_one(path, outside / path.relative_to(root), rng)


def damage_one(path: Path, outside: Path, rng: random.Random) -> str:
    """Damage this file or folder and return a description; a link leads to `outside`."""
    state = path.lstat()
    how = rng.choice(FOR_FILES if stat.S_ISREG(state.st_mode) and state.st_size <= SMALL else FOR_ALL)
    how(path, outside, rng)
    return f"{how.__name__.strip('_')} {path.name}"


def sign(run: Run) -> None:
    """Write the hashes of damaged files into manifests and run.json, as an attacker could; then the files are read."""
    for manifest in run.path.glob("checkpoints/*/manifest.json"):
        _rehash(
            manifest,
            lambda content, folder: content["sha256"].update({n: _hash(folder / n) for n in content["sha256"]}),
        )
    tokenizer = run.tokenizer / "tokenizer.json"
    _rehash(run.path / "run.json", lambda content, folder: content.update(tokenizer_sha256=_hash(tokenizer)))


def _rehash(path: Path, change: Callable[[dict, Path], None]) -> None:
    try:
        content = json.loads(_small(path))
        change(content, path.parent)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return
    path.write_text(json.dumps(content))


def _hash(path: Path) -> str:
    _small(path)
    return runs.sha256(path)


def _small(path: Path) -> bytes:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > SMALL:
        raise FileNotFoundError(path)
    return path.read_bytes()


# === Damages of files ===


def _cut(path: Path, _: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(len(content) + 1)])


def _flip(path: Path, _: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(min(len(content), rng.choice((1, 8)))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def _write_over(path: Path, _: Path, rng: random.Random) -> None:
    path.write_bytes(rng.choice(TEXTS))


def _add_lines(path: Path, _: Path, rng: random.Random) -> None:
    with path.open("ab") as file:
        file.write(b"\n".join(rng.choices(TEXTS, k=3)) + b'\n{"split": "train", "step": -1}\n\xff\t1\n')


def _make_sparse(path: Path, _: Path, rng: random.Random) -> None:
    os.truncate(path, rng.choice((2**28 + 1, 20 * 10**9)))


def _change_value(path: Path, outside: Path, rng: random.Random) -> None:
    """Write a strange value into JSON, or into a table and its checksum; overwrite any other file."""
    try:
        content = pq.read_table(path) if path.suffix == ".parquet" else json.loads(path.read_bytes())
    except (pa.ArrowException, OSError, ValueError, RecursionError):
        return _write_over(path, outside, rng)
    if isinstance(content, pa.Table) and content.num_rows:
        return _change_table(path, content, rng)
    if not (members := _members(content)):
        return _write_over(path, outside, rng)
    member, key = rng.choice(members)
    if isinstance(member, dict) and rng.random() < 0.2:
        member[rng.choice((os.path.relpath(outside, path.parent), str(outside), "x" * 300, "\ud800"))] = member[key]
    elif isinstance(member, dict) and rng.random() < 0.2:
        del member[key]
    else:
        member[key] = rng.choice((*VALUES, [], {}, [member[key]] * 3, {"a": [[[[[[[[1]]]]]]]]}))
    path.write_text(json.dumps(content))


def _change_table(path: Path, table: pa.Table, rng: random.Random) -> None:
    """Change one cell of a table to another value of the column's type."""
    field = rng.choice(list(table.schema))
    values = table[field.name].to_pylist()
    strange = {pa.string(): ("", "\x1b[2J", "x" * 10_000, "![a](//b)", "\ufdd0"), pa.bool_(): (True, False)}
    strange |= dict.fromkeys((pa.binary(), pa.large_binary()), (b"", b"\xff", b"\xff" * 10_000))
    value = rng.choice((None, *strange.get(field.type, NUMBERS)))
    if pa.types.is_list(field.type):
        value = [float(value or 0)] * 3
    elif pa.types.is_floating(field.type) and value is not None:
        value = float(value)  # float32 rounds it, but would refuse an integer that it cannot represent
    values[rng.randrange(len(values))] = value
    column = pa.array(values, field.type)
    pq.write_table(table.set_column(table.schema.get_field_index(field.name), field, column), path)
    write_checksum(path)


def _members(content: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) of a JSON value."""
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [pair for key, value in inner for pair in ((content, key), *_members(value))]


# === Damages of files and folders ===


def _remove(path: Path, *_: Any) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _replaced_by(make: Callable[[Path, Path], None], name: str) -> Callable[..., None]:
    def replace(path: Path, outside: Path, _: random.Random) -> None:
        _remove(path)
        make(path, outside)

    replace.__name__ = name
    return replace


def _lock(path: Path, *_: Any) -> None:
    if not path.is_symlink():  # chmod would change another file
        path.chmod(0)


FOR_ALL = (
    _remove,
    _lock,
    _replaced_by(lambda path, _: os.mkfifo(path), "pipe"),
    _replaced_by(lambda path, _: path.symlink_to(path), "circle"),
    _replaced_by(lambda path, outside: path.symlink_to(outside), "link"),
    _replaced_by(lambda path, _: path.symlink_to("/dev/zero"), "device"),
    _replaced_by(lambda path, _: path.write_bytes(b"x"), "file"),
    _replaced_by(lambda path, _: path.mkdir(), "folder"),
)
FOR_FILES = (*FOR_ALL, _cut, _flip, _write_over, _add_lines, _make_sparse, _change_value, _change_value, _change_value)
