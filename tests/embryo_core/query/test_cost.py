"""Tests of the estimated cost of a question: matrix products equal those torch counts, and more work costs more."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from embryo_core import query
from embryo_core.engine.cache import ModelCache
from embryo_core.errors import BrokenCheckpoint, QueryError
from embryo_core.query import beam, cost, sentence, sweep
from embryo_core.runs import Architecture
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run
from tests.decoders import add_series

TEXT = "the cat sat on the [MASK] ."
TWO = "the [MASK] sat on the [MASK] ."
LONG = "[MASK]" + " a" * 5_000


def word(run: Run, text: str) -> query.Question:
    """Return the question for a word in TEXT."""
    return query.read_question(TEXT, load_tokenizer(run)).track(text)


ASKED = {
    "one step": (lambda run: cost.ask_seconds(run, TWO, 1), lambda run: query.ask(run, TWO, [8])),
    "all steps": (lambda run: cost.ask_seconds(run, TEXT), lambda run: query.ask(run, TEXT)),
    "a word of one piece": (
        lambda run: cost.ask_seconds(run, word(run, "the")),
        lambda run: query.ask(run, word(run, "the")),
    ),
    "a word of several": (
        lambda run: cost.ask_seconds(run, word(run, "cats")),
        lambda run: query.ask(run, word(run, "cats")),
    ),
    "layers": (lambda run: cost.ask_layers_seconds(run, TEXT), lambda run: query.ask_layers(run, TEXT)),
    "a sentence": (lambda run: cost.attend_seconds(run, TEXT), lambda run: query.attend(run, TEXT, 8)),
    "its steps": (
        lambda run: cost.attend_seconds(run, TEXT, None),
        lambda run: query.attend_over_steps(run, TEXT, 1, 1),
    ),
}


@pytest.fixture
def products_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let costs count matrix products alone, and let models compute on the path that torch counts.

    No beam stops before its last row.
    """
    monkeypatch.setenv("EMBRYO_KERNELS", "plain")
    for name, value in {
        "OPERATIONS_PER_SECOND": 1,
        "LOGIT_SECONDS": 0,
        "PASS_SECONDS": 0,
        "CHECKPOINT_SECONDS": 0,
    }.items():
        monkeypatch.setattr(cost, name, value)
    monkeypatch.setattr(beam, "FIRST_ROWS", query.BEAM_WIDTH)
    models = ModelCache()
    for module in (sentence, sweep):
        monkeypatch.setattr(module, "MODELS", models)


def counted(ask: Callable[[Run], object], run: Run) -> int:
    """Return the floating-point operations of a question's matrix products, as torch counts them."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        ask(run)
    return counter.get_total_flops()


@pytest.mark.parametrize("what", ASKED)
def test_estimated_products_equal_those_that_torch_counts(what: str, tiny_run: Run, products_alone: None) -> None:
    estimated, ask = ASKED[what]
    assert estimated(tiny_run) == counted(ask, tiny_run)


def test_albert_projects_embeddings_as_wide_as_its_states() -> None:
    """A BERT of the same sizes has no projection."""
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 40, "vocab_size": 100}
    albert, bert = (
        Architecture(model_type=family, hidden_size=24, max_position_embeddings=32, **sizes)
        for family in ("albert", "bert")
    )
    assert cost.products(albert, 1, 10) - cost.products(bert, 1, 10) == 2 * 10 * 24 * 24


def test_estimate_counts_shared_rows_more_than_once(tiny_run: Run, products_alone: None) -> None:
    """Rows may share the second of two filled pieces, so a word of three pieces is overestimated by up to 10%."""
    question = word(tiny_run, "catsat")
    assert 1 <= cost.ask_seconds(tiny_run, question) / counted(lambda run: query.ask(run, question), tiny_run) < 1.1


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_estimate_of_continued_text_is_within_factor_two(family: str, tmp_path: Path, products_alone: None) -> None:
    """The greedy continuation, a tracked word and the lens are compared."""
    run = add_series(tmp_path, family, (0, 5))
    text, word = "The cat sat on the", query.parse(run, "The cat sat on the").track("rivers")
    assert 0.5 <= cost.ask_seconds(run, text) / counted(lambda run: query.ask(run, text), run) <= 2
    assert 0.5 <= cost.ask_seconds(run, word) / counted(lambda run: query.ask(run, word), run) <= 2
    assert 0.5 <= cost.ask_layers_seconds(run, text) / counted(lambda run: query.ask_layers(run, text), run) <= 2


def test_estimate_includes_the_scoring_of_joint_answers(tiny_run: Run, products_alone: None) -> None:
    """Answers that lead at one step are scored at all others; their number is a guess, within a factor of two."""
    assert 0.5 <= cost.ask_seconds(tiny_run, TWO) / counted(lambda run: query.ask(run, TWO), tiny_run) <= 2


COUNTED = {  # numbers of checkpoints read, of passes, and of rows of logits
    "one step": (1, 2, 1 + 10),
    "all steps": (3, 3, 3),
    "a word of one piece": (3, 3, 3),
    "a word of several": (3, 3 * 3, 3 * (2 + 10)),  # the word itself, and a beam after its first piece
    "layers": (3, 3, 3 * 3),
    "a sentence": (1, 1, 0),
    "its steps": (3, 3, 0),
    "several masks": (10 * 2, 10 * 3, 10 * (1 + 10 + 4)),  # the first, a beam, and four answers outside it
}


@pytest.mark.parametrize("what", COUNTED)
def test_checkpoints_passes_and_logits_are_counted(what: str, tiny_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a cost in seconds besides that of matrix products."""
    estimates = {name: estimated for name, (estimated, _) in ASKED.items()}
    estimates["several masks"] = lambda run: cost.ask_seconds(run, TWO, 10)
    seconds = {"CHECKPOINT_SECONDS": 1.0, "PASS_SECONDS": 1.0, "LOGIT_SECONDS": 1 / 700}  # a row has 700 logits
    costs = []
    for counted in seconds:
        monkeypatch.setattr(cost, "OPERATIONS_PER_SECOND", float("inf"))
        for name, each in seconds.items():
            monkeypatch.setattr(cost, name, each if name == counted else 0)
        costs.append(estimates[what](tiny_run))
    assert costs == pytest.approx(COUNTED[what])


def test_more_work_costs_more(tiny_run: Run, own_run: Run) -> None:
    """Checkpoints, masks, words and pieces of a tracked word each raise the cost."""
    (own_run.path / "checkpoints" / "step8" / "manifest.json").unlink()
    assert cost.ask_seconds(own_run, TEXT) < cost.ask_seconds(tiny_run, TEXT) < cost.ask_seconds(tiny_run, TWO)
    assert (
        cost.ask_seconds(tiny_run, TEXT)
        < cost.ask_seconds(tiny_run, f"{TEXT} and the dog")
        < cost.ask_layers_seconds(tiny_run, TEXT) * 100
    )
    assert cost.ask_seconds(tiny_run, word(tiny_run, "the")) < cost.ask_seconds(tiny_run, word(tiny_run, "catsat"))
    assert cost.attend_seconds(tiny_run, TEXT) < cost.attend_seconds(tiny_run, TEXT, None)


def test_estimate_raises_the_errors_of_the_question(tiny_run: Run) -> None:
    """The text has no mask, is empty, or is too long with a tracked word or for the layers."""
    long = word(tiny_run, "the")
    long = replace(long, ids=np.concatenate([long.ids] * 100))
    for estimate, ask in (
        (lambda: cost.ask_seconds(tiny_run, "no mask"), lambda: query.ask(tiny_run, "no mask")),
        (lambda: cost.ask_seconds(tiny_run, long), lambda: query.ask(tiny_run, long)),
        (lambda: cost.ask_layers_seconds(tiny_run, LONG), lambda: query.ask_layers(tiny_run, LONG)),
        (lambda: cost.attend_seconds(tiny_run, " "), lambda: query.attend(tiny_run, " ", 8)),
    ):
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
        cost.ask_seconds(own_run, TEXT)


def test_cost_is_proportional_to_the_number_of_steps(tiny_run: Run) -> None:
    """Two of three checkpoints cost two thirds, for a single mask, a tracked word and the layers."""
    question = word(tiny_run, "catsat")
    for seconds in (
        lambda steps: cost.ask_seconds(tiny_run, TEXT, steps),
        lambda steps: cost.ask_seconds(tiny_run, question, steps),
        lambda steps: cost.ask_layers_seconds(tiny_run, TEXT, steps),
    ):
        assert seconds(2) == pytest.approx(seconds(None) * 2 / 3)
