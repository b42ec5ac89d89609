"""Tests of the estimated cost of a question: more work costs more, and errors are those of the question."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embryo_core import query
from embryo_core.errors import BrokenCheckpoint, QueryError
from embryo_core.query import cost
from embryo_core.runs import Architecture
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run
from tests.decoders import add_series

TEXT = "the cat sat on the [MASK] ."
TWO = "the [MASK] sat on the [MASK] ."
THREE = "the [MASK] sat on the [MASK] [MASK]"
LONG = "[MASK]" + " a" * 5_000
START = "The cat sat on the"


def word(run: Run, text: str) -> query.Question:
    """Return the question for a word in TEXT."""
    return query.read_question(TEXT, load_tokenizer(run)).track(text)


def test_more_masks_pieces_and_layers_cost_more(tiny_run: Run) -> None:
    """A beam at a later mask costs several passes, more than a longer text or a longer word."""
    one, two, three = (cost.ask_seconds(tiny_run, query.parse(tiny_run, text)) for text in (TEXT, TWO, THREE))
    assert two - cost.CHECKPOINT_SECONDS > 5 * (one - cost.CHECKPOINT_SECONDS) and three > two
    longer = cost.ask_seconds(tiny_run, query.parse(tiny_run, f"{TEXT} and the dog"))
    assert one < longer < cost.ask_seconds(tiny_run, word(tiny_run, "cats"))
    assert cost.ask_seconds(tiny_run, word(tiny_run, "the")) == one
    assert cost.ask_seconds(tiny_run, word(tiny_run, "cats")) < cost.ask_seconds(tiny_run, word(tiny_run, "catsat"))
    assert one < cost.ask_layers_seconds(tiny_run, TEXT) and one < cost.attend_seconds(tiny_run, TEXT)


def test_continuation_costs_a_pass_for_each_piece(tmp_path: Path) -> None:
    """A tracked word of one piece takes one pass, and a later piece of a word less than a later mask."""
    run = add_series(tmp_path, "gpt2", (0, 5))
    question = query.parse(run, START)
    one, several = (question.track(text) for text in ("the", "rivers"))
    assert len(one.tracked.pieces) == 1 < len(several.tracked.pieces)
    pass_seconds = cost.ask_seconds(run, one) - cost.CHECKPOINT_SECONDS
    assert cost.ask_seconds(run, question) == pytest.approx(
        cost.CHECKPOINT_SECONDS + query.CONTINUATION_LENGTH * pass_seconds
    )
    assert cost.ask_seconds(run, one) < cost.ask_seconds(run, several)


@pytest.mark.parametrize(
    ("sizes", "length", "seconds"),
    [
        ({"hidden_size": 192, "num_hidden_layers": 8, "intermediate_size": 768, "vocab_size": 8_000}, 12, 0.0015),
        ({"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3_072, "vocab_size": 30_000}, 100, 0.25),
    ],
    ids=["demo", "base"],
)
def test_shared_layers_cost_as_much_as_separate_ones(
    sizes: dict[str, int], length: int, seconds: float, tiny_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Costs are seconds of one core, within a factor of two of measured ones (docs/benchmarks.md)."""
    costs = []
    for family in ("albert", "bert"):
        architecture = Architecture(model_type=family, max_position_embeddings=128, num_attention_heads=4, **sizes)
        monkeypatch.setattr(cost, "_architecture", lambda run, architecture=architecture: architecture)
        text = " ".join(["the"] * (length - 3)) + " [MASK]"
        costs.append(cost.ask_seconds(tiny_run, query.parse(tiny_run, text)))
    assert costs[0] == pytest.approx(costs[1]) and seconds / 2 < costs[0] < 2 * seconds


def test_estimate_raises_the_errors_of_the_question(tiny_run: Run) -> None:
    """The text has no mask, is empty, or is too long with a tracked word or for the layers."""
    long = word(tiny_run, "the")
    long = replace(long, ids=np.concatenate([long.ids] * 100))
    asked: list[tuple[Callable[[], object], Callable[[], object]]] = [
        (lambda: cost.ask_layers_seconds(tiny_run, "no mask"), lambda: query.ask_layers(tiny_run, "no mask")),
        (lambda: cost.ask_seconds(tiny_run, long), lambda: query.ask(tiny_run, long)),
        (lambda: cost.ask_layers_seconds(tiny_run, LONG), lambda: query.ask_layers(tiny_run, LONG)),
        (lambda: cost.attend_seconds(tiny_run, " "), lambda: query.attend(tiny_run, " ", 8)),
    ]
    for estimate, ask in asked:
        with pytest.raises(QueryError) as estimated:
            estimate()
        with pytest.raises(QueryError) as error:
            ask()
        assert str(estimated.value) == str(error.value)


def test_run_without_readable_checkpoints_has_no_estimate(own_run: Run) -> None:
    """The error of a checkpoint is raised."""
    for config in own_run.path.glob("checkpoints/*/config.json"):
        config.write_text("{}")
    with pytest.raises(BrokenCheckpoint, match=r"config\.json"):
        cost.ask_layers_seconds(own_run, TEXT)
