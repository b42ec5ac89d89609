"""Pretraining settings: one frozen dataclass, named presets, and the rule that ties learning rate to batch size."""

from dataclasses import dataclass, fields, replace
from math import sqrt
from typing import Any

from embryo_core.errors import ConfigError, UnknownPreset, unknown


def square_root_rule(batch_size: int) -> float:
    """Learning rate for LAMB at this batch size: 0.00176 at 4,096 sequences, scaled by the square root.

    >>> round(square_root_rule(512), 10)
    0.0006222540
    """
    return 0.00176 * sqrt(batch_size / 4096)


@dataclass(frozen=True)
class Config:
    """Every number that decides what a pretraining computes; written as it stands into run.json."""

    # === Architecture (names as in transformers' AlbertConfig) ===
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    embedding_size: int = 128
    vocab_size: int = 30_000
    max_position_embeddings: int = 512
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0

    # === Masking ===
    masked_share: float = 0.15  # of the tokens of a sequence
    max_ngram: int = 3  # whole words masked together: 1..max_ngram, p(n) proportional to 1/n

    # === Optimisation (LAMB; peak reached after the warm-up, then polynomial decay to zero) ===
    steps: int = 125_000
    warmup_steps: int = 3_125
    learning_rate: float = square_root_rule(512)
    decay_power: float = 1.0
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    seed: int = 12345

    # === Batches: an optional first phase on short sequences, as in the original BERT recipe ===
    batch_size: int = 512
    sequence_length: int = 512
    short_steps: int = 0  # updates of the first phase
    short_sequence_length: int = 128
    short_batch_size: int = 2048

    # === What is kept ===
    save_every: int = 5_000  # after the powers of two
    state_every: int = 1_000  # updates between two states from which a run can resume
    log_every: int = 50
    heldout_sequences: int = 512  # measured at every checkpoint, with the same masks each time
    checkpoint_dtype: str = "float32"

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ConfigError(f"{problem}; change it with --set NAME=VALUE.")

    def _problems(self) -> list[str]:
        counts = (
            "hidden_size num_hidden_layers num_attention_heads steps batch_size short_batch_size max_ngram "
            "save_every state_every log_every"
        ).split()
        checks = {
            f"{name}, received {getattr(self, name)}, must be at least 1": getattr(self, name) >= 1 for name in counts
        }
        if not all(checks.values()):  # the checks below divide by some of them
            return [problem for problem, holds in checks.items() if not holds]
        lengths = (self.sequence_length, self.short_sequence_length if self.short_steps else self.sequence_length)
        shortest, longest = min(lengths), max(lengths)
        checks = {
            f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads {self.num_attention_heads}": (
                self.hidden_size % self.num_attention_heads == 0
            ),
            f"sequences of {longest} tokens exceed max_position_embeddings {self.max_position_embeddings}": (
                longest <= self.max_position_embeddings
            ),
            f"sequences of {shortest} tokens are shorter than 16": shortest >= 16,
            f"checkpoint_dtype '{self.checkpoint_dtype}' is neither float32 nor float16": (
                self.checkpoint_dtype in ("float32", "float16")
            ),
            f"warmup_steps {self.warmup_steps} must be between 0 and steps {self.steps}": (
                0 <= self.warmup_steps <= self.steps
            ),
            f"masked_share {self.masked_share} must be above 0 and below 1": 0 < self.masked_share < 1,
        }
        return [problem for problem, holds in checks.items() if not holds]

    def batch_at(self, step: int) -> tuple[int, int]:
        """(sequences, tokens per sequence) of the update that leads from `step` to `step + 1`."""
        if step < self.short_steps:
            return self.short_batch_size, self.short_sequence_length
        return self.batch_size, self.sequence_length

    def huggingface(self) -> dict[str, Any]:
        """config.json of a checkpoint, as transformers' AlbertForPreTraining reads it."""
        architecture = (
            "hidden_size num_hidden_layers num_attention_heads intermediate_size embedding_size vocab_size "
            "max_position_embeddings initializer_range layer_norm_eps hidden_dropout_prob attention_probs_dropout_prob"
        ).split()
        return {name: getattr(self, name) for name in architecture} | {
            "architectures": ["AlbertForPreTraining"],
            "model_type": "albert",
            "hidden_act": "gelu_new",
            "classifier_dropout_prob": 0.1,
            "num_hidden_groups": 1,
            "inner_group_num": 1,
            "type_vocab_size": 2,
            "pad_token_id": 0,
            "bos_token_id": 2,
            "eos_token_id": 3,
            "tie_word_embeddings": True,
            "dtype": self.checkpoint_dtype,
        }


PRESETS = {
    # A smoke run: seconds on two cores.
    "tiny": Config(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        embedding_size=16,
        vocab_size=500,
        max_position_embeddings=64,
        batch_size=8,
        sequence_length=32,
        steps=40,
        warmup_steps=5,
        learning_rate=6e-3,
        save_every=10,
        state_every=10,
        log_every=5,
        heldout_sequences=16,
    ),
    # The demo's size: 40 M tokens in little more than an hour on one core; 64 tokens for nine tenths, then 128. At 30 %
    # masked, twice the recipe's share, a run this short has twice the targets for the tokens it reads.
    "albert-small": Config(
        hidden_size=192,
        num_hidden_layers=4,
        num_attention_heads=6,
        intermediate_size=768,
        embedding_size=64,
        vocab_size=8_000,
        max_position_embeddings=128,
        masked_share=0.30,
        batch_size=16,
        sequence_length=128,
        short_steps=18_000,
        short_sequence_length=64,
        short_batch_size=32,
        steps=20_000,
        warmup_steps=300,
        learning_rate=6e-3,
        save_every=1_500,
        state_every=250,
        log_every=50,
        checkpoint_dtype="float16",
    ),
    # Table 2 of the paper.
    "albert-base": Config(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072),
}


def preset(name: str) -> Config:
    """The preset of that name. Raises UnknownPreset with the known ones."""
    if name not in PRESETS:
        raise UnknownPreset(unknown("preset", name, PRESETS, "Change single settings with --set NAME=VALUE."))
    return PRESETS[name]


def changed(config: Config, assignments: list[str]) -> Config:
    """The configuration with NAME=VALUE settings applied. Raises ConfigError for an unknown name or a wrong type."""
    types = {field.name: field.type for field in fields(Config)}
    parse = {"int": int, "float": float, "str": str, int: int, float: float, str: str}
    changes = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or name not in types:
            raise ConfigError(unknown("setting", name, types, "Write it as --set NAME=VALUE."))
        try:
            changes[name] = parse[types[name]](value.replace("_", "") if parse[types[name]] is not str else value)
        except ValueError:
            raise ConfigError(f"--set {assignment}: '{value}' is not a number.") from None
    return replace(config, **changes)
