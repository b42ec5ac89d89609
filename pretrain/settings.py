"""Command-line options that change a configuration: every setting is parsed by the type of its field."""

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, fields, replace
from types import NoneType
from typing import Any, get_args

from embryo_core.errors import ConfigError, unknown
from pretrain.config import Config, require
from pretrain.families import FAMILIES


@dataclass(frozen=True)
class Flag:
    """A flag that sets one or more settings; with `range`, START:END sets the first to START and the second to END."""

    name: str
    metavar: str
    help: str
    settings: tuple[str, ...]
    range: bool = False

    def values(self, text: str) -> dict[str, str]:
        """Return the text of each setting; a missing END is "none"."""
        start, _, end = text.partition(":") if self.range else (text, "", text)
        return {name: value or "none" for name, value in zip(self.settings, (start, end), strict=False)}


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
    Flag("--ngram", "N", "words masked together, at most", ("max_ngram",)),
    Flag(
        "--mask-rate",
        "START[:END]",
        "share of the tokens masked, and what it becomes by the last update: 0.3:0.15",
        ("masked_share", "masked_share_end"),
        range=True,
    ),
    Flag("--extend-vocabulary", "N", "with --init-from: N pieces more, for words of the text", ("extend_vocabulary",)),
)


def add_options(parser: ArgumentParser) -> None:
    """Add every option that changes settings."""
    parser.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="updates in all (default: the preset's); warm-up and phases scale with it",
    )
    grids = "checkpoints: N (every N updates), log:K (K per doubling), or both (default: the preset's)"
    parser.add_argument("--save", nargs="+", default=[], metavar="GRID", help=grids)
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="any setting of the preset")
    group = parser.add_argument_group("design choices, each short for --set (docs/pretraining.md)")
    for flag in FLAGS:
        group.add_argument(flag.name, metavar=flag.metavar, help=flag.help)


def apply_options(config: Config, options: Namespace) -> Config:
    """Return the preset changed by the options of `add_options`; --set takes precedence. Raises ConfigError.

    The options give `vocab_size` without the pieces of `extend_vocabulary`; the returned one includes them.
    """
    changes = _save_grids(options.save) | _flags(config, vars(options)) | _parsed(config, options.set)
    if options.steps is not None:
        in_proportion = scale_counts(config, options.steps, explicit=changes.keys())
        for name, value in in_proportion.items():
            print(f"--steps {options.steps}: {name} is {value} in proportion; --set {name}=N sets it.")
        changes = {"steps": options.steps} | in_proportion | changes
    changed_config = replace(config, **changes)
    require(changed_config.plan_problems())
    return replace(changed_config, vocab_size=changed_config.vocab_size + changed_config.extend_vocabulary)


def scale_counts(config: Config, steps: int, explicit: Any = ()) -> dict[str, int]:
    """Return the counts of updates that change in proportion to `steps`: at least 1, except that 0 stays 0."""
    counts = {name: getattr(config, name) for name in config.counts_of_updates if name not in explicit}
    in_proportion = {name: n and max(1, round(n * steps / config.steps)) for name, n in counts.items()}
    return {name: n for name, n in in_proportion.items() if n != counts[name]}


def _save_grids(grids: list[str]) -> dict[str, int]:
    """Parse --save: "N", "log:K" or both; together they replace the grids of the preset."""
    if not grids:
        return {}
    settings = {"save_every": 0, "save_per_doubling": 0}
    for grid in grids:
        count = grid.removeprefix("log:")
        if not count.isdecimal() or int(count) == 0:
            raise ConfigError(f"--save {grid}: write --save N for every N updates, or --save log:K for K per doubling.")
        settings["save_per_doubling" if grid.startswith("log:") else "save_every"] = int(count)
    return settings


def _flags(config: Config, options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the given flags. Raises ConfigError for a flag of another family."""
    types = {field.name: field.type for field in fields(config)}
    settings: dict[str, Any] = {}
    for flag in FLAGS:
        value = options[flag.name.removeprefix("--").replace("-", "_")]
        if value is None:
            continue
        if not _has(config, flag):
            families = [name for name, family in FAMILIES.items() if _has(next(iter(family.presets.values())), flag)]
            raise ConfigError(
                f"{flag.name} {value}: the family {config.family} has no such setting; {', '.join(families)} has it."
            )
        received = f"{flag.name} {value}"
        settings |= {name: _value(received, text, types[name]) for name, text in flag.values(value).items()}
    return settings


def _has(config: Config, flag: Flag) -> bool:
    return all(hasattr(config, name) for name in flag.settings)


def _parsed(config: Config, assignments: list[str]) -> dict[str, Any]:
    """Parse NAME=VALUE settings by the types of the configuration's fields. Raises ConfigError."""
    types = {field.name: field.type for field in fields(config)}
    settings = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or name not in types:
            raise ConfigError(unknown("setting", name, types, "Write it as --set NAME=VALUE."))
        settings[name] = _value(assignment, value, types[name])
    return settings


def _value(source_text: str, value: str, field_type: Any) -> Any:
    """Parse the value of a setting as its type; "none" is None if the type allows it. Errors quote `source_text`."""
    types = get_args(field_type) or (field_type,)
    if NoneType in types and value.lower() == "none":
        return None
    if bool in types:
        if value.lower() not in ("true", "false"):
            raise ConfigError(f"{source_text}: '{value}' is neither true nor false.")
        return value.lower() == "true"
    if str in types:
        return value
    try:
        return types[0](value.replace("_", ""))
    except ValueError:
        raise ConfigError(f"{source_text}: '{value}' is not a number.") from None
