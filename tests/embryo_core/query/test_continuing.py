"""Tests of continuing a text: pieces, words of several pieces, greedy continuations and layers equal transformers."""

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from transformers import AutoModelForCausalLM

from embryo_core import query, runs
from embryo_core.engine.cache import MODELS
from embryo_core.engine.model import Model
from embryo_core.errors import BrokenCheckpoint, QueryError
from embryo_core.query import TOGETHER, report
from embryo_core.query.continuation import CONTINUATION_LENGTH, continue_greedily
from embryo_core.query.question import before_mask, parse
from embryo_core.types import Run
from tests.conftest import copy_run
from tests.decoders import add_series
from tests.rounding import probability_rounding

TEXT = "The cat sat on the"
WORD = "rivers"
STEPS = (0, 5, 10)
MASKED = "The cat sat on the [MASK] ."


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def run(request: pytest.FixtureRequest, shared: Callable[..., Path]) -> Run:
    """Return a run of tiny decoders; a token opens every text of the LLaMA, but not of the GPT-2."""
    family = request.param
    root = shared(
        f"continuing-{family}", lambda root: add_series(root, family, STEPS, family == "llama", vocabulary=600)
    )
    return runs.read_run(root / "runs" / family)


@cache
def reference(run: Run, step: int) -> torch.nn.Module:
    """Load a checkpoint with transformers."""
    return AutoModelForCausalLM.from_pretrained(runs.checkpoint(run, step).path).eval()


def probabilities(run: Run, step: int, ids: list[int]) -> np.ndarray:
    """Return the probabilities [V] of the piece after ids."""
    with torch.no_grad():
        logits = reference(run, step)(torch.tensor([ids])).logits[0, -1]
    return torch.softmax(logits.double(), dim=0).numpy()


def pieces(run: Run, text: str) -> list[int]:
    """Return the ids of a text, after the token that opens it, if any."""
    tokenizer = parse(run, text).tokenizer
    return [*tokenizer.begin.tolist(), *tokenizer._tokenizer.encode(text, add_special_tokens=False).ids]


def tolerance(run: Run, expected: float) -> float:
    """Return the relative tolerance of a probability."""
    return probability_rounding(MODELS.get(runs.checkpoint(run, 10)), 20, np.array(expected))


def change(run: Run, step: int, config: dict, tensors: dict | None = None) -> None:
    """Change the settings and tensors of a checkpoint, as if it had been trained with them."""
    folder = runs.checkpoint(run, step).path
    (folder / "config.json").write_text(json.dumps(json.loads((folder / "config.json").read_text()) | config))
    if tensors:
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "manifest.json").unlink()
    runs.write_manifest(folder, step, None, None)


def test_next_pieces_equal_transformers(run: Run) -> None:
    """Ids, order, ranks and probabilities of the best pieces are compared at every step."""
    answers, ids = query.ask(run, TEXT, k=5), pieces(run, TEXT)
    assert answers.steps == STEPS and answers.question.continues and answers.masks == 1
    assert answers.question.ids.tolist() == ids
    for step in STEPS:
        expected = probabilities(run, step, ids)
        best = np.argsort(-expected, kind="stable")[:5]
        listed = answers.best(step)
        assert [answer.token for answer in listed] == answers.question.tokenizer.readable(best)
        assert [answer.rank for answer in listed] == [1, 2, 3, 4, 5]
        assert [answer.probability for answer in listed] == pytest.approx(
            expected[best], rel=tolerance(run, expected[best])
        )


def test_word_probability_is_the_product_over_its_pieces(run: Run) -> None:
    """The probability of each piece is that after the true pieces before it."""
    question = parse(run, TEXT).track(WORD)
    ids, word = pieces(run, TEXT), question.tracked.ids.tolist()
    assert len(word) > 1 and question.widened == TEXT
    for row in query.ask(run, question).table.itertuples():
        factors = [probabilities(run, row.step, [*ids, *word[:i]])[word[i]] for i in range(len(word))]
        assert row.probability == pytest.approx(math.prod(factors), rel=len(word) * tolerance(run, min(factors)))
        assert row.token == WORD and row.rank >= 1


def test_word_of_one_piece_has_its_listed_rank(run: Run) -> None:
    """The rank is exact over the whole vocabulary, and the probability is the listed one."""
    question = parse(run, TEXT).track("the")
    assert len(question.tracked.pieces) == 1
    listed = query.ask(run, TEXT, k=1000)
    for row in query.ask(run, question).table.itertuples():
        own = next(answer for answer in listed.best(row.step) if answer.token == "the")
        assert (row.rank, row.exact) == (own.rank, True)
        assert row.probability == pytest.approx(own.probability, rel=tolerance(run, own.probability))


def test_piece_inside_a_word_is_tracked_by_name(run: Run) -> None:
    """Tables show it as "##" and its letters; without "##" the piece begins a word."""
    (row,) = query.ask(run, parse(run, TEXT).track("##ing"), [10]).table.itertuples()
    ids = pieces(run, TEXT)
    tokenizer = parse(run, TEXT).tokenizer
    expected = probabilities(run, 10, ids)[tokenizer._tokenizer.token_to_id("ing")]
    assert row.probability == pytest.approx(expected, rel=tolerance(run, expected))
    assert parse(run, TEXT).track("ing").tracked.pieces != parse(run, TEXT).track("##ing").tracked.pieces


def test_greedy_continuation_equals_generate(run: Run) -> None:
    """Its probability is the product of those of its pieces, at every step."""
    answers, ids = query.ask(run, TEXT), pieces(run, TEXT)
    for step in STEPS:
        model = reference(run, step)
        given = torch.tensor([ids])
        whole = model.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=CONTINUATION_LENGTH)[
            0
        ].tolist()
        assert whole[: len(ids)] == ids
        own = whole[len(ids) :]
        (greedy,) = answers.best(step, TOGETHER)
        assert greedy.token == answers.question.decode_continuation(np.array(own)) and greedy.exact is False
        factors = [probabilities(run, step, whole[: len(ids) + i])[own[i]] for i in range(len(own))]
        assert greedy.probability == pytest.approx(
            math.prod(factors), rel=CONTINUATION_LENGTH * tolerance(run, min(factors))
        )


def test_each_further_piece_is_one_pass_over_one_piece(run: Run) -> None:
    """The text is read once; its states are cached."""
    model, question = MODELS.get(runs.checkpoint(run, 5)), parse(run, TEXT)
    recorder = Recorder(model)
    continue_greedily([recorder], question)
    assert recorder.lengths == [len(question.ids), *[1] * (CONTINUATION_LENGTH - 1)]


class Recorder:
    """Wrap a model and record the number of pieces that each pass reads."""

    def __init__(self, model: Model) -> None:
        self._model, self.lengths = model, []

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    def forward_with_past(self, ids: np.ndarray, past: Any) -> Any:
        """Record a pass of the model, and return its result."""
        self.lengths.append(ids.shape[1])
        return self._model.forward_with_past(ids, past)


def test_continuation_stops_at_end_token_or_last_position(run: Run, tmp_path: Path) -> None:
    """The end token is included; a text of 38 pieces is continued until the model has no position left."""
    own = copy_run(run, tmp_path)
    question = parse(run, TEXT)
    model = MODELS.get(runs.checkpoint(run, 10))
    (whole,) = continue_greedily([model], question)
    end = whole.answers[0, 3].item()
    change(own, 10, {"eos_token_id": [5, end]})
    (ended,) = continue_greedily([MODELS.get(runs.checkpoint(own, 10))], question)
    first = whole.answers[0].tolist().index(end)
    assert ended.answers[0].tolist() == whole.answers[0, : first + 1].tolist()
    long = parse(run, "a" + " the" * (37 - len(question.tokenizer.begin)))
    assert len(long.ids) == 38
    (short,) = continue_greedily([model], long)
    assert len(short.answers[0]) == model.max_positions - 38 + 1


def test_lens_applies_final_norm_and_head_to_every_layer(run: Run) -> None:
    """It reads the last position; the last layer's answer is the model's own."""
    layer_answers, ids = query.ask_layers(run, TEXT, k=3), pieces(run, TEXT)
    for step in STEPS:
        model = reference(run, step)
        norm = model.transformer.ln_f if hasattr(model, "transformer") else model.model.norm
        with torch.no_grad():
            states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
            normed = [*(norm(state) for state in states[:-1]), states[-1]]
            expected = [torch.softmax(model.lm_head(state)[0, -1].double(), dim=0).numpy() for state in normed]
        for layer, of_layer in enumerate(expected):
            best = np.argsort(-of_layer, kind="stable")[:3]
            listed = layer_answers.best(step, 1, layer)
            assert [answer.token for answer in listed] == layer_answers.question.tokenizer.readable(best)
            own = [answer.probability for answer in listed]
            assert own == pytest.approx(of_layer[best], rel=tolerance(run, of_layer[best]))
        own = query.ask(run, TEXT, [step]).best(step)[0].probability
        assert listed[0].probability == pytest.approx(own, rel=tolerance(run, own))


def test_texts_that_the_models_cannot_answer_are_refused(run: Run, tiny_run: Run) -> None:
    """Decoders fill no [MASK], encoders continue no text, and a continued text has one place; long texts fail too."""
    with pytest.raises(QueryError, match=r"has a \[MASK\].* continues a text.*: The capital of France is$"):
        query.ask(run, MASKED)
    with pytest.raises(QueryError, match=r"no \[MASK\]; write \[MASK\]"):
        query.ask(tiny_run, TEXT)
    with pytest.raises(QueryError, match=r"no \[MASK\] 2.* continued"):
        query.ask_layers(run, TEXT, 2)
    with pytest.raises(QueryError, match="is empty; write the beginning"):
        query.ask(run, " ")
    with pytest.raises(QueryError, match=r"41 pieces long .* at most 40"):
        query.ask(run, "a" + " the" * (40 - len(parse(run, TEXT).tokenizer.begin)))
    assert before_mask(MASKED) == TEXT and before_mask(TEXT) == TEXT


@pytest.mark.parametrize(
    ("text", "continued", "filled"),
    [
        ("Ann was born in [MASK] .", "Ann was born in", "Ann was born in [MASK] ."),
        ("Ann was born in", "Ann was born in", "Ann was born in [MASK] ."),
        ("[mask] was born .", "[mask] was born .", "[mask] was born ."),
        ("[MASK] and [mask].", "[MASK] and [mask].", "[MASK] and [mask]."),
    ],
)
def test_reword_adds_or_removes_only_a_final_mask(text: str, continued: str, filled: str) -> None:
    """A fact or a comparison can then be asked of encoders and decoders; any other text is unchanged."""
    assert query.reword(text, {"next_words"}) == continued and query.reword(text, {"masked_words"}) == filled
    assert query.reword(text, {"next_words", "masked_words"}) == text


def test_examples_are_asked_up_to_their_mask(run: Run) -> None:
    """The list of questions serves encoders too; a question that begins with its mask is left out for decoders."""
    (example,) = query.find_examples(run, [(MASKED, "the"), ("[MASK] is nothing to continue .", "the")])
    assert (example.text, example.word) == (TEXT, "the")


def test_reports_say_that_the_text_is_continued(run: Run) -> None:
    """All four reports do; those of one step and of all steps also have the greedy continuations."""
    answers = query.ask(run, TEXT)
    at_step = report.report_step(run, TEXT, 5, 3)
    assert "text continued: " + TEXT in at_step and answers.best(5, TOGETHER)[0].token in at_step
    history = report.report_history(run, TEXT)
    assert all(f"{step}  " in history and answers.best(step, TOGETHER)[0].token in history for step in STEPS)
    assert "after the text" in report.report_word(run, TEXT, WORD)
    assert "layers after the text" in report.report_layers(run, TEXT)


def test_checkpoint_with_infinite_logits_is_left_out(run: Run, tmp_path: Path) -> None:
    """Its weights are finite; if only this checkpoint is asked, the error is raised."""
    own = copy_run(run, tmp_path)
    for step in (0, 10):
        tensors = load_file(runs.checkpoint(own, step).path / "model.safetensors")
        name = next(name for name in sorted(tensors) if "mlp" in name and "weight" in name)
        change(own, step, {}, tensors | {name: np.full_like(tensors[name], 3e38)})
    with pytest.raises(BrokenCheckpoint, match="step10: its"):
        query.ask(own, TEXT, [10])
    with pytest.raises(BrokenCheckpoint, match="step10: its"):
        query.ask_layers(own, TEXT, steps=[10])
    answers = query.ask(own, TEXT)
    assert answers.steps == (5,) and len(answers.skipped) == 2
    assert answers.table.equals(query.ask(run, TEXT, [5]).table)
