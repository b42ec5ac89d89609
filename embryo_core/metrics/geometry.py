"""Geometry: how many dimensions the states of a sample of words fill at every layer (formulas: curves/geometry.py).

    geometry_rank_me         effective rank of the states
    geometry_alpha           decay of the eigenvalues of their covariance
    geometry_participation   participation ratio of these eigenvalues
    geometry_anisotropy      mean cosine between the states of two different words (Ethayarajh, 2019,
                             https://arxiv.org/abs/1909.00512)
    geometry_dimension       intrinsic dimension; n counts distinct states
    geometry_cka_below       linear CKA with the states of the layer below, debiased

The sample is drawn from all words of a treebank with a fixed seed. It is the same at every step, and for all runs on
the treebank except for words that a run cannot read. A word's state is the mean of the states of its pieces.
SAMPLE_SIZE is above the width of a base model, because n states span at most n dimensions. Layer 0 is the embeddings.

CKA with other steps and runs is computed when results are read. It needs only the U-centred Gram matrix of the states
of the first GRAM_WORDS words, which is stored because it is smaller than the states.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embryo_core.corpora import TREEBANK_FORM
from embryo_core.curves import geometry
from embryo_core.errors import CorpusError
from embryo_core.measurements import Findings, Score, StateProducts
from embryo_core.metric import Limits, Metric, Source
from embryo_core.metrics import batches, treebank_words
from embryo_core.metrics.positions import mean_cosine
from embryo_core.words import quantity

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer

SAMPLE_SIZE, MIN_WORDS = 1024, 20  # words of a sample, and the least number for which measures are computed
GRAM_WORDS = 128  # words of the stored Gram matrix, for CKA with any step and run: 16 kB per layer and step
SEED = 0  # seed of the sample


@dataclass(frozen=True, eq=False)
class WordSample:
    """The n sampled words, in the order in which they were drawn."""

    sentences: list[np.ndarray]  # ids with special tokens, of the sentences that contain sampled words
    sentence: np.ndarray  # [n] index of each word's sentence
    start: np.ndarray  # [n] position of its first piece
    end: np.ndarray  # [n] position after its last piece
    summary: dict[str, Any]


class Geometry(Metric):
    """Measures of the states of a fixed sample of words at every layer."""

    name = "geometry"
    page = "geometry"
    source = "treebank"
    form = TREEBANK_FORM
    needs = frozenset({"states"})

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> WordSample:
        treebank = treebank_words.encode(tokenizer, limits, source)
        keyed_words = [  # each word has a random key that depends only on its sentence's place in the treebank
            (key, number, word)
            for number, sentence in enumerate(treebank.sentences)
            for word, key in enumerate(np.random.default_rng([SEED, sentence.number]).random(len(sentence.spans)))
            if sentence.spans[word, 1] > sentence.spans[word, 0]
        ]
        if len(keyed_words) < MIN_WORDS:
            raise CorpusError(
                f"{source.path} has {quantity(len(keyed_words), 'word')} that the model reads, and geometry needs "
                f"{MIN_WORDS}; give a longer treebank or a higher --limit."
            )
        sample = sorted(keyed_words)[:SAMPLE_SIZE]
        sentence_numbers = sorted({number for _, number, _ in sample})
        sentences = [treebank.sentences[number] for number in sentence_numbers]
        sentence = np.searchsorted(sentence_numbers, [number for _, number, _ in sample])
        spans = np.array([sentences[i].first + sentences[i].spans[word] for i, (*_, word) in zip(sentence, sample)])
        note = f"{len(sample):,} of {quantity(len(keyed_words), 'word')} of {source.path.name}"
        if len(keyed_words) < SAMPLE_SIZE:
            note += f", which has fewer than the {SAMPLE_SIZE:,} of a sample"
        note += treebank.reading
        if treebank.too_long:
            note += f"; {quantity(treebank.too_long, 'sentence')} longer than {limits.positions} pieces left out"
        gram_words = [[treebank.sentences[number].number, word] for _, number, word in sample[:GRAM_WORDS]]
        summary = {"words": len(sample), "compared": gram_words, "too_long": treebank.too_long, "note": note}
        return WordSample([sampled.ids for sampled in sentences], sentence, spans[:, 0], spans[:, 1], summary)

    def compute(self, model: "Model", data: WordSample) -> Findings:
        findings, products_below = Findings(), None
        for layer, states in enumerate(word_states(model, data).astype(np.float64)):
            measures = measure(states)
            products = geometry.gram(states)
            if products is not None and products_below is not None:
                measures["cka_below"] = geometry.cka(products, products_below), len(states)
            products_below = products
            for name, (value, n) in measures.items():
                findings.scores.append(Score(f"geometry_{name}", value, n, layer=layer))
            gram = geometry.gram(states[:GRAM_WORDS])
            if gram is not None:
                findings.grams.append(StateProducts(layer, len(gram), geometry.pack(gram)))
        return findings


def word_states(model: "Model", data: WordSample) -> np.ndarray:
    """Return the states [layers + 1, n, D] of the sampled words in float32."""
    at_words = np.zeros((model.num_layers + 1, len(data.sentence), model.hidden_size), np.float32)

    def read_batch(batch: np.ndarray, ids: np.ndarray) -> None:
        states = model.hidden_states(ids)  # [layers + 1, b, L, D]
        for row, sentence in enumerate(batch):
            for word in np.flatnonzero(data.sentence == sentence):
                at_words[:, word] = states[:, row, data.start[word] : data.end[word]].mean(axis=1)

    batches.map_batches(model, data.sentences, read_batch)
    return at_words


def measure(states: np.ndarray) -> dict[str, tuple[float, int]]:
    """Return value and number of states of each measure of states [n, D], by name; undefined measures are left out."""
    n, spectrum = len(states), geometry.eigenvalues(states)
    optional_measures = {
        "rank_me": geometry.rank_me(states),
        "alpha": geometry.alpha_req(spectrum),
        "participation": geometry.participation(spectrum),
        "anisotropy": float(mean_cosine(states)),
    }
    measures = {name: (value, n) for name, value in optional_measures.items() if value is not None}
    dimension = geometry.two_nn(states)
    return measures if dimension is None else measures | {"dimension": dimension}
