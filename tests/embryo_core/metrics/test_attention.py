"""Tests of averaged attention maps: each entry is the mean over the sentences that reach it."""

import numpy as np
import torch
from transformers import AlbertForPreTraining

from embryo_core import corpora, curves
from embryo_core.metric import Limits
from embryo_core.metrics import attention
from embryo_core.metrics.attention import Attention
from tests.embryo_core.metrics.conftest import read, write_treebank
from tests.rounding import rounding


def maps_and_findings(model, limit=None):
    """Return maps [layers, heads, L, L] and the findings."""
    metric = Attention()
    findings = metric.compute(model, read(metric, model, limit=limit))
    maps = np.stack([row.weights for row in findings.attention])
    return maps.reshape(model.num_layers, model.num_heads, *maps.shape[1:]), findings


def test_maps_equal_the_mean_of_plain_transformers(trained_model, sample):
    """Each entry is averaged over the sentences that are long enough for it."""
    maps, findings = maps_and_findings(trained_model)
    plain = AlbertForPreTraining.from_pretrained(
        trained_model.checkpoint.path, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    side = maps.shape[-1]
    total, n = np.zeros(maps.shape), np.zeros((side, side))
    examples = corpora.read_treebank(sample / "treebank.conllu")
    for example in examples:
        words = trained_model.tokenizer.encode_words(example.words).ids
        ids = torch.tensor([[trained_model.tokenizer.cls_id, *words, trained_model.tokenizer.sep_id]])
        with torch.no_grad():
            own = torch.stack(plain(ids, output_attentions=True).attentions)[:, 0].numpy()  # [layers, heads, L, L]
        end = min(side, own.shape[-1])
        total[..., :end, :end] += own[..., :end, :end]
        n[:end, :end] += 1
    assert n.min() >= attention.MIN_SENTENCES
    mean = total / n
    scores = np.log(mean)  # an error in a score changes the weight by less
    np.testing.assert_allclose(maps, mean, rtol=0, atol=rounding(trained_model, trained_model.max_positions, scores))
    assert {row.sentences for row in findings.attention} == {len(examples)}


def test_layers_and_heads_are_numbered_from_1(trained_model):
    _, findings = maps_and_findings(trained_model)
    assert [(row.layer, row.head) for row in findings.attention] == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_map_ends_where_ten_sentences_reach(trained_model, tmp_path):
    """Twelve sentences have 5 to 16 pieces with [CLS] and [SEP]; the tenth longest has 7, and so has the map."""
    words = [word for pieces in range(5, 17) for word in (*[("the", "DT")] * (pieces - 2), None)]
    data = read(Attention(), trained_model, write_treebank(tmp_path / "a.conllu", *words))
    assert data.summary["length"] == 7
    assert data.summary["sentences_per_position"] == [12, 12, 12, 12, 12, 11, 10]


def test_map_has_at_most_64_positions(trained_model, tmp_path, monkeypatch):
    """Sentences of 100 pieces and a model with 128 positions would allow more; a lower MAX_LENGTH shortens the maps."""
    path = write_treebank(tmp_path / "a.conllu", *([("the", "DT")] * 98 + [None]) * 3)
    source = corpora.open_source(path)
    assert Attention().read(trained_model.tokenizer, Limits(128), source).summary["length"] == 64
    monkeypatch.setattr(attention, "MAX_LENGTH", 6)
    maps, _ = maps_and_findings(trained_model)
    assert maps.shape[-2:] == (6, 6) and len(read(Attention(), trained_model).summary["sentences_per_position"]) == 6


def test_few_sentences_give_maps_as_long_as_the_shortest(trained_model, sample):
    """With fewer than MIN_SENTENCES sentences, every entry is an average over all of them."""
    maps, findings = maps_and_findings(trained_model, limit=3)
    examples = corpora.read_treebank(sample / "treebank.conllu")[:3]
    assert maps.shape[-1] == min(len(trained_model.tokenizer.encode_words(e.words).ids) + 2 for e in examples)
    assert findings.attention[0].sentences == 3
    np.testing.assert_allclose(curves.normalise_rows(maps).sum(-1), 1, rtol=maps.shape[-1] * np.finfo(np.float32).eps)


def test_summary_counts_the_sentences_of_each_position(trained_model, sample):
    """A sentence counts at every position up to its length, so position 0, [CLS], has all sentences."""
    lengths = [
        len(trained_model.tokenizer.encode_words(example.words).ids) + 2
        for example in corpora.read_treebank(sample / "treebank.conllu")
    ]
    data = read(Attention(), trained_model)
    expected = [sum(length > position for length in lengths) for position in range(data.summary["length"])]
    assert data.summary["sentences_per_position"] == expected
    assert expected[0] == len(lengths) > expected[-1]
