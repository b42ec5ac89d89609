"""The torch room: load a checkpoint and its tokenizer, token ids in, numpy arrays out; float32 whatever was stored.

Checkpoints are read as they stand in Hugging Face layout. Weights of `AlbertForPreTraining` or `BertForPreTraining` fill
the matching masked language model, whose encoder and masked-word head are the same modules; their second head (sentence
order, next sentence) and the pooler are left unread.
"""

import copy
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint, BrokenRun, TokenizerMismatch
from embryo_core.types import Checkpoint, Run

THREADS = torch.get_num_threads()
FEW_TOKENS = 1024
UNREAD = ("pooler.", "sop_classifier.", "cls.seq_relationship.")


# === Tokenizer ===


@dataclass(frozen=True)
class Encoding:
    """Pieces of a sequence of words, without special tokens."""

    ids: np.ndarray  # [pieces] int64
    word_of_piece: np.ndarray  # [pieces] int64: index of the word that a piece belongs to, never decreasing


class Tokenizer:
    """A run's tokenizer.json, the same bytes that pretraining used; cheap to build and shared by all steps."""

    def __init__(self, path: Path):
        self.path = path
        self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.mask_id = self._special("[MASK]")
        self.cls_id = self._special("[CLS]")
        self.sep_id = self._special("[SEP]")
        self.pad_id = self._special("[PAD]", "<pad>")
        self.unk_id = self._special("[UNK]", "<unk>")

    @property
    def vocabulary_size(self) -> int:
        """Number of pieces, special tokens included."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    def encode_words(self, words: Sequence[str]) -> Encoding:
        """Tokenize each word on its own and join the pieces, as the paper's evaluation does; no special tokens."""
        pieces = [e.ids for e in self._tokenizer.encode_batch(list(words), add_special_tokens=False)]
        word_of_piece = np.repeat(np.arange(len(pieces)), [len(ids) for ids in pieces])
        return Encoding(np.array([i for ids in pieces for i in ids], np.int64), word_of_piece)

    def encode_text(self, text: str) -> np.ndarray:
        """Ids [L] of running text between [CLS] and [SEP]; "[MASK]" in the text is the mask."""
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        return np.array([self.cls_id, *ids, self.sep_id], np.int64)

    def single_piece(self, word: str) -> int | None:
        """The id of a word that is one known piece of the vocabulary, else None."""
        ids = self._tokenizer.encode(word, add_special_tokens=False).ids
        return ids[0] if len(ids) == 1 and ids[0] != self.unk_id else None

    def cut(self, text: str) -> list[str]:
        """The normalised words into which the tokenizer cuts a text before it looks for pieces."""
        normalised = self._tokenizer.normalizer.normalize_str(text)
        return [word.removeprefix("▁") for word, _ in self._tokenizer.pre_tokenizer.pre_tokenize_str(normalised)]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The piece of each id, as it stands in the vocabulary (with its word-boundary mark)."""
        return [self._tokenizer.id_to_token(int(i)) for i in ids]

    def _special(self, *names: str) -> int:
        for name in names:
            if (found := self._tokenizer.token_to_id(name)) is not None:
                return found
        raise BrokenRun(f"{self.path} has no token {' or '.join(names)}; it is not a tokenizer written by pretrain.")


def load_tokenizer(run: Run) -> Tokenizer:
    """The run's tokenizer. Raises BrokenRun where it is missing, TokenizerMismatch where it is not the run's own."""
    path = run.tokenizer / "tokenizer.json"
    if not path.is_file():
        raise BrokenRun(f"{path} does not exist; copy the tokenizer that run '{run.name}' was pretrained with there.")
    found = runs.sha256(path)
    if found != run.tokenizer_sha256:
        raise TokenizerMismatch(
            f"{path} (sha256 {found[:12]}...) is not the tokenizer that run '{run.name}' was pretrained with "
            f"(sha256 {run.tokenizer_sha256[:12]}...); put that file back."
        )
    return _read_tokenizer(path, found)


@lru_cache(maxsize=8)
def _read_tokenizer(path: Path, sha256: str) -> Tokenizer:
    try:
        return Tokenizer(path)
    except BrokenRun:
        raise
    except Exception as reason:  # noqa: BLE001, the class that the tokenizers library raises for a file it cannot parse
        raise BrokenRun(f"{path} cannot be read as a tokenizer: {reason}.") from None


# === Model ===


class Model:
    """One loaded checkpoint. Arrays of ids are [B, L]; attention_mask is 1 at tokens and 0 at padding."""

    def __init__(self, checkpoint: Checkpoint, tokenizer: Tokenizer, network: transformers.PreTrainedModel):
        config = network.config
        self.checkpoint = checkpoint
        self.tokenizer = tokenizer
        self.vocabulary_size: int = config.vocab_size
        self.max_positions: int = config.max_position_embeddings
        self.num_layers: int = config.num_hidden_layers
        self.num_heads: int = config.num_attention_heads
        self._network = network

    @property
    def nbytes(self) -> int:
        """Bytes that the weights take in memory."""
        return sum(weight.nbytes for weight in self._network.parameters())

    def mlm_logits(
        self, ids: np.ndarray, attention_mask: np.ndarray, rows: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        """Masked-word logits [n, V] at the n positions (rows[i], columns[i]); the head is applied nowhere else."""
        with torch.inference_mode(), _threads(ids.size):
            states = self._encode(ids, attention_mask).last_hidden_state
            return self._head(states[torch.as_tensor(rows), torch.as_tensor(columns)]).numpy()

    def mlm_head(self, states: np.ndarray) -> np.ndarray:
        """Masked-word logits [n, V] of hidden states [n, H], such as those of a lower layer."""
        with torch.inference_mode():
            return self._head(torch.as_tensor(states)).numpy()

    def hidden_states(self, ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """States [num_layers + 1, B, L, H]; the first are the embeddings, for ALBERT after their projection to H."""
        with torch.inference_mode():
            states = self._encode(ids, attention_mask, output_hidden_states=True).hidden_states
        assert len(states) == self.num_layers + 1
        return torch.stack(states).numpy()

    def attentions(self, ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Attention weights [num_layers, B, heads, L, L], row = from, column = to."""
        # The fused attention used elsewhere never forms the weights, so the plain one is switched on for this call.
        self._network.set_attn_implementation("eager")
        try:
            with torch.inference_mode():
                weights = self._encode(ids, attention_mask, output_attentions=True).attentions
        finally:
            self._network.set_attn_implementation("sdpa")
        assert len(weights) == self.num_layers
        return torch.stack(weights).numpy()

    def _encode(self, ids: np.ndarray, attention_mask: np.ndarray, **outputs: bool):
        # Without padding there is nothing to mask, and attention is faster without one.
        mask = None if attention_mask.all() else torch.as_tensor(attention_mask)
        return self._network.base_model(input_ids=torch.as_tensor(ids), attention_mask=mask, **outputs)

    @cached_property
    def _head(self) -> torch.nn.Module:
        return self._network.predictions if hasattr(self._network, "predictions") else self._network.cls


def load(checkpoint: Checkpoint) -> Model:
    """Read a checkpoint into float32. Raises BrokenCheckpoint, TokenizerMismatch, BrokenRun."""
    runs.verify(checkpoint)
    tokenizer = load_tokenizer(checkpoint.run)
    network = copy.deepcopy(_architecture(_read_config(checkpoint)))
    if network.config.vocab_size < tokenizer.vocabulary_size:
        raise TokenizerMismatch(
            f"The tokenizer of run '{checkpoint.run.name}' has {tokenizer.vocabulary_size} pieces, "
            f"but {checkpoint.path} has {network.config.vocab_size}; put the tokenizer of its pretraining back."
        )
    _fill(network, checkpoint)
    return Model(checkpoint, tokenizer, network)


@contextmanager
def _threads(tokens: int) -> Iterator[None]:
    """One thread for a few tokens: more gain little on free cores and, on busy ones, mostly wait for each other."""
    torch.set_num_threads(1 if tokens <= FEW_TOKENS else THREADS)
    try:
        yield
    finally:
        torch.set_num_threads(THREADS)


def _read_config(checkpoint: Checkpoint) -> str:
    try:
        config = json.loads((checkpoint.path / "config.json").read_text(encoding="utf-8"))
        family = config["model_type"]
    except (OSError, ValueError, KeyError) as reason:
        raise _broken(checkpoint, f"config.json cannot be read ({reason!r})") from None
    if family not in ("albert", "bert"):
        raise _broken(checkpoint, f"config.json names the family {family!r}, known are albert and bert")
    return json.dumps(config, sort_keys=True)


@lru_cache(maxsize=4)
def _architecture(config: str) -> transformers.PreTrainedModel:
    """The network for a config.json, unfilled: building it takes ten times as long as copying it."""
    settings = json.loads(config)
    # One function under two names (GELU in its tanh form); gelu_new spells it out in Python and is several times slower.
    if settings.get("hidden_act") == "gelu_new":
        settings["hidden_act"] = "gelu_pytorch_tanh"
    settings.pop("dtype", None)
    parsed = transformers.AutoConfig.for_model(**settings)
    return transformers.AutoModelForMaskedLM.from_config(parsed, attn_implementation="sdpa").float().eval()


def _fill(network: transformers.PreTrainedModel, checkpoint: Checkpoint) -> None:
    """Copy the stored weights into the network; every weight must be there, with its shape."""
    try:
        weights = load_file(checkpoint.path / "model.safetensors")
        report = network.load_state_dict(weights, strict=False)
    except (OSError, SafetensorError, RuntimeError) as reason:
        raise _broken(checkpoint, f"model.safetensors cannot be read ({reason})") from None
    network.tie_weights()
    tied = set(network.all_tied_weights_keys)
    missing = [name for name in report.missing_keys if name not in tied]
    foreign = [name for name in report.unexpected_keys if not any(part in name for part in UNREAD)]
    if missing or foreign:
        raise _broken(checkpoint, f"model.safetensors lacks {missing} and has {foreign} besides")


def _broken(checkpoint: Checkpoint, what: str) -> BrokenCheckpoint:
    return BrokenCheckpoint(f"{checkpoint.path}: {what}; train this step again or delete that folder.")
