"""Run folders made from a seed, with every kind of file that a run has, and what can go wrong with them."""

import json
import os
import random
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint
from embryo_core.types import Run

VALUES = (None, True, -1, 5, 2**31, 2**63, 2**64, 10**400, 1e308, "", "\x1b[2J", "x" * 10_000, "../..", "/etc/hostname")
TEXTS = (b"", b"5", b"null", b"[]", b"{}", b"NaN", b'{"step": Infinity}', b"[" * 100_000, b"\xff\xfe\x00", b'{"a')


def make_run(root: Path, seed: int) -> Run:
    """Write a small, sound run with two checkpoints and results' sources under `root`."""
    rng = random.Random(seed)
    heads = rng.choice((1, 2, 4))
    sizes = {"hidden_size": 8 * heads, "num_attention_heads": heads, "num_hidden_layers": 2, "vocab_size": 11}
    path = root / "runs" / f"run{seed}"
    (path / "tokenizer").mkdir(parents=True)
    _write_tokenizer(path / "tokenizer" / "tokenizer.json")
    sha256 = runs.sha256(path / "tokenizer" / "tokenizer.json")
    corpus = {"sources": [{"name": "text.txt", "bytes": 100}], "train": {"documents": 3, "tokens": 50}}
    run = Run(path.name, path, "bert", "masked words", sizes, sha256, corpus, (0, 8), "0.1.0")
    runs.write_run(run)
    rows = [{"split": "train", "step": step, "loss": rng.random(), "tokens": step} for step in range(1, 9)]
    (path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / "frequencies.tsv").write_text("the\t9\n,\t5\nof\t1\n")
    for step in run.planned_steps:
        _write_checkpoint(path / "checkpoints" / f"step{step}", step, sizes)
    runs.write_json(run.results / "sources.json", {"attention": {"data": "a.conllu", "sentences": 3}})
    return run


def _write_tokenizer(path: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "of", ",", "a", "b", "c"]
    replace = {"type": "Replace", "pattern": {"Regex": "[‘’]"}, "content": "'"}
    model = {"type": "WordLevel", "vocab": {piece: i for i, piece in enumerate(pieces)}, "unk_token": "[UNK]"}
    normalizer = {"type": "Sequence", "normalizers": [replace, {"type": "Lowercase"}]}
    content = {"version": "1.0", "added_tokens": [], "normalizer": normalizer, "model": model}
    runs.write_json(path, {**content, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None})


def _write_checkpoint(folder: Path, step: int, sizes: dict[str, int]) -> None:
    folder.mkdir(parents=True)
    more = {"model_type": "bert", "intermediate_size": 32, "max_position_embeddings": 16, "hidden_act": "gelu"}
    runs.write_json(folder / "config.json", {**sizes, **more})
    most = runs.read_json(folder / "config.json", folder, runs.Architecture, BrokenCheckpoint).most_parameters
    save_file({"weights": np.zeros(most, np.float16)}, folder / "model.safetensors")
    runs.write_manifest(folder, step, sequences=step, tokens=step)


# === Damages ===


def damage(run: Run, same: Run, rng: random.Random) -> str:
    """Damage one file or folder of a run in one way of many, and say which; links lead to the `same` run elsewhere."""
    path = rng.choice(sorted([*run.path.rglob("*"), *run.results.rglob("*")]))
    state = path.lstat()
    small = stat.S_ISREG(state.st_mode) and state.st_size <= 2**20  # one made sparse before is not read here
    how = rng.choice(FOR_FILES if small else FOR_ALL)
    how(path, same.path.parents[1] / path.relative_to(run.path.parents[1]), rng)
    return f"{how.__name__.strip('_')} {path.name}"


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
    """Put a strange value, or a strange name, somewhere into a JSON file; write over another kind of file."""
    try:
        content = json.loads(path.read_bytes())
        member, key = rng.choice(_members(content))
    except (ValueError, IndexError, RecursionError):
        return _write_over(path, outside, rng)
    if isinstance(member, dict) and rng.random() < 0.2:
        member[rng.choice((os.path.relpath(outside, path.parent), str(outside), "x" * 300, "\ud800"))] = member[key]
    elif isinstance(member, dict) and rng.random() < 0.2:
        del member[key]
    else:
        member[key] = rng.choice((*VALUES, [], {}, [member[key]] * 3, {"a": [[[[[[[[1]]]]]]]]}))
    path.write_text(json.dumps(content))


def _members(content: Any) -> list[tuple[Any, Any]]:
    """All (container, key) of a JSON value."""
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [pair for key, value in inner for pair in ((content, key), *_members(value))]


def _remove(path: Path, *_: Any) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _replaced_by(make: Callable[[Path, Path], None], name: str) -> Callable[..., None]:
    def replace(path: Path, outside: Path, _: random.Random) -> None:
        _remove(path)
        make(path, outside)

    replace.__name__ = name
    return replace


def _lock(path: Path, *_: Any) -> None:
    if not path.is_symlink():  # it would be that of another file
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
