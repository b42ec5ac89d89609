"""The families that the fast engine reads: every file here brings its LAYOUT, and none is named elsewhere."""

from importlib import import_module
from pkgutil import iter_modules

from embryo_core.family import Layout

__all__ = ["FAMILIES"]


def found() -> dict[str, Layout]:
    """Return the LAYOUT of every file in this folder, by its model_type."""
    layouts = [import_module(f"{__name__}.{module.name}").LAYOUT for module in iter_modules(__path__)]
    return {layout.model_type: layout for layout in layouts}


FAMILIES = found()
