"""The names of variables and the vocabularies of google-research's code, for the import of its checkpoints.

An unknown variable is an error. The names of each family are in its file in families/, as an `OriginalFormat`.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from embryo_core.errors import ConfigError
from pretrain import tokenizer as tokenizers
from pretrain.vocabularies import UNK, Unigram, WordPiece

# === Variables ===

# variables of the optimizers (lamb_optimizer.py, optimization.py)
SLOT_PATTERN = re.compile(r"(^|/)(adam_m|adam_v|global_step)$")
EMBEDDING_PATTERN = r"embeddings/(word|position|token_type)_embeddings"
LAYER_PATTERN = (  # modeling.py of bert, transformer_model: number and part of a layer
    r"encoder/layer_(\d+)/"
    r"(attention/self/(?:query|key|value)|(?:attention/output|intermediate|output)/dense|(?:attention/)?output/LayerNorm)"
)
PARAMETER_NAMES = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias", "output_weights": "weight",
         "output_bias": "bias"}  # fmt: skip


@dataclass(frozen=True)
class OriginalFormat:
    """How the original code of a family writes its checkpoints.

    `scopes` maps patterns of a variable's scope to the name in transformers; PARAMETER_NAMES maps the last part of the
    name.
    """

    mark: str  # part of a variable's name that no other family has
    scopes: dict[str, str]
    # a setting, and the pattern of the tensors that it counts
    layers: tuple[str, str] = ("num_hidden_layers", r"encoder\.layer\.(\d+)\.")
    inner: str = "intermediate.dense"  # the first dense layer of the feed-forward network, in transformers
    only_configured: tuple[str, ...] = ("num_attention_heads",)  # settings that the variables do not determine
    # projection of embeddings in transformers; the original has none if embeddings are as wide as states
    projection: str | None = None
    head_size: int | None = None  # size of a head if there is no configuration file; None: one is required


class TargetTensor(NamedTuple):
    """The tensor in our checkpoint that corresponds to a variable of the original."""

    folder: str  # folder inside the checkpoint: "generator", or "" for the checkpoint itself
    name: str
    transposed: bool  # kernels have [inputs, outputs], weights [outputs, inputs]


def tensor_of(variable: str, original: OriginalFormat, source: object) -> TargetTensor | None:
    """Return the tensor of a variable, None for an optimizer's variable. Raises ConfigError for an unknown one."""
    if SLOT_PATTERN.search(variable):
        return None
    folder = "generator" if variable.startswith("generator") else ""
    scope, _, suffix = variable.rpartition("/")
    parameter = PARAMETER_NAMES.get(suffix)
    if suffix.endswith("_embeddings"):
        scope, parameter = variable, "weight"
    for pattern, name in original.scopes.items():
        if parameter and (match := re.fullmatch(pattern, scope)):
            return TargetTensor(
                folder, f"{match.expand(name).replace('/', '.')}.{parameter}", variable.endswith("/kernel")
            )
    raise ConfigError(f"{source} has the variable {variable}, which its original code does not write.")


# === Vocabularies ===

VOCABULARY_FILES = ("spiece.model", "30k-clean.model", "vocab.txt")
MAX_WORD_LENGTH = 200  # characters; of the original WordPiece (tokenization.py, max_input_chars_per_word)
USER_DEFINED_MARGIN = 0.1  # SentencePiece scores a user-defined piece by its length times the best score, minus this


def find_vocabulary(folder: Path, path_given: Path | None) -> Path:
    """Return the given vocabulary, or the one in the folder of a checkpoint or its parent. Raises ConfigError."""
    candidates = [parent / name for parent in (folder, folder.parent) for name in VOCABULARY_FILES]
    for path in [path_given] if path_given else candidates:
        if path.is_file():
            return path
    place = path_given or f"{folder} has no {' or '.join(VOCABULARY_FILES)}, and it"
    raise ConfigError(f"{place} does not exist; name the vocabulary with --vocabulary FILE.")


def write_tokenizer(vocabulary: Path, folder: Path, cased: bool = False) -> int:
    """Write the tokenizer of a vocabulary, reproducible byte for byte, and return its size. Raises ConfigError."""
    read_vocabulary = _unigram if vocabulary.suffix == ".model" else _wordpiece
    try:
        tokenizer, special = read_vocabulary(vocabulary, cased)
    except (RuntimeError, ValueError) as reason:
        raise ConfigError(f"{vocabulary} is not a vocabulary of the original code ({reason}).") from None
    if missing := [token for token in special if tokenizer.token_to_id(token) is None]:
        raise ConfigError(f"{vocabulary} is not a vocabulary of the original code: it lacks {' and '.join(missing)}.")
    tokenizers.write(tokenizer, special, folder)
    return tokenizer.get_vocab_size()


def _wordpiece(vocabulary: Path, cased: bool) -> tuple[Tokenizer, tuple[str, ...]]:
    """Read vocab.txt, one piece per line (tokenization.py of bert)."""
    lines = vocabulary.read_bytes().decode("utf-8").removesuffix("\n").split("\n")  # other separators may be pieces
    pieces = {line.strip(): i for i, line in enumerate(lines)}
    tokenizer = WordPiece().blank()
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    unknown_piece = WordPiece.special_tokens[UNK]
    tokenizer.model = models.WordPiece(pieces, unk_token=unknown_piece, max_input_chars_per_word=MAX_WORD_LENGTH)
    return tokenizer, WordPiece.special_tokens


def _unigram(vocabulary: Path, cased: bool) -> tuple[Tokenizer, tuple[str, ...]]:
    """Read spiece.model, with the normalisation of albert's own tokenization.py (preprocess_text, encode_pieces)."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    content = vocabulary.read_bytes()
    sentencepiece.SentencePieceProcessor(model_proto=content)  # raises if it is not such a model
    model_proto = sentencepiece_model_pb2.ModelProto.FromString(content)  # type: ignore[attr-defined]  # made at import
    if model_proto.trainer_spec.model_type != model_proto.trainer_spec.UNIGRAM:
        raise ValueError("its pieces are not those of a Unigram model")
    tokenizer = Tokenizer(models.Unigram(_score_pieces(model_proto.pieces), unk_id=model_proto.trainer_spec.unk_id))
    charsmap = model_proto.normalizer_spec.precompiled_charsmap
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
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(Unigram.word_start, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(Unigram.word_start, prepend_scheme="always")
    return tokenizer, Unigram.special_tokens


def _score_pieces(pieces: list) -> list[tuple[str, float]]:
    """Return every piece with the score by which the original chooses it.

    A user-defined symbol is scored by its length and the best score, so that it is always chosen. A piece that ends in
    a digit and a comma is never chosen, since the original splits off the comma.
    """
    normal = [piece.score for piece in pieces if piece.type == piece.NORMAL]
    best, lowest_score = max(normal), min(normal) - 100
    scored_pieces = []
    for piece in pieces:
        score = piece.score
        if piece.type == piece.USER_DEFINED:
            score = len(piece.piece) * best - USER_DEFINED_MARGIN
        elif piece.type == piece.NORMAL and piece.piece[-1:] == "," and piece.piece[-2:-1].isdigit():
            score = lowest_score
        scored_pieces.append((piece.piece, score))
    return scored_pieces
