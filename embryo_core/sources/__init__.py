"""Make runs from checkpoints that other code wrote, without copying them."""

from embryo_core.sources.add import add
