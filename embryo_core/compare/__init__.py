"""Runs beside each other: how far each had come, seeds of one design, design tables, acquisition, choices."""

from embryo_core.compare.progress import UNITS, Progress, Unit, progress
from embryo_core.compare.seeds import by_design, over_seeds

__all__ = ["UNITS", "Progress", "Unit", "by_design", "over_seeds", "progress"]
