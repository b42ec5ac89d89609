"""Captions of the Attention page: what is shared is said where it is."""

from dataclasses import replace

from app.captions import attention as captions
from embryo_core.types import Run


def test_shared_weights_are_named_where_layers_share_them(tiny_run: Run) -> None:
    """All layers, or those of each group; nothing of a family whose layers have weights of their own."""
    assert "All layers share their weights" in captions.shared_weights(replace(tiny_run, config={}))
    grouped = replace(tiny_run, config={"num_hidden_groups": 2})
    assert "Layers of each of the 2 groups share their weights" in captions.shared_weights(grouped)
    assert captions.shared_weights(replace(tiny_run, family="bert")) == ""
