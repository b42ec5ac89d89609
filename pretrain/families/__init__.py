"""The model families that can be pretrained; a new one is a file here and a line in FAMILIES."""

from embryo_core.errors import UnknownPreset, unknown
from pretrain.config import Config
from pretrain.families.albert import Albert
from pretrain.families.bert import Bert
from pretrain.families.electra import Electra
from pretrain.family import Family

__all__ = ["FAMILIES", "preset", "presets"]

FAMILIES: dict[str, Family] = {family.name: family for family in (Albert(), Bert(), Electra())}


def presets() -> dict[str, Config]:
    """Every preset of every family, by its name."""
    return {name: config for family in FAMILIES.values() for name, config in family.presets.items()}


def preset(name: str) -> Config:
    """The preset of that name. Raises UnknownPreset with the known ones."""
    known = presets()
    if name not in known:
        raise UnknownPreset(unknown("preset", name, known, "Change single settings with --set NAME=VALUE."))
    return known[name]
