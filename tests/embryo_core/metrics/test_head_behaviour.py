"""Tests of head behaviour: scores equal plain loops over attention by transformers, one sentence at a time."""

import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AlbertForPreTraining

from embryo_core import corpora
from embryo_core.errors import CorpusError
from embryo_core.metrics import head_behaviour
from embryo_core.metrics.head_behaviour import HeadBehaviour
from embryo_core.types import Example
from tests.embryo_core.metrics.conftest import read, write_treebank
from tests.rounding import rounding


def scores_of(model, treebank: Path | None = None) -> dict[tuple, tuple[float, int]]:
    """Return (value, n) of each score, by (name, layer, group)."""
    metric = HeadBehaviour()
    scores = metric.compute(model, read(metric, model, treebank)).scores
    return {(row.metric.removeprefix("head_behaviour_"), row.layer, row.group): (row.value, row.n) for row in scores}


def by_hand(model, examples: list[Example]) -> tuple[dict[tuple, tuple[float, int]], dict[tuple, int]]:
    """Compute the scores word by word and piece by piece; count the links that rounding may change."""
    plain = AlbertForPreTraining.from_pretrained(
        model.checkpoint.path, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    values, links, between, offsets = defaultdict(list), defaultdict(list), defaultdict(float), Counter()
    ties: Counter[tuple] = Counter()
    tolerance = rounding(model, model.max_positions, np.log([model.max_positions]))
    for example in examples:
        pieces = [model.tokenizer.encode_words([word]).ids.tolist() for word in example.words]
        word_of = [w for w, own in enumerate(pieces) for _ in own]
        ids = [model.tokenizer.cls_id, *(i for own in pieces for i in own), model.tokenizer.sep_id]
        with torch.no_grad():
            attentions = plain(torch.tensor([ids]), output_attentions=True).attentions
        asked = [(w, h) for w, h in enumerate(example.heads) if h is not None and pieces[w] and pieces[h]]
        offsets.update(h - w for w, h in asked)
        for layer, heads in enumerate(attentions, 1):
            for head, a in enumerate(heads[0].double().numpy(), 1):
                here = layer, str(head)
                _add_weights(a, word_of, example.words, here, values, between)
                between_words = _between_words(a, word_of, len(example.words))
                for w, h in asked:
                    others = [v for v in range(len(example.words)) if v != w and pieces[v]]
                    directions = zip(head_behaviour.LINK_NAMES, (between_words[w], between_words[:, w]), strict=True)
                    for name, weights in directions:
                        links[name, *here].append(max(others, key=weights.__getitem__) == h)
                        best = sorted(weights[others])[-2:]
                        ties[name, *here] += best[-1] - best[0] < tolerance and len(best) > 1
    means = {key: (np.mean(each), len(each)) for key, each in {**values, **links}.items()}
    for key, weight in between.items():
        total, n = np.sum(values["distance", *key]), len(values["distance", *key])
        means["distance", *key] = total / weight, n
    best, count = max(offsets.items(), key=lambda pair: pair[1])
    return means | {("fixed_offset", None, f"{best:+d}"): (count / offsets.total(), offsets.total())}, ties


def _add_weights(a, word_of, words, here, values, between) -> None:
    """Add the weights of each piece of one sentence, from attention a [L, L] with [CLS] and [SEP]."""
    last = len(a) - 1
    for i in range(1, last):
        marks = [j for j in range(1, last) if all(unicodedata.category(c)[0] == "P" for c in words[word_of[j - 1]])]
        weights = {"same": a[i, i], "previous": a[i, i - 1], "next": a[i, i + 1], "cls": a[i, 0], "sep": a[i, last]}
        weights["punctuation"] = sum(a[i, j] for j in marks)
        weights["entropy"] = -sum(p * np.log(p) for p in a[i] if p > 0)
        weights["distance"] = sum(a[i, j] * abs(i - j) for j in range(1, last))
        between[here] += sum(a[i, j] for j in range(1, last))
        for name, value in weights.items():
            values[name, *here].append(value)


def _between_words(a, word_of, count) -> np.ndarray:
    """Return attention [W, W] of words: summed over the pieces attended to, averaged over the pieces attending."""
    between = np.zeros((count, count))
    for i, from_word in enumerate(word_of):
        for j, to_word in enumerate(word_of):
            between[from_word, to_word] += a[i + 1, j + 1] / word_of.count(from_word)
    return between


def test_scores_equal_plain_loops_over_transformers(trained_model, sample):
    """Every score of every head is compared, with its number of cases.

    An error e in a score changes a weight p by at most 2 e p, entropy by 2 e (ln L + 1), and distance by 4 e L.
    """
    scores = scores_of(trained_model)
    expected, ties = by_hand(trained_model, corpora.read_treebank(sample / "treebank.conllu"))
    assert scores.keys() == expected.keys()
    length = trained_model.max_positions
    error = rounding(trained_model, length, np.log([length]))
    bounds = {"entropy": 2 * error * (np.log(length) + 1), "distance": 4 * error * length}
    for key, (value, n) in expected.items():
        assert scores[key][1] == n, key
        assert abs(scores[key][0] - value) <= bounds.get(key[0], 2 * error) + ties[key] / n, key
    assert sum(ties.values()) < 0.1 * sum(n for key, (_, n) in expected.items() if key[0] in head_behaviour.LINK_NAMES)


def test_every_head_has_every_score(trained_model):
    """Layers and heads count from 1; the baseline has neither."""
    scores = scores_of(trained_model)
    heads = {(layer, head) for layer in (1, 2) for head in ("1", "2")}
    for name in (*head_behaviour.MEAN_NAMES, *head_behaviour.LINK_NAMES):
        assert {key[1:] for key in scores if key[0] == name} == heads
    assert [key[1] for key in scores if key[0] == "fixed_offset"] == [None]


def test_weights_entropy_and_distance_are_within_bounds(trained_model):
    """A weight is at most 1, and for at most 128 positions entropy is at most ln 128 and distance at most 128."""
    for (name, _, _), (value, _) in scores_of(trained_model).items():
        assert 0 <= value <= (np.log(128) if name == "entropy" else 128 if name == "distance" else 1)


def test_treebank_without_heads_has_no_syntactic_scores(trained_model, sample: Path, tmp_path: Path):
    """The note says so, and the other scores are the same."""
    lines = (sample / "treebank.conllu").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    without = ["\t".join([*row[:6], "_", *row[7:]]) if len(row) == 10 else row[0] for row in rows]
    (tmp_path / "plain.conllu").write_text("\n".join(without), encoding="utf-8")
    plain = tmp_path / "plain.conllu"
    assert "no syntactic heads" in read(HeadBehaviour(), trained_model, plain).summary["note"]
    syntax = (*head_behaviour.LINK_NAMES, "fixed_offset")
    assert scores_of(trained_model, plain) == {
        key: v for key, v in scores_of(trained_model).items() if key[0] not in syntax
    }


def test_word_without_pieces_is_neither_head_nor_dependent(trained_model, tmp_path: Path):
    """A zero-width space has no piece; the words around it keep their positions."""
    words = [("She", 2), ("read", 0), ("\u200b", 2), ("the", 5), ("letter", 3)]
    lines = [f"{i}\t{word}\t_\t_\tNN\t_\t{head}\t_\t_\t_" for i, (word, head) in enumerate(words, 1)]
    (tmp_path / "a.conllu").write_text("\n".join(lines), encoding="utf-8")
    assert read(HeadBehaviour(), trained_model, tmp_path / "a.conllu").summary["words"] == 2
    assert scores_of(trained_model, tmp_path / "a.conllu")["fixed_offset", None, "+1"] == (1, 2)


def test_baseline_is_the_nearest_of_equally_frequent_offsets(trained_model, tmp_path: Path):
    """The offsets -3, -2, +1 and +3 have one word each."""
    heads = [2, 0, 6, 2, 2]  # of words 1, 3, 4 and 5
    lines = [f"{i}\tthe\t_\t_\tDT\t_\t{head}\t_\t_\t_" for i, head in enumerate([*heads, 0], 1)]
    (tmp_path / "a.conllu").write_text("\n".join(lines), encoding="utf-8")
    scores = scores_of(trained_model, tmp_path / "a.conllu")
    assert [(key, value) for key, value in scores.items() if key[0] == "fixed_offset"] == [
        (("fixed_offset", None, "+1"), (0.25, 4))
    ]


def test_symbols_are_not_punctuation(trained_model, tmp_path: Path):
    """Unicode category P counts, to which "$", "+" and "<" do not belong; a word with a letter does not count."""
    path = write_treebank(tmp_path / "a.conllu", *((word, "NN") for word in ("$", ".", "+", "...", "<", "it's", "-")))
    (sentence,) = read(HeadBehaviour(), trained_model, path).sentences
    words = [sentence.punctuation[sentence.word == word].all() for word in range(7)]
    assert words == [False, True, False, True, False, False, True]


def test_treebank_of_too_long_sentences_is_reported(trained_model, tmp_path: Path):
    """Its only sentence is longer than the model's positions."""
    lines = [f"{i}\tword\t_\t_\tNN\t_\t0\t_\t_\t_" for i in range(1, 2000)]
    (tmp_path / "a.conllu").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(CorpusError, match="no sentence of at most"):
        read(HeadBehaviour(), trained_model, tmp_path / "a.conllu")
