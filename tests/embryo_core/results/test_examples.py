"""Examples are read as they were written, and nothing else is taken for them."""

import json

import pytest

from embryo_core import results
from embryo_core.errors import ResultsError
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.types import Run

MANY = json.dumps([{"text": "A [MASK] .", "word": "cat"}] * 21)


def test_examples_come_back_in_their_order(own_run: Run) -> None:
    """None before they are written; later ones take the place of earlier ones."""
    assert results.read_examples(own_run) == []
    for since in (8, None):
        written = [ExampleQuestion("A [MASK] .", "cat", since), ExampleQuestion("The [MASK] .", "dog", 16)]
        results.write_examples(own_run, written)
        assert results.read_examples(own_run) == written


@pytest.mark.parametrize("content", ["", "5", '[{"text": "A ."}]', '[{"text": 1, "word": "a"}]', "[[[[]]]]", MANY])
def test_a_file_that_holds_something_else_is_refused(own_run: Run, content: str) -> None:
    """In one sentence with its name; so is one of so many that no page could draw a button for each."""
    own_run.results.mkdir(parents=True, exist_ok=True)
    (own_run.results / "examples.json").write_text(content)
    with pytest.raises(ResultsError, match="examples.json"):
        results.read_examples(own_run)
