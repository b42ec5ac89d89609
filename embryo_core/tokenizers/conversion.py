"""Convert the tokenizer of checkpoints from elsewhere to a tokenizer.json, once, through transformers."""

from pathlib import Path
from typing import Any

from transformers import AutoTokenizer
from transformers.utils import logging

from embryo_core.errors import BrokenRun, BrokenTokenizer, EmbryoError
from embryo_core.runs.trust import refusal
from embryo_core.tokenizers.checks import TOKENIZER_FILES, check_tokenizer_file
from embryo_core.types import SpecialTokens

SAMPLE = "a"  # a text that shows which special tokens surround it


def has_tokenizer(folder: Path) -> bool:
    """Return whether a folder holds a tokenizer."""
    return any((folder / name).is_file() for name in TOKENIZER_FILES)


def convert_tokenizer(folder: Path, decoder: bool = False) -> tuple[str, SpecialTokens]:
    """Read the tokenizer in a folder; return the text of its tokenizer.json and its special tokens.

    WordPiece, SentencePiece and byte-level BPE are supported. Raises BrokenTokenizer if transformers cannot read it.
    Raises BrokenRun if it has no mask token, has ids without a piece, or does not put exactly one token before and one
    after a text. That of a `decoder` needs no mask and may leave out either token.
    """
    logging.set_verbosity_error()
    if (folder / TOKENIZER_FILES[0]).is_file():
        check_tokenizer_file((folder / TOKENIZER_FILES[0]).resolve())
    try:
        found = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
        around = found(SAMPLE).input_ids
        inner = found(SAMPLE, add_special_tokens=False).input_ids
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as reason:  # noqa: BLE001, the library raises plain exceptions, and its Rust code panics
        raise _unreadable(folder, _why(reason)) from None
    if (backend := getattr(found, "backend_tokenizer", None)) is None:
        raise _unreadable(folder, f"{type(found).__name__}, which cannot be saved as a tokenizer.json")
    if len(found) <= len(set(found.all_special_ids)):  # transformers invents a tokenizer when the file is missing
        raise _unreadable(folder, "no pieces but the special tokens")
    if fault := _fault(found, around, inner, decoder):
        raise BrokenRun(f"The tokenizer in {folder} {fault}.")
    backend.no_truncation()
    backend.no_padding()
    start = _start(around, inner)
    tokens = around[:start], around[start + len(inner) :]
    first, last = (str(found.convert_ids_to_tokens(ids[0])) if ids else None for ids in tokens)
    return backend.to_str(pretty=False), SpecialTokens(found.mask_token, first, last, found.pad_token, found.unk_token)


def _start(around: list[int], inner: list[int]) -> int:
    """Return how many of the ids `around` come before `inner`; -1 if they are not there."""
    return next((i for i in range(len(around)) if around[i : i + len(inner)] == inner), -1)


def _fault(tokenizer: Any, around: list[int], inner: list[int], decoder: bool) -> str | None:
    """Return why Embryo cannot use a tokenizer that gives the sample ids `inner`, and `around` with special tokens."""
    highest = max(tokenizer.get_vocab().values())
    if highest >= len(tokenizer):
        return (
            f"gives its {len(tokenizer):,} pieces ids up to {highest:,}; Embryo reads models whose tokenizer has a "
            "piece for every id"
        )
    start = _start(around, inner)
    after = len(around) - len(inner) - start
    if decoder and start in (0, 1) and after in (0, 1):
        return None
    if decoder:
        return (
            f"makes {tokenizer.convert_ids_to_tokens(around)} of '{SAMPLE}'; Embryo reads decoders whose tokenizer "
            "puts at most one token before a text and one after it"
        )
    if tokenizer.mask_token is None:
        return "has no mask token; name the one of the pretraining with --tokenizer"
    if (start, after) != (1, 1):
        return (
            f"makes {tokenizer.convert_ids_to_tokens(around)} of '{SAMPLE}'; Embryo reads models whose tokenizer puts "
            "one token before a text and one after it"
        )
    return None


def _unreadable(folder: Path, why: str) -> EmbryoError:
    """Return the error for a tokenizer that transformers cannot read."""
    there = ", ".join(name for name in TOKENIZER_FILES if (folder / name).is_file())
    found = f"in {there}" if there else f"as none of {', '.join(TOKENIZER_FILES)} is there"
    return refusal(folder, f"has no tokenizer that transformers reads {found} ({why})", BrokenTokenizer)


def _why(reason: BaseException) -> str:
    """Return the message of an exception, on one line."""
    if "tiktoken" in str(reason):  # transformers then tries to read the file as tiktoken
        return "no SentencePiece model"
    name = "" if type(reason) is Exception else f"{type(reason).__name__}: "
    return name + (str(reason).splitlines() or [""])[0]
