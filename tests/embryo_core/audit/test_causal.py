"""Tests of the audit on decoders trained here: a clean series has no fault, and a planted fault is one line."""

import json
from collections.abc import Callable

import pytest
import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

from embryo_core import runs
from embryo_core.audit import audit
from embryo_core.types import Run

STEPS = (0, 1, 2, 4, 8, 16, 24, 32, 40)
LATER = 48  # also trained, but left out of the run

Weights = dict[str, torch.Tensor]
Series = dict[int, Weights]


def train(seed: int, rate: float, decay: float) -> Series:
    """Train a GPT-2 with two layers on pairs of numbers; return its weights by step. The first learning rate is 0."""
    torch.manual_seed(seed)
    config = GPT2Config(vocab_size=60, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay)
    saved: Series = {}
    for step in range(LATER + 1):
        if step:
            optimizer.param_groups[0]["lr"] = rate * min(1.0, (step - 1) / 8)
            ids = torch.randint(0, 60, (8, 8)).repeat_interleave(2, 1)
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        if step in (*STEPS, LATER):
            state = {name: value for name, value in model.state_dict().items() if name != "lm_head.weight"}
            saved[step] = {name: value.clone() for name, value in state.items()}
    return saved


@pytest.fixture(
    scope="module",
    params=[pytest.param((3e-3, 0.1), id="usual"), pytest.param((1e-2, 1.0), id="high", marks=pytest.mark.slow)],
)
def trained_series(request: pytest.FixtureRequest) -> tuple[Series, Series]:
    """Return the series of two seeds."""
    return train(1, *request.param), train(2, *request.param)


@pytest.fixture
def audit_series(own_run: Run) -> Callable[[Series], list[runs.Fault]]:
    """Return a function that writes a series as an added run and returns what the audit finds."""

    def judge(series: Series) -> list[runs.Fault]:
        config = json.loads((own_run.path / "run.json").read_text()) | {"family": "gpt2", "planned_steps": STEPS}
        (own_run.path / "run.json").write_text(json.dumps(config))
        sizes = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 16, "vocab_size": 60}
        for step in STEPS:
            folder = own_run.path / "checkpoints" / f"step{step}"
            folder.mkdir(exist_ok=True)
            described = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]} | sizes
            (folder / "config.json").write_text(json.dumps(described))
            save_file({name: value.contiguous() for name, value in series[step].items()}, folder / "model.safetensors")
            runs.write_manifest(folder, step, None, None)
        (own_run.path / "log.jsonl").unlink()
        runs.record_added(own_run.path, {"/elsewhere"})
        return list(audit(runs.read_run(own_run.path)).faults)

    return judge


def test_clean_series_has_no_fault(trained_series, audit_series):
    """This holds although the first update, with a learning rate of 0, moved nothing."""
    assert audit_series(trained_series[0]) == []


def shard(series: Series, step: int, source: Weights) -> Series:
    """Return the series with the first half of the tensors of a step replaced by those of `source`."""
    names = sorted(source)[: len(source) // 2]
    return series | {step: series[step] | {name: source[name] for name in names}}


@pytest.mark.parametrize(
    ("plant", "kind", "steps"),
    [
        (lambda series, other: series | {4: series[16], 16: series[4]}, "swapped", (4, 16)),
        (lambda series, other: series | {0: other[0]}, "out of line", (0,)),
        (lambda series, other: series | {0: other[0], 1: other[1]}, "out of line", (0, 1)),
        (lambda series, other: series | {16: other[16]}, "out of line", (16,)),
        (lambda series, other: series | {40: other[40]}, "out of line", (40,)),
        (lambda series, other: shard(series, 16, series[32]), "tensor", (16,)),
        (lambda series, other: shard(series, 32, series[8]), "tensor", (32,)),
        (lambda series, other: shard(series, 40, series[16]), "tensor", (40,)),
        (lambda series, other: shard(series, 4, series[8]), "tensor", (4,)),
        (lambda series, other: shard(series, 16, series[LATER]), "tensor", (16,)),
        (lambda series, other: shard(series, 24, other[24]), "tensor", (24,)),
        (
            lambda series, other: series | {8: {name: value * torch.nan for name, value in series[8].items()}},
            "not finite",
            (8,),
        ),
        (lambda series, other: series | {2: series[40], 4: series[40]}, "equal", (2, 4, 40)),
    ],
    ids="swapped|seed first|seed first two|seed inside|seed last|shard later|shard earlier|shard last|shard next|"
    "shard of no step|shard of a seed|NaN|final early".split("|"),
)
def test_planted_fault_is_one_line(trained_series, audit_series, plant, kind, steps):
    """Its steps are the damaged ones, however many tensors are wrong."""
    assert [(fault.kind, fault.steps) for fault in audit_series(plant(*trained_series))] == [(kind, steps)]
