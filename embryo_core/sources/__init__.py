"""Make runs from checkpoints that other code wrote, by default without copying them."""

from embryo_core.sources.add import add
