"""Live cloze: single masks equal transformers, several masks equal a hand computation."""

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from transformers import AlbertConfig, AlbertForPreTraining

from embryo_core import query, runs
from embryo_core.engine.cache import MODELS
from embryo_core.engine.model import Model
from embryo_core.errors import QueryError
from embryo_core.query import beam
from embryo_core.types import Run
from tests.rounding import probability_rounding, rounding

ONE = "The cat sat on the [MASK] ."
TWO = "The [MASK] sat on the [MASK] ."


def load(run: Run, step: int = 16):
    return MODELS.get(runs.checkpoint(run, step))


def reference(run: Run, step: int, ids: list[int], position: int) -> np.ndarray:
    """Probabilities [V] at one position by plain transformers, every logit of the sequence computed."""
    import torch
    from transformers import AlbertForPreTraining

    model = AlbertForPreTraining.from_pretrained(runs.checkpoint(run, step).path).eval()
    with torch.no_grad():
        logits = model(torch.tensor([ids])).prediction_logits[0, position]
    return torch.softmax(logits.double(), dim=0).numpy()


# === One step ===


@pytest.mark.parametrize("step", [0, 16])
def test_one_mask_equals_transformers(tiny_run: Run, step: int) -> None:
    """Tokens, their order and their probabilities are those of transformers' own logits through its own tokenizer."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_run.tokenizer)
    ids = tokenizer(ONE)["input_ids"]
    expected = reference(tiny_run, step, ids, ids.index(tokenizer.mask_token_id))
    model = load(tiny_run, step)
    (found,) = query.answer(tiny_run, ONE, step, k=model.vocabulary_size).masks
    best = np.argsort(-expected, kind="stable")
    assert [p.rank for p in found] == list(range(1, len(expected) + 1))
    tolerance = probability_rounding(model, len(ids), expected)
    np.testing.assert_allclose([p.probability for p in found], expected[best], rtol=tolerance)
    assert [p.token for p in found[:5]] == query.readable(model.tokenizer, best[:5])


def test_several_masks_are_joint(tiny_run: Run) -> None:
    """The best answer, its probability, and both lists equal an exhaustive search over the chain rule by hand."""
    model = load(tiny_run)
    question = query.read_question(TWO, model.tokenizer, model.max_positions)
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
    (reply,) = query.ask([model], question)
    assert tuple(reply.answers[0]) == best
    tolerance = probability_rounding(model, len(question.ids), marginal)
    assert np.exp(reply.log_probabilities[0]) == pytest.approx(joint[best], rel=2 * tolerance)
    np.testing.assert_allclose(np.exp(reply.conditionals[0]), marginal, rtol=tolerance)
    tolerance = probability_rounding(model, len(question.ids), conditionals[best[0]])
    np.testing.assert_allclose(np.exp(reply.conditionals[1]), conditionals[best[0]], rtol=tolerance)


def test_joint_probability_of_given_words(tiny_run: Run) -> None:
    """Scoring the beam's answers one by one gives the beam's own probabilities."""
    model = load(tiny_run)
    question = query.read_question("[MASK] [MASK] and [MASK]", model.tokenizer, model.max_positions)
    (reply,) = query.ask([model], question)
    scores = query.joint_log_probability(model, question, reply, reply.answers[::-1])
    tolerance = rounding(model, len(question.ids), scores)  # of each of three factors
    np.testing.assert_allclose(scores[::-1], reply.log_probabilities, rtol=0, atol=3 * tolerance)
    assert (np.diff(reply.log_probabilities) <= 0).all()


@pytest.mark.parametrize("beam", [1, query.BEAM_WIDTH])
@pytest.mark.parametrize("text", [ONE, TWO])
def test_models_asked_together_answer_as_alone(tiny_run: Run, text: str, beam: int) -> None:
    """The answers of several checkpoints to one question do not depend on who else is asked."""
    models = [load(tiny_run, step) for step in (0, 8, 16)]
    question = query.read_question(text, models[0].tokenizer, models[0].max_positions)
    replies = query.ask(models, question, beam)
    assert len({reply.logits.tobytes() for reply in replies}) == 3
    for model, together in zip(models, replies, strict=True):
        (alone,) = query.ask([model], question, beam)
        assert together.answers.shape == (beam, len(question.masks))
        for part in ("answers", "log_probabilities", "logits", "bound", "logsumexps", "sorted_logits"):
            np.testing.assert_array_equal(getattr(together, part), getattr(alone, part))


@pytest.mark.parametrize(
    ("text", "sharpness", "fewer"), [(TWO, 1, False), (TWO, 20, True), ("[MASK] [MASK] and [MASK]", 20, False)]
)
def test_a_beam_stops_where_no_row_can_change_the_best(
    tiny_run: Run, text: str, sharpness: int, fewer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits times 20 are of a sure checkpoint, whose other rows are read only where they matter."""
    models, read, plain = [load(tiny_run, step) for step in (0, 16)], [], beam._logits
    question = query.read_question(text, models[0].tokenizer, models[0].max_positions)

    def sharp(models: list[Model], ids: np.ndarray, position: int) -> Iterator[tuple[int, int, np.ndarray]]:
        for c, row, logits in plain(models, ids, position):
            read.append(len(logits))
            yield c, row, logits * np.float32(sharpness)

    monkeypatch.setattr(beam, "_logits", sharp)
    found, rows = beam.ask(models, question), sum(read)
    monkeypatch.setattr(beam, "FIRST_ROWS", query.BEAM_WIDTH)
    read.clear()
    whole = beam.ask(models, question)
    assert sum(read) == len(models) * (1 + (len(question.masks) - 1) * query.BEAM_WIDTH)
    assert (rows < sum(read)) is fewer
    for reply, expected in zip(found, whole, strict=True):
        assert reply.answers[0].tolist() == expected.answers[0].tolist()
        tolerance = 3 * rounding(models[0], len(question.ids), sharpness * expected.logits)  # of each of three factors
        np.testing.assert_allclose(reply.log_probabilities, expected.log_probabilities, rtol=0, atol=tolerance)
        np.testing.assert_allclose(reply.bound, expected.bound, rtol=0, atol=tolerance)


def test_rank_counts_equals_before() -> None:
    """Of equal pieces the first is the better, as in a stable sort; a reply's probabilities sum to one."""
    logits = np.float32([[1, 3, 2, 3, 1, 3]])
    reply = query.Reply(np.array([[1]]), np.zeros(1), 0, logits, query.logsumexp(logits), np.sort(logits))
    assert reply.ranks(0, [0, 1, 2, 3, 4, 5]) == [5, 1, 4, 2, 6, 3]
    assert np.exp(reply.conditionals).sum() == pytest.approx(1)


@pytest.mark.parametrize("beam", [3, query.BEAM_WIDTH])
def test_a_joint_rank_is_exact_or_a_lower_bound(tiny_run: Run, beam: int) -> None:
    """Among all pairs of pieces, an exact rank is the true one, and no other is higher than the true one."""
    model = load(tiny_run)
    question = query.read_question("[MASK] [MASK] .", model.tokenizer, model.max_positions)
    (reply,) = query.ask([model], question, beam)
    every = log_probabilities_of_pairs(model, question)
    totals = np.concatenate([reply.log_probabilities, np.sort(every)[-40::4]])
    tolerance = 2 * rounding(model, len(question.ids), every)  # of each of two factors
    for total, (rank, exact) in zip(totals, map(reply.joint_rank, totals), strict=True):
        assert rank <= 1 + np.count_nonzero(every > total - tolerance)
        assert not exact or rank >= 1 + np.count_nonzero(every > total + tolerance)
    assert not all(exact for _, exact in map(reply.joint_rank, totals))


def log_probabilities_of_pairs(model: Model, question: query.Question) -> np.ndarray:
    """Joint log probability [V * V] of every pair of pieces at two masks, each computed."""
    first, second = question.masks
    filled = question.filled(np.arange(model.vocabulary_size)[:, None])  # [V, L]
    rows, mask = np.arange(len(filled)), np.ones_like(filled)
    given = query.log_softmax(model.mlm_logits(filled, mask, rows, np.full_like(rows, second)))  # [V, V]
    alone = query.log_softmax(model.mlm_logits(question.ids[None], mask[:1], [0], [first]))  # [1, V]
    return (alone.T + given).ravel()


def test_a_sure_answer_has_an_exact_rank() -> None:
    """Where the best answer is more probable than every prefix that was dropped, nothing can come before it."""
    reply = query.Reply(np.array([[1, 1], [2, 1]]), np.log([0.6, 0.1]), np.log(0.2), *[np.zeros((2, 3))] * 3)
    assert [reply.joint_rank(total) for total in reply.log_probabilities] == [(1, True), (2, False)]
    assert reply.joint_rank(np.log(0.01)) == (3, False)
    assert reply.joint_rank(reply.bound) == (2, True)


def test_nothing_outside_a_beam_is_more_probable_than_its_bound(tiny_run: Run) -> None:
    """Which is the least probable answer that it keeps at one of the masks: here three words, or three pairs."""
    model = load(tiny_run)
    question = query.read_question("[MASK] [MASK] .", model.tokenizer, model.max_positions)
    (reply,) = query.ask([model], question, 3)
    first = sorted(reply.conditionals[0].tolist())[-3]
    assert reply.bound == pytest.approx(max(first, reply.log_probabilities.min()))


def test_joint_predictions_read_as_words(tiny_run: Run) -> None:
    """A joint answer is one prediction whose token names the words of all masks."""
    found = query.answer(tiny_run, TWO, 16, k=3).joint
    assert [p.rank for p in found] == [1, 2, 3]
    assert all(p.token.count("|") == 1 for p in found)
    reply = query.Reply(np.array([[7, 8], [9, 8]]), np.log([0.6, 0.1]), np.log(0.2), *[np.zeros((2, 3))] * 3)
    assert [p.exact for p in beam.joint_predictions(reply, load(tiny_run).tokenizer, 2)] == [True, False]


def test_the_largest_values_come_in_order_and_equal_ones_in_theirs() -> None:
    """Any number of them, or all."""
    values = np.random.default_rng(0).integers(0, 5, (3, 60)).astype(np.float32)
    for k in (1, 2, 17, 60, 99):
        for own, found in zip(values.tolist(), beam.top_k(values, k).tolist(), strict=True):
            assert [own[i] for i in found] == sorted(own, reverse=True)[:k]
            assert found == sorted(found, key=lambda i: (-own[i], i))


def test_pieces_inside_words_are_marked(tiny_run: Run) -> None:
    """The first piece of a word reads as the word, a later piece after ##, special tokens as they are."""
    tokenizer = load(tiny_run).tokenizer
    ids = tokenizer.encode_text("the [MASK]")
    assert query.readable(tokenizer, ids) == ["[CLS]", "the", "[MASK]", "[SEP]"]
    inside = next(i for i in range(5, tokenizer.vocabulary_size) if not tokenizer.pieces([i])[0].startswith("▁"))
    assert query.readable(tokenizer, [inside]) == ["##" + tokenizer.pieces([inside])[0]]


def test_rows_beyond_the_tokenizer_are_never_answered(own_run: Run) -> None:
    """With a vocabulary padded to 768 rows, all probability is the tokenizer's 700 pieces', alone and jointly."""
    torch.manual_seed(0)
    checkpoint = runs.checkpoint(own_run, 16)
    padded = AlbertForPreTraining(AlbertConfig.from_pretrained(checkpoint.path, vocab_size=768))
    with torch.no_grad():
        padded.predictions.bias[700:] = 50
    padded.save_pretrained(checkpoint.path)
    runs.write_manifest(checkpoint.path, 16, sequences=64, tokens=4096)
    (pieces,) = query.answer(own_run, ONE, 16, k=1000).masks
    assert len(pieces) == 700
    assert sum(piece.probability for piece in pieces) == pytest.approx(1)
    found = query.trace(own_run, TWO, steps=[0, 16])
    assert found.steps == (0, 16) and found.joint.candidates[0].probabilities[1] < 1
    (layers,) = query.lens(own_run, ONE, k=1000, steps=[16]).cells
    assert [len(layer) for layer in layers] == [700] * 3


# === Texts that cannot be queried ===


@pytest.mark.parametrize("text", ["the [mask] .", "the [Mask] .", "  the [ MASK ] .\n"])
def test_masks_in_any_case(text: str) -> None:
    """[mask] in any case, with blanks inside or around, is the mask."""
    assert query.check_text(text) == "the [MASK] ."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The text is empty; write a sentence with [MASK]"),
        (" \n ", "The text is empty"),
        ("no mask here", "The text has no [MASK]; write [MASK] for the word to be predicted"),
        ("[MASK] " * 9, "The text has 9 [MASK]s; at most 8 can be answered together"),
        ("[MASK]" + " a" * 10_000, "The text has 20,006 characters; at most 20,000 can be queried"),
    ],
)
def test_refused_before_any_model(text: str, sentence: str) -> None:
    """An empty, maskless or endless text is refused in one sentence that says what was received and what to do."""
    with pytest.raises(QueryError) as error:
        query.check_text(text)
    assert str(error.value).startswith(sentence)


def test_longer_than_the_positions(tiny_run: Run) -> None:
    """A text of 10,000 characters is refused with its length in pieces and the model's limit."""
    with pytest.raises(QueryError, match=r"5,00\d pieces long .* at most 64"):
        query.answer(tiny_run, "[MASK]" + " ." * 5_000, 16)


def test_importing_query_loads_no_torch() -> None:
    """The dashboard can import the module, and refuse a text, without torch or transformers."""
    code = (
        "import sys; from embryo_core import query; from embryo_core.errors import QueryError\n"
        "try: query.check_text('x')\nexcept QueryError: pass\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
