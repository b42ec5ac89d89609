"""Captions of an ELECTRA name the network that a figure is about; those of other families do not."""

from dataclasses import replace

import pytest

from embryo_core.figures.captions import networks
from embryo_core.types import Run

GENERATOR = " Of the two networks of own: the generator, which predicts masked words."
DISCRIMINATOR = " Of the two networks of own: the discriminator, which tells replaced tokens."


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("mask_prediction", GENERATOR),
        ("token_reconstruction", GENERATOR),
        ("world_knowledge", GENERATOR),
        ("ngram_divergence:own", GENERATOR),
        ("attention", DISCRIMINATOR),
        ("head_behaviour", DISCRIMINATOR),
        ("edge_probing:coref", DISCRIMINATOR),
        ("finetuning:cola:1", DISCRIMINATOR),
        ("replaced_token_accuracy", ""),
        ("", ""),
    ],
)
def test_a_metric_tells_the_network(tiny_run: Run, metric: str, said: str):
    """Masked words are the generator's, all else the discriminator's; replaced tokens take both."""
    electra = replace(tiny_run, name="own", family="electra")
    assert networks.of_metric([electra], metric) == said
    assert networks.of_metric([tiny_run, replace(tiny_run, family="roberta")], metric) == ""


def test_of_several_runs_those_with_two_networks_are_named(tiny_run: Run):
    """Each by its name, as text."""
    runs = [replace(tiny_run, name="a_b", family="electra"), tiny_run, replace(tiny_run, name="c", family="electra")]
    assert networks.network(runs, {"states"}).startswith(r" Of the two networks of a\_b and c: the discriminator")
