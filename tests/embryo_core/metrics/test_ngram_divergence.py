"""Tests of n-gram divergence: values equal counts in dictionaries and plain sums."""

import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from embryo_core import corpora
from embryo_core.engine.model import Model
from embryo_core.errors import CorpusError
from embryo_core.metric import Limits
from embryo_core.metrics.ngram_divergence import MASK_DISTANCE, NgramDivergence, predicted_positions
from tests.conftest import SAMPLE
from tests.embryo_core.metrics.conftest import read

FOLDER = SAMPLE / "ngrams"


def pieces_of(model: Model, split: str) -> list[list[int]]:
    """Return the pieces of each line of a split of the sample, with [CLS] and without [SEP]."""
    lines = (FOLDER / f"{split}.txt").read_text(encoding="utf-8").splitlines()
    return [model.tokenizer.encode_text(line)[:-1].tolist() for line in lines]


def slow_distributions(model: Model) -> tuple[list[float], dict[int, list[float]]]:
    """Return the unigram distribution and that of each piece's followers, counted pair by pair."""
    size, lines = model.vocabulary_size, pieces_of(model, "train")
    single = Counter(piece for line in lines for piece in line[1:])
    unigram = [(single[piece] + 1) / (single.total() + size) for piece in range(size)]
    after: dict[int, Counter] = {}
    for line in lines:
        for one, other in pairwise(line):
            after.setdefault(one, Counter())[other] += 1
    bigram = {
        one: [(own[piece] + len(own) * unigram[piece]) / (own.total() + len(own)) for piece in range(size)]
        for one, own in after.items()
    }
    return unigram, bigram


def test_divergences_equal_plain_sums(trained_model: Model):
    """Lines are masked one at a time, and sums over the vocabulary are plain Python."""
    data = read(NgramDivergence(), trained_model)
    unigram, bigram = slow_distributions(trained_model)
    divergences = {"unigram": [], "bigram": []}
    heldout = pieces_of(trained_model, "heldout")
    for number, place in zip(data.line, data.position, strict=True):
        visible_ids = data.lines[number].copy()
        visible_ids[data.position[data.line == number]] = trained_model.tokenizer.mask_id
        logits = trained_model.mlm_logits(visible_ids[None], np.array([0]), np.array([place]))[0]
        total = sum(math.exp(float(logit)) for logit in logits)
        p = [math.exp(float(logit)) / total for logit in logits]
        for group, q in (("unigram", unigram), ("bigram", bigram.get(heldout[number][place - 1], unigram))):
            divergences[group].append(sum(one * math.log(one / other) for one, other in zip(p, q) if one))
    scores = {(score.metric, score.group): score for score in NgramDivergence().compute(trained_model, data).scores}
    for group, values in divergences.items():
        mean = sum(values) / len(values)
        error = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
        score, own_error = scores["ngram_divergence", group], scores["ngram_divergence_error", group]
        assert score.n == own_error.n == len(values)
        assert score.value == pytest.approx(mean, rel=1e-5)  # logits are float32 and summed in another order
        assert own_error.value == pytest.approx(error, rel=1e-5)


def test_bigram_distributions_sum_to_one_without_zeros(trained_model: Model):
    """The distribution after a piece that the text lacks is the unigram distribution."""
    bigrams = read(NgramDivergence(), trained_model).bigrams
    counted = {piece for line in pieces_of(trained_model, "train") for piece in line[:-1]}
    absent = next(piece for piece in range(trained_model.vocabulary_size) if piece not in counted)
    for piece in (*sorted(counted), absent):
        q = bigrams.after(piece)
        assert q.min() > 0 and q.sum() == pytest.approx(1, abs=1e-12)
    assert np.array_equal(bigrams.after(absent), bigrams.unigram)


def test_masks_are_evenly_spaced_in_every_line(trained_model: Model):
    """Every line has one or more, never [CLS] or [SEP]; a limit takes the first lines with the same masks."""
    data, fewer = read(NgramDivergence(), trained_model), read(NgramDivergence(), trained_model, limit=2)
    assert set(data.line) == set(range(len(data.lines)))
    for number, ids in enumerate(data.lines):
        own = data.position[data.line == number]
        assert 1 <= own[0] <= MASK_DISTANCE and own[-1] < len(ids) - 1 and set(np.diff(own)) <= {MASK_DISTANCE}
    assert fewer.position.tolist() == data.position[data.line < 2].tolist()


@pytest.mark.parametrize("length", [3, 4, 5, 9, 10, 24])
def test_every_piece_except_cls_and_sep_can_be_masked(length: int):
    """Every line has a mask, and over 100 lines of one length each piece is masked in some."""
    chosen = [predicted_positions(length - 1, number) for number in range(100)]
    assert all(chosen) and {place for places in chosen for place in places} == set(range(1, length - 1))


def test_summary_counts_pieces_and_lines(trained_model: Model):
    """Pieces of the training lines are counted without [CLS] and [SEP]."""
    data = read(NgramDivergence(), trained_model)
    assert data.summary["counted"] == sum(len(line) - 1 for line in pieces_of(trained_model, "train"))
    assert data.summary["masked"] == len(data.position) and data.summary["lines"] == len(data.lines)


def test_long_line_is_cut_to_128_pieces(trained_model: Model, tmp_path: Path):
    """[CLS] and [SEP] are included; a model with fewer positions reads fewer pieces."""
    (tmp_path / "train.txt").write_text("the cat\n")
    (tmp_path / "heldout.txt").write_text("the cat " * 100 + "\nthe cat\n")
    tokenizer, source = trained_model.tokenizer, corpora.open_source(tmp_path)
    for positions, expected in ((512, 128), (64, 64)):
        long, short = NgramDivergence().read(tokenizer, Limits(positions), source).lines
        assert (len(long), len(short)) == (expected, 4) and long[-1] == short[-1] == tokenizer.sep_id
        assert tokenizer.sep_id not in long[:-1] and long[0] == tokenizer.cls_id


def test_unigram_model_has_no_divergence_from_unigrams(trained_model: Model, monkeypatch):
    """The divergence from unigrams is 0 within rounding, that from bigrams is not."""
    data = read(NgramDivergence(), trained_model)
    logits = np.log(data.bigrams.unigram).astype(np.float32)
    monkeypatch.setattr(trained_model, "mlm_logits", lambda ids, rows, columns: np.tile(logits, (len(rows), 1)))
    scores = {score.group: score.value for score in NgramDivergence().compute(trained_model, data).scores[::2]}
    assert scores["unigram"] == pytest.approx(0, abs=1e-6) and scores["bigram"] > 0.1


def test_single_mask_has_no_standard_error(trained_model: Model, tmp_path: Path):
    (tmp_path / "train.txt").write_text("the cat\n")
    (tmp_path / "heldout.txt").write_text("the cat\n")
    data = read(NgramDivergence(), trained_model, tmp_path)
    scores = NgramDivergence().compute(trained_model, data).scores
    assert [(score.metric, score.group, score.n) for score in scores] == [
        ("ngram_divergence", "unigram", 1),
        ("ngram_divergence", "bigram", 1),
    ]


def test_missing_or_empty_split_is_reported(trained_model: Model, tmp_path: Path):
    (tmp_path / "train.txt").write_text("The cat sleeps.\n")
    with pytest.raises(CorpusError, match=r"heldout\.txt \(or \.xz, \.gz\) does not exist; .* train\.txt"):
        read(NgramDivergence(), trained_model, tmp_path)
    (tmp_path / "heldout.txt").write_text("\n\n")
    with pytest.raises(CorpusError, match="has no line of text in heldout"):
        read(NgramDivergence(), trained_model, tmp_path)
