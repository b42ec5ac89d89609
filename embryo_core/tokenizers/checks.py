"""Check a tokenizer.json before the tokenizers library reads it.

The library trusts its files. A normaliser that repeatedly replaces one character with many exhausts the memory and
aborts the process, which no `except` catches. So the growth of a text and the numbers of steps and pieces are limited;
the library itself rejects unknown parts. The running time of a regular expression cannot be derived from the file, so a
host shows only runs that it trusts (runs/trust_list.py).
"""

import re
from base64 import b64decode
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct, json

from embryo_core import runs
from embryo_core.errors import EmbryoError, TokenizerMismatch
from embryo_core.runs.schema import MB
from embryo_core.runs.trust import read_json
from embryo_core.runs.value_types import resolve
from embryo_core.types import Checkpoint

TOKENIZER_FILES = tuple(  # a folder with a tokenizer has at least one of these
    "tokenizer.json vocab.txt vocab.json spiece.model sentencepiece.bpe.model spm.model tokenizer.model".split()
)
# further files that transformers reads
TOKENIZER_SETTINGS = "tokenizer_config.json special_tokens_map.json added_tokens.json merges.txt config.json".split()
# bytes of one part, such as the normaliser or the added tokens; a character table takes 2 MB
MAX_PART_BYTES = 16 * MB
MAX_STEPS = 64  # steps in one part
NFKC_GROWTH = 18  # characters into which NFKC turns U+FDFA, its longest replacement
MAX_GROWTH = 4 * NFKC_GROWTH  # characters that one may become; public tokenizers also insert characters in two places
MAX_PIECES = 300_000
MAX_PIECE_BYTES = 16 * MB  # bytes of all pieces together
MAX_MERGES = 1_000_000
CHARACTERS = re.compile(r"\\[pP]\{\w+\}|\\[sSdDwWnrt]")  # classes in a regular expression, which match one character
NOT_EMPTY = re.compile(r"[^\\*?{(^$|]+(\|[^\\*?{(^$|]+)*")  # regular expressions that cannot match ""
NONE = Raw(b"null")


class TokenizerModel(Struct, frozen=True):
    """The pieces and merges, which are counted before the library builds tables of them."""

    vocab: Raw
    merges: Raw = NONE

    def __post_init__(self) -> None:
        pieces = bytes(self.vocab).split(b'"')[1::2]
        if len(pieces) > MAX_PIECES or sum(map(len, pieces)) > MAX_PIECE_BYTES:
            limits = f"{MAX_PIECES:,} of {MAX_PIECE_BYTES:,} bytes together"
            raise ValueError(f"it has {len(pieces):,} pieces; the maximum is {limits}")
        if bytes(self.merges).count(b'"') > 4 * MAX_MERGES:
            raise ValueError(f"it has more than {MAX_MERGES:,} merges")


class TokenizerFile(Struct, frozen=True):
    """The content of tokenizer.json."""

    model: TokenizerModel
    normalizer: Raw = NONE
    pre_tokenizer: Raw = NONE
    post_processor: Raw = NONE
    decoder: Raw = NONE
    added_tokens: Raw = NONE

    def __post_init__(self) -> None:
        parts = self.normalizer, self.pre_tokenizer, self.decoder, self.post_processor, self.added_tokens
        normalizer, pre_tokenizer, decoder, *_ = map(_steps, parts)
        for steps in ([*normalizer, *pre_tokenizer], decoder):
            forms = NFKC_GROWTH if any(step["type"] in ("NFKC", "NFKD") for step in steps) else 1
            growth = max(forms, prod(map(_longest_in_table, steps))) * prod(map(_inserted, steps))
            if growth > MAX_GROWTH:
                raise ValueError(f"its replacements turn one character into {growth:,}, more than {MAX_GROWTH:,}")


resolve(globals())


def check_tokenizer(path: Path, root: Path, error: type[EmbryoError]) -> None:
    """Raise `error` unless a tokenizer.json, which must be inside the folder `root`, keeps the limits above."""
    read_json(path, root, TokenizerFile, error)


def _steps(part: Raw) -> list[dict[str, Any]]:
    """Return the steps of a part. Raises ValueError if the part is too large or has too many steps."""
    if len(bytes(part)) > MAX_PART_BYTES:
        raise ValueError(f"a part of {len(bytes(part)):,} bytes is more than {MAX_PART_BYTES:,}")
    steps = [step for step in _objects(json.decode(part)) if "type" in step]
    if len(steps) > MAX_STEPS:
        raise ValueError(f"{len(steps)} steps are more than the {MAX_STEPS} allowed")
    return steps


def _longest_in_table(step: dict[str, Any]) -> int:
    """Return the length of the longest replacement in a step's table of characters; 1 without a table."""
    content = b64decode(str(step.get("precompiled_charsmap") or ""), validate=True)
    texts = content[4 + int.from_bytes(content[:4], "little") :].split(b"\0")
    return max(1, *(len(text.decode(errors="replace")) for text in texts))


def _inserted(step: dict[str, Any]) -> int:
    """Return the number of characters that a step may make of one by inserting or replacing text."""
    insertion = len(str(step.get("content") or step.get("prepend") or step.get("replacement") or ""))
    pattern = step["pattern"] if isinstance(step.get("pattern"), dict) else {}
    plain = CHARACTERS.sub("x", str(pattern.get("Regex", "")))
    return max(1, insertion) if pattern.get("String") or NOT_EMPTY.fullmatch(plain) else 1 + insertion


def _objects(part: Any) -> Iterator[dict[str, Any]]:
    """Yield every JSON object in a part, at any depth, including the part."""
    if isinstance(part, dict):
        yield part
    for member in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _objects(member)


def check_vocabulary(checkpoint: Checkpoint, pieces: int) -> None:
    """Raise TokenizerMismatch if the model's vocabulary is smaller than the tokenizer's `pieces`."""
    rows = runs.read_config(checkpoint, runs.Architecture).vocab_size
    if rows < pieces:
        raise TokenizerMismatch(
            f"The tokenizer of run '{checkpoint.run.name}' has {pieces} pieces, but {checkpoint.path} has {rows}; "
            "restore the tokenizer of its pretraining."
        )
