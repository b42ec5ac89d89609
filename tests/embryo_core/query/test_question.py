"""Tests of questions: texts are checked, and a tracked word has the probability of the chain rule and a known rank."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from embryo_core import query, results, runs
from embryo_core.engine.cache import MODELS
from embryo_core.engine.model import Model
from embryo_core.errors import QueryError
from embryo_core.query import Answers, beam, question
from embryo_core.query.asking import score_word
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Fact, Run
from tests.rounding import probability_rounding

ONE = "The cat sat on the [MASK] ."
TWO = "The [MASK] sat on the [MASK] ."
STEPS = (0, 8, 16)


def track(run: Run, text: str, word: str, mask: int = 1, steps: list[int] | None = None) -> Answers:
    """Ask for a word at one mask of a text."""
    return query.ask(run, query.read_question(text, load_tokenizer(run)).track(word, mask), steps)


# === Texts ===


@pytest.mark.parametrize("text", ["the [mask] .", "the [Mask] .", "  the [ MASK ] .\n"])
def test_mask_is_recognised_in_any_case(text: str) -> None:
    """Blanks inside the brackets and around the text are removed."""
    assert query.check_text(text) == "the [MASK] ."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The text is empty; write a sentence with [MASK]"),
        (" \n ", "The text is empty"),
        ("no mask here", "The text has no [MASK]; write [MASK] for the word to be predicted"),
        ("[MASK] " * 9, "The text has 9 [MASK]s; at most 8 can be answered together"),
        ("[MASK]" + " a" * 10_000, "The text has 20,006 characters; the maximum is 20,000"),
    ],
)
def test_invalid_texts_are_refused_before_a_model_is_loaded(text: str, sentence: str) -> None:
    """The message says what was received and what to do."""
    with pytest.raises(QueryError) as error:
        query.check_text(text)
    assert str(error.value).startswith(sentence)


def test_text_longer_than_the_positions_is_refused(tiny_run: Run) -> None:
    """The message gives its length in pieces and the model's limit."""
    with pytest.raises(QueryError, match=r"5,00\d pieces long .* at most 64"):
        query.ask(tiny_run, "[MASK]" + " ." * 5_000, [16])


def test_pieces_inside_words_are_marked(tiny_run: Run) -> None:
    """The first piece of a word reads as the word, a later piece has ## before it, and special tokens are unchanged."""
    tokenizer = load_tokenizer(tiny_run)
    ids = tokenizer.encode_text("the [MASK]")
    assert tokenizer.readable(ids) == ["[CLS]", "the", "[MASK]", "[SEP]"]
    inside = next(i for i in range(5, tokenizer.vocabulary_size) if not tokenizer.pieces([i])[0].startswith("▁"))
    assert tokenizer.readable([inside]) == ["##" + tokenizer.pieces([inside])[0]]


def test_importing_query_loads_no_torch() -> None:
    """The dashboard can import the module and refuse a text without torch or transformers."""
    code = (
        "import sys; from embryo_core import query; from embryo_core.errors import QueryError\n"
        "try: query.check_text('x')\nexcept QueryError: pass\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# === Words ===


@cache
def reference(run: Run, step: int):
    """Load the pretraining model with transformers."""
    from transformers import AlbertForPreTraining

    return AlbertForPreTraining.from_pretrained(runs.checkpoint(run, step).path).eval()


def probabilities(run: Run, step: int, ids: list[int], position: int) -> np.ndarray:
    """Return the probabilities [V] at one position by plain transformers."""
    import torch

    with torch.no_grad():
        logits = reference(run, step)(torch.tensor([ids])).prediction_logits[0, position]
    return torch.softmax(logits.double(), dim=0).numpy()


@pytest.mark.parametrize(("text", "mask"), [(ONE, 1), (TWO, 1), (TWO, 2)])
def test_word_of_two_pieces_follows_the_chain_rule(tiny_run: Run, text: str, mask: int) -> None:
    """P(river) at the first of two masks is multiplied by P(##s) after "river"; another mask of the text remains."""
    tokenizer = load_tokenizer(tiny_run)
    river, s = tokenizer.encode_text("rivers")[1:-1].tolist()
    ids = tokenizer.encode_text(text).tolist()
    at = [i for i, piece in enumerate(ids) if piece == tokenizer.mask_id][mask - 1]
    widened = [*ids[:at], tokenizer.mask_id, tokenizer.mask_id, *ids[at + 1 :]]
    filled = [*ids[:at], river, tokenizer.mask_id, *ids[at + 1 :]]
    word_scores = track(tiny_run, text, " rivers ", mask)
    word = word_scores.question.word
    assert (word.text, word.mask, word.pieces, word_scores.steps) == ("rivers", mask, ("river", "##s"), STEPS)
    assert set(word_scores.table["mask"]) == {mask} and set(word_scores.table["token"]) == {"rivers"}
    assert word_scores.question.widened.count("[MASK]") == text.count("[MASK]") + 1
    for row in word_scores.table.itertuples():
        alone, given = ((widened, at, river), (filled, at + 1, s))
        chances = [probabilities(tiny_run, row.step, *masked)[piece] for *masked, piece in (alone, given)]
        expected = np.prod(chances)
        model = MODELS.get(runs.checkpoint(tiny_run, row.step))
        tolerance = probability_rounding(model, len(widened), expected)
        assert row.probability == pytest.approx(expected, rel=2 * tolerance)


def test_word_of_one_piece_equals_the_listed_answer(tiny_run: Run) -> None:
    """Probability and rank at each step are those listed for the mask, over the whole vocabulary."""
    word_scores, listed = track(tiny_run, ONE, "river"), query.ask(tiny_run, ONE, k=700)
    assert word_scores.steps == STEPS and word_scores.question.widened == ONE and word_scores.skipped == ()
    for row in word_scores.table.itertuples():
        own = next(answer for answer in listed.best(row.step) if answer.token == "river")
        assert (row.rank, row.exact) == (own.rank, True)
        assert row.probability == pytest.approx(own.probability)


def test_rank_outside_the_beam_is_a_lower_bound(tiny_run: Run) -> None:
    """The word is less probable than the whole beam, so its rank is at least the one after the beam."""
    (row,) = track(tiny_run, ONE, "rivers", steps=[16]).table.itertuples()
    assert (row.rank, row.exact) == (query.BEAM_WIDTH + 1, False)


@pytest.mark.parametrize("sharpness", [1, 20])
@pytest.mark.parametrize("count", [2, 3])
def test_search_for_a_word_finds_its_beam_rank(
    tiny_run: Run, sharpness: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers range from the best to improbable ones, at confident checkpoints too; fewer rows are computed."""
    models, read, plain = [MODELS.get(runs.checkpoint(tiny_run, step)) for step in STEPS], [], beam._logits

    def sharp(models: list[Model], *rest: Any) -> Iterator[tuple[int, int, np.ndarray]]:
        for c, row, logits in plain(models, *rest):
            read.append(len(logits))
            yield c, row, logits * np.float32(sharpness)

    monkeypatch.setattr(beam, "_logits", sharp)
    asked = query.read_question("the " + "[MASK] " * count, models[0].tokenizer)
    whole = beam.search(models, asked)
    rows, ranks = len(models) * (1 + (count - 1) * (query.BEAM_WIDTH + 1)), set()  # of the beam, and of the word itself
    for place in (0, 1, 4, 9, None):
        pieces = np.array([7] * count) if place is None else whole[-1].answers[place]
        read.clear()
        replies = beam.search(models, asked, sought=pieces)
        assert sum(read) < rows
        for part, full in zip(replies, whole, strict=True):
            expected = score_word(replace(full, sought=part.sought), pieces)
            assert score_word(part, pieces) == expected
            ranks.add(expected[1])
    assert {1, 10, 11} <= ranks


def test_fact_asked_live_equals_the_stored_answer(tiny_results: Run) -> None:
    """At every step the prediction and its probability are compared, and the true object's probability and rank."""
    templates = results.read_sources(tiny_results)["world_knowledge"]["templates"]
    stored_rows = results.read_cloze(tiny_results)
    some = stored_rows.groupby(["step", "relation"]).head(2)
    assert len(some) >= 3 * 6
    for row in some.itertuples():
        text = Fact(row.fact, row.relation, templates[row.relation], row.subject, row.object).question
        (best,) = query.ask(tiny_results, text, [row.step], 1).best(row.step)
        assert best.token == row.prediction
        model = MODELS.get(runs.checkpoint(tiny_results, row.step))
        tolerance = probability_rounding(model, model.max_positions, [row.probability, row.prediction_probability])
        assert best.probability == pytest.approx(row.prediction_probability, rel=tolerance)
        (own,) = track(tiny_results, text, row.object, steps=[row.step]).table.itertuples()
        assert (own.rank, own.exact) == (row.rank, True)
        assert own.probability == pytest.approx(row.probability, rel=tolerance)


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
        ("[MASK]" + " ." * 61, "rivers", 1, "With 2 pieces of the word the text is 65 pieces long"),
    ],
)
def test_words_that_cannot_be_tracked_are_refused(tiny_run: Run, text: str, word: str, mask: int, message: str) -> None:
    """The message names the reason, which is in the word, in the number of its mask, or in the text."""
    with pytest.raises(QueryError) as error:
        track(tiny_run, text, word, mask)
    assert message in str(error.value)


def test_longest_text_and_word_that_fit_are_tracked(tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The widened text fills the model's positions, and the word has the largest number of pieces."""
    monkeypatch.setattr(question, "MAX_MASKS", 2)
    assert track(tiny_run, "[MASK]" + " ." * 60, "rivers", steps=[8]).steps == (8,)
