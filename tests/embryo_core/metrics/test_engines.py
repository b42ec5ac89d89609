"""Counts do not depend on the engine: both give the demo's, and transformers alone gives those of another family."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from transformers import PreTrainedTokenizerFast, RobertaForMaskedLM

from embryo_core import corpora, metrics, runs
from embryo_core.engine.fast import FastEngine
from embryo_core.engine.hub import HubEngine
from embryo_core.engine.model import Model, load
from embryo_core.engine.tokenizer import load_tokenizer
from embryo_core.evaluate import limits
from embryo_core.runs import REPOSITORY
from embryo_core.sources import add
from embryo_core.types import Findings
from tests.conftest import SAMPLE
from tests.embryo_core.sources.conftest import byte_level, trainer_folder  # noqa: F401, fixtures

SENTENCES = 12
FACTS = 5  # of each relation


def found(name: str, model: Model) -> Findings:
    """What a metric finds in the sample."""
    (metric,) = metrics.named([name])
    path, limit = (SAMPLE / "lama", FACTS) if metric.source == "lama" else (SAMPLE / "treebank.conllu", SENTENCES)
    options = {option.name: option.default for option in metric.options}
    source = replace(corpora.open_source(path, limit), options=options)
    return metric.compute(model, metric.read(model.tokenizer, limits(model), source))


@pytest.mark.parametrize("name", ["token_reconstruction", "mask_prediction", "world_knowledge"])
def test_both_engines_count_alike_on_the_demo(name):
    """Every word, every fact's rank: nothing turns on the order in which float32 is summed."""
    checkpoint = runs.loadable(runs.read_run(REPOSITORY / "data/demo/runs/albert-demo"))[-1]
    tokenizer = load_tokenizer(checkpoint.run)
    engines = [engine(checkpoint, tokenizer.vocabulary_size) for engine in (FastEngine, HubEngine)]
    one, other = (found(name, Model(checkpoint, tokenizer, engine)) for engine in engines)
    assert one.words == other.words and one.scores == other.scores
    assert [(fact.fact, fact.rank) for fact in one.cloze] == [(fact.fact, fact.rank) for fact in other.cloze]
    assert one.words or one.cloze


@pytest.mark.parametrize("name", ["token_reconstruction", "mask_prediction"])
def test_a_byte_level_model_counts_as_transformers_alone_does(name, trainer_folder, tmp_path, monkeypatch):  # noqa: F811
    """One word of one sentence at a time, by a RoBERTa's own classes and tokenizer."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    run = add([str(trainer_folder)], "roberta").run
    expected = slow(trainer_folder / "checkpoint-20", masked=name == "mask_prediction")
    counts = Counter()
    for row in found(name, load(runs.checkpoint(run, 20))).words:
        counts[row.tag, row.word, True] += row.correct
        counts[row.tag, row.word, False] += row.n - row.correct
    assert +counts == expected


@torch.inference_mode()
def slow(folder, masked: bool) -> Counter:
    """How often each word with each tag was right and wrong, through transformers."""
    model = RobertaForMaskedLM.from_pretrained(folder).eval()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    counts = Counter()
    for example in corpora.read_treebank(SAMPLE / "treebank.conllu")[:SENTENCES]:
        texts = [f" {word}" if i else word for i, word in enumerate(example.words)]
        words = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        for target in example.targets:
            (first, last) = target.span1
            before = [0, *(i for word in words[:first] for i in word)]
            own = [i for word in words[first:last] for i in word]
            after = [*(i for word in words[last:] for i in word), 2]
            shown = [tokenizer.mask_token_id] * len(own) if masked else own
            logits = model(torch.tensor([[*before, *shown, *after]])).logits[0, len(before) : len(before) + len(own)]
            best = logits[:, : len(tokenizer)].argmax(-1).tolist()
            counts[target.label, " ".join(example.words[first:last]), best == own] += 1
    return counts
