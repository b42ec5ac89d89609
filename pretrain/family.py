"""What a model family brings to pretraining: its presets, objectives, model, and names in transformers."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from pretrain.config import Config

if TYPE_CHECKING:
    from pretrain.model import PretrainingModel


class Family(ABC):
    """One model family. `model` imports Keras when it is called: presets are read without waiting for it."""

    name: ClassVar[str]  # `family` of its configurations and of run.json
    objectives: ClassVar[dict[str, str]]  # what run.json calls each, by its name in log and model; the main one first
    presets: ClassVar[dict[str, Config]]

    @abstractmethod
    def model(self, config: Config) -> "PretrainingModel":
        """The model of a configuration, with a head and an objective for each of `objectives`; not yet built."""

    @abstractmethod
    def modules(self, model: "PretrainingModel") -> dict[str, Any]:
        """Every Dense, LayerNormalization, Embedding and single weight of a model by its name in transformers."""

    @abstractmethod
    def huggingface(self, config: Config) -> dict[str, Any]:
        """config.json of a checkpoint, as transformers reads it."""

    def loss_weights(self, config: Config, step: int) -> dict[str, float]:
        """The weight of each objective's loss in the update that leads from `step` to `step + 1`."""
        return dict.fromkeys(self.objectives, 1.0)
