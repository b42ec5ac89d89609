"""Flags of the command line that are short for settings: --dropout 0.1 stands for two NAME=VALUE of --set."""

from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass, fields

from embryo_core.errors import ConfigError
from pretrain.config import Config
from pretrain.families import FAMILIES


@dataclass(frozen=True)
class Flag:
    """A flag and the settings that get its value; of START:END the first gets START and the second END."""

    name: str
    metavar: str
    help: str
    settings: tuple[str, ...]
    range: bool = False

    @property
    def attribute(self) -> str:
        """Its name among argparse's options."""
        return self.name.removeprefix("--").replace("-", "_")

    def assignments(self, value: str) -> list[str]:
        """NAME=VALUE for each of its settings; END is none where it is not given."""
        start, _, end = value.partition(":") if self.range else (value, "", value)
        return [f"{name}={given or 'none'}" for name, given in zip(self.settings, (start, end), strict=False)]


FLAGS = (
    Flag("--embedding-size", "N", "size of the embeddings, before they are projected", ("embedding_size",)),
    Flag("--share", "PARTS", "what layers share: all, attention, ffn or none", ("share",)),
    Flag("--groups", "N", "groups of layers, within each of which they share", ("num_hidden_groups",)),
    Flag("--sentence-loss", "LOSS", "sop (order), nsp (next sentence) or none", ("sentence_loss",)),
    Flag(
        "--dropout",
        "P",
        "of hidden states and of attention weights",
        ("hidden_dropout_prob", "attention_probs_dropout_prob"),
    ),
    Flag("--ngram", "N", "most words masked together", ("max_ngram",)),
    Flag(
        "--mask-rate",
        "START[:END]",
        "share of the tokens masked, and what it becomes by the last update: 0.3:0.15",
        ("masked_share", "masked_share_end"),
        range=True,
    ),
)


def add_flags(parser: ArgumentParser) -> None:
    """Add every flag to the command line."""
    group = parser.add_argument_group("design choices, each short for --set (docs/pretraining.md)")
    for flag in FLAGS:
        group.add_argument(flag.name, metavar=flag.metavar, help=flag.help)


def flag_settings(config: Config, given: Mapping[str, str | None]) -> list[str]:
    """NAME=VALUE settings for the flags that were given, by attribute. Raises ConfigError for another family's flag."""
    found = []
    for flag in FLAGS:
        if (value := given.get(flag.attribute)) is None:
            continue
        if not set(flag.settings) <= _settings(config):
            having = [
                name
                for name, family in FAMILIES.items()
                if any(set(flag.settings) <= _settings(preset) for preset in family.presets.values())
            ]
            raise ConfigError(
                f"{flag.name} {value}: the family {config.family} has no such setting; {', '.join(having)} has it."
            )
        found += flag.assignments(value)
    return found


def _settings(config: Config) -> set[str]:
    return {field.name for field in fields(config)}
