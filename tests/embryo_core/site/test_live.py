"""Tests of live questions: the files with which a browser asks a run, and the errors for runs that cannot be asked."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import plotly
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import RobertaConfig, RobertaForMaskedLM

from embryo_core import runs
from embryo_core.errors import SiteError
from embryo_core.site import live, packages, site
from embryo_core.site.live import write_live
from embryo_core.types import Run
from pretrain.tokenizer import extend


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out third-party JavaScript."""
    monkeypatch.setattr(live, "add_packages", lambda packages, folder: None)


def change(run: Run, step: int, dtype: torch.dtype, positions: int | None = None) -> None:
    """Store the weights of a step in another type, or with only the first positions."""
    folder = runs.checkpoint(run, step).path
    path = folder / "model.safetensors"
    tensors = {name: tensor.to(dtype) for name, tensor in load_file(path).items()}
    name = "albert.embeddings.position_embeddings.weight"
    tensors[name] = tensors[name][:positions].clone()
    save_file(tensors, path, {"format": "pt"})
    (folder / "manifest.json").unlink()
    runs.write_manifest(folder, step, 1, 1)


@pytest.mark.usefixtures("without_packages")
def test_live_run_has_graph_weights_and_pieces(tiny_run: Run, tmp_path: Path) -> None:
    """Weights are those of the checkpoints, byte for byte; the graph names their tensors and contains none."""
    assert write_live([tiny_run], tmp_path, 2) == {"tiny": {"folder": "live/1"}}
    folder = tmp_path / "live" / "1"
    about = json.loads((folder / "about.json").read_text())
    assert about["steps"] == [0, 16] and len(about["pieces"]) == 700 and about["left_out"] == []
    for step in about["steps"]:
        stored = runs.checkpoint(tiny_run, step).path / "model.safetensors"
        assert (folder / f"step{step}.safetensors").read_bytes() == stored.read_bytes()
    graph = (folder / "graph.onnx").read_bytes()
    assert b"albert.embeddings.word_embeddings.weight" in graph and b"pooler" not in graph and len(graph) < 20_000


@pytest.mark.usefixtures("without_packages")
def test_site_with_live_questions_is_replaced(tiny_results: Run, tmp_path: Path, monkeypatch) -> None:
    """Its weights and JavaScript count as files of the site; without the option the weights are removed."""
    monkeypatch.setattr(site, "PAGES", {"query": site.PAGES["query"]})
    for count in (2, 3, 0):
        site.write_site([tiny_results], tmp_path / "site", live=count)
        for file in (name for package in packages.LIVE for name in package.files if count):
            (tmp_path / "site" / "assets" / "live").mkdir(exist_ok=True)
            (tmp_path / "site" / "assets" / "live" / file).touch()
        assert len([*(tmp_path / "site").rglob("*.safetensors")]) == count


@pytest.mark.usefixtures("without_packages")
def test_incompatible_or_damaged_steps_are_left_out(own_run: Run, tmp_path: Path) -> None:
    """One step has weights of another shape, the other a damaged file; both are named."""
    change(own_run, 8, torch.float32, positions=8)
    (runs.checkpoint(own_run, 0).path / "model.safetensors").write_bytes(b"damaged")
    write_live([own_run], tmp_path, 3)
    about = json.loads((tmp_path / "live" / "1" / "about.json").read_text())
    assert about["steps"] == [16] and len(about["left_out"]) == 2
    assert "step0" in about["left_out"][0] and "Step 8" in about["left_out"][1]


@pytest.mark.usefixtures("without_packages")
def test_reason_is_given_for_runs_that_cannot_be_asked(own_run: Run, tiny_run: Run, tmp_path: Path) -> None:
    """The reasons are an unsupported family, a type that browsers lack, and missing weights."""
    folder = runs.checkpoint(own_run, 16).path
    sizes = {"vocab_size": 700, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
    RobertaForMaskedLM(RobertaConfig(**sizes, intermediate_size=48)).save_pretrained(folder)
    (folder / "manifest.json").unlink()
    runs.write_manifest(folder, 16, 1, 1)
    with pytest.raises(SiteError, match="roberta"):
        write_live([own_run], tmp_path / "family", 1)
    change(own_run, 0, torch.bfloat16)
    for step in (8, 16):
        shutil.rmtree(runs.checkpoint(own_run, step).path)
    with pytest.raises(SiteError, match="BF16"):
        write_live([own_run], tmp_path / "type", 1)
    runs.remove_weights(runs.checkpoint(own_run, 0))
    with pytest.raises(SiteError, match="no weights"):
        write_live([own_run], tmp_path / "lost", 1)


@pytest.mark.usefixtures("without_packages")
def test_run_with_an_extended_vocabulary_cannot_be_asked(own_run: Run, tiny_run: Run, tmp_path: Path) -> None:
    """The browser's tokenizer would find added words inside others, as "walker" in "walkers"."""
    shutil.rmtree(own_run.tokenizer)
    extend(tiny_run.tokenizer, ["walker"], 1, own_run.tokenizer)
    run = replace(own_run, tokenizer_sha256=runs.sha256(own_run.tokenizer / "tokenizer.json"))
    with pytest.raises(SiteError, match="words that were added"):
        write_live([run], tmp_path / "site", 1)


def test_missing_npm_is_reported_with_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error gives the version and the file's name; nothing is left in the cache or the site."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SiteError, match=r"onnxruntime-web@1\.30\.0.*npm.*onnxruntime-web-1\.30\.0\.tgz"):
        packages.add_packages(packages.LIVE, tmp_path / "site", tmp_path / "cache")
    assert not [*(tmp_path / "cache").iterdir()] and not (tmp_path / "site").exists()


def test_site_falls_back_to_the_plotly_of_python(tiny_results: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without npm plotly.min.js is that of Plotly's Python package, byte for byte."""
    monkeypatch.setattr(site, "PAGES", {"query": site.PAGES["query"]})
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    site.write_site([tiny_results], tmp_path / "site")
    own = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    assert (tmp_path / "site" / "assets" / "plotly.min.js").read_bytes() == own.read_bytes()


def test_archive_with_another_hash_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here npm delivers other bytes than expected."""
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text('#!/bin/sh\necho other > "$6/onnxruntime-web-1.30.0.tgz"\n')
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}:/bin:/usr/bin")
    with pytest.raises(SiteError, match="SHA-256"):
        packages.add_packages(packages.LIVE, tmp_path / "site", tmp_path / "cache")
