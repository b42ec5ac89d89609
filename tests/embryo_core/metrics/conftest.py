"""Fixtures of checkpoints that have learned something, so that metrics count hits, and of the paper's procedure."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AlbertConfig, AlbertForPreTraining, AutoTokenizer, BertConfig, BertForPreTraining

from benchmarks.paper import PaperEvaluation
from embryo_core import corpora, runs
from embryo_core.engine.model import Model, load
from embryo_core.metric import Limits, Metric, MetricData
from embryo_core.sources.add import add
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run
from tests import decoders
from tests.conftest import SAMPLE_DATA, copy_run


@pytest.fixture(scope="session")
def trained_model(tiny_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Return step 16 of the tiny run, trained further on the sample's sentences and facts and stored in float16."""
    run = copy_run(tiny_run, tmp_path_factory.mktemp("trained"))
    counts = ["the\t90"] + [f"word{i}\t50" for i in range(60)] + ["river\t9", "town\t8"]
    (run.path / "frequencies.tsv").write_text("\n".join(counts) + "\n", encoding="utf-8")
    checkpoint = runs.checkpoint(run, 16)
    ids, tokenizer = texts(run), load_tokenizer(run)
    torch.manual_seed(0)
    config = AlbertConfig.from_pretrained(checkpoint.path, initializer_range=0.1)  # wider than usual: it learns fast
    model = AlbertForPreTraining(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(120):
        masked = torch.where(torch.rand(ids.shape) < 0.5, tokenizer.mask_id, ids)
        logits = model(masked, attention_mask=(ids != tokenizer.pad_id).long()).prediction_logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten(), ignore_index=tokenizer.pad_id)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.half().save_pretrained(checkpoint.path)
    runs.write_manifest(checkpoint.path, 16, sequences=64, tokens=4096)
    return load(runs.checkpoint(run, 16))


def texts(run: Run) -> torch.Tensor:
    """Return ids [n, L] of the sample's sentences and facts, padded."""
    tokenizer = load_tokenizer(run)
    sentences = [" ".join(example.words) for example in corpora.read_treebank(SAMPLE_DATA["treebank"])]
    facts = corpora.read_lama(SAMPLE_DATA["lama"])
    facts = [fact.template.replace("[X]", fact.subject).replace("[Y]", fact.object) for fact in facts]
    rows = [tokenizer.encode_text(text) for text in sentences + facts]
    ids = np.full((len(rows), max(map(len, rows))), tokenizer.pad_id)
    for row, own in zip(ids, rows, strict=True):
        row[: len(own)] = own
    return torch.tensor(ids)


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Return a GPT-2 trained on the sample, which puts no token before a text."""
    return learned_decoder("gpt2", tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(scope="session")
def bert(tiny_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Return a BERT with random weights, as step 16 of the tiny run."""
    checkpoint = runs.checkpoint(copy_run(tiny_run, tmp_path_factory.mktemp("bert")), 16)
    torch.manual_seed(3)
    sizes = {"vocab_size": 700, "num_hidden_layers": 2, "initializer_range": 0.4, "max_position_embeddings": 64}
    config = BertConfig(**sizes, hidden_size=24, num_attention_heads=3, intermediate_size=48)
    BertForPreTraining(config).save_pretrained(checkpoint.path)
    runs.write_manifest(checkpoint.path, 16, sequences=64, tokens=4096)
    return load(runs.checkpoint(checkpoint.run, 16))


@pytest.fixture(scope="session")
def neox(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Return a GPT-NeoX trained on the sample, which puts a token before every text."""
    return learned_decoder("gpt_neox", tmp_path_factory.mktemp("neox"), begin=True)


def learned_decoder(family: str, root: Path, begin: bool = False) -> Model:
    """Return the last step of a series of decoders, trained on the sample's sentences and facts."""
    source = decoders.write_series(root / "series", family, (0, 10), begin, positions=64)
    tokenizer = AutoTokenizer.from_pretrained(source / "checkpoint-10")
    sentences = [" ".join(example.words) for example in corpora.read_treebank(SAMPLE_DATA["treebank"])]
    facts = corpora.read_lama(SAMPLE_DATA["lama"])
    sentences += [f"{fact.prompt} {fact.object}" for fact in facts if fact.prompt]
    decoders.learn(source / "checkpoint-10", [tokenizer(text).input_ids for text in sentences])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EMBRYO_DATA", str(root / "data"))
        patch.setenv("XDG_CONFIG_HOME", str(root / "settings"))
        return load(runs.checkpoints(add([str(source)], family).run)[-1])


@pytest.fixture(scope="session")
def paper(trained_model: Model) -> PaperEvaluation:
    """Return the paper's procedure for the trained checkpoint."""
    return PaperEvaluation(trained_model.checkpoint.path, trained_model.checkpoint.run.tokenizer)


def read(
    metric: Metric, model: Model, path: Path | None = None, limit: int | None = None, **options: Any
) -> MetricData:
    """Read the data of a metric with default options, from the sample unless a path is given."""
    defaults = {option.name: option.default for option in metric.options}
    source = corpora.open_source(path or SAMPLE_DATA[metric.source], limit, **defaults | options)
    if metric.second:
        source = replace(source, second=corpora.open_source(SAMPLE_DATA[metric.second]))
    return metric.read(model.tokenizer, Limits.for_model(model), source)


def write_treebank(path: Path, *words: tuple[str, str] | None) -> Path:
    """Write a CoNLL-U treebank of (word, Penn tag); None ends a sentence."""
    rows, number = [], 0
    for word in words:
        number = 0 if word is None else number + 1
        rows.append("" if word is None else f"{number}\t{word[0]}\t_\t_\t{word[1]}" + "\t_" * 5)
    path.write_text("\n".join(rows) + "\n\n", encoding="utf-8")
    return path
