"""Vocabularies of the originals, spiece.model and vocab.txt, as a run's tokenizer: the same text, the same pieces."""

from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from embryo_core.errors import ConfigError
from pretrain import tokenizer as tokenizers
from pretrain import unigram, wordpiece
from pretrain.pieces import UNK

NAMES = ("spiece.model", "30k-clean.model", "vocab.txt")
LONGEST_WORD = 200  # characters, of the original WordPiece (tokenization.py, max_input_chars_per_word)
USER_DEFINED = 0.1  # SentencePiece's margin by which such a piece is scored below the best of its length


def find_vocabulary(folder: Path, given: Path | None) -> Path:
    """The vocabulary that was given, or the one in the folder of a checkpoint or above. Raises ConfigError."""
    for path in [given] if given else [parent / name for parent in (folder, folder.parent) for name in NAMES]:
        if path.is_file():
            return path
    where = given or f"{folder} has no {' or '.join(NAMES)}, and it"
    raise ConfigError(f"{where} does not exist; name the vocabulary with --vocabulary FILE.")


def write_tokenizer(vocabulary: Path, folder: Path, cased: bool = False) -> int:
    """Write the tokenizer of this vocabulary to a folder; the same file gives the same bytes. Returns its size.

    Raises ConfigError where the file is no such vocabulary.
    """
    kind = _unigram if vocabulary.suffix == ".model" else _wordpiece
    try:
        made, special = kind(vocabulary, cased)
    except (RuntimeError, ValueError) as reason:
        raise ConfigError(f"{vocabulary} is not a vocabulary of the original code ({reason}).") from None
    if missing := [token for token in special if made.token_to_id(token) is None]:
        raise ConfigError(f"{vocabulary} is not a vocabulary of the original code: it lacks {' and '.join(missing)}.")
    tokenizers.write(made, special, folder)
    return made.get_vocab_size()


def _wordpiece(vocabulary: Path, cased: bool) -> tuple[Tokenizer, tuple[str, ...]]:
    """vocab.txt, a piece a line (tokenization.py of bert)."""
    lines = vocabulary.read_bytes().decode("utf-8").removesuffix("\n").split("\n")  # other separators may be pieces
    pieces = {line.strip(): i for i, line in enumerate(lines)}
    unknown = wordpiece.SPECIAL_TOKENS[UNK]
    tokenizer = wordpiece.blank()
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    tokenizer.model = models.WordPiece(pieces, unk_token=unknown, max_input_chars_per_word=LONGEST_WORD)
    return tokenizer, wordpiece.SPECIAL_TOKENS


def _unigram(vocabulary: Path, cased: bool) -> tuple[Tokenizer, tuple[str, ...]]:
    """spiece.model, after the normalisation of albert's own tokenization.py (preprocess_text, encode_pieces)."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    content = vocabulary.read_bytes()
    sentencepiece.SentencePieceProcessor(model_proto=content)  # raises for what is no such model
    stored = sentencepiece_model_pb2.ModelProto.FromString(content)
    if stored.trainer_spec.model_type != stored.trainer_spec.UNIGRAM:
        raise ValueError("its pieces are not those of a Unigram model")
    tokenizer = Tokenizer(models.Unigram(_scored(stored.pieces), unk_id=stored.trainer_spec.unk_id))
    charsmap = stored.normalizer_spec.precompiled_charsmap
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKD(),
            normalizers.StripAccents(),
            *([] if cased else [normalizers.Lowercase()]),
            *([normalizers.Precompiled(charsmap)] if charsmap else []),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(unigram.WORD_START, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(unigram.WORD_START, prepend_scheme="always")
    return tokenizer, unigram.SPECIAL_TOKENS


def _scored(pieces: list) -> list[tuple[str, float]]:
    """Every piece with the score by which the original chooses it.

    A symbol that its user defined is scored by its length and the best score, so that it is always taken. A piece that
    ends in a digit and a comma is never taken: the original cuts the comma off.
    """
    normal = [piece.score for piece in pieces if piece.type == piece.NORMAL]
    best, never = max(normal), min(normal) - 100
    found = []
    for piece in pieces:
        score = piece.score
        if piece.type == piece.USER_DEFINED:
            score = len(piece.piece) * best - USER_DEFINED
        elif piece.type == piece.NORMAL and piece.piece[-1:] == "," and piece.piece[-2:-1].isdigit():
            score = never
        found.append((piece.piece, score))
    return found
