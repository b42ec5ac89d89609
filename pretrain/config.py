"""Pretraining settings: a frozen dataclass, extended by each family, whose fields are set by name and validated."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from embryo_core import runs
from embryo_core.errors import ConfigError

CHOICES = {  # allowed values of settings that are names
    "optimizer": ("lamb", "adamw_bert", "adamw", "muon"),
    "hidden_act": ("gelu", "gelu_new"),
    "compute_dtype": ("auto", "float32", "bfloat16"),
    "tokenizer": ("unigram", "wordpiece", "bpe"),
    "checkpoint_dtype": ("float32", "float16"),
}
MAX_SEED = 2**32 - 1  # largest seed that Keras accepts
SMOKE_SETTINGS: dict[
    str, Any
] = {  # numbers of our own for the tiny presets, with which a run takes seconds on two cores
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 500,
    "max_position_embeddings": 64,
    "batch_size": 8,
    "sequence_length": 32,
    "steps": 40,
    "warmup_steps": 5,
    "save_every": 10,
    "state_every": 10,
    "log_every": 5,
    "heldout_sequences": 16,
}


def require(checks: Mapping[str, bool]) -> None:
    """Raise ConfigError for the first rule that does not hold; `checks` are results by error message."""
    for problem, is_valid in checks.items():
        if not is_valid:
            raise ConfigError(f"{problem}; change it with --set NAME=VALUE.")


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings that affect what a pretraining computes; run.json records them.

    A family adds its own settings in a subclass, in which `family` is the family's name.
    """

    family: ClassVar[str]
    # Settings that --steps N scales in proportion.
    counts_of_updates: ClassVar[tuple[str, ...]] = ("warmup_steps", "constant_steps", "short_steps")
    at_least_one: ClassVar[tuple[str, ...]] = tuple(
        "hidden_size num_hidden_layers num_attention_heads intermediate_size steps batch_size short_batch_size "
        "state_every log_every heldout_sequences".split()
    )
    at_least_zero: ClassVar[tuple[str, ...]] = ("long_every", "save_every", "save_per_doubling", "extend_vocabulary")

    # === Architecture (names as in transformers) ===
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    tokenizer: str = "unigram"  # kind of vocabulary: unigram, wordpiece or bpe (byte-level)
    vocab_size: int = 30_000  # number of pieces; settings.py adds those of extend_vocabulary to a given value
    extend_vocabulary: int = 0  # pieces that a continued run adds to its vocabulary (see grow.py)
    max_position_embeddings: int = 512
    initializer_range: float = 0.02  # standard deviation of the initial weights
    position_initializer_range: float | None = None  # the same for position embeddings; None: initializer_range
    layer_norm_eps: float = 1e-12
    hidden_act: str = "gelu_new"  # GELU in its tanh form; gelu: by the error function, faster on a CPU
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0

    # === Optimisation ===
    optimizer: str = "lamb"  # lamb, adamw_bert (no bias correction), adamw or muon (matrices; AdamW for the rest)
    steps: int  # number of updates
    warmup_steps: int  # updates in which the rate grows linearly to its peak
    constant_steps: int = 0  # the rate stays at its peak until this update, then decays to zero at `steps`
    learning_rate: float  # peak learning rate
    decay_power: float = 1.0  # exponent of the decay; 1: linear
    minutes: float = 0.0  # wall time after which the run ends, whatever its step; 0: it ends at `steps`
    decay_minutes: float = 0.0  # the last of these minutes, during which the rate decays; 0: it decays over all of them
    weight_decay: float = 0.01  # not applied to biases and layer norms
    decay_positions: bool = True  # whether weight decay applies to position embeddings
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-6
    clip_norm: float = 1.0  # global norm to which the gradients are clipped
    compute_dtype: str = "auto"  # dtype in which layers compute: float32, bfloat16 or auto (bfloat16 if it is faster)
    seed: int = 12345

    # === Batches: an optional first phase on short sequences, as in the original BERT recipe ===
    batch_size: int
    sequence_length: int
    short_steps: int = 0  # updates of the first phase
    short_sequence_length: int = 128
    short_batch_size: int = 2048
    long_every: int = 0  # N: every Nth update of the first phase has sequence_length; 0: none

    # === Checkpoints and log ===
    save_every: int = 5_000  # updates between checkpoints, in addition to those at powers of two; 0: none
    save_per_doubling: int = 0  # K: checkpoints at the steps 2**(i / K); 0: none
    state_every: int = 1_000  # updates between saved states, from which a run can resume
    log_every: int = 50  # updates between rows of log.jsonl
    heldout_sequences: int = 512  # sequences measured at every checkpoint, always the same, masked as in training
    checkpoint_dtype: str = "float32"

    def __post_init__(self) -> None:
        require(self._counts())  # first, since `problems` divides by some counts
        require(self.problems())

    def _counts(self) -> dict[str, bool]:
        zero = (*self.at_least_zero, *self.counts_of_updates)
        return {
            f"{name}, received {getattr(self, name)}, must be at least {minimum}": getattr(self, name) >= minimum
            for minimum, names in ((1, self.at_least_one), (0, zero))
            for name in names
        }

    def problems(self) -> dict[str, bool]:
        """Return whether each rule holds, by the error message for its violation; families add their own rules."""
        shortest, longest = self.lengths[0], self.lengths[-1]
        checks = {
            f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads {self.num_attention_heads}": (
                self.hidden_size % self.num_attention_heads == 0
            ),
            f"sequences of {longest} tokens exceed max_position_embeddings {self.max_position_embeddings}": (
                longest <= self.max_position_embeddings
            ),
            f"sequences of {shortest} tokens are shorter than 16": shortest >= 16,
            "extend_vocabulary needs a unigram or wordpiece tokenizer; received bpe": (
                self.tokenizer != "bpe" or not self.extend_vocabulary
            ),
        }
        for name, choices in CHOICES.items():
            checks[f"{name} '{getattr(self, name)}' is not one of {', '.join(choices)}"] = (
                getattr(self, name) in choices
            )
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "beta_1", "beta_2"):
            checks[f"{name} {getattr(self, name)} must be at least 0 and below 1"] = 0 <= getattr(self, name) < 1
        for name in ("learning_rate", "epsilon", "layer_norm_eps", "clip_norm"):
            checks[f"{name} {getattr(self, name)} must be above 0"] = 0 < getattr(self, name) < inf
        checks[f"decay_minutes {self.decay_minutes} exceed minutes {self.minutes}"] = self.decay_minutes <= self.minutes
        nonnegative = ("weight_decay", "decay_power", "minutes", "decay_minutes", "initializer_range")
        for name in (*nonnegative, "position_initializer_range"):
            value = getattr(self, name)
            checks[f"{name} {value} must be 0 or more, and finite"] = value is None or 0 <= value < inf
        checks[f"seed {self.seed} must be between 0 and {MAX_SEED}"] = 0 <= self.seed <= MAX_SEED
        return checks if self.minutes else checks | self.plan_problems()  # the clock may end a run in its warm-up

    def plan_problems(self) -> dict[str, bool]:
        """Return the rules on warmup_steps and constant_steps, which apply only without `minutes`."""
        counts = {name: getattr(self, name) for name in ("warmup_steps", "constant_steps")}
        return {f"{name} {n} must be between 0 and steps {self.steps}": n <= self.steps for name, n in counts.items()}

    @property
    def lengths(self) -> tuple[int, ...]:
        """Return the sequence lengths (tokens) that the run trains on, in ascending order."""
        short_lengths = {self.short_sequence_length} if self.short_steps else set()
        return tuple(sorted(short_lengths | {self.sequence_length}))

    def is_short(self, step: int) -> bool:
        """Return whether the update that leads from `step` to `step + 1` is on short sequences."""
        is_long = self.long_every and step % self.long_every == self.long_every - 1
        return step < self.short_steps and not is_long

    def earlier_updates(self, step: int) -> int:
        """Return the number of updates before `step` on sequences of the length that the update at `step` has."""
        first_phase = min(step, self.short_steps)
        long_updates = first_phase // self.long_every if self.long_every else 0
        return step - long_updates if self.is_short(step) else long_updates + step - first_phase

    def batch_at(self, step: int) -> tuple[int, int]:
        """Return (sequences, tokens per sequence) of the update that leads from `step` to `step + 1`."""
        if self.is_short(step):
            return self.short_batch_size, self.short_sequence_length
        return self.batch_size, self.sequence_length

    def checkpoint_steps(self) -> tuple[int, ...]:
        """Return the steps of checkpoints: 0, powers of two, the last, those of save_every and save_per_doubling."""
        grid = set(runs.step_grid(self.steps, self.save_every or self.steps))
        if self.save_per_doubling:
            grid.update(runs.log_grid(self.steps, self.save_per_doubling))
        return tuple(sorted(grid))

    def architecture(self) -> dict[str, Any]:
        """Return the common fields of config.json, by their names in transformers' BERT."""
        names = (
            "hidden_size num_hidden_layers num_attention_heads intermediate_size vocab_size max_position_embeddings "
            "initializer_range layer_norm_eps hidden_act hidden_dropout_prob attention_probs_dropout_prob"
        ).split()
        return {name: getattr(self, name) for name in names} | {
            "type_vocab_size": 2,
            "pad_token_id": 0,
            "bos_token_id": 2,
            "eos_token_id": 3,
            "tie_word_embeddings": True,
            "dtype": self.checkpoint_dtype,
        }


@dataclass(frozen=True, kw_only=True)
class MaskedConfig(Config):
    """Settings of a model that learns to predict masked words."""

    counts_of_updates: ClassVar[tuple[str, ...]] = (*Config.counts_of_updates, "single_word_steps")
    at_least_one: ClassVar[tuple[str, ...]] = (*Config.at_least_one, "max_ngram")
    at_least_zero: ClassVar[tuple[str, ...]] = (*Config.at_least_zero, "measured_sequences")

    masked_share: float = 0.15  # share of the tokens of a sequence that are masked
    masked_share_end: float | None = None  # the share at the last update, reached linearly; None: constant
    mask_token_share: float = 0.8  # share of the masked tokens that become [MASK]
    random_token_share: float = 0.1  # share that become a random piece; the rest are unchanged
    whole_words: bool = True  # mask whole words; false: single pieces
    max_ngram: int = 3  # mask n-grams of 1..max_ngram words (or pieces), with p(n) proportional to 1/n
    single_word_steps: int = 0  # first updates, in which n-grams have one word, whatever max_ngram
    measured_sequences: int = 512  # sequences measured at every checkpoint for each masking at 15 %; 0: none

    def problems(self) -> dict[str, bool]:
        """Add the rules of masking."""
        checks = super().problems() | {
            f"mask_token_share {self.mask_token_share} and random_token_share {self.random_token_share} must be "
            "0 or more, and at most 1 together": (
                min(self.mask_token_share, self.random_token_share) >= 0
                and self.mask_token_share + self.random_token_share <= 1
            ),
        }
        for name in ("masked_share", "masked_share_end"):
            share = getattr(self, name)
            checks[f"{name} {share} must be above 0 and below 1"] = share is None or 0 < share < 1
        return checks

    def masking_at(self, step: int) -> tuple[float, int]:
        """Return (share of tokens masked, longest n-gram in words) of the update from `step` to `step + 1`."""
        end = self.masked_share if self.masked_share_end is None else self.masked_share_end
        share = self.masked_share + (end - self.masked_share) * step / max(self.steps - 1, 1)
        return share, 1 if step < self.single_word_steps else self.max_ngram
