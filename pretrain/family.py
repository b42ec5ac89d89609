"""The base classes of model families: presets, objectives, batches, the model and its names on disk."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from pretrain.collators import Collator, MaskedPairCollator
from pretrain.config import Config, MaskedConfig
from pretrain.examples import SENTENCE_LOSSES, Pairing, in_order
from pretrain.originals import OriginalFormat
from pretrain.tokenizer import WordStarts

if TYPE_CHECKING:
    from pretrain.encoders import Encoder
    from pretrain.model import PretrainingModel


C = TypeVar("C", bound=Config)


class Family(ABC, Generic[C]):
    """A model family. Keras is imported only when `model` is called, so that presets are read quickly."""

    name: ClassVar[str]  # as in `Config.family` and run.json
    presets: ClassVar[Mapping[str, Config]]
    original: ClassVar[OriginalFormat | None] = None  # None: checkpoints of its original code cannot be imported
    reads_segments: ClassVar[bool] = True  # whether its models take token_type_ids
    can_widen: ClassVar[bool] = False  # whether a checkpoint can be continued twice as wide (see grow.py)

    @property
    def config_class(self) -> type[Config]:
        """Return the class of the family's settings."""
        return type(next(iter(self.presets.values())))

    @abstractmethod
    def objectives(self, config: C) -> dict[str, str]:
        """Return the title of each objective in run.json, by its name in log and model; the main one comes first."""

    @abstractmethod
    def model(self, config: C) -> "PretrainingModel":
        """Return the model of a configuration, not yet built, with a head for each of `objectives`."""

    @abstractmethod
    def modules(self, model: "PretrainingModel") -> dict[str, Any]:
        """Return layers, weights, and tuples of weights that form one tensor, by their names in transformers."""

    @abstractmethod
    def huggingface_config(self, config: C) -> dict[str, Any]:
        """Return the config.json with which transformers loads a checkpoint."""

    def inner_checkpoints(self, config: C, model: "PretrainingModel") -> dict[str, tuple[dict, dict]]:
        """Return the further models in a checkpoint: name of an inner folder -> (`modules`, config.json)."""
        return {}

    def pairing(self, config: C) -> Pairing:
        """Return the function that pairs the two segments of an example."""
        return in_order

    def collator(self, config: C, begins_word: WordStarts) -> Collator:
        """Return the collator, which makes batches of text; `begins_word` marks the ids that begin a word."""
        return MaskedPairCollator.from_config(cast(MaskedConfig, config), self.pairing(config), begins_word)

    def loss_weights(self, config: C, step: int) -> dict[str, float]:
        """Return the weight of each objective's loss in the update from `step` to `step + 1`."""
        return dict.fromkeys(self.objectives(config), 1.0)

    def note(self, config: C) -> str:
        """Return a sentence about the checkpoints for run.json, or ""."""
        return ""


@dataclass(frozen=True, kw_only=True)
class PairConfig(MaskedConfig):
    """Settings of a model that also learns the relation of two segments."""

    sentence_loss: str = "sop"  # sop (order of two segments), nsp (whether the second follows the first) or none

    def problems(self) -> dict[str, bool]:
        """Add the rule of the sentence loss."""
        names = ", ".join(SENTENCE_LOSSES)
        return super().problems() | {
            f"sentence_loss '{self.sentence_loss}' is not one of {names}": self.sentence_loss in SENTENCE_LOSSES,
        }


P = TypeVar("P", bound=PairConfig)


class PairFamily(Family[P]):
    """A family whose encoder learns masked words and, by the setting `sentence_loss`, the relation of two segments.

    Its models have a head for masked words and, with a sentence loss, one for pairs.
    """

    def objectives(self, config: P) -> dict[str, str]:
        """Return the objective of masked words and, unless `sentence_loss` is none, the one on segments."""
        sentence = SENTENCE_LOSSES[config.sentence_loss]
        return {"masked_lm": "masked language model"} | ({sentence.objective: sentence.title} if sentence else {})

    def pairing(self, config: P) -> Pairing:
        """Return the pairing that the sentence loss needs."""
        sentence = SENTENCE_LOSSES[config.sentence_loss]
        return sentence.pairing if sentence else in_order

    def with_heads(self, config: P, encoder: "Encoder") -> "PretrainingModel":
        """Return the model of this encoder, with the heads and objectives of the configuration."""
        import keras

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
        heads_by_name: dict[str, keras.layers.Layer] = {"masked_lm": words}
        objectives_by_name: dict[str, objectives.Objective] = {"masked_lm": objectives.predicted_tokens}
        if sentence := SENTENCE_LOSSES[config.sentence_loss]:
            heads_by_name[sentence.objective] = heads.PairHead(config.hidden_size, name=sentence.objective, **initial)
            objectives_by_name[sentence.objective] = objectives.sentence_pair
        return PretrainingModel(encoder, heads_by_name, objectives_by_name)


def encoder_modules(prefix: str, encoder: "Encoder", layers: str, parts: Sequence[str]) -> dict[str, Any]:
    """Return the embeddings and layers of an encoder, shared layers once, by their names in transformers.

    `layers` is the name of a layer, with {} for its number; `parts` are the names of its parts, from the query to the
    last normalisation.
    """
    tables = encoder.embeddings
    by_name = {
        f"{prefix}.embeddings.word_embeddings": tables.word,
        f"{prefix}.embeddings.position_embeddings": tables.position,
        f"{prefix}.embeddings.token_type_embeddings": tables.segment,
        f"{prefix}.embeddings.LayerNorm": tables.norm,
    }
    for i, layer in enumerate(dict.fromkeys(encoder.transformer)):
        attention_layer = layer.attention
        attention = (
            attention_layer.query,
            attention_layer.key,
            attention_layer.value,
            attention_layer.output_dense,
            attention_layer.norm,
        )
        modules = (*attention, layer.intermediate, layer.output_dense, layer.norm)
        by_name |= {f"{prefix}.{layers.format(i)}.{name}": module for name, module in zip(parts, modules, strict=True)}
    return by_name
