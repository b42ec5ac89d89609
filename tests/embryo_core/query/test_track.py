"""A tracked word has the probability of the chain rule computed by hand, and a rank that says no more than is known."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from embryo_core import query, results, runs
from embryo_core.engine.cache import MODELS
from embryo_core.engine.model import Model
from embryo_core.errors import QueryError
from embryo_core.query import beam
from embryo_core.query.track import _of_word, joined, track
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Fact, Run
from tests.rounding import probability_rounding

ONE = "The cat sat on the [MASK] ."
TWO = "The [MASK] sat on the [MASK] ."
STEPS = (0, 8, 16)


@cache
def reference(run: Run, step: int):
    """The pretraining model, read by transformers as it stands."""
    from transformers import AlbertForPreTraining

    return AlbertForPreTraining.from_pretrained(runs.checkpoint(run, step).path).eval()


def probabilities(run: Run, step: int, ids: list[int], position: int) -> np.ndarray:
    """Probabilities [V] at one position by plain transformers."""
    import torch

    with torch.no_grad():
        logits = reference(run, step)(torch.tensor([ids])).prediction_logits[0, position]
    return torch.softmax(logits.double(), dim=0).numpy()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("text", "mask"), [(ONE, 1), (TWO, 1), (TWO, 2)])
def test_two_pieces_by_hand(tiny_run: Run, step: int, text: str, mask: int) -> None:
    """P(river) in the first of two masks, times P(##s) after "river"; another mask of the text stays a mask."""
    tokenizer = load_tokenizer(tiny_run)
    river, s = tokenizer.encode_text("rivers")[1:-1].tolist()
    ids = tokenizer.encode_text(text).tolist()
    at = [i for i, piece in enumerate(ids) if piece == tokenizer.mask_id][mask - 1]
    widened = [*ids[:at], tokenizer.mask_id, tokenizer.mask_id, *ids[at + 1 :]]
    filled = [*ids[:at], river, tokenizer.mask_id, *ids[at + 1 :]]
    expected = probabilities(tiny_run, step, widened, at)[river] * probabilities(tiny_run, step, filled, at + 1)[s]
    found = track(tiny_run, text, " rivers ", mask, steps=[step])
    assert (found.word, found.pieces, found.steps) == ("rivers", ("river", "##s"), (step,))
    assert found.widened.count("[MASK]") == text.count("[MASK]") + 1
    tolerance = probability_rounding(MODELS.get(runs.checkpoint(tiny_run, step)), len(widened), expected)
    assert found.probabilities[0] == pytest.approx(expected, rel=2 * tolerance)


def test_one_piece_equals_the_answers(tiny_run: Run) -> None:
    """Probability and rank at each step are those listed for the mask, over the whole vocabulary."""
    found = track(tiny_run, ONE, "river")
    assert found.steps == STEPS and found.widened == ONE and found.skipped == ()
    for i, step in enumerate(STEPS):
        (listed,) = query.answer(tiny_run, ONE, step, k=700).masks
        own = next(p for p in listed if p.token == "river")
        assert (found.ranks[i], found.exact[i]) == (own.rank, True)
        assert found.probabilities[i] == pytest.approx(own.probability)


def test_rank_of_several_pieces_is_at_least_that_in_the_beam(tiny_run: Run) -> None:
    """A word less probable than the whole beam has at least the rank behind it."""
    found = track(tiny_run, ONE, "rivers", steps=[16])
    assert (found.ranks, found.exact) == ((query.BEAM_WIDTH + 1,), (False,))


@pytest.mark.parametrize("sharpness", [1, 20])
@pytest.mark.parametrize("count", [2, 3])
def test_the_rank_of_several_pieces_is_that_in_the_whole_beam(
    tiny_run: Run, sharpness: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of answers from the best to improbable ones, at sure checkpoints too; fewer rows are read."""
    models, read, plain = [MODELS.get(runs.checkpoint(tiny_run, step)) for step in STEPS], [], beam._logits

    def sharp(models: list[Model], ids: np.ndarray, position: int) -> Iterator[tuple[int, int, np.ndarray]]:
        for c, row, logits in plain(models, ids, position):
            read.append(len(logits))
            yield c, row, logits * np.float32(sharpness)

    monkeypatch.setattr(beam, "_logits", sharp)
    question = query.read_question("the " + "[MASK] " * count, models[0].tokenizer, models[0].max_positions)
    whole = query.ask(models, question)
    rows, ranks = len(models) * (1 + (count - 1) * (query.BEAM_WIDTH + 1)), set()  # of each, and of the word itself
    for asked in (0, 1, 4, 9, None):
        pieces = np.array([7] * count) if asked is None else whole[-1].answers[asked]
        read.clear()
        found = query.ask(models, question, sought=pieces)
        assert sum(read) < rows
        for part, full in zip(found, whole, strict=True):
            expected = _of_word(replace(full, sought=part.sought), pieces)
            assert _of_word(part, pieces) == expected
            ranks.add(expected[1])
    assert {1, 10, 11} <= ranks


def test_a_fact_asked_live_gets_the_stored_answer(tiny_results: Run) -> None:
    """At every step: the prediction and its probability, and the true object's probability and rank."""
    templates = results.read_sources(tiny_results)["world_knowledge"]["templates"]
    stored = results.read_cloze(tiny_results)
    some = stored.groupby(["step", "relation"]).head(2)
    assert len(some) >= 3 * 6
    for row in some.itertuples():
        text = Fact(row.fact, row.relation, templates[row.relation], row.subject, row.object).question
        ((best,),) = query.answer(tiny_results, text, row.step, k=1).masks
        assert best.token == row.prediction
        model = MODELS.get(runs.checkpoint(tiny_results, row.step))
        tolerance = probability_rounding(model, model.max_positions, [row.probability, row.prediction_probability])
        assert best.probability == pytest.approx(row.prediction_probability, rel=tolerance)
        tracked = track(tiny_results, text, row.object, steps=[row.step])
        assert (tracked.ranks, tracked.exact) == ((row.rank,), (True,))
        assert tracked.probabilities[0] == pytest.approx(row.probability, rel=tolerance)


@pytest.mark.parametrize(
    ("text", "word", "mask", "message"),
    [
        (ONE, "  ", 1, "The word to track is empty"),
        (ONE, "☃", 1, "'☃' has characters that are not in the vocabulary"),
        (ONE, "[MASK]", 1, "'[MASK]' is not a word to track"),
        (ONE, "unforgettableness " * 3, 1, "pieces; at most 8 can be tracked"),
        (ONE, "river", 2, "There is no [MASK] 2: the text has 1"),
        (ONE, "river", 0, "There is no [MASK] 0"),
        ("no mask", "river", 1, "The text has no [MASK]"),
        ("[MASK]" + " ." * 61, "rivers", 1, "With 2 masks for the pieces of the word the text is 65 pieces long"),
    ],
)
def test_what_cannot_be_tracked(tiny_run: Run, text: str, word: str, mask: int, message: str) -> None:
    """One sentence that says what was received and what to do."""
    with pytest.raises(QueryError) as error:
        track(tiny_run, text, word, mask)
    assert message in str(error.value)


def test_what_just_fits_is_tracked(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A widened text as long as the model's positions, and a word of as many pieces as there may be."""
    monkeypatch.setattr(sys.modules[track.__module__], "MAX_MASKS", 2)
    assert track(tiny_run, "[MASK]" + " ." * 60, "rivers", steps=[8]).steps == (8,)


def test_tracks_of_parts_join_to_the_whole(tiny_run: Run) -> None:
    """Asked at some steps and then at others, a word has the track of all."""
    parts = [track(tiny_run, ONE, "catsat", steps=steps) for steps in ([16, 0], [8])]
    assert joined(parts) == track(tiny_run, ONE, "catsat")
