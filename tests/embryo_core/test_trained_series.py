"""Tests of series from transformers' Trainer, from `add` to a comparison, against plain transformers."""

from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedTokenizerBase,
    Trainer,
    TrainingArguments,
    default_data_collator,
)

import embryo_core as embryo
from embryo_core import corpora, results, runs
from embryo_core.audit import audit
from embryo_core.evaluation import evaluate
from embryo_core.sources import add
from embryo_core.types import Run
from tests import decoders
from tests.conftest import SAMPLE_DATA
from tests.embryo_core.metrics.test_decoders import pieces_of

STEPS = (6, 12, 18, 24)
TEXT = "The river runs"


class Sentences(Dataset):
    """Sentences of the sample as pieces, each with itself as labels."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        sentences = [example.words for example in corpora.read_treebank(SAMPLE_DATA["treebank"])]
        self.ids = [tokenizer(" ".join(words), return_tensors="pt").input_ids[0][:24] for words in sentences]
        self.ids = [ids for ids in self.ids if len(ids) == 24] or self.ids[:1]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.ids[index], "labels": self.ids[index]}


def train(family: str, folder: Path, seed: int = 0) -> Path:
    """Train a tiny model with transformers' Trainer: a checkpoint every six updates, the final model in the root."""
    tokenizer = decoders.write_tokenizer(folder)
    settings = {"save_steps": 6, "logging_steps": 2, "report_to": [], "learning_rate": 1e-2, "seed": seed}
    arguments = TrainingArguments(str(folder), max_steps=STEPS[-1], use_cpu=True, disable_tqdm=True, **settings)
    model = decoders.make(family, seed)
    trainer = Trainer(model, arguments, default_data_collator, Sentences(tokenizer), processing_class=tokenizer)
    trainer.train()
    trainer.save_model()
    return folder


@pytest.fixture(params=["gpt2", "gpt_neox"])
def source(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the Trainer's folder of each family."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    return train(request.param, tmp_path / request.param)


def right_words(folder: Path) -> tuple[Counter, Counter]:
    """Return how often each word was asked, and how often all of its pieces were the best after the true ones."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    asked: Counter = Counter()
    right: Counter = Counter()
    for example in corpora.read_treebank(SAMPLE_DATA["treebank"]):
        cut = pieces_of(tokenizer, example)
        for target in example.targets:
            (at, _) = target.span1
            before = [*chain(*cut[:at])]
            if before:
                hits = [best(model, before + cut[at][:i], len(tokenizer)) == piece for i, piece in enumerate(cut[at])]
                asked[target.label, example.words[at]] += 1
                right[target.label, example.words[at]] += all(hits)
    return asked, right


@torch.inference_mode()
def best(model: torch.nn.Module, ids: list[int], pieces: int) -> int:
    """Return the most probable next piece among those of the tokenizer."""
    return int(model(input_ids=torch.tensor([ids])).logits[0, -1, :pieces].argmax())


def add_series(source: Path, name: str) -> Run:
    """Add a series and check its steps, its log, and that the audit finds no fault."""
    report = add([str(source)], name)
    assert report.steps == STEPS and not report.troubles
    assert audit(report.run).faults == ()
    logged = [row for row in runs.read_log(report.run) if row["split"] == "train"]
    assert [row["step"] for row in logged] == list(range(2, STEPS[-1] + 1, 2))
    assert all(np.isfinite(row["loss"]) for row in logged)
    return report.run


def test_added_series_agrees_with_transformers(source: Path, tmp_path: Path) -> None:
    """Scores, answers and probabilities are those of the Trainer's folders; another seed can be compared."""
    run = add_series(source, "mine")
    assert runs.read_run(run.path).family == source.name
    report = evaluate(run, SAMPLE_DATA, ["next_word_prediction"])
    assert report.computed == len(STEPS) and not report.failures
    for step in (STEPS[0], STEPS[-1]):
        asked, right = right_words(source / f"checkpoint-{step}")
        words = results.read_words(run, "next_word_prediction")
        here = words[words.step == step]
        assert Counter(dict(zip(zip(here.tag, here.word), here.n, strict=True))) == asked
        assert Counter(dict(zip(zip(here.tag, here.word), here.correct, strict=True))) == right
        model = AutoModelForCausalLM.from_pretrained(source / f"checkpoint-{step}").eval()
        tokenizer = AutoTokenizer.from_pretrained(source)
        ids = tokenizer(TEXT, return_tensors="pt").input_ids
        with torch.inference_mode():
            expected = model(input_ids=ids).logits[0, -1, : len(tokenizer)].double().softmax(-1).topk(3)
        answers = embryo.query.ask(run, TEXT, [step]).best(step)[:3]
        assert [answer.probability for answer in answers] == pytest.approx(expected.values.tolist(), rel=1e-4)
    other = add_series(train(source.name, tmp_path / "other" / source.name, seed=1), "other")
    evaluate(other, SAMPLE_DATA, ["next_word_prediction"], [STEPS[-1]])
    both = embryo.compare(["mine", "other"])
    assert {"mine", "other"} <= {*both.design.columns}
