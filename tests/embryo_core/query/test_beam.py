"""Tests of beam search: a single mask equals transformers, and several masks equal the chain rule by hand."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AlbertConfig, AlbertForPreTraining

from embryo_core import query, runs
from embryo_core.engine.cache import MODELS
from embryo_core.engine.model import Model
from embryo_core.query import TOGETHER, beam
from embryo_core.query.beam import Reply
from embryo_core.types import Run
from tests.rounding import probability_rounding, rounding

ONE = "The cat sat on the [MASK] ."
TWO = "The [MASK] sat on the [MASK] ."


def load(run: Run, step: int = 16):
    """Return the model of a step."""
    return MODELS.get(runs.checkpoint(run, step))


def reference(run: Run, step: int, ids: list[int], position: int) -> np.ndarray:
    """Return the probabilities [V] at one position by plain transformers, with every logit of the sequence computed."""
    import torch
    from transformers import AlbertForPreTraining

    model = AlbertForPreTraining.from_pretrained(runs.checkpoint(run, step).path).eval()
    with torch.no_grad():
        logits = model(torch.tensor([ids])).prediction_logits[0, position]
    return torch.softmax(logits.double(), dim=0).numpy()


# === One step ===


@pytest.mark.parametrize("step", [0, 16])
def test_one_mask_equals_transformers(tiny_run: Run, step: int) -> None:
    """Tokens, their order and their probabilities are those of transformers' logits, with transformers' tokenizer."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_run.tokenizer)
    ids = tokenizer(ONE)["input_ids"]
    expected = reference(tiny_run, step, ids, ids.index(tokenizer.mask_token_id))
    model = load(tiny_run, step)
    answers = query.ask(tiny_run, ONE, [step], model.vocabulary_size).best(step)
    best = np.argsort(-expected, kind="stable")
    assert [p.rank for p in answers] == list(range(1, len(expected) + 1))
    tolerance = probability_rounding(model, len(ids), expected)
    np.testing.assert_allclose([p.probability for p in answers], expected[best], rtol=tolerance)
    assert [p.token for p in answers[:5]] == model.tokenizer.readable(best[:5])


def test_two_masks_equal_the_chain_rule(tiny_run: Run) -> None:
    """The best answer among 12 first words with 5 second words each, its probability, and both lists are compared."""
    model = load(tiny_run)
    question = query.read_question(TWO, model.tokenizer)
    first, second = question.masks
    marginal = reference(tiny_run, 16, question.ids.tolist(), first)
    joint = {}
    conditionals = {}
    for word in np.argsort(-marginal)[:12]:
        filled = question.ids.copy()
        filled[first] = word
        conditionals[word] = reference(tiny_run, 16, filled.tolist(), second)
        for other in np.argsort(-conditionals[word])[:5]:
            joint[int(word), int(other)] = marginal[word] * conditionals[word][other]
    best = max(joint, key=joint.get)
    (reply,) = beam.search([model], question)
    assert tuple(reply.answers[0]) == best
    tolerance = probability_rounding(model, len(question.ids), marginal)
    assert np.exp(reply.log_probabilities[0]) == pytest.approx(joint[best], rel=2 * tolerance)
    np.testing.assert_allclose(np.exp(reply.conditionals[0]), marginal, rtol=tolerance)
    tolerance = probability_rounding(model, len(question.ids), conditionals[best[0]])
    np.testing.assert_allclose(np.exp(reply.conditionals[1]), conditionals[best[0]], rtol=tolerance)


def test_scores_of_given_answers_equal_the_beams(tiny_run: Run) -> None:
    """The answers of the beam are scored again in reverse order."""
    model = load(tiny_run)
    question = query.read_question("[MASK] [MASK] and [MASK]", model.tokenizer)
    (reply,) = beam.search([model], question)
    scores = beam.joint_log_probability(model, question, reply, reply.answers[::-1])
    tolerance = rounding(model, len(question.ids), scores)  # of each of three factors
    np.testing.assert_allclose(scores[::-1], reply.log_probabilities, rtol=0, atol=3 * tolerance)
    assert (np.diff(reply.log_probabilities) <= 0).all()


@pytest.mark.parametrize("width", [1, query.BEAM_WIDTH])
@pytest.mark.parametrize("text", [ONE, TWO])
def test_models_asked_together_answer_as_they_do_alone(tiny_run: Run, text: str, width: int) -> None:
    """Every part of a reply is equal bit for bit."""
    models = [load(tiny_run, step) for step in (0, 8, 16)]
    question = query.read_question(text, models[0].tokenizer)
    replies = beam.search(models, question, width)
    assert len({reply.logits.tobytes() for reply in replies}) == 3
    for model, together in zip(models, replies, strict=True):
        (alone,) = beam.search([model], question, width)
        assert together.answers.shape == (width, len(question.masks))
        for part in ("answers", "log_probabilities", "logits", "bound", "logsumexps", "sorted_logits"):
            np.testing.assert_array_equal(getattr(together, part), getattr(alone, part))


@pytest.mark.parametrize(
    ("text", "sharpness", "fewer"), [(TWO, 1, False), (TWO, 20, True), ("[MASK] [MASK] and [MASK]", 20, False)]
)
def test_beam_stops_once_no_row_can_change_the_best(
    tiny_run: Run, text: str, sharpness: int, fewer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits times 20 imitate a confident checkpoint, which reads fewer rows of the beam for two masks."""
    models, read, plain = [load(tiny_run, step) for step in (0, 16)], [], beam._logits
    question = query.read_question(text, models[0].tokenizer)

    def sharp(models: list[Model], ids: np.ndarray, position: int, *more: Any) -> Iterator[tuple[int, int, np.ndarray]]:
        for c, row, logits in plain(models, ids, position, *more):
            read.append(len(logits))
            yield c, row, logits * np.float32(sharpness)

    monkeypatch.setattr(beam, "_logits", sharp)
    replies, rows = beam.search(models, question), sum(read)
    monkeypatch.setattr(beam, "FIRST_ROWS", query.BEAM_WIDTH)
    read.clear()
    whole = beam.search(models, question)
    assert sum(read) == len(models) * (1 + (len(question.masks) - 1) * query.BEAM_WIDTH)
    assert (rows < sum(read)) is fewer
    for reply, expected in zip(replies, whole, strict=True):
        assert reply.answers[0].tolist() == expected.answers[0].tolist()
        tolerance = 3 * rounding(models[0], len(question.ids), sharpness * expected.logits)  # of each of three factors
        np.testing.assert_allclose(reply.log_probabilities, expected.log_probabilities, rtol=0, atol=tolerance)
        np.testing.assert_allclose(reply.bound, expected.bound, rtol=0, atol=tolerance)


def test_ties_are_ranked_in_vocabulary_order() -> None:
    """Ranks are those of a stable sort, and the probabilities of a reply sum to one."""
    logits = np.float32([[1, 3, 2, 3, 1, 3]])
    reply = Reply(np.array([[1]]), np.zeros(1), 0, logits, beam.logsumexp(logits), np.sort(logits), np.array([[1]]))
    assert reply.ranks(0, [0, 1, 2, 3, 4, 5]) == [5, 1, 4, 2, 6, 3]
    assert np.exp(reply.conditionals).sum() == pytest.approx(1)


@pytest.mark.parametrize("width", [3, query.BEAM_WIDTH])
def test_joint_rank_is_exact_or_a_lower_bound(tiny_run: Run, width: int) -> None:
    """Ranks are compared with those among all pairs of pieces."""
    model = load(tiny_run)
    question = query.read_question("[MASK] [MASK] .", model.tokenizer)
    (reply,) = beam.search([model], question, width)
    every = log_probabilities_of_pairs(model, question)
    totals = np.concatenate([reply.log_probabilities, np.sort(every)[-40::4]])
    tolerance = 2 * rounding(model, len(question.ids), every)  # of each of two factors
    for total, (rank, exact) in zip(totals, map(reply.joint_rank, totals), strict=True):
        assert rank <= 1 + np.count_nonzero(every > total - tolerance)
        assert not exact or rank >= 1 + np.count_nonzero(every > total + tolerance)
    assert not all(exact for _, exact in map(reply.joint_rank, totals))


def log_probabilities_of_pairs(model: Model, question: query.Question) -> np.ndarray:
    """Compute the joint log probability [V * V] of every pair of pieces at two masks."""
    first, second = question.masks
    filled = question.filled(np.arange(model.vocabulary_size)[:, None])  # [V, L]
    rows = np.arange(len(filled))
    given = model.mlm_logits(filled, rows, np.full_like(rows, second))  # [V, V]
    alone = model.mlm_logits(question.ids[None], [0], [first])  # [1, V]
    return ((alone - beam.logsumexp(alone)).T + (given - beam.logsumexp(given))).ravel()


def test_rank_is_exact_at_or_above_the_bound() -> None:
    """No prefix that was dropped can lead to an answer that is more probable."""
    reply = Reply(np.array([[1, 1], [2, 1]]), np.log([0.6, 0.1]), np.log(0.2), *[np.zeros((2, 3))] * 4)
    assert [reply.joint_rank(total) for total in reply.log_probabilities] == [(1, True), (2, False)]
    assert reply.joint_rank(np.log(0.01)) == (3, False)
    assert reply.joint_rank(reply.bound) == (2, True)


def test_bound_is_the_least_probable_prefix_kept(tiny_run: Run) -> None:
    """A beam of three keeps three words, then three pairs; the bound is the higher of the two least probable ones."""
    model = load(tiny_run)
    question = query.read_question("[MASK] [MASK] .", model.tokenizer)
    (reply,) = beam.search([model], question, 3)
    first = sorted(reply.conditionals[0].tolist())[-3]
    assert reply.bound == pytest.approx(max(first, reply.log_probabilities.min()))


def test_joint_prediction_names_the_words_of_all_masks(tiny_run: Run) -> None:
    answers = query.ask(tiny_run, TWO, [16], 3).best(16, TOGETHER)
    assert [p.rank for p in answers] == [1, 2, 3]
    assert all(p.token.count("|") == 1 for p in answers)


def test_top_k_is_sorted_with_ties_in_order() -> None:
    """Of equal values the first ones are chosen, as in ranks; all are returned if k exceeds their number."""
    values = np.random.default_rng(0).integers(0, 5, (3, 60)).astype(np.float32)
    for k in (1, 2, 17, 60, 99):
        for own, top in zip(values.tolist(), beam.top_k(values, k).tolist(), strict=True):
            assert top == sorted(range(len(own)), key=lambda i: (-own[i], i))[:k]


def test_padded_vocabulary_rows_are_never_answered(own_run: Run) -> None:
    """The vocabulary has 768 rows, but only the tokenizer's 700 pieces have probability, jointly and in layers too."""
    torch.manual_seed(0)
    checkpoint = runs.checkpoint(own_run, 16)
    padded = AlbertForPreTraining(AlbertConfig.from_pretrained(checkpoint.path, vocab_size=768))
    with torch.no_grad():
        padded.predictions.bias[700:] = 50
    padded.save_pretrained(checkpoint.path)
    runs.write_manifest(checkpoint.path, 16, sequences=64, tokens=4096)
    pieces = query.ask(own_run, ONE, [16], 1000).best(16)
    assert len(pieces) == 700
    assert sum(piece.probability for piece in pieces) == pytest.approx(1)
    answers = query.ask(own_run, TWO, [0, 16])
    assert answers.steps == (0, 16) and answers.table["probability"].max() < 1
    layers = query.ask_layers(own_run, ONE, steps=[16], k=1000).table
    assert layers.groupby("layer").size().tolist() == [700] * 3
