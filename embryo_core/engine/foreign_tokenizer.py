"""The tokenizer that came with foreign checkpoints, read once through transformers and kept as a tokenizer.json."""

from pathlib import Path

from transformers import AutoTokenizer
from transformers.utils import logging

from embryo_core import runs
from embryo_core.errors import BrokenRun, BrokenTokenizer, EmbryoError
from embryo_core.runs.reading import refusal
from embryo_core.runs.tokenizer import FILES
from embryo_core.types import SpecialTokens

TRIED = "a"  # a text, to see what is put around it


def has_tokenizer(folder: Path) -> bool:
    """Whether a folder holds a tokenizer."""
    return any((folder / name).is_file() for name in FILES)


def read_foreign(folder: Path) -> tuple[str, SpecialTokens]:
    """The tokenizer in a folder as the text of a tokenizer.json, and its special tokens.

    WordPiece, SentencePiece and byte-level BPE. Raises BrokenTokenizer where transformers cannot read it, and BrokenRun
    where it has no mask, leaves ids without a piece, or puts other than one token before and one after a text.
    """
    logging.set_verbosity_error()
    if (folder / FILES[0]).is_file():
        runs.check_tokenizer_file((folder / FILES[0]).resolve())
    try:
        found = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
        around = found(TRIED).input_ids
        inner = found(TRIED, add_special_tokens=False).input_ids
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as reason:  # noqa: BLE001, the library's own errors are plain ones, or a panic of its Rust code
        raise _unreadable(folder, _why(reason)) from None
    if (backend := getattr(found, "backend_tokenizer", None)) is None:
        raise _unreadable(folder, f"{type(found).__name__}, which cannot be kept as a tokenizer.json")
    if len(found) <= len(set(found.all_special_ids)):
        raise _unreadable(folder, "no pieces but the special tokens")  # it made up a tokenizer without the file
    highest = max(found.get_vocab().values())
    if highest >= len(found):
        raise BrokenRun(
            f"The tokenizer in {folder} gives its {len(found):,} pieces ids up to {highest:,}; a model is read whose "
            "tokenizer has a piece for every id."
        )
    if found.mask_token is None:
        raise BrokenRun(f"The tokenizer in {folder} has no mask token; name that of the pretraining with --tokenizer.")
    if len(around) != len(inner) + 2 or around[1:-1] != inner:
        raise BrokenRun(
            f"The tokenizer in {folder} makes {found.convert_ids_to_tokens(around)} of '{TRIED}'; a model is read "
            "whose tokenizer puts one token before a text and one after it."
        )
    backend.no_truncation()
    backend.no_padding()
    first, last = found.convert_ids_to_tokens([around[0], around[-1]])
    return backend.to_str(pretty=False), SpecialTokens(found.mask_token, first, last, found.pad_token, found.unk_token)


def _unreadable(folder: Path, why: str) -> EmbryoError:
    there = ", ".join(name for name in FILES if (folder / name).is_file())
    found = f"in {there}" if there else f"as none of {', '.join(FILES)} is there"
    return refusal(folder, f"has no tokenizer that transformers reads {found} ({why})", BrokenTokenizer)


def _why(reason: BaseException) -> str:
    """What an exception says, on one line."""
    if "tiktoken" in str(reason):  # as which transformers tries to read it then
        return "no SentencePiece model"
    name = "" if type(reason) is Exception else f"{type(reason).__name__}: "
    return name + (str(reason).splitlines() or [""])[0]
