"""Check a tokenizer.json before the tokenizers library reads it.

The library trusts its files. A normaliser that repeatedly replaces each character with many takes all memory and aborts
the process, and no `except` catches that. These checks limit size, depth, number of steps, length of patterns, their
counted repeats, and how much a text may grow. How long a pattern runs on a given text cannot be read off the file; only
a child process with a time limit would be safe from that. A host who accepts tokenizers from strangers should read
their patterns.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct, json

from embryo_core.errors import BrokenRun, BrokenTokenizer
from embryo_core.runs.schema import MB
from embryo_core.runs.trust import digest, read_json
from embryo_core.runs.value_types import Text, resolve
from embryo_core.types import Run

TOKENIZER_FILES = (  # a folder with a tokenizer has one of these
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "spm.model",
    "tokenizer.model",
)
MAX_PART_BYTES = 4 * MB  # of a normaliser, pre-tokenizer or decoder; a large character table takes 2 MB
MAX_STEPS = 64  # in one part
MAX_DEPTH = 12  # nesting of lists and objects
MAX_PATTERN = 4096  # characters of a regular expression
MAX_REPEATS = 1000  # product of the counts of a pattern: a{10} in (...){20} gives 200
MAX_GROWTH = 4096  # characters that replace one character of a text
REPEAT = re.compile(r"(?<!\\[xupP])\{(\d*),?(\d*)\}")


class AddedToken(Struct, frozen=True):
    """A token found in the text before normalisation."""

    content: Text


class TokenizerFile(Struct, frozen=True):
    """The content of tokenizer.json; the size of the file limits the model inside."""

    model: dict[str, Raw]
    normalizer: Raw = Raw(b"null")
    pre_tokenizer: Raw = Raw(b"null")
    decoder: Raw = Raw(b"null")
    added_tokens: Annotated[list[AddedToken], Meta(max_length=100_000)] = []

    def __post_init__(self) -> None:
        for part in (self.normalizer, self.pre_tokenizer, self.decoder):
            _check_part(part)


resolve(globals())


def check_tokenizer(run: Run) -> str:
    """Check the run's tokenizer.json and return its SHA-256. Raises BrokenRun."""
    path = run.tokenizer / "tokenizer.json"
    found = digest(path, run.path, BrokenRun)
    _check(path, run.path, found)
    return found


def check_tokenizer_file(path: Path) -> None:
    """Check the tokenizer.json of checkpoints from elsewhere. Raises BrokenTokenizer."""
    read_json(path, path.parent, TokenizerFile, BrokenTokenizer)


@lru_cache(maxsize=64)
def _check(path: Path, within: Path, _sha256: str) -> None:
    read_json(path, within, TokenizerFile, BrokenRun)


def _check_part(part: Raw) -> None:
    """Raise ValueError for a part that has too many steps or may take all memory."""
    if len(bytes(part)) > MAX_PART_BYTES:
        raise ValueError(
            f"a normaliser, pre-tokenizer or decoder of {len(bytes(part)):,} bytes is more than {MAX_PART_BYTES:,}"
        )
    objects = list(_objects(json.decode(part, type=dict[str, Any] | None)))
    steps = [found for found in objects if "type" in found]
    if len(steps) > MAX_STEPS:
        raise ValueError(f"{len(steps)} steps are more than the {MAX_STEPS} allowed")
    for pattern in (found["Regex"] for found in objects if "Regex" in found):
        _check_pattern(str(pattern))
    growth = prod(1 + len(_inserted(step)) for step in steps)
    if growth > MAX_GROWTH:
        raise ValueError(f"its replacements turn one character into up to {growth:,}, more than {MAX_GROWTH:,}")


def _check_pattern(pattern: str) -> None:
    """Raise ValueError for a pattern that is too long or repeats too often."""
    counts = [max(1, *(int(count or 0) for count in found)) for found in REPEAT.findall(pattern)]
    if len(pattern) > MAX_PATTERN or prod(counts) > MAX_REPEATS:
        raise ValueError(f"the pattern {pattern[:40]!a} is too long, or repeats more than {MAX_REPEATS:,} times")


def _inserted(step: dict[str, Any]) -> str:
    """Return the text that a step inserts at each match."""
    return str(step.get("content") or step.get("prepend") or "")


def _objects(part: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield every object in a part, itself included. Raises ValueError if they are nested too deep."""
    if depth > MAX_DEPTH:
        raise ValueError(f"its parts are nested more than {MAX_DEPTH} deep")
    if isinstance(part, dict):
        yield part
    for member in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _objects(member, depth + 1)
