"""Tests of geometry: measures of states equal a slow computation with transformers, for encoders and a decoder."""

from math import exp, log
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel

from embryo_core import corpora
from embryo_core.curves import geometry
from embryo_core.engine.model import Model
from embryo_core.errors import CorpusError
from embryo_core.metrics.geometry import MIN_WORDS, Geometry, measure, word_states
from tests.conftest import SAMPLE_DATA
from tests.embryo_core.metrics.conftest import read, write_treebank

CLOSE = {"rel": 2e-3, "abs": 2e-3}  # for float32 states of two implementations


def plain_states(model: Model) -> np.ndarray:
    """Return the states [layers + 1, n, D] of all words of the sample, each the mean of its pieces, by transformers."""
    pointer = model.checkpoint.pointer
    folder = Path(pointer.file).parent if pointer else model.checkpoint.path
    network = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    states_of_words = []
    for example in corpora.read_treebank(SAMPLE_DATA["treebank"]):
        decoder = "next_words" in model.capabilities and any(example.blanks)
        encode = model.tokenizer.encode_written if decoder else model.tokenizer.encode_words
        encoding = encode(example.words, example.blanks) if decoder else encode(example.words)
        ids = model.tokenizer.surround(encoding.ids)
        with torch.inference_mode():
            states = network(torch.as_tensor(ids)[None], output_hidden_states=True).hidden_states
        layers = np.stack([state[0].double().numpy() for state in states])
        first = len(model.tokenizer.begin)
        states_of_words += [layers[:, first + a : first + b].mean(axis=1) for a, b in encoding.spans if b > a]
    return np.stack(states_of_words, axis=1)


def plain_measures(states: np.ndarray) -> dict[str, float]:
    """Compute every measure of states [n, D] with a loop for each sum."""
    singular = np.linalg.svd(states, compute_uv=False)
    p = [s / sum(singular) + 1e-7 for s in singular]
    spectrum = sorted(np.linalg.eigvalsh(np.cov(states.T)), reverse=True)
    rank = np.linalg.matrix_rank((states - states.mean(axis=0)).astype(np.float32))  # the rest is rounding
    x, y = zip(*[(log(i), log(spectrum[i - 1])) for i in range(11, 101) if i <= rank])
    weights = [1 / exp(value) for value in x]
    mean_x, mean_y = (sum(w * v for w, v in zip(weights, values)) / sum(weights) for values in (x, y))
    slope = sum(w * (a - mean_x) * (b - mean_y) for w, a, b in zip(weights, x, y))
    slope /= sum(w * (a - mean_x) ** 2 for w, a in zip(weights, x))
    units = [state / np.linalg.norm(state) for state in states]
    cosines = [units[i] @ units[j] for i in range(len(units)) for j in range(i)]
    measures = {"alpha": -slope} if rank >= 20 else {}
    return measures | {
        "rank_me": exp(-sum(share * log(share) for share in p)),
        "participation": sum(spectrum) ** 2 / sum(value**2 for value in spectrum),
        "anisotropy": sum(cosines) / len(cosines),
        "dimension": plain_dimension(states),
    }


def plain_dimension(states: np.ndarray) -> float:
    """Compute the slope through zero of TwoNN; equal states count once."""
    distinct: list[np.ndarray] = []
    for state in states:
        if not distinct or min(np.linalg.norm(np.array(distinct) - state, axis=1)) > 1e-5:
            distinct.append(state)
    ratios = []
    for i, state in enumerate(distinct):
        near = sorted(np.linalg.norm(np.delete(distinct, i, axis=0) - state, axis=1))
        ratios.append(near[1] / near[0])
    pairs = [(log(mu), -log(1 - i / len(ratios))) for i, mu in enumerate(sorted(ratios), 1) if i <= 0.9 * len(ratios)]
    return sum(x * y for x, y in pairs) / sum(x * x for x, _ in pairs)


def plain_cka(first: np.ndarray, second: np.ndarray) -> float:
    """Compute debiased linear CKA by the formula of Song et al. (2012), equation 3."""

    def hsic(k: np.ndarray, m: np.ndarray) -> float:
        n, ones = len(k), np.ones(len(k))
        k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))
        whole = np.trace(k @ m) + (ones @ k @ ones) * (ones @ m @ ones) / ((n - 1) * (n - 2))
        return (whole - 2 / (n - 2) * ones @ k @ m @ ones) / (n * (n - 3))

    k, m = first @ first.T, second @ second.T
    return hsic(k, m) / (hsic(k, k) * hsic(m, m)) ** 0.5


@pytest.mark.parametrize("family", ["trained_model", "bert", "gpt2"])
def test_measures_equal_a_slow_computation(family, request):
    """All layers of an ALBERT, a BERT and a GPT-2 are compared, on all words, since the treebank is small."""
    model = request.getfixturevalue(family)
    states = plain_states(model)
    scores = Geometry().compute(model, read(Geometry(), model)).scores
    assert {score.layer for score in scores} == set(range(len(states)))
    for layer, own in enumerate(states):
        of_layer = {score.metric.removeprefix("geometry_"): score for score in scores if score.layer == layer}
        expected = plain_measures(own)
        if layer:
            expected["cka_below"] = plain_cka(own, states[layer - 1])
        assert set(of_layer) == set(expected)
        for name, value in expected.items():
            assert of_layer[name].value == pytest.approx(value, **CLOSE), (layer, name)
            assert of_layer[name].n == len(own) or (name == "dimension" and of_layer[name].n < len(own))


def test_sampled_words_do_not_depend_on_the_tokenizer(trained_model, gpt2, monkeypatch):
    """The 30 words with the least random numbers are drawn; a limit leaves only words of the first sentences."""
    monkeypatch.setattr("embryo_core.metrics.geometry.SAMPLE_SIZE", 30)
    examples = corpora.read_treebank(SAMPLE_DATA["treebank"])
    keys = [(n, i, key) for n, one in enumerate(examples) for i, key in enumerate(plain_keys(n, len(one.words)))]
    drawn = sorted(keys, key=lambda word: word[2])[:30]
    for model in (trained_model, gpt2):
        data = read(Geometry(), model)
        places = [(n, i) for n, i, _ in drawn]
        assert [number for number, _ in places] == [sorted({n for n, _ in places})[i] for i in data.sentence]
        assert data.summary["words"] == 30 and data.summary["note"].startswith("30 of 34")
    fewer = read(Geometry(), trained_model, limit=3)
    assert len(fewer.sentences) <= 3


def plain_keys(number: int, words: int) -> list[float]:
    """Return the random numbers of a sentence's words."""
    return np.random.default_rng([0, number]).random(words).tolist()


def test_equal_states_have_rank_1_and_cosine_1():
    """Measures of covariance and of distances are missing, and so is the Gram matrix; zeros have no rank either."""
    states = np.tile(np.arange(1.0, 33.0), (40, 1))
    assert {name: round(value, 3) for name, (value, _) in measure(states).items()} == {"rank_me": 1, "anisotropy": 1}
    assert geometry.gram(states) is None
    assert geometry.rank_me(np.zeros((40, 32))) is None and not len(geometry.eigenvalues(np.zeros((40, 32))))


def test_measures_find_planted_dimensions():
    """A plane in 50 dimensions has dimension 2, eigenvalues 1 / i² have exponent 2, 50 equal variances have rank 50."""
    random = np.random.default_rng(0)
    plane = random.uniform(size=(1000, 2)) @ random.normal(size=(2, 50))
    dimension, n = geometry.two_nn(np.concatenate([plane, plane[:300]]))
    assert n == 1000 and dimension == pytest.approx(2, abs=0.15)
    assert geometry.participation(geometry.eigenvalues(plane)) <= 2 and geometry.alpha_req(np.ones(19)) is None
    assert geometry.alpha_req(np.arange(1, 101.0) ** -2) == pytest.approx(2)
    whole = np.linalg.qr(random.normal(size=(400, 50)))[0]
    assert geometry.rank_me(whole) == pytest.approx(50, rel=1e-4)


def test_cka_of_unrelated_states_is_near_0():
    """CKA is debiased, since biased CKA nears 1 if dimensions outnumber words; it is 1 for turned and scaled states."""
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, 100, 400))
    turned = 3 * first @ np.linalg.qr(random.normal(size=(400, 400)))[0] + 5
    grams = [geometry.gram(states) for states in (first, second, turned)]
    assert geometry.cka(grams[0], grams[1]) == pytest.approx(plain_cka(first, second))
    assert abs(plain_cka(first, second)) < 0.1
    assert geometry.cka(grams[0], grams[2]) == pytest.approx(1)
    assert np.allclose(grams[0].sum(axis=0), 0) and not np.diag(grams[0]).any()


def test_too_short_text_is_reported(trained_model, tmp_path):
    """The error names the file and its number of words; the note says if a text is shorter than the sample."""
    words = [("the", "DT"), ("river", "NN")] * (MIN_WORDS // 2)
    data = read(Geometry(), trained_model, write_treebank(tmp_path / "a.conllu", *words))
    assert "fewer than the 1,024" in data.summary["note"]
    with pytest.raises(CorpusError, match=rf"b.conllu has {MIN_WORDS - 1} words"):
        read(Geometry(), trained_model, write_treebank(tmp_path / "b.conllu", *words[:-1]))


def test_stored_products_give_the_cka_of_states(trained_model):
    """They are of the first 128 words drawn, in the order of drawing, in every layer."""
    data = read(Geometry(), trained_model)
    states, grams = word_states(trained_model, data).astype(float), Geometry().compute(trained_model, data).grams
    assert [row.layer for row in grams] == [0, 1, 2] and {row.n for row in grams} == {128}
    assert len(data.summary["compared"]) == 128
    unpacked = geometry.unpack([row.products for row in grams], 128)
    for first, second in ((0, 1), (1, 2), (0, 2)):
        expected = plain_cka(states[first, :128], states[second, :128])
        assert geometry.cka(unpacked[first], unpacked[second]) == pytest.approx(expected, abs=2e-4)
