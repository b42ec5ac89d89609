"""The families that the fast engine reads: every file here brings its LAYOUT, and none is named elsewhere."""

from importlib import import_module
from pkgutil import iter_modules

from embryo_core.family import Layout

__all__ = ["FAMILIES"]

_FOUND: list[Layout] = [import_module(f"{__name__}.{module.name}").LAYOUT for module in iter_modules(__path__)]
FAMILIES = {layout.model_type: layout for layout in _FOUND}
