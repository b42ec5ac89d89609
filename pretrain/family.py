"""What a model family brings to pretraining: presets, objectives, data of the sentence loss, model, names on disk."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pretrain.collators import Collator, MaskedPairs
from pretrain.config import Config
from pretrain.examples import Pairing
from pretrain.pairs import SENTENCE_LOSSES, in_order
from pretrain.tf1_names import Original

if TYPE_CHECKING:
    import numpy as np

    from pretrain.layers import Embeddings, Encoder, TransformerLayer
    from pretrain.model import PretrainingModel


class Family(ABC):
    """One model family. `model` imports Keras when it is called: presets are read without waiting for it."""

    name: ClassVar[str]  # `family` of its configurations and of run.json
    presets: ClassVar[dict[str, Config]]
    original: ClassVar[Original | None] = None  # None: checkpoints of its original code are not imported
    reads_segments: ClassVar[bool] = True  # whether its models take token_type_ids
    can_widen: ClassVar[bool] = False  # whether a checkpoint can go on twice as wide (see widen.py)

    @abstractmethod
    def objectives(self, config: Config) -> dict[str, str]:
        """What run.json calls each objective, by its name in log and model; the main one comes first."""

    @abstractmethod
    def model(self, config: Config) -> "PretrainingModel":
        """The model of a configuration, with a head and an objective for each of `objectives`; not yet built."""

    @abstractmethod
    def modules(self, model: "PretrainingModel") -> dict[str, Any]:
        """Every Dense, LayerNormalization, Embedding and single weight of a model by its name in transformers."""

    @abstractmethod
    def huggingface(self, config: Config) -> dict[str, Any]:
        """config.json of a checkpoint, as transformers reads it."""

    def inner_checkpoints(self, config: Config, model: "PretrainingModel") -> dict[str, tuple[dict, dict]]:
        """Further models of a checkpoint: `modules` and config.json by the name of the folder inside its own."""
        return {}

    def pairing(self, config: Config) -> Pairing:
        """Return how the two segments of an example are paired."""
        return in_order

    def collator(self, config: Config, word_start: "np.ndarray") -> Collator:
        """Return what makes batches of text; `word_start` [V] bool: pieces that begin a word."""
        return MaskedPairs.of(config, self.pairing(config), word_start)

    def loss_weights(self, config: Config, step: int) -> dict[str, float]:
        """The weight of each objective's loss in the update that leads from `step` to `step + 1`."""
        return dict.fromkeys(self.objectives(config), 1.0)

    def note(self, config: Config) -> str:
        """What run.json has to say of the checkpoints, in one sentence; "" where there is nothing."""
        return ""

    def embeddings(self, config: Config, size: int) -> "Embeddings":
        """Embeddings of words, positions and segments, `size` wide."""
        from pretrain import layers

        return layers.Embeddings(
            config.vocab_size,
            config.max_position_embeddings,
            size,
            position_stddev=config.position_initializer_range or config.initializer_range,
            dropout=config.hidden_dropout_prob,
            stddev=config.initializer_range,
            epsilon=config.layer_norm_eps,
            name="embeddings",
        )

    def transformer(
        self,
        config: Config,
        attentions: Sequence[int] | None = None,
        feed_forwards: Sequence[int] | None = None,
        *,
        kind: "type[TransformerLayer] | None" = None,
        output_stddev: float | None = None,
        **sizes: int,
    ) -> "list[TransformerLayer]":
        """The layers: each with weights of its own, or shared by their numbers (see `layers.stack`).

        `sizes` are those in which they differ from the configuration: hidden_size, num_attention_heads,
        intermediate_size.
        """
        from pretrain import layers

        names = ("hidden_size", "num_attention_heads", "intermediate_size")
        hidden_size, heads, intermediate_size = (sizes.get(name, getattr(config, name)) for name in names)
        each = range(config.num_hidden_layers)
        return layers.stack(
            each if attentions is None else attentions,
            each if feed_forwards is None else feed_forwards,
            hidden_size=hidden_size,
            heads=heads,
            intermediate_size=intermediate_size,
            activation=layers.activation(config.hidden_act),
            dropout=config.hidden_dropout_prob,
            attention_dropout=config.attention_probs_dropout_prob,
            stddev=config.initializer_range,
            epsilon=config.layer_norm_eps,
            output_stddev=output_stddev,
            kind=kind or layers.TransformerLayer,
        )


class PairFamily(Family):
    """A family whose encoder learns masked words and, by the setting `sentence_loss`, what two segments are.

    `heads` of its models are that of the masked words and, where there is a sentence loss, that of the pairs.
    """

    def objectives(self, config: Config) -> dict[str, str]:
        """Masked words, and the sentence loss where there is one."""
        sentence = SENTENCE_LOSSES[config.sentence_loss]
        return {"masked_lm": "masked language model"} | ({sentence.objective: sentence.title} if sentence else {})

    def pairing(self, config: Config) -> Pairing:
        """That of the sentence loss."""
        sentence = SENTENCE_LOSSES[config.sentence_loss]
        return sentence.pairing if sentence else in_order

    def with_heads(self, config: Config, encoder: "Encoder") -> "PretrainingModel":
        """The model of this encoder, with the heads and objectives of the configuration."""
        from pretrain import heads, layers, objectives
        from pretrain.model import PretrainingModel

        initial = {"stddev": config.initializer_range}
        words = heads.MaskedWordHead(
            encoder.embeddings,
            activation=layers.activation(config.hidden_act),
            epsilon=config.layer_norm_eps,
            name="predictions",
            **initial,
        )
        made, learned = {"masked_lm": words}, {"masked_lm": objectives.masked_language_model}
        if sentence := SENTENCE_LOSSES[config.sentence_loss]:
            made[sentence.objective] = heads.PairHead(config.hidden_size, name=sentence.objective, **initial)
            learned[sentence.objective] = objectives.sentence_pair
        return PretrainingModel(encoder, made, learned)
