"""The words of the Overview."""

from app.captions import overview as captions
from embryo_core.types import Run


def test_the_command_names_each_source_once(tiny_run: Run) -> None:
    """Metrics that read the same data share one option."""
    missing = {"mask_prediction": "treebank", "attention": "treebank", "world_knowledge": "lama"}
    assert captions.command(tiny_run, missing) == (
        "python -m embryo_core evaluate tiny --metrics mask_prediction attention world_knowledge "
        "--treebank PATH --lama PATH"
    )
