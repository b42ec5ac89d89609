"""The model families that can be pretrained, one per file here; no other file names a family."""

from importlib import import_module
from pkgutil import iter_modules

from embryo_core.errors import UnknownPreset, unknown
from pretrain.config import Config
from pretrain.family import Family

__all__ = ["FAMILIES", "preset", "presets"]


def load_families() -> dict[str, Family]:
    """Return the FAMILY of every file in this folder, by its name."""
    families = [import_module(f"{__name__}.{module.name}").FAMILY for module in iter_modules(__path__)]
    return {family.name: family for family in families}


FAMILIES = load_families()


def presets() -> dict[str, Config]:
    """Return every preset of every family, by its name."""
    return {name: config for family in FAMILIES.values() for name, config in family.presets.items()}


def preset(name: str) -> Config:
    """Return the preset of that name. Raises UnknownPreset with the known ones."""
    existing = presets()
    if name not in existing:
        raise UnknownPreset(unknown("preset", name, existing, "Change single settings with --set NAME=VALUE."))
    return existing[name]
