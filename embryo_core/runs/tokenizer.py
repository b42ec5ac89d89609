"""The file of a run's tokenizer, bounded before the tokenizers library reads it.

The library is written for files that one trusts: a normaliser that replaces each character by many, several times over,
takes all memory and aborts the process, and no `except` sees that. So what can be bounded is bounded here: size, depth,
number of steps, length of patterns, their counted repeats, and how much a text may grow. What cannot be known from the
file is how long a pattern runs on a given text: only a child process with a limit of time would be safe from that, and
a host who takes tokenizers from strangers should read their patterns.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct, json

from embryo_core.errors import BrokenRun, BrokenTokenizer
from embryo_core.runs.reading import digest, read_json
from embryo_core.runs.schema import MB
from embryo_core.runs.value_types import Text, resolve
from embryo_core.types import Run

FILES = (  # one of which a folder with a tokenizer has
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "spm.model",
    "tokenizer.model",
)
PART = 4 * MB  # of a normaliser, cutter or decoder; a table of characters has half of one
STEPS = 64  # in one of them
DEPTH = 12  # of their lists and objects
PATTERN = 4096  # characters of a regular expression
REPEATS = 1000  # what the counts of a pattern may multiply to: a{10} in (...){20} are 200
GROWTH = 4096  # characters that one character of a text may become
REPEAT = re.compile(r"(?<!\\[xupP])\{(\d*),?(\d*)\}")


class AddedToken(Struct, frozen=True):
    """A token that is found in the text before it is normalised."""

    content: Text


class TokenizerFile(Struct, frozen=True):
    """tokenizer.json; what is in the model is bounded by the size of the file."""

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
    """SHA-256 of the run's tokenizer.json, which may then be handed to the library. Raises BrokenRun."""
    path = run.tokenizer / "tokenizer.json"
    found = digest(path, run.path, BrokenRun)
    _check(path, run.path, found)
    return found


def check_tokenizer_file(path: Path) -> None:
    """Raise BrokenTokenizer for a tokenizer.json, of foreign checkpoints, that may not be handed to the library."""
    read_json(path, path.parent, TokenizerFile, BrokenTokenizer)


@lru_cache(maxsize=64)
def _check(path: Path, within: Path, _sha256: str) -> None:
    read_json(path, within, TokenizerFile, BrokenRun)


def _check_part(part: Raw) -> None:
    """Raise ValueError for a part with too many steps, or one that may take all memory."""
    if len(bytes(part)) > PART:
        raise ValueError(f"a normaliser, cutter or decoder of {len(bytes(part)):,} bytes is more than {PART:,}")
    objects = list(_objects(json.decode(part, type=dict[str, Any] | None)))
    steps = [found for found in objects if "type" in found]
    if len(steps) > STEPS:
        raise ValueError(f"{len(steps)} steps are more than the {STEPS} that are read")
    for pattern in (found["Regex"] for found in objects if "Regex" in found):
        _check_pattern(str(pattern))
    growth = prod(1 + len(_inserted(step)) for step in steps)
    if growth > GROWTH:
        raise ValueError(f"its replacements make up to {growth:,} characters of one, more than {GROWTH:,}")


def _check_pattern(pattern: str) -> None:
    counts = [max(1, *(int(count or 0) for count in found)) for found in REPEAT.findall(pattern)]
    if len(pattern) > PATTERN or prod(counts) > REPEATS:
        raise ValueError(f"the pattern {pattern[:40]!a} is too long, or repeats more than {REPEATS:,} times")


def _inserted(step: dict[str, Any]) -> str:
    """What a step puts into the text at each of its matches."""
    return str(step.get("content") or step.get("prepend") or "")


def _objects(part: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """All objects in a part, itself included. Raises ValueError where they are nested too deep."""
    if depth > DEPTH:
        raise ValueError(f"its parts are nested more than {DEPTH} deep")
    if isinstance(part, dict):
        yield part
    for member in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _objects(member, depth + 1)
