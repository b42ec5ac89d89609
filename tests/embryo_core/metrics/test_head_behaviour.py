"""What a head does is measured as plain loops over plain transformers measure it, one sentence at a time."""

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
from tests.embryo_core.metrics.conftest import read


def found(model, treebank: Path | None = None) -> dict[tuple, tuple[float, int]]:
    """(value, n) of each score, by (what, layer, group)."""
    metric = HeadBehaviour()
    scores = metric.compute(model, read(metric, model, treebank)).scores
    return {(row.metric.removeprefix("head_behaviour_"), row.layer, row.group): (row.value, row.n) for row in scores}


def by_hand(model, examples: list[Example]) -> dict[tuple, tuple[float, int]]:
    """The same, word by word and piece by piece."""
    plain = AlbertForPreTraining.from_pretrained(
        model.checkpoint.path, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    values, links, between, offsets = defaultdict(list), defaultdict(list), defaultdict(float), Counter()
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
                _look(a, word_of, example.words, here, values, between)
                between_words = _between_words(a, word_of, len(example.words))
                for w, h in asked:
                    others = [v for v in range(len(example.words)) if v != w and pieces[v]]
                    most = max(others, key=lambda v: between_words[w, v])
                    links["dependent_to_head", *here].append(most == h)
                    links["head_to_dependent", *here].append(max(others, key=lambda v: between_words[v, w]) == h)
    means = {key: (np.mean(each), len(each)) for key, each in {**values, **links}.items()}
    for key, weight in between.items():
        total, n = np.sum(values["distance", *key]), len(values["distance", *key])
        means["distance", *key] = total / weight, n
    best, count = max(offsets.items(), key=lambda pair: pair[1])
    return means | {("fixed_offset", None, f"{best:+d}"): (count / offsets.total(), offsets.total())}


def _look(a, word_of, words, here, values, between) -> None:
    """Add where each piece of one sentence looks; a [L, L] with [CLS] and [SEP]."""
    last = len(a) - 1
    for i in range(1, last):
        marks = [j for j in range(1, last) if all(unicodedata.category(c)[0] == "P" for c in words[word_of[j - 1]])]
        looks = {"same": a[i, i], "previous": a[i, i - 1], "next": a[i, i + 1], "cls": a[i, 0], "sep": a[i, last]}
        looks["punctuation"] = sum(a[i, j] for j in marks)
        looks["entropy"] = -sum(p * np.log(p) for p in a[i] if p > 0)
        looks["distance"] = sum(a[i, j] * abs(i - j) for j in range(1, last))
        between[here] += sum(a[i, j] for j in range(1, last))
        for name, value in looks.items():
            values[name, *here].append(value)


def _between_words(a, word_of, count) -> np.ndarray:
    """Attention [W, W]: summed over the pieces attended to, averaged over the pieces attending."""
    between = np.zeros((count, count))
    for i, from_word in enumerate(word_of):
        for j, to_word in enumerate(word_of):
            between[from_word, to_word] += a[i + 1, j + 1] / word_of.count(from_word)
    return between


def test_scores_equal_plain_loops_over_transformers(trained, sample: Path):
    """Every score of every head, and the number of cases behind it."""
    scores = found(trained)
    expected = by_hand(trained, corpora.read_treebank(sample / "treebank.conllu"))
    assert scores.keys() == expected.keys()
    for key, (value, n) in expected.items():
        assert scores[key][0] == pytest.approx(value, abs=1e-5), key
        assert scores[key][1] == n, key


def test_every_head_has_every_score(trained):
    """Layers and heads count from 1; the baseline knows neither."""
    scores = found(trained)
    heads = {(layer, head) for layer in (1, 2) for head in ("1", "2")}
    for name in (*head_behaviour.MEANS, *head_behaviour.LINKS):
        assert {key[1:] for key in scores if key[0] == name} == heads
    assert [key[1] for key in scores if key[0] == "fixed_offset"] == [None]


def test_weights_are_shares_and_entropy_has_its_bounds(trained):
    """A weight lies in [0, 1], entropy between 0 and the logarithm of the positions."""
    for (name, _, _), (value, _) in found(trained).items():
        assert 0 <= value <= (np.log(128) if name == "entropy" else 128 if name == "distance" else 1)


def test_a_treebank_without_heads_has_no_syntax_and_says_so(trained, sample: Path, tmp_path: Path):
    """The other scores are the same."""
    lines = (sample / "treebank.conllu").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    without = ["\t".join([*row[:6], "_", *row[7:]]) if len(row) == 10 else row[0] for row in rows]
    (tmp_path / "plain.conllu").write_text("\n".join(without), encoding="utf-8")
    plain = tmp_path / "plain.conllu"
    assert "no syntactic heads" in read(HeadBehaviour(), trained, plain).summary["note"]
    syntax = (*head_behaviour.LINKS, "fixed_offset")
    assert found(trained, plain) == {key: v for key, v in found(trained).items() if key[0] not in syntax}


def test_a_word_without_a_piece_is_neither_head_nor_dependent(trained, tmp_path: Path):
    """A zero-width space leaves the words around it in their places."""
    words = [("She", 2), ("read", 0), ("\u200b", 2), ("the", 5), ("letter", 3)]
    lines = [f"{i}\t{word}\t_\t_\tNN\t_\t{head}\t_\t_\t_" for i, (word, head) in enumerate(words, 1)]
    (tmp_path / "a.conllu").write_text("\n".join(lines), encoding="utf-8")
    assert read(HeadBehaviour(), trained, tmp_path / "a.conllu").summary["words"] == 2
    assert found(trained, tmp_path / "a.conllu")["fixed_offset", None, "+1"] == (1, 2)


def test_sentences_that_are_all_too_long_are_told(trained, tmp_path: Path):
    """Longer than the model's positions, there is nothing to measure."""
    lines = [f"{i}\tword\t_\t_\tNN\t_\t0\t_\t_\t_" for i in range(1, 2000)]
    (tmp_path / "a.conllu").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(CorpusError, match="no sentence of at most"):
        read(HeadBehaviour(), trained, tmp_path / "a.conllu")
