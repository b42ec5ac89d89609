"""An audit names every planted fault of a copied run, and finds none in the demo."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from embryo_core import runs
from embryo_core.cli import main
from embryo_core.engine.measure import audit
from embryo_core.runs import REPOSITORY
from embryo_core.types import Run

DEMO = next((REPOSITORY / "data" / "demo" / "runs").iterdir())
LAYER = "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight"


@pytest.fixture(scope="module")
def some_steps(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A copy of the demo's last ten checkpoints with weights."""
    path = tmp_path_factory.mktemp("demo") / "runs" / "demo"
    demo = runs.read_run(DEMO)
    shutil.copytree(DEMO, path, ignore=shutil.ignore_patterns("step*"))
    kept = runs.loadable(demo)[-10:]
    for checkpoint in kept:
        shutil.copytree(checkpoint.path, path / "checkpoints" / checkpoint.path.name)
    card = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(card | {"planned_steps": [c.step for c in kept]}))
    return runs.read_run(path)


@pytest.fixture
def run(some_steps: Run, tmp_path: Path) -> Run:
    """That copy, for one test to damage."""
    return runs.read_run(Path(shutil.copytree(some_steps.path, tmp_path / "runs" / "demo")))


def weights(run: Run, index: int) -> Path:
    """The file of the weights of a run's checkpoint."""
    return runs.checkpoints(run)[index].path / "model.safetensors"


def sign(run: Run) -> None:
    """Manifests with the hashes of what lies there now, as whoever made the mistake would have written them."""
    for path in run.path.glob("checkpoints/*/manifest.json"):
        manifest = json.loads(path.read_text())
        manifest["sha256"] = {name: runs.sha256(path.parent / name) for name in manifest["sha256"]}
        path.write_text(json.dumps(manifest))


def change(path: Path, how: Callable[[torch.Tensor], torch.Tensor], name: str = LAYER) -> None:
    """Change one tensor of a file."""
    tensors = load_file(path)
    tensors[name] = how(tensors[name]).contiguous()
    save_file(tensors, path, metadata={"format": "pt"})


def swap(run: Run, one: int, other: int) -> None:
    """Give two checkpoints each other's weights."""
    first, second = weights(run, one), weights(run, other)
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


def found(run: Run) -> set[tuple[int, str]]:
    """Index and kind of each fault."""
    steps = [c.step for c in runs.checkpoints(run)]
    return {(steps.index(fault.step) if fault.step in steps else -1, fault.kind) for fault in audit(run)}


def test_the_demo_has_no_fault(tmp_path):
    """Nor a false one: all its checkpoints."""
    run = runs.read_run(Path(shutil.copytree(DEMO, tmp_path / "runs" / "demo")))
    assert audit(run) == [] and runs.read_audit(run) == []


@pytest.mark.parametrize(("one", "other"), [(4, 5), (2, 7), (0, 1), (8, 9)])
def test_swapped_steps(run, one, other):
    """Both are named, with the step whose weights they have, and no other step."""
    swap(run, one, other)
    sign(run)
    assert found(run) == {(one, "swapped"), (other, "swapped")}


@pytest.mark.parametrize(
    ("how", "kind", "indices"),
    [
        (lambda run: change(weights(run, 5), lambda tensor: tensor.flip(0)), "tensor", [5]),
        (lambda run: change(weights(run, 5), lambda tensor: -tensor), "tensor", [5]),
        (lambda run: change(weights(run, 9), lambda tensor: -tensor), "tensor", [9]),
        (lambda run: change(weights(run, 3), lambda tensor: tensor.where(tensor < tensor.max(), torch.nan)), "not finite", [3]),
        (lambda run: weights(run, 4).write_bytes(weights(run, 4).read_bytes()[:-100]), "unreadable", [4]),
        (lambda run: weights(run, 6).write_bytes(weights(run, 5).read_bytes()), "equal", [5, 6]),
        (lambda run: weights(run, 8).write_bytes(weights(run, 2).read_bytes()), "equal", [2, 8]),
    ],
    ids=("reversed", "negated", "negated at the end", "NaN", "truncated", "equal neighbours", "equal"),
)
def test_one_fault_is_named_and_nothing_else(run, how, kind, indices):
    """At its step, whatever the manifest says."""
    how(run)
    sign(run)
    own = found(run)
    assert {(index, kind) for index in indices} <= own
    assert {index for index, _ in own} <= set(indices)


def test_a_tensor_of_another_step(run):
    """A single wrong part is named with the step that it comes from."""
    tensor = load_file(weights(run, 1))[LAYER]
    change(weights(run, 6), lambda _: tensor)
    sign(run)
    step, first = (runs.checkpoints(run)[i].step for i in (6, 1))
    assert (step, f"{LAYER} equals that of step {first}") in {(fault.step, fault.what) for fault in audit(run)}
    assert {fault.step for fault in audit(run)} == {step}


def test_a_missing_step(run):
    """The planned grid tells it; the steps around it are no fault."""
    gone = runs.checkpoints(run)[5]
    shutil.rmtree(gone.path)
    assert [(fault.step, fault.kind) for fault in audit(run)] == [(gone.step, "missing")]


def test_another_config(run):
    """A config.json that is not that of the others."""
    path = runs.checkpoints(run)[5].path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"layer_norm_eps": 1e-5}))
    sign(run)
    assert found(run) == {(5, "config")}


def test_the_command_names_each_fault(run, capsys):
    """A line each and status 1; none is status 0."""
    assert main(["audit", str(run.path)]) == 0 and "No fault in 10 checkpoints." in capsys.readouterr().out
    weights(run, 4).unlink()
    assert main(["audit", str(run.path)]) == 1
    assert "(unreadable)" in capsys.readouterr().out
