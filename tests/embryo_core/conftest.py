"""A checkpoint of ELECTRA, which is not the family of the tiny run."""

import pytest
import torch
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

from embryo_core import runs
from embryo_core.types import Checkpoint, Run
from tests.conftest import copy_run


@pytest.fixture(scope="session")
def electra(tiny_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """Return step 16 as an ELECTRA of random weights that contains its generator."""
    checkpoint = runs.checkpoint(copy_run(tiny_run, tmp_path_factory.mktemp("electra")), 16)
    torch.manual_seed(3)
    sizes = {"vocab_size": 700, "embedding_size": 16, "num_hidden_layers": 2, "initializer_range": 0.4}
    config = ElectraConfig(**sizes, hidden_size=24, num_attention_heads=3, intermediate_size=48)
    smaller = ElectraConfig(**sizes, hidden_size=16, num_attention_heads=2, intermediate_size=32)
    for model, path in (
        (ElectraForPreTraining(config), checkpoint.path),
        (ElectraForMaskedLM(smaller), checkpoint.path / "generator"),
    ):
        model.save_pretrained(path)
        runs.write_manifest(path, 16, sequences=64, tokens=4096)
    return runs.checkpoint(checkpoint.run, 16)
