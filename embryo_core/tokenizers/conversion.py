"""Convert the tokenizer of a foreign checkpoint to a run's tokenizer.json, with transformers if it has none.

If the checkpoint has a tokenizer.json, its pieces and rules are kept, and transformers only finds the special tokens:
for some checkpoints it would rebuild the tokenizer from the class in tokenizer_config.json, with that class's rules.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer
from tokenizers.normalizers import Precompiled
from tokenizers.normalizers import Sequence as Normalizers
from tokenizers.processors import Sequence as Processors
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer
from transformers.convert_slow_tokenizer import SentencePieceExtractor
from transformers.utils import logging

from embryo_core.errors import BrokenRun, BrokenTokenizer, EmbryoError
from embryo_core.runs.trust import locate, refusal
from embryo_core.tokenizers.checks import TOKENIZER_FILES, TOKENIZER_SETTINGS, check_tokenizer
from embryo_core.types import SpecialTokens

SAMPLE_TEXT = "a"  # text around which the special tokens are found
# texts on which tokenizers with the same vocabulary may differ: case, accents, punctuation, Unicode, spaces, digits
CHECKED_TEXTS = (
    "closed.",
    "The Café",
    "don't",
    "well-known",
    "½ ﬁne Ａ",
    "two  blanks",
    " before",
    "12345",
    "東京",
    "naïve\tline\n",
)


class ConvertedTokenizer(NamedTuple):
    """A tokenizer in the form that a run stores."""

    text: str  # content of its tokenizer.json
    special: SpecialTokens
    remark: str = ""  # a note on a text that transformers would tokenize differently


def has_tokenizer(folder: Path) -> bool:
    """Return whether a folder contains a tokenizer."""
    return any((folder / name).is_file() for name in TOKENIZER_FILES)


def convert_tokenizer(folder: Path, decoder: bool = False) -> ConvertedTokenizer:
    """Convert the tokenizer in a folder: its tokenizer.json, or else the files that transformers reads.

    WordPiece, SentencePiece and byte-level BPE are supported. The tokenizer of a `decoder` needs no mask token, and may
    put no token before or after a text. Raises BrokenTokenizer if it cannot be read, and BrokenRun if it has no mask
    token, has ids without a piece, or does not put exactly one token before and one after a text.
    """
    logging.set_verbosity_error()
    path = folder / TOKENIZER_FILES[0]
    names = (*TOKENIZER_FILES, *TOKENIZER_SETTINGS, "chat_template.jinja")  # transformers reads these files whole
    for file in [(folder / name).resolve() for name in names if (folder / name).is_file()]:
        locate(file, file.parent, BrokenTokenizer)
    if path.is_file():
        check_tokenizer(path.resolve(), path.resolve().parent, BrokenTokenizer)
    try:
        reference = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
        if (backend := getattr(reference, "backend_tokenizer", None)) is None:
            raise _unreadable(folder, f"{type(reference).__name__}, which cannot be saved as a tokenizer.json")
        # transformers makes an empty tokenizer if files are missing
        if len(reference) <= len(set(reference.all_special_ids)):
            raise _unreadable(folder, "no pieces but the special tokens")
        tokenizer = _from_file(path, reference) if path.is_file() else _with_charsmap(backend, folder)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        if not decoder:
            _frame(tokenizer, reference)
        framed, unframed = (tokenizer.encode(SAMPLE_TEXT, add_special_tokens=special).ids for special in (True, False))
    except (KeyboardInterrupt, SystemExit, BrokenTokenizer):
        raise
    except BaseException as reason:  # noqa: BLE001, the library raises plain exceptions, and its Rust code panics
        raise _unreadable(folder, _why(reason)) from None
    if fault := _fault(tokenizer, framed, unframed, decoder, reference.mask_token):
        raise BrokenRun(f"The tokenizer in {folder} {fault}.")
    start = _start(framed, unframed)
    tokens = framed[:start], framed[start + len(unframed) :]
    first, last = (str(tokenizer.id_to_token(ids[0])) if ids else None for ids in tokens)
    special = SpecialTokens(reference.mask_token, first, last, reference.pad_token, reference.unk_token)
    remark = _difference(tokenizer, reference) if path.is_file() else ""
    return ConvertedTokenizer(tokenizer.to_str(pretty=False), special, remark)


def _from_file(path: Path, reference: Any) -> Tokenizer:
    """Return the tokenizer of a tokenizer.json, with the special and added tokens of the files next to it."""
    tokenizer = Tokenizer.from_file(str(path))
    special_tokens = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    for _, token in sorted(reference.added_tokens_decoder.items()):
        if token.content not in special_tokens:
            (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    return tokenizer


def _with_charsmap(tokenizer: Tokenizer, folder: Path) -> Tokenizer:
    """Add the character table of a SentencePiece model (usually NFKC) to the tokenizer made from it."""
    model_paths = (folder / name for name in TOKENIZER_FILES if name.endswith(".model"))
    model = next((path for path in model_paths if path.is_file()), None)
    if model:
        table = SentencePieceExtractor(str(model)).proto.normalizer_spec.precompiled_charsmap
        if table and "precompiled_charsmap" not in json.dumps(json.loads(tokenizer.to_str())["normalizer"]):
            other_normalizers = [tokenizer.normalizer] if tokenizer.normalizer else []
            tokenizer.normalizer = Normalizers([Precompiled(table), *other_normalizers])
    return tokenizer


def _frame(tokenizer: Tokenizer, reference: Any) -> None:
    """Make a tokenizer put the special tokens around a text and around a pair, unless its file does."""
    first, last = reference.cls_token or reference.bos_token, reference.sep_token or reference.eos_token
    if tokenizer.num_special_tokens_to_add(False) or first is None or last is None:
        return
    single_text, ids = f"{first} $A {last}", [(token, tokenizer.token_to_id(token)) for token in (first, last)]
    template = TemplateProcessing(single_text, f"{single_text} $B:1 {last}:1", ids)
    earlier = tokenizer.post_processor
    tokenizer.post_processor = Processors([earlier, template]) if earlier else template


def _difference(tokenizer: Tokenizer, reference: Any) -> str:
    """Return a sentence on the first of CHECKED_TEXTS that transformers tokenizes unlike the file, or ""."""
    for text in CHECKED_TEXTS:
        splits = tokenizer.encode(text, add_special_tokens=False).tokens, _pieces_of(reference, text)
        if splits[0] != splits[1]:
            ours_text, reference_text = (" ".join(f"'{piece}'" for piece in pieces) or "nothing" for pieces in splits)
            return (
                f"tokenizer.json splits {text!r} into {ours_text}, and transformers' {type(reference).__name__} into "
                f"{reference_text}; the file decides."
            )
    return ""


def _pieces_of(reference: Any, text: str) -> list[str]:
    """Return the pieces of a text; empty if the class of the tokenizer does not match its vocabulary."""
    try:
        return reference.tokenize(text)
    except Exception:  # noqa: BLE001, the library raises plain exceptions
        return []


def _start(framed: list[int], unframed: list[int]) -> int:
    """Return the position of `unframed` in the ids `framed`; -1 if they do not contain it."""
    return next((i for i in range(len(framed)) if framed[i : i + len(unframed)] == unframed), -1)


def _fault(tokenizer: Tokenizer, framed: list[int], unframed: list[int], decoder: bool, mask: str | None) -> str | None:
    """Return why a tokenizer cannot be used, None if it can; ids are the sample's, with and without special tokens."""
    highest, size = max(tokenizer.get_vocab().values()), tokenizer.get_vocab_size()
    if highest >= size:
        return (
            f"gives its {size:,} pieces ids up to {highest:,}; Embryo reads models whose tokenizer has a "
            "piece for every id"
        )
    if mask is None and not decoder:
        return "has no mask token; name the one of the pretraining with --tokenizer"
    start = _start(framed, unframed)
    minimum = 0 if decoder else 1
    if all(minimum <= count <= 1 for count in (start, len(framed) - len(unframed) - start)):
        return None
    tokens, kind = [tokenizer.id_to_token(i) for i in framed], "decoders" if decoder else "models"
    count = "at most one" if decoder else "one"
    return (
        f"makes {tokens} of '{SAMPLE_TEXT}'; of {kind}, Embryo reads those with {count} token before a text "
        "and after it"
    )


def _unreadable(folder: Path, why: str) -> EmbryoError:
    """Return the error for a tokenizer that transformers cannot read."""
    files = ", ".join(name for name in TOKENIZER_FILES if (folder / name).is_file())
    where = f"in {files}" if files else f"as none of {', '.join(TOKENIZER_FILES)} is there"
    return refusal(folder, f"has no tokenizer that transformers reads {where} ({why})", BrokenTokenizer)


def _why(reason: BaseException) -> str:
    """Return the message of an exception, on one line."""
    if "tiktoken" in str(reason):  # transformers then tries to read the file as tiktoken
        return "no SentencePiece model"
    name = "" if type(reason) is Exception else f"{type(reason).__name__}: "
    return name + (str(reason).splitlines() or [""])[0]
