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

SAMPLE = "a"  # text around which the special tokens are found
# texts on which tokenizers with the same vocabulary may differ: case, accents, punctuation, Unicode, spaces, digits
TEXTS = (
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
        theirs = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
        if (made := getattr(theirs, "backend_tokenizer", None)) is None:
            raise _unreadable(folder, f"{type(theirs).__name__}, which cannot be saved as a tokenizer.json")
        if len(theirs) <= len(set(theirs.all_special_ids)):  # transformers makes an empty one if files are missing
            raise _unreadable(folder, "no pieces but the special tokens")
        ours = _own(path, theirs) if path.is_file() else _with_characters(made, folder)
        ours.no_truncation()
        ours.no_padding()
        if not decoder:
            _frame(ours, theirs)
        framed, unframed = (ours.encode(SAMPLE, add_special_tokens=special).ids for special in (True, False))
    except (KeyboardInterrupt, SystemExit, BrokenTokenizer):
        raise
    except BaseException as reason:  # noqa: BLE001, the library raises plain exceptions, and its Rust code panics
        raise _unreadable(folder, _why(reason)) from None
    if fault := _fault(ours, framed, unframed, decoder, theirs.mask_token):
        raise BrokenRun(f"The tokenizer in {folder} {fault}.")
    start = _start(framed, unframed)
    tokens = framed[:start], framed[start + len(unframed) :]
    first, last = (str(ours.id_to_token(ids[0])) if ids else None for ids in tokens)
    special = SpecialTokens(theirs.mask_token, first, last, theirs.pad_token, theirs.unk_token)
    return ConvertedTokenizer(ours.to_str(pretty=False), special, _difference(ours, theirs) if path.is_file() else "")


def _own(path: Path, theirs: Any) -> Tokenizer:
    """Return the tokenizer of a tokenizer.json, with the special and added tokens of the files next to it."""
    ours = Tokenizer.from_file(str(path))
    special_tokens = {token.content for token in ours.get_added_tokens_decoder().values()}
    for _, token in sorted(theirs.added_tokens_decoder.items()):
        if token.content not in special_tokens:
            (ours.add_special_tokens if token.special else ours.add_tokens)([token])
    return ours


def _with_characters(made: Tokenizer, folder: Path) -> Tokenizer:
    """Add the character table of a SentencePiece model (usually NFKC) to the tokenizer made from it."""
    named = (folder / name for name in TOKENIZER_FILES if name.endswith(".model"))
    model = next((path for path in named if path.is_file()), None)
    if model:
        table = SentencePieceExtractor(str(model)).proto.normalizer_spec.precompiled_charsmap
        if table and "precompiled_charsmap" not in json.dumps(json.loads(made.to_str())["normalizer"]):
            made.normalizer = Normalizers([Precompiled(table), *([made.normalizer] if made.normalizer else [])])
    return made


def _frame(ours: Tokenizer, theirs: Any) -> None:
    """Make a tokenizer put the special tokens around a text and around a pair, unless its file does."""
    first, last = theirs.cls_token or theirs.bos_token, theirs.sep_token or theirs.eos_token
    if ours.num_special_tokens_to_add(False) or first is None or last is None:
        return
    single, ids = f"{first} $A {last}", [(token, ours.token_to_id(token)) for token in (first, last)]
    template = TemplateProcessing(single, f"{single} $B:1 {last}:1", ids)
    ours.post_processor = Processors([ours.post_processor, template]) if ours.post_processor else template


def _difference(tokenizer: Tokenizer, theirs: Any) -> str:
    """Return a sentence on the first of TEXTS that transformers tokenizes unlike the file, or ""."""
    for text in TEXTS:
        cuts = tokenizer.encode(text, add_special_tokens=False).tokens, _cut(theirs, text)
        if cuts[0] != cuts[1]:
            ours, others = (" ".join(f"'{piece}'" for piece in cut) or "nothing" for cut in cuts)
            return (
                f"tokenizer.json splits {text!r} into {ours}, and transformers' {type(theirs).__name__} into {others}; "
                "the file decides."
            )
    return ""


def _cut(theirs: Any, text: str) -> list[str]:
    """Return the pieces of a text; empty if the class of the tokenizer does not match its vocabulary."""
    try:
        return theirs.tokenize(text)
    except Exception:  # noqa: BLE001, the library raises plain exceptions
        return []


def _start(framed: list[int], unframed: list[int]) -> int:
    """Return the position of `unframed` in the ids `framed`; -1 if they do not contain it."""
    return next((i for i in range(len(framed)) if framed[i : i + len(unframed)] == unframed), -1)


def _fault(tokenizer: Tokenizer, framed: list[int], unframed: list[int], decoder: bool, mask: str | None) -> str | None:
    """Return why a tokenizer cannot be used, if so, given the sample's ids with and without special tokens."""
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
    tokens, kind = [tokenizer.id_to_token(one) for one in framed], "decoders" if decoder else "models"
    count = "at most one" if decoder else "one"
    return f"makes {tokens} of '{SAMPLE}'; of {kind}, Embryo reads those with {count} token before a text and after it"


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
