"""Tests of the audit: it names every fault planted in a copied run, and finds none in the demo."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from embryo_core import runs
from embryo_core.audit import audit, auditing
from embryo_core.audit.auditing import find_faults
from embryo_core.audit.files import find_missing_steps, find_other_configs
from embryo_core.cli import main
from embryo_core.engine.tensor_statistics import TensorStatistics
from embryo_core.types import Run, StepUnit
from tests import demo

STEPS = (0, 64, 256, 1024, 2048, 4096, 8192, 10321, 16384, 20643)  # of the copy that is damaged
WORDS = "albert.embeddings.word_embeddings.weight"
LAYER = "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight"
BIAS = "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.query.bias"


@pytest.fixture(scope="module")
def some_steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of some of the demo's checkpoints."""
    path = tmp_path_factory.mktemp("demo") / "runs" / "demo"
    shutil.copytree(demo.PATH, path, ignore=shutil.ignore_patterns("step*"))
    for step in STEPS:
        shutil.copytree(demo.PATH / "checkpoints" / f"step{step}", path / "checkpoints" / f"step{step}")
    card = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(card | {"planned_steps": STEPS}))
    return path


@pytest.fixture
def run(some_steps: Path, tmp_path: Path) -> Run:
    """Return a copy of these checkpoints for one test to damage."""
    return runs.read_run(Path(shutil.copytree(some_steps, tmp_path / "runs" / "demo")))


def weights(run: Run, step: int) -> Path:
    """Return the file of a checkpoint's weights."""
    return run.path / "checkpoints" / f"step{step}" / "model.safetensors"


def sign(run: Run) -> None:
    """Write manifests with the hashes of the current files, as if the mistake had been made before the manifests."""
    for path in run.path.glob("checkpoints/*/manifest.json"):
        manifest = json.loads(path.read_text())
        manifest["sha256"] = {name: runs.sha256(path.parent / name) for name in manifest["sha256"]}
        path.write_text(json.dumps(manifest))


def change(run: Run, step: int, how: Callable[[torch.Tensor], torch.Tensor], name: str = LAYER) -> None:
    """Change one tensor of a checkpoint."""
    tensors = load_file(weights(run, step))
    tensors[name] = how(tensors[name]).contiguous()
    save_file(tensors, weights(run, step), metadata={"format": "pt"})


def swap(run: Run, one: int, other: int) -> None:
    """Give two checkpoints each other's weights."""
    first, second = weights(run, one), weights(run, other)
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)


def faults_of(run: Run) -> set[tuple[str, tuple[int, ...]]]:
    """Return kind and steps of each fault."""
    return {(fault.kind, fault.steps) for fault in audit(run).faults}


def test_demo_has_no_fault(tmp_path):
    """All of its checkpoints with weights are audited."""
    run = runs.read_run(Path(shutil.copytree(demo.PATH, tmp_path / "runs" / "demo")))
    assert audit(run) == runs.read_audit(run) == runs.Audit((), len(runs.loadable_checkpoints(run)))


def test_equal_first_steps_are_named_unless_the_log_explains_them(run):
    """A learning rate of 0 up to the second step explains them; without a log they look like a copy."""
    weights(run, 64).write_bytes(weights(run, 0).read_bytes())
    sign(run)
    assert faults_of(run) == {("equal", (0, 64))}
    log = run.path / "log.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    still = [row | {"learning_rate": 0.0} if row["step"] <= 64 else row for row in rows]
    log.write_text("".join(f"{json.dumps(row)}\n" for row in still))
    assert faults_of(run) == set()
    log.unlink()
    assert faults_of(run) == {("equal", (0, 64))}


@pytest.mark.parametrize(
    ("one", "other"), [(0, 64), (256, 1024), (64, 8192), (0, 20643), (10321, 16384), (16384, 20643)]
)
def test_swapped_steps_are_named(run, one, other):
    """Both steps are named and no other one, also at the ends of the series."""
    swap(run, one, other)
    sign(run)
    assert faults_of(run) == {("swapped", (one, other))}


def damage(step: int, how: Callable[[torch.Tensor], torch.Tensor], name: str = LAYER) -> Callable[[Run], None]:
    """Return a function that changes one tensor at one step."""
    return lambda run: change(run, step, how, name)


@pytest.mark.parametrize(
    ("how", "faults"),
    [
        (damage(2048, torch.neg), {("tensor", (2048,))}),
        (damage(8192, torch.neg, BIAS), {("tensor", (8192,))}),
        (damage(0, torch.neg), {("tensor", (0,))}),
        (damage(20643, torch.neg), {("tensor", (20643,))}),
        (damage(20643, torch.zeros_like, WORDS), {("tensor", (20643,))}),
        (damage(20643, lambda tensor: tensor.flip(0)), {("tensor", (20643,))}),
        (damage(4096, lambda tensor: tensor.flip(0)), {("tensor", (4096,))}),
        (damage(1024, lambda tensor: tensor.where(tensor < tensor.max(), torch.nan)), {("not finite", (1024,))}),
        (damage(1024, lambda tensor: tensor.where(tensor < tensor.max(), -torch.inf)), {("not finite", (1024,))}),
        (lambda run: weights(run, 2048).write_bytes(weights(run, 1024).read_bytes()), {("equal", (1024, 2048))}),
        (lambda run: weights(run, 20643).write_bytes(weights(run, 64).read_bytes()), {("equal", (64, 20643))}),
        (lambda run: weights(run, 64).write_bytes(weights(run, 64).read_bytes()[:-100]), {("unreadable", (64,))}),
        (lambda run: shutil.rmtree(weights(run, 2048).parent), {("missing", (2048,))}),
    ],
    ids="negated|small|first|last|zero|mixed last|permuted|NaN|infinite|neighbours|equal|truncated|missing".split("|"),
)
def test_single_fault_is_the_only_one_named(run, how, faults):
    """Its step is found although the manifest agrees with the damaged file."""
    how(run)
    sign(run)
    assert faults_of(run) == faults


@pytest.mark.parametrize(("step", "other"), [(2048, 256), (10321, 4096), (256, 20643), (20643, 1024)])
def test_tensor_of_another_step_is_named(run, step, other):
    """The only fault is at the step where the tensor is wrong, and names the step that it comes from."""
    tensor = load_file(weights(run, other))[LAYER]
    change(run, step, lambda _: tensor)
    sign(run)
    (fault,) = audit(run).faults
    assert fault.steps == (step,) and fault.what.startswith(f"{LAYER} at step {step:,} is that at step {other:,}, ")


def test_weights_of_another_pretraining_are_out_of_line(run):
    """The numbers of every tensor are permuted, so they fit nowhere in the series."""
    tensors = load_file(weights(run, 4096))
    rows = torch.Generator().manual_seed(1)
    other = {name: tensor.flatten()[torch.randperm(tensor.numel(), generator=rows)] for name, tensor in tensors.items()}
    save_file({name: other[name].view_as(tensor) for name, tensor in tensors.items()}, weights(run, 4096))
    sign(run)
    assert faults_of(run) == {("out of line", (4096,))}


def test_several_faults_are_named_separately(run):
    """Each fault is named as if it were alone."""
    swap(run, 256, 1024)
    change(run, 8192, torch.neg)
    shutil.rmtree(weights(run, 2048).parent)
    sign(run)
    assert faults_of(run) == {("swapped", (256, 1024)), ("tensor", (8192,)), ("missing", (2048,))}


@pytest.mark.parametrize("unit", list(StepUnit)[::3])
def test_faults_name_steps_in_the_unit_of_the_run(run, unit):
    """Missing steps, other files and all kinds of faults in tensors name their checkpoints in this unit."""
    card = json.loads((run.path / "run.json").read_text())
    (run.path / "run.json").write_text(json.dumps(card | {"counted_in": unit}))
    swap(run, 256, 1024)
    change(run, 8192, torch.neg)
    change(run, 20643, lambda tensor: tensor * torch.nan)
    shutil.rmtree(weights(run, 2048).parent)
    weights(run, 64).with_name("vocab.txt").write_text("a b")
    weights(run, 4096).with_name("vocab.txt").write_text("a b")
    weights(run, 16384).with_name("vocab.txt").write_text("c")
    sign(run)
    what = " ".join(fault.what for fault in audit(runs.read_run(run.path)).faults)
    names = ["no checkpoint at {2,048};", "checkpoints at {256 and 1,024} "]
    names += ["at {8,192} is out of line with that at {4,096 and 10,321}: ", "at {20,643} holds NaN or infinity;"]
    names += ["The tokenizer with the weights at {16,384} "]
    named = {True: lambda match: f"step{'s' * (' and ' in match[1])} {match[1]}", False: r"\1 words"}
    for name in names:
        assert re.sub("{(.+?)}", named[unit == StepUnit.UPDATES], name) in what


def test_missing_steps_are_named_up_to_limit(run):
    """The remaining steps are counted."""
    for unit, named in ((StepUnit.UPDATES, "steps 1, 2, 3 and 2 more;"), (StepUnit.WORDS, "1, 2, 3 words and 2 more;")):
        planned = replace(run, planned_steps=(*STEPS, 1, 2, 3, 5, 6), step_unit=unit)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("embryo_core.audit.files.MAX_LISTED_STEPS", 3)
            (fault,) = find_missing_steps(planned)
        assert f"no checkpoint at {named}" in fault.what


def test_differing_config_is_named(run):
    """The fault names the fields that differ."""
    path = weights(run, 8192).with_name("config.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"layer_norm_eps": 1e-5}))
    sign(run)
    (fault,) = audit(run).faults
    assert (fault.kind, fault.steps) == ("config", (8192,)) and "in layer_norm_eps; " in fault.what


def test_differing_checkpoint_tokenizer_is_named(run):
    """Checkpoints without a tokenizer are no fault."""
    for step, vocabulary in ((64, "a b"), (1024, "a b"), (2048, "a c")):
        weights(run, step).with_name("vocab.txt").write_text(vocabulary)
    assert faults_of(run) == {("tokenizer", (2048,))}


@pytest.mark.parametrize("name", ["spm.model", "tokenizer.model", "added_tokens.json"])
def test_every_tokenizer_file_is_compared(run, name):
    """Transformers also stores tokenizers in these files."""
    for step, content in ((64, "a b"), (1024, "a b"), (2048, "a c")):
        weights(run, step).with_name(name).write_text(content)
    assert faults_of(run) == {("tokenizer", (2048,))}


def test_settings_that_change_pieces_are_compared(run):
    """The vocabulary is the same. Other settings, and the form of a special token, do not matter."""
    settings = {"do_lower_case": False, "mask_token": "[MASK]", "model_max_length": 64, "strip_accents": None}
    marked = {"mask_token": {"content": "[MASK]", "lstrip": False}, "model_max_length": 512}
    for step, change in ((64, {}), (1024, marked), (4096, {}), (2048, {"do_lower_case": True})):
        weights(run, step).with_name("vocab.txt").write_text("a b")
        weights(run, step).with_name("tokenizer_config.json").write_text(json.dumps(settings | change))
    assert faults_of(run) == {("tokenizer", (2048,))}


def test_differing_generator_config_is_named(run):
    """The generator of such a step predicts the masked words of another model."""
    for step in (64, 1024, 2048):
        folder = weights(run, step).with_name("generator")
        folder.mkdir()
        config = json.loads(weights(run, step).with_name("config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | ({"hidden_act": "relu"} if step == 1024 else {})))
    (fault,) = find_other_configs(
        checkpoint for checkpoint in runs.checkpoints(run) if checkpoint.step in (64, 1024, 2048)
    )
    assert (fault.kind, fault.steps) == ("config", (1024,)) and "in generator.hidden_act; " in fault.what


def test_config_fields_without_effect_are_no_fault(run):
    """Examples are ids that no layer reads, fields of another transformers version, and null, which is the default."""
    path = weights(run, 1024).with_name("config.json")
    more = {"bos_token_id": 7, "eos_token_id": 8, "transformers_version": "4.1", "use_cache": False, "chunk_size": None}
    path.write_text(json.dumps(json.loads(path.read_text()) | more))
    sign(run)
    assert faults_of(run) == set()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pad_token_id": 5}))
    sign(run)
    assert faults_of(run) == {("config", (1024,))}


def test_tokenizer_truncation_setting_is_ignored(run):
    """A tokenizer.json stores how texts were truncated and padded last."""
    for step, used in ((64, None), (1024, None), (2048, {"max_length": 64})):
        content = {"truncation": used, "model": {"vocab": {"a": 0}}}
        weights(run, step).with_name("tokenizer.json").write_text(json.dumps(content))
    assert not faults_of(run)


def test_changed_tokenizer_of_the_run_is_named(run):
    """No checkpoint can be asked with it, so the fault names no step."""
    path = run.path / "tokenizer" / "tokenizer.json"
    path.write_text(path.read_text() + " ")
    (fault,) = audit(run).faults
    assert (fault.kind, fault.steps) == ("tokenizer", ()) and "was pretrained with" in fault.what


@pytest.mark.parametrize("content", ["{", None])
def test_unreadable_tokenizer_does_not_hide_other_faults(run, content):
    """A truncated checkpoint is found as well."""
    path = run.path / "tokenizer" / "tokenizer.json"
    path.unlink() if content is None else path.write_text(content)
    weights(run, 2048).write_bytes(weights(run, 2048).read_bytes()[:-8])
    kinds = {fault.kind: fault for fault in audit(run).faults}
    assert set(kinds) == {"tokenizer", "unreadable"} and kinds["unreadable"].steps == (2048,)
    assert kinds["tokenizer"].steps == () and "tokenizer.json" in kinds["tokenizer"].what


def test_exchanged_folders_are_named(run):
    """Each folder has the manifest of the other step, and its weights are read as those of that step."""
    one, other = (weights(run, step).parent for step in (1024, 4096))
    one.rename(other.with_name("aside"))
    other.rename(one)
    other.with_name("aside").rename(other)
    assert faults_of(run) == {("swapped", (1024,)), ("swapped", (4096,))}


def test_weights_without_tensors_are_unreadable(run):
    """A saved training state can look like this; empty checkpoints are not reported as equal."""
    for step in STEPS[:2]:
        save_file({}, weights(run, step))
    sign(run)
    assert faults_of(run) == {("unreadable", (STEPS[0],)), ("unreadable", (STEPS[1],))}


def test_command_prints_faults_and_sets_the_status(run, capsys):
    """The exit status is 1 with a fault and 0 without."""
    assert main(["audit", str(run.path)]) == 0 and capsys.readouterr().out == "No fault in 10 checkpoints.\n"
    weights(run, 2048).unlink()
    assert main(["audit", str(run.path)]) == 1
    assert capsys.readouterr().out.startswith("unreadable: ")


def test_command_reports_missing_heads(own_run, capsys):
    """The class in config.json, or tensors missing from the file, show that no question can be asked."""
    for step in (0, 8, 16):
        path = weights(own_run, step)
        tensors = {name: value for name, value in load_file(path).items() if not name.startswith("predictions")}
        save_file(tensors, path, metadata={"format": "pt"})
    sign(own_run)
    assert main(["audit", str(own_run.path)]) == 0
    output = capsys.readouterr().out
    assert output.startswith("No fault in 3 checkpoints.\nNo question can be asked: ") and "no head for words" in output
    for step in (0, 8, 16):
        path = weights(own_run, step).with_name("config.json")
        path.write_text(json.dumps(json.loads(path.read_text()) | {"architectures": ["AlbertModel"]}))
    sign(own_run)
    assert main(["audit", str(own_run.path)]) == 0
    assert "no head for words; checkpoints give attentions and states." in capsys.readouterr().out


def test_command_counts_steps_without_weights(run, capsys):
    """Steps without weights are not audited, which is no fault."""
    runs.remove_weights(runs.checkpoint(run, 2048))
    assert main(["audit", str(run.path)]) == 0
    assert capsys.readouterr().out == "No fault in 9 checkpoints.\n9 of 10 checkpoints kept their weights.\n"
    for step in STEPS:
        runs.remove_weights(runs.checkpoint(run, step))
    assert main(["audit", str(run.path)]) == 0 and capsys.readouterr().out.startswith("Nothing was audited")


# === Synthetic checkpoints ===


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("rates", ["00x", "0x0", "x00", "0_0", "xx", ""])
def test_zero_rates_explain_equal_steps(monkeypatch, rates, added, own_run):
    """The rates after the first step up to the second have to be 0: "x" is a rate above 0, "_" was not logged.

    A Trainer logs the rate of the next update; the rate of the first is 0 unless the first two rates show no warm-up.
    """
    known = {"0": {"learning_rate": 0.0}, "x": {"learning_rate": 0.1}, "_": {}}
    rows = [{"split": "train", "step": step, **known[rate]} for step, rate in enumerate(rates, start=1)]
    monkeypatch.setattr(runs, "read_log", lambda _: [*rows, {"split": "heldout", "step": 9}])
    if added:
        runs.record_added(own_run.path, {"/elsewhere"})
    still = auditing._frozen_steps(own_run)
    for i in range(4):
        for j in range(i + 1, 5):
            seen = rates[max(i - 1, 0) : j - 1] if added else rates[i:j]
            warm = added and (i, j) == (0, 1) and not rates.startswith(("0x", "x0", "xx"))
            assert still(i, j) == (warm or (seen != "" and set(seen) == {"0"}))


def statistics_of(*contents: np.ndarray, exact: bool = True) -> list[TensorStatistics]:
    """Return checkpoints of two tensors, each a content and its negative; sketches are twice the content."""
    shapes = tuple((name, contents[0].shape) for name in ("one", "other"))
    made = []
    for step, content in enumerate(contents):
        moved = {i: np.full(2, np.linalg.norm(content - contents[i])) for i in range(step)} if exact else {}
        hashes = tuple(str((sign * content).tolist()) for sign in (1, -1))
        norms, sketches = np.full(2, np.linalg.norm(content)), np.stack([2 * content, -2 * content])
        made.append(TensorStatistics(step, shapes, hashes, (), norms, np.full(2, 1e-7), sketches, moved))
    return made


def test_distances_are_measured_or_taken_from_sketches():
    """The order of the two steps does not matter."""
    contents = np.random.default_rng(0).normal(size=(4, 30))
    for exact, times in ((True, 1), (False, 2)):
        series = auditing._series(statistics_of(*contents, exact=exact))
        for i, j in ((0, 3), (3, 0), (1, 2), (2, 1)):
            distance = np.linalg.norm(contents[i] - contents[j])
            assert series.distances(i, j) == pytest.approx(np.full(2, times * distance))
            assert series.sketched_distances(i, j) == pytest.approx(np.full(2, 2 * distance))


def test_at_least_three_checkpoints_are_compared():
    """Two equal checkpoints alone are no fault."""
    first, second = np.random.default_rng(0).normal(size=(2, 30))
    (fault,) = find_faults(statistics_of(first, first, second), lambda first, other: False, "updates")
    assert (fault.kind, fault.steps) == ("equal", (0, 1))
    assert find_faults(statistics_of(first, first), lambda first, other: False, "updates") == []


@pytest.mark.parametrize("step", [1, 3, 5])
def test_tensor_fault_shows_norms_and_cosines(step: int):
    """The numbers equal numpy's for the tensor, its neighbours on either side, and the first step."""
    contents = np.random.default_rng(1).normal(size=(6, 30)) * np.arange(1, 7)[:, None]
    units = contents / np.linalg.norm(contents, axis=1, keepdims=True)
    cosines, norms = units @ units.T, np.linalg.norm(contents, axis=1)
    indices = [0, 1, 3, 4, 5]
    near = {1: [0, 3], 3: [1, 4], 5: [4]}[step]
    fault = auditing._tensor_fault(auditing._series(statistics_of(*contents)), [1], step, indices, "updates")
    beside = " and ".join(f"{norms[i]:.3g}" for i in near)
    to_them, to_first = (" and ".join(f"{cosines[i, j]:.2f}" for i in near) for j in (step, 0))
    assert f"norm {norms[step]:.3g} against {beside}, cosine {to_them} to them, " in fault.what
    assert f"{cosines[step, 0]:.2f} against {to_first} to the first step; " in fault.what
    assert fault.what.startswith(f"other at step {step} is out of line with that at step")
