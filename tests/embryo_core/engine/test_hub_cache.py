"""Tests of the Hub cache: fetched weights are removed again, and nothing else."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import scan_cache_dir

from embryo_core.engine import hub_cache
from embryo_core.types import Checkpoint, Pointer, Run
from tests.conftest import checkpoint_at

NAME = "owner/series"
WEIGHTS = "model.safetensors"
COMMITS = ("a" * 40, "b" * 40)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a repository in an empty cache."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub" / "models--owner--series"


def keep(home: Path, commit: str, name: str, content: str, link: bool = True) -> Path:
    """Put a file into a snapshot as huggingface_hub does, by a link to its blob or as it is."""
    file, blob = home / "snapshots" / commit / name, home / "blobs" / content
    for folder in (file.parent, blob.parent, home / "refs"):
        folder.mkdir(parents=True, exist_ok=True)
    (home / "refs" / f"step{commit[0]}").write_text(commit)
    if link:
        blob.write_text(content)
        file.symlink_to(os.path.relpath(blob, file.parent))
    else:
        file.write_text(content)
    return file


def remaining_files(home: Path) -> set[str]:
    """Return every file and link of the cache except refs, and check that huggingface_hub finds no fault in it."""
    assert not scan_cache_dir(home.parent).warnings
    files = (path.relative_to(home) for path in home.rglob("*") if not path.is_dir())
    return {file.as_posix() for file in files if file.parts[0] != "refs"}


def pointing(run: Run, commit: str) -> Checkpoint:
    """Return a checkpoint whose weights are in the revision `commit`."""
    return replace(checkpoint_at(run, COMMITS.index(commit)), pointer=Pointer(WEIGHTS, NAME, commit))


@pytest.mark.parametrize("link", [True, False], ids=["links", "plain files"])
def test_discarding_weights_keeps_other_cached_files(tiny_run, home, monkeypatch, link):
    """The revision's config.json and tokenizer stay, as do all files of the other revision."""
    one, other = COMMITS
    for commit in COMMITS:
        keep(home, commit, "config.json", "same config", link)
        keep(home, commit, "tokenizer.json", f"tokenizer {commit[0]}", link)
    keep(home, other, WEIGHTS, "weights b", link)
    before = remaining_files(home)
    monkeypatch.setattr(
        hub_cache, "fetch", lambda pointer, _: keep(home, pointer.commit, pointer.file, "weights a", link)
    )
    checkpoint = pointing(tiny_run, one)
    assert hub_cache.fetch_checkpoint(checkpoint) and not hub_cache.fetch_checkpoint(checkpoint)
    assert not hub_cache.fetch_checkpoint(pointing(tiny_run, other))
    assert len(remaining_files(home)) == len(before) + (2 if link else 1)
    hub_cache.discard(checkpoint.pointer)
    assert remaining_files(home) == before and not hub_cache.cached_file(checkpoint.pointer).exists()
    hub_cache.discard(checkpoint.pointer)
    assert remaining_files(home) == before


def test_shared_blob_is_removed_with_its_last_link(tiny_run, home):
    """Two revisions share a blob if, for example, a branch ends at a step."""
    for commit in COMMITS:
        keep(home, commit, WEIGHTS, "same weights")
    one, other = (pointing(tiny_run, commit) for commit in COMMITS)
    hub_cache.discard(one.pointer)
    assert remaining_files(home) == {f"snapshots/{COMMITS[1]}/{WEIGHTS}", "blobs/same weights"}
    assert hub_cache.cached_file(other.pointer).exists() and not hub_cache.cached_file(one.pointer).exists()
    hub_cache.discard(other.pointer)
    assert remaining_files(home) == set()


def test_link_target_outside_the_cache_is_kept(tiny_run, home, tmp_path):
    """The link belongs to the cache, but the file behind it does not."""
    own = tmp_path / "own.safetensors"
    own.write_text("weights")
    file = keep(home, COMMITS[0], WEIGHTS, "other")
    file.unlink()
    file.symlink_to(own)
    hub_cache.discard(pointing(tiny_run, COMMITS[0]).pointer)
    assert own.is_file() and not file.is_symlink()
