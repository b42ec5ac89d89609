"""Tests of the examples of a run: questions that it learns to answer, and one that it does not learn."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from embryo_core import query, runs
from embryo_core.errors import CorpusError, QueryError
from embryo_core.query import examples
from embryo_core.query.answers import tabulate_word
from embryo_core.types import Run

STEPS = (0, 8, 16, 32)
RANKS = {  # of the word at each step, by text
    "early": (9, 1, 1, 1),
    "lost and found": (9, 1, 9, 1),
    "late": (9, 9, 9, 1),
    "always": (1, 1, 1, 1),
    "forgotten": (9, 1, 1, 9),
    "far": (9, 9, 9, 9),
    "close": (9, 9, 9, 2),
}


Histories = Callable[[dict[str, tuple[int, ...]], dict[str, tuple[float, ...]]], list[tuple[str, str]]]


@pytest.fixture
def histories(monkeypatch: pytest.MonkeyPatch, tiny_run: Run) -> Histories:
    """Return a function that makes questions whose words have given ranks and probabilities over the steps, by text."""

    def make(ranks: dict[str, tuple[int, ...]], shares: dict[str, tuple[float, ...]]) -> list[tuple[str, str]]:
        def ask(run: Run, question: query.Question) -> query.Answers:
            text = question.text.removesuffix(" [MASK] .")
            scores = {step: (shares[text][i], ranks[text][i], True) for i, step in enumerate(STEPS)}
            word = question if question.word else question.track("the")
            return query.Answers(run.name, word, tabulate_word(word, scores), ())

        monkeypatch.setattr(examples, "ask", ask)
        return [(f"{text} [MASK] .", "the") for text in ranks]

    return make


@pytest.fixture
def asked_questions(histories: Histories) -> list[tuple[str, str]]:
    """Return the questions of RANKS, one whose word cannot be encoded, and one whose word has two pieces."""
    known = histories(RANKS, {text: tuple(0.5 / rank for rank in ranks) for text, ranks in RANKS.items()})
    return [*known, ("unknown [MASK] .", "☃"), ("early [MASK] .", "catsat")]


def test_examples_are_sorted_and_end_with_an_unlearned_one(asked_questions, tiny_run: Run) -> None:
    """A learned word leads at the last step, not at the first; the unlearned one never led and is most probable."""
    chosen_examples = [(example.text, example.since) for example in examples.find_examples(tiny_run, asked_questions)]
    learned = [("early [MASK] .", 8), ("lost and found [MASK] .", 32), ("late [MASK] .", 32)]
    assert chosen_examples == [*learned, ("close [MASK] .", None)]


def test_four_learned_examples_are_spread_from_first_to_last(histories, tiny_run: Run) -> None:
    """Seven are sorted by the step from which the word leads for good, then by their place in the list."""
    since = {"a": 32, "b": 8, "c": 16, "d": 8, "e": 32, "f": 16, "g": 16}
    ranks = {text: tuple(1 if step >= at else 9 for step in STEPS) for text, at in since.items()}
    shares = {text: tuple(0.5 / rank for rank in of_text) for text, of_text in ranks.items()}
    chosen_examples = examples.find_examples(tiny_run, histories(ranks, shares))
    assert [(example.text[0], example.since) for example in chosen_examples] == [
        ("b", 8),
        ("c", 16),
        ("g", 16),
        ("e", 32),
    ]


def test_unlearned_example_never_led_and_is_most_probable(histories, tiny_run: Run) -> None:
    """A word that led in between and a word that was more probable earlier are not chosen."""
    ranks = {"led": (9, 1, 9, 2), "was": (9, 2, 9, 9), "is": (9, 9, 9, 3)}
    shares = {"led": (0.1, 0.9, 0.1, 0.4), "was": (0.1, 0.4, 0.1, 0.1), "is": (0.1, 0.1, 0.1, 0.3)}
    (only,) = examples.find_examples(tiny_run, histories(ranks, shares))
    assert (only.text, only.since) == ("is [MASK] .", None)


def test_run_that_learns_nothing_has_an_unlearned_example(asked_questions, tiny_run: Run) -> None:
    """An empty list of questions gives no example."""
    (only,) = examples.find_examples(tiny_run, [("far [MASK] .", "the")])
    assert only.since is None and examples.find_examples(tiny_run, []) == []


def test_questions_of_the_sample_are_read() -> None:
    """There are at least 50, and their texts are distinct."""
    questions = examples.read_questions(runs.REPOSITORY / "data" / "sample" / "questions.tsv")
    assert len(questions) >= 50 and len({text for text, _ in questions}) == len(questions)


@pytest.mark.parametrize("line", ["no tab [MASK] .", "no mask\tword", "[MASK] [MASK]\tword", "[MASK]\ta\tb"])
def test_malformed_question_is_refused(tmp_path: Path, line: str) -> None:
    """The error quotes the line and describes the format; a missing file is reported too."""
    (tmp_path / "questions.tsv").write_text(f"A [MASK] .\tcat\n{line}\n")
    with pytest.raises(CorpusError, match=f"{re.escape(repr(line))}; write a text with one"):
        examples.read_questions(tmp_path / "questions.tsv")
    with pytest.raises(CorpusError, match="cannot be read"):
        examples.read_questions(tmp_path / "nothing.tsv")


def test_list_without_questions_is_refused(tmp_path: Path) -> None:
    """Otherwise it would replace the examples of a run by none."""
    (tmp_path / "questions.tsv").write_text("\n \n")
    with pytest.raises(CorpusError, match="holds no question"):
        examples.read_questions(tmp_path / "questions.tsv")


def test_questions_without_single_piece_words_are_refused(asked_questions, tiny_run: Run) -> None:
    """Otherwise the run would silently have no examples."""
    with pytest.raises(QueryError, match="none of 2 questions"):
        examples.find_examples(tiny_run, asked_questions[-2:])
