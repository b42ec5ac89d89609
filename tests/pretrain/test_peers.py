"""Tests of training against an independent implementation: models of transformers, updated by torch."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from pretrain.batches import prepare_data
from pretrain.config import Config
from pretrain.export import tensors, write_checkpoint
from pretrain.families import FAMILIES, preset
from pretrain.masking import Batch
from pretrain.model import PretrainingModel
from pretrain.state import Progress
from pretrain.train import build
from tests.pretrain.peers import Peer, Weights
from tests.rounding import bound

# ELECTRA's samples are equal on both sides, unless one of the 40 draws of an update falls within the rounding of a
# cumulative probability, about 1e-6.
UPDATES = 20
PROMISED = 1e-5  # for every loss over these updates, as for training on several devices

pytestmark = pytest.mark.usefixtures("eager")


class TrainedModel(NamedTuple):
    """The curves of a model, one row per update (loss of each objective, "norm" of the gradients), and its weights."""

    curves: list[dict[str, float]]
    weights: Weights


OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("bert-tiny", "electra-tiny", "gpt2-tiny")]


@pytest.fixture(scope="module", params=["tiny", *OTHERS])
def config(request: pytest.FixtureRequest) -> Config:
    """Return the tiny preset of each family with warm-up, decay, two sequence lengths and clipped gradients."""
    chosen = preset(request.param)
    return replace(
        chosen,
        optimizer="adamw_bert" if chosen.optimizer == "adamw" else chosen.optimizer,  # the peer's AdamW
        steps=2 * UPDATES,
        warmup_steps=5,
        short_steps=UPDATES // 2,
        short_sequence_length=16,
        short_batch_size=16,
        clip_norm=0.4,
        weight_decay=0.1,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )


@pytest.fixture(scope="module")
def batches(config: Config, texts: tuple[Path, Path], cache: Path) -> list[Batch]:
    """Return the batches of all updates."""
    data = prepare_data(config, [str(texts[0])], [str(texts[1])], cache)
    return [data.training(step) for step in range(UPDATES)]


@pytest.fixture(scope="module")
def trained_models(
    config: Config, batches: list[Batch], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Weights, TrainedModel, TrainedModel]:
    """Train our model and the peer; return their common initial weights, and the curves and weights of each."""
    model = build(config)
    peer = Peer(write_checkpoint(model, config, tmp_path_factory.mktemp("run"), Progress(0, 0, 0)), config)
    initial = weights(model, config)
    ours = TrainedModel(curves(model, config, batches), weights(model, config))
    theirs = TrainedModel([peer.update(batch, step) for step, batch in enumerate(batches)], peer.weights())
    return initial, ours, theirs


def weights(model: PretrainingModel, config: Config) -> Weights:
    """Return every weight of our model by its folder and name in a checkpoint."""
    family = FAMILIES[config.family]
    folders = {"": family.modules(model)}
    folders |= {folder: modules for folder, (modules, _) in family.inner_checkpoints(config, model).items()}
    return {
        (folder, name): array.copy() for folder, modules in folders.items() for name, array in tensors(modules).items()
    }


def curves(model: PretrainingModel, config: Config, batches: list[Batch]) -> list[dict[str, float]]:
    """Train our model; return its losses and the norm of the gradients that its optimizer receives."""
    family = FAMILIES[config.family]
    norms, apply = [], model.optimizer.apply

    def noting(gradients, variables) -> None:
        norms.append(float(np.sqrt(sum(float(np.square(gradient).sum()) for gradient in gradients))))
        apply(gradients, variables)

    model.optimizer.apply = noting
    rows = [model.train(batch, family.loss_weights(config, step)) for step, batch in enumerate(batches)]
    return [
        {name: row[f"{name}_loss"] for name in family.objectives(config)} | {"norm": norm}
        for row, norm in zip(rows, norms, strict=True)
    ]


def tolerance(config: Config) -> float:
    """Return the tolerance for float32 gradients after all updates, relative to their size.

    In the passes forward and back, every layer sums over H inputs (query, key, output, inner), over the inner size and
    over the length; the head sums over the vocabulary.
    """
    layer = 4 * config.hidden_size + config.intermediate_size + 2 * config.sequence_length
    passes = 2 * (config.num_hidden_layers * layer + config.vocab_size)
    return bound(UPDATES * passes, np.ones(1))


def test_losses_and_gradient_norms_equal_those_of_the_peer(
    config: Config, trained_models: tuple[Weights, TrainedModel, TrainedModel]
):
    """Every update is compared; the main loss falls, and all gradients are larger than the limit for clipping."""
    _, ours, theirs = trained_models
    for our_row, peer_row in zip(ours.curves, theirs.curves, strict=True):
        assert our_row.keys() == peer_row.keys()
        for name in FAMILIES[config.family].objectives(config):
            assert our_row[name] == pytest.approx(peer_row[name], abs=PROMISED)
        assert our_row["norm"] == pytest.approx(peer_row["norm"], rel=tolerance(config))
    assert min(row["norm"] for row in ours.curves) > config.clip_norm
    main = next(iter(FAMILIES[config.family].objectives(config)))
    assert ours.curves[-1][main] < ours.curves[0][main] - 0.1


def test_weights_move_like_those_of_the_peer(
    config: Config, trained_models: tuple[Weights, TrainedModel, TrainedModel]
):
    """The difference of a weight is measured relative to the distance that it moved."""
    initial, ours, theirs = trained_models
    assert ours.weights.keys() == initial.keys() >= theirs.weights.keys()
    for name, expected in theirs.weights.items():
        moved = np.linalg.norm(expected - initial[name])
        off = np.linalg.norm(ours.weights[name] - expected)
        if name[1].endswith("key.bias"):  # shifts all scores of a softmax: its gradient is only rounding
            assert max(moved, off) < PROMISED
        else:
            assert off < tolerance(config) * moved, name
