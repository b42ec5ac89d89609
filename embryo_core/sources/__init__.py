"""Make runs of checkpoints that others wrote, without copying them."""

from embryo_core.sources.add import add
