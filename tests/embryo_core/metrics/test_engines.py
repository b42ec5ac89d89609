"""Tests that the counts of metrics do not depend on the engine."""

from dataclasses import replace

import pytest

from embryo_core import corpora, metrics, runs
from embryo_core.engine.fast_engine import FastEncoder
from embryo_core.engine.model import Model
from embryo_core.engine.transformers_engine import TransformersEngine
from embryo_core.measurements import Findings
from embryo_core.metric import Limits
from embryo_core.tokenizers.tokenizer import load_tokenizer
from tests import demo
from tests.conftest import SAMPLE

SENTENCES = 12
FACTS = 5  # of each relation


def compute_metric(name: str, model: Model) -> Findings:
    """Compute a metric on the sample."""
    (metric,) = metrics.get_metrics([name])
    path, limit = (SAMPLE / "lama", FACTS) if metric.source == "lama" else (SAMPLE / "treebank.conllu", SENTENCES)
    options = {option.name: option.default for option in metric.options}
    source = replace(corpora.open_source(path, limit), options=options)
    return metric.compute(model, metric.read(model.tokenizer, Limits.for_model(model), source))


@pytest.mark.parametrize("name", ["token_reconstruction", "mask_prediction", "world_knowledge"])
def test_both_engines_give_equal_counts_on_the_demo(name):
    """Every word and every fact's rank is equal: none depends on the order in which float32 is summed."""
    checkpoint = runs.loadable_checkpoints(demo.read())[-1]
    tokenizer = load_tokenizer(checkpoint.run)
    engines = [engine(checkpoint, tokenizer.vocabulary_size) for engine in (FastEncoder, TransformersEngine)]
    one, other = (compute_metric(name, Model(checkpoint, tokenizer, engine)) for engine in engines)
    assert one.words == other.words and one.scores == other.scores
    assert [(fact.fact, fact.rank) for fact in one.cloze] == [(fact.fact, fact.rank) for fact in other.cloze]
    assert one.words or one.cloze
