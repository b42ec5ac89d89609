"""Tests of adding revisions and families of repositories from the local Hub cache, pinned to commits and offline."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import httpx2
import pytest
from huggingface_hub.utils._shared_blobs import publish_blob_to_shared_store

from embryo_core import query, results, runs
from embryo_core.audit import audit
from embryo_core.cli import main
from embryo_core.engine import hub_cache
from embryo_core.engine.hub_cache import prefetch_checkpoints
from embryo_core.engine.model import load
from embryo_core.errors import MissingWeights, RunError
from embryo_core.sources import add
from embryo_core.types import Checkpoint, Pointer
from tests.conftest import SAMPLE
from tests.embryo_core.sources.conftest import STEPS

NAME = "owner/series"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty Hub cache, and turn the network off."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(hub_cache, "_unreached", hub_cache._unreached)  # restored after the test
    assert hub_cache.is_offline()
    return tmp_path / "hub"


def store(cache: Path, repository: str, revision: str, folder: Path) -> str:
    """Write a folder to the cache as huggingface_hub does (blobs, a snapshot of symlinks, a ref); return the commit."""
    home = cache / f"models--{repository.replace('/', '--')}"
    commit = hashlib.sha1(f"{repository}@{revision}".encode()).hexdigest()
    snapshot = home / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (home / "blobs").mkdir(exist_ok=True)
    for path in filter(Path.is_file, folder.rglob("*")):
        digest = runs.sha256(path) if path.suffix == ".safetensors" else hashlib.sha1(path.read_bytes()).hexdigest()
        shutil.copyfile(path, home / "blobs" / digest)
        link = snapshot / path.relative_to(folder)
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(os.path.relpath(home / "blobs" / digest, link.parent))
    (home / "refs").mkdir(exist_ok=True)
    (home / "refs" / revision).write_text(commit)
    return commit


def share(cache: Path) -> None:
    """Move large blobs of a cache to the store of all repositories, as huggingface_hub does after a Xet download."""
    for number, blob in enumerate(sorted(cache.glob("models--*/blobs/*"))):
        if blob.stat().st_size > 50_000:
            xet = hashlib.sha256(f"another hash {number}".encode()).hexdigest()
            assert publish_blob_to_shared_store(
                blob_path=str(blob), xet_hash=xet, cache_dir=cache, expected_size=blob.stat().st_size
            )


@pytest.fixture(params=["own files", "shared store"])
def series(cache: Path, trainer_folder: Path, request: pytest.FixtureRequest) -> dict[int, str]:
    """Store the Trainer's checkpoints as revisions of one repository; return step -> commit."""
    commits = {
        step: store(cache, NAME, f"step{step}-tokens{step}B", trainer_folder / f"checkpoint-{step}") for step in STEPS
    }
    if request.param == "shared store":
        share(cache)
        assert len([*(cache / "blobs").glob("??/*.refs")]) == len(STEPS)
    return commits


def test_revisions_become_steps_pinned_to_commits(root, series, trainer_folder, capsys):
    """Counts, hashes and answers equal those of the folders from which the revisions were made."""
    assert main(["add", f"hf:{NAME}", "--name", "public"]) == 0
    assert f"hf:{NAME}" in capsys.readouterr().out
    run, local = runs.open_run("public"), add([str(trainer_folder)], "local").run
    checkpoints = runs.checkpoints(run)
    assert {c.step: c.pointer.commit for c in checkpoints} == series
    assert [c.tokens for c in checkpoints] == [None, 10**10, 2 * 10**10]
    assert not audit(run).faults
    for checkpoint in checkpoints:
        noted = json.loads((checkpoint.path / "manifest.json").read_text())["weights"]["sha256"]
        assert noted == runs.sha256(trainer_folder / f"checkpoint-{checkpoint.step}" / "model.safetensors")
    for step in STEPS:
        assert query.ask(run, "The [MASK] .", [step]).best(step) == query.ask(local, "The [MASK] .", [step]).best(step)


def test_undecodable_ref_is_ignored(root, series, cache):
    """The other revisions are added."""
    (cache / f"models--{NAME.replace('/', '--')}" / "refs" / "odd").write_bytes(b"\xff\xfe")
    assert add([f"hf:{NAME}"], "public").steps == STEPS


def test_family_of_repositories_becomes_one_run(root, cache, trainer_folder):
    """The step is in the repository's name; other repositories of the owner are ignored."""
    for step in (10, 20):
        store(cache, f"owner/seed_0-step_{step}k", "main", trainer_folder / f"checkpoint-{step}")
    store(cache, "owner/other", "main", trainer_folder / "checkpoint-0")
    run = add(["hf:owner/seed_0-step_{k}k"], "family").run
    assert [c.step for c in runs.checkpoints(run)] == [10_000, 20_000]
    assert load(runs.checkpoint(run, 20_000)).num_layers == 2


def test_incomplete_revision_is_skipped(root, series, cache):
    """The message says that the local cache was searched; with --steps, the missing step is an error."""
    (cache / "models--owner--series" / "snapshots" / series[20] / "model.safetensors").unlink()
    added = add([f"hf:{NAME}"], "public")
    assert added.steps == (0, 10) and len(added.troubles) == 1
    assert "has no config.json" in added.troubles[0] and "in the local cache" in added.troubles[0]
    with pytest.raises(RunError, match=r"in the local cache \(the network is off\)"):
        add([f"hf:{NAME}"], "public", [20])


def test_revisions_of_other_phases_are_listed(root, cache, trainer_folder):
    """ext10 and decay5 match no known pattern; the user's patterns include them."""
    for revision, step in (("step10", 0), ("step20", 10), ("ext10", 20), ("decay5", 20)):
        store(cache, NAME, revision, trainer_folder / f"checkpoint-{step}")
    assert add([f"hf:{NAME}"], "ettin").unmatched == ["decay5", "ext10"]
    added = add([f"hf:{NAME}"], "ettin", patterns=["step{step}", "ext{step+20}", "decay{step+30}"])
    assert added.steps == (10, 20, 30, 35) and not added.unmatched


def test_single_revision_needs_step_in_trainer_state(root, series, cache):
    """Without trainer_state.json the message explains how to name the step."""
    assert add([f"hf:{NAME}@step10-tokens10B"], "public").steps == (10,)
    (cache / "models--owner--series" / "snapshots" / series[10] / "trainer_state.json").unlink()
    with pytest.raises(RunError, match=f"if it is one checkpoint, name its step, STEP:hf:{NAME}@step10"):
        add([f"hf:{NAME}@step10-tokens10B"], "other")


def test_explicit_list_gives_steps_and_revisions(root, series):
    """STEP:hf:OWNER/NAME@REVISION accepts the name of a branch or a commit."""
    run = add([f"1:hf:{NAME}@step10-tokens10B", f"2:hf:{NAME}@{series[20]}"], "listed").run
    assert [c.pointer.commit for c in runs.checkpoints(run)] == [series[10], series[20]]


def test_run_keeps_commit_when_branch_moves(root, series, cache, trainer_folder):
    """The answers stay the same after the branch points to another commit."""
    run = add([f"hf:{NAME}"], "public").run
    before = query.ask(run, "The [MASK] .", [10]).best(10)
    (cache / "models--owner--series" / "refs" / "step10-tokens10B").write_text(series[20])
    assert query.ask(runs.read_run(run.path), "The [MASK] .", [10]).best(10) == before


def test_weights_missing_from_cache_are_reported(root, series, cache):
    """The other steps are evaluated, and the exit status is 1."""
    run = add([f"hf:{NAME}"], "public").run
    (cache / "models--owner--series" / "snapshots" / series[10] / "model.safetensors").unlink()
    with pytest.raises(MissingWeights, match="is not in the local cache, and the network is off"):
        load(runs.checkpoint(run, 10))
    assert main(["evaluate", "public", "--treebank", str(SAMPLE / "treebank.conllu"), "--limit", "3"]) == 1
    assert set(results.read_scores(run, "mask_prediction")["step"]) == {0, 20}


def test_next_checkpoint_is_fetched_ahead(root, series, monkeypatch):
    """While one checkpoint is used, the next is fetched; it is discarded after use unless it was cached before."""
    run, fetched, gone = add([f"hf:{NAME}"], "public").run, [], []

    def fetch(checkpoint: Checkpoint) -> list[Pointer]:
        fetched.append(checkpoint.step)
        return [checkpoint.pointer] if checkpoint.step > 0 else []

    steps = {commit: step for step, commit in series.items()}
    monkeypatch.setattr(hub_cache, "fetch_checkpoint", fetch)
    monkeypatch.setattr(hub_cache, "discard", lambda pointer: gone.append(steps[pointer.commit]))
    seen = []
    for checkpoint, _ in prefetch_checkpoints(runs.checkpoints(run), remove=True):
        seen.append((checkpoint.step, list(gone)))
    assert seen == [(0, []), (10, []), (20, [10])] and gone == [10, 20] and fetched == [*STEPS]


def test_discarding_removes_weights_of_one_revision(root, series, cache):
    """The weights of the other revisions stay and can be loaded."""
    run = add([f"hf:{NAME}"], "public").run
    before = size(cache)
    hub_cache.discard(runs.checkpoint(run, 10).pointer)
    assert [hub_cache.cached_file(c.pointer).exists() for c in runs.checkpoints(run)] == [True, False, True]
    assert before - size(cache) > 50_000
    assert all(load(checkpoint) for checkpoint in runs.checkpoints(run) if checkpoint.step != 10)


def size(cache: Path) -> int:
    """Return the total bytes of all files in a cache, symlinks excluded."""
    return sum(path.stat().st_size for path in cache.rglob("*") if path.is_file() and not path.is_symlink())


def test_electra_generator_is_fetched_and_discarded_too(root, cache, electra, monkeypatch):
    """The generator is in generator/ at the same commit as the discriminator."""
    commit = store(cache, NAME, "step16", electra.path)
    run = add([f"hf:{NAME}"], "public", tokenizer=str(electra.run.tokenizer)).run
    checkpoint = runs.checkpoint(run, 16)
    assert query.ask(run, "The [MASK] .", [16]).best(16) == query.ask(electra.run, "The [MASK] .", [16]).best(16)
    snapshot = cache / "models--owner--series" / "snapshots" / commit
    pointers = [Pointer(file, NAME, commit) for file in ("model.safetensors", "generator/model.safetensors")]
    for _ in prefetch_checkpoints([checkpoint], remove=True):
        assert hub_cache.uncached_pointers(checkpoint) == []  # both were cached before, so both stay
    for pointer in pointers:
        assert hub_cache.cached_file(pointer).exists()
        hub_cache.discard(pointer)
    fetched = []
    monkeypatch.setattr(hub_cache, "fetch", lambda pointer, _: fetched.append(pointer))
    assert hub_cache.fetch_checkpoint(checkpoint) == fetched == pointers
    assert [path.name for path in snapshot.rglob("*.safetensors")] == []


def test_generator_without_weights_is_refused(root, cache, electra):
    """The message names the generator's folder."""
    commit = store(cache, NAME, "step16", electra.path)
    (cache / "models--owner--series" / "snapshots" / commit / "generator" / "model.safetensors").unlink()
    with pytest.raises(RunError, match=r"has no generator/config\.json"):
        add([f"hf:{NAME}"], "public", [16], tokenizer=str(electra.run.tokenizer))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("hf:owner/none", r"hf:owner/none is not in the local cache \(the network is off\)"),
        ("hf:owner/series@step11", "has no revision 'step11' in the local cache .*; known: step"),
        ("1:hf:owner/series@x", "has no revision 'x' in the local cache .*; known: step"),
    ],
)
def test_unknown_repository_or_revision_is_reported(root, series, source, message):
    """The message says that the local cache was searched."""
    with pytest.raises(RunError, match=message):
        add([source], "none")


def test_repository_that_was_not_added_is_refused(root, series):
    """A foreign manifest may name any repository."""
    run = add([f"hf:{NAME}"], "public").run
    path = run.path / "checkpoints" / "step10" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["weights"]["repository"] = "owner/other"
    path.write_text(json.dumps(manifest))
    assert [c.step for c in runs.checkpoints(run)] == [0, 20]
    assert "outside the run" in runs.broken_checkpoints(run)[0][1]


@pytest.mark.parametrize("reason", [httpx2.ReadError(""), httpx2.ConnectTimeout("timed out"), OSError("no disk")])
def test_broken_connection_is_reported(monkeypatch: pytest.MonkeyPatch, reason: Exception):
    """Fetching a file and listing revisions both give the reason; an error without a message is named by its class."""

    def broken(*_: object, **__: object) -> None:
        raise reason

    why = str(reason) or "ReadError"
    monkeypatch.setattr("huggingface_hub.hf_hub_download", broken)
    with pytest.raises(MissingWeights, match=rf"model\.bin of hf:{NAME}@abcdef1 cannot be fetched \({why}\)"):
        hub_cache.fetch(Pointer("model.bin", NAME, "abcdef123456"))
    monkeypatch.setattr("huggingface_hub.HfApi.list_repo_refs", broken)
    monkeypatch.setattr("embryo_core.sources.hub_listing.is_offline", lambda: False)
    with pytest.raises(RunError, match=rf"does not list hf:{NAME} \({why}\)"):
        add([f"hf:{NAME}"], "public")
