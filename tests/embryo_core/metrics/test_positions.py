"""Tests of positions: deviations of embeddings and cosines of states equal a slow computation with transformers."""

from itertools import combinations, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoModel

from embryo_core.engine.model import Model
from embryo_core.engine.transformers_engine import TransformersEngine
from embryo_core.errors import CorpusError
from embryo_core.measurements import Score
from embryo_core.metrics.positions import Positions, _deviations, mean_cosine
from tests.embryo_core.metrics.conftest import read, write_treebank

ROUNDING = 1e-5  # relative, of float32 sums in another order


def scores_of(model: Model) -> dict[tuple[str, object], Score]:
    """Return scores by metric and group or layer."""
    scores = Positions().compute(model, read(Positions(), model)).scores
    return {(score.metric, score.group if score.layer is None else score.layer): score for score in scores}


def test_deviations_equal_those_of_stored_embeddings(trained_model: Model):
    """Tables of words and positions are read by transformers; the scores also have groups of positions."""
    embeddings = AutoModel.from_pretrained(trained_model.checkpoint.path, dtype=torch.float32).embeddings
    tables = {
        "words": embeddings.word_embeddings.weight[: trained_model.vocabulary_size].detach().numpy(),
        "positions": embeddings.position_embeddings.weight.detach().numpy(),
    }
    scores = {
        group: score for (metric, group), score in scores_of(trained_model).items() if metric == "positions_deviation"
    }
    for name, table in tables.items():
        entries = table.astype(float).ravel().tolist()
        mean = sum(entries) / len(entries)
        expected = (sum((entry - mean) ** 2 for entry in entries) / len(entries)) ** 0.5
        assert scores[name].value == pytest.approx(expected, rel=ROUNDING) and scores[name].n == len(table)
    last = len(tables["positions"]) - 1
    assert set(scores) == {*tables, *groups(last)}


def groups(last: int) -> list[str]:
    """Return the groups of positions of a model with this last position."""
    ends = [63, 127, 255, 511]
    whole = [(first, end) for first, end in zip([0, 64, 128, 256], ends, strict=True) if first <= last]
    return [f"positions {first} to {min(end, last)}" for first, end in whole]


def test_groups_of_positions_double_in_size():
    """Models have 600, 130 and 40 positions, and the last group ends with them."""
    table = np.arange(1200.0).reshape(600, 2)
    for count, starts in ((600, [0, 64, 128, 256, 512, 600]), (130, [0, 64, 128, 130]), (40, [0, 40])):
        model = SimpleNamespace(embeddings=lambda count=count: (table, table[:count]))
        groups = {score.group: (score.n, score.value) for score in _deviations(model)}
        assert list(groups)[2:] == [f"positions {first} to {end - 1}" for first, end in pairwise(starts)]
        for first, end in pairwise(starts):
            assert groups[f"positions {first} to {end - 1}"] == (end - first, pytest.approx(table[first:end].std()))


def test_sentence_of_two_pieces_has_one_pair(trained_model: Model, tmp_path):
    """Pairs are of different pieces, each counted once; a sentence of one piece is left out."""
    words = [("the", "DT")] * 2 + [None] + [("the", "DT")] * 5 + [None, ("the", "DT")]
    data = read(Positions(), trained_model, write_treebank(tmp_path / "a.conllu", *words))
    pieces = [len(sentence.ids) - 2 for sentence in data.sentences]
    assert pieces == [2, 5]
    assert data.summary["pairs"] == sum(len([*combinations(range(count), 2)]) for count in pieces)
    assert data.summary["note"].startswith("11 pairs of pieces in 2 sentences")


def test_cosines_equal_the_mean_over_all_pairs(trained_model: Model):
    """Pairs are computed one by one on states of transformers, without [CLS] and [SEP], and averaged by sentence."""
    network = AutoModel.from_pretrained(trained_model.checkpoint.path, dtype=torch.float32).eval()
    sums: dict[int, list[float]] = {}
    for ids in [sentence.ids for sentence in read(Positions(), trained_model).sentences]:
        with torch.inference_mode():
            states = network(torch.as_tensor(ids)[None], output_hidden_states=True).hidden_states
        for layer, state in enumerate(states):
            pairs = combinations(state[0, 1:-1].double(), 2)
            cosines = [float(torch.nn.functional.cosine_similarity(a, b, dim=0)) for a, b in pairs]
            sums.setdefault(layer, []).append(sum(cosines) / len(cosines))
    scores = {
        layer: score for (metric, layer), score in scores_of(trained_model).items() if metric == "positions_cosine"
    }
    assert set(scores) == set(sums)
    for layer, values in sums.items():
        assert scores[layer].n == len(values)
        assert scores[layer].value == pytest.approx(sum(values) / len(values), abs=ROUNDING)


def test_both_engines_give_the_same_scores(trained_model: Model):
    """The fast engine and transformers differ by rounding only."""
    other = Model(
        trained_model.checkpoint,
        trained_model.tokenizer,
        TransformersEngine(trained_model.checkpoint, trained_model.tokenizer.vocabulary_size),
    )
    ours, theirs = scores_of(trained_model), scores_of(other)
    assert list(ours) == list(theirs)
    for key, score in ours.items():
        assert theirs[key].n == score.n and theirs[key].value == pytest.approx(score.value, abs=ROUNDING)


def test_parallel_states_have_a_mean_cosine_of_1():
    """The lengths of states have no effect; opposite states have a cosine of -1."""
    states = np.array([[[1.0, 2.0], [2.0, 4.0], [0.5, 1.0]], [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]])
    assert mean_cosine(states) == pytest.approx([1, (0 + 0 - 1) / 3])


def test_zero_states_have_a_cosine_of_0():
    """They count among the pairs."""
    assert mean_cosine(np.zeros((4, 3))) == 0
    assert mean_cosine(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])) == pytest.approx(1 / 3)


def test_treebank_of_single_pieces_is_reported(trained_model: Model, tmp_path):
    """A sentence of one piece has no pair."""
    word = "1\tthe\tthe\tDET\tDT\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "one.conllu").write_text(word, encoding="utf-8")
    with pytest.raises(CorpusError, match=r"one.conllu has no sentence of two pieces or more"):
        read(Positions(), trained_model, tmp_path / "one.conllu")
