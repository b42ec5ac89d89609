"""Tests of LAMA variants: answers of encoders and a decoder equal those of transformers, one question at a time."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForPreTraining, PreTrainedTokenizerFast

from embryo_core import corpora
from embryo_core.corpora.lama import PRIMES
from embryo_core.engine.model import Model
from embryo_core.errors import CorpusError
from embryo_core.measurements import VariantAnswer
from embryo_core.metrics.lama_variants import LamaVariants, share_scores
from embryo_core.types import Fact
from tests.conftest import SAMPLE, SAMPLE_DATA
from tests.embryo_core.metrics.conftest import read


def rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a file of the sample."""
    return [json.loads(line) for line in (SAMPLE / "lama_variants" / name).read_text().splitlines()]


class Plain:
    """Answer one question at a time with a model and tokenizer of transformers."""

    def __init__(self, model: Model):
        pointer = model.checkpoint.pointer
        folder = Path(pointer.file).parent if pointer else model.checkpoint.path
        self.decoder = "next_words" in model.capabilities
        kind = AutoModelForCausalLM if self.decoder else AutoModelForPreTraining
        self.network = kind.from_pretrained(folder, dtype=torch.float32).eval()
        path = model.checkpoint.run.tokenizer / "tokenizer.json"
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(path))
        self.pieces = model.vocabulary_size

    def ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False).input_ids

    def piece(self, word: str) -> int | None:
        """Return the piece of a word inside a text; None if it is unknown or has several."""
        blank = " " if self.ids("a b") != self.ids("a") + self.ids("b") else ""
        ids = self.ids(blank + word)
        return ids[0] if len(ids) == 1 and ids[0] != self.tokenizer.convert_tokens_to_ids("[UNK]") else None

    def answer(self, template: str, subject: str) -> int | None:
        """Return the best piece in place of [Y]; None if a decoder cannot be asked."""
        if self.decoder:
            before, after = template.split("[Y]")
            if after.strip(" .") or "[X]" not in before:
                return None
            ids = self.ids(before.replace("[X]", subject).rstrip())
            with torch.inference_mode():
                return int(self.network(torch.tensor([ids])).logits[0, -1, : self.pieces].argmax())
        ids = self.ids(template.replace("[Y]", "[MASK]").replace("[X]", subject))
        cls, sep, mask = self.tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]", "[MASK]"])
        with torch.inference_mode():
            logits = self.network(torch.tensor([[cls, *ids, sep]])).prediction_logits
        return int(logits[0, 1 + ids.index(mask), : self.pieces].argmax())


def plain_shares(model: Model) -> dict[tuple[str, str], tuple[float, int]]:
    """Return value and n of each score and group by their definitions, counted fact by fact."""
    plain, outcomes = Plain(model), {}
    negated = {row["relation"]: row["template_negated"] for row in rows("negated_templates.jsonl")}
    primes = {(row["relation"], row["sub_label"], row["obj_label"]): row for row in rows("misprimed.jsonl")}

    def count(name: str, fact: Fact, holds: bool) -> None:
        for group in (fact.relation, "all"):
            outcomes.setdefault((name, group), []).append(holds)

    for fact in corpora.read_lama(SAMPLE_DATA["lama"]):
        piece = plain.piece(fact.object)
        best = None if piece is None else plain.answer(fact.template, fact.subject)
        if best is None:
            continue
        count("lama_variants", fact, best == piece)
        if best != piece:
            continue
        patterns = [row["pattern"] for row in rows("pararel_patterns.jsonl") if row["relation"] == fact.relation]
        patterns = [pattern[:-1] + " ." for pattern in patterns]
        answers = [plain.answer(pattern, fact.subject) for pattern in patterns if pattern != fact.template]
        answers = [answer for answer in answers if answer is not None]
        if answers:
            count("lama_variants_paraphrased", fact, answers.count(piece) > len(answers) / 2)
        if negated.get(fact.relation, fact.template) != fact.template:
            count("lama_variants_negated", fact, plain.answer(negated[fact.relation], fact.subject) == best)
        for kind in PRIMES:
            word = primes.get((fact.relation, fact.subject, fact.object), {}).get(f"prime_{kind}")
            if word:
                lost = plain.answer(f"{word}? {fact.template}", fact.subject) != piece
                count(f"lama_variants_{kind}", fact, lost)
    return {key: (float(np.mean(own)), len(own)) for key, own in outcomes.items()}


@pytest.mark.parametrize("family", ["trained_model", "bert", "gpt2"])
def test_shares_equal_those_of_single_questions(family, request):
    """All kinds and relations are compared; a BERT with random weights knows no fact, so it is asked no variant."""
    model = request.getfixturevalue(family)
    findings = LamaVariants().compute(model, read(LamaVariants(), model))
    expected = plain_shares(model)
    assert {(score.metric, score.group): (score.value, score.n) for score in findings.scores} == expected
    kinds = {metric for metric, _ in expected}
    assert len(kinds) > 3 if family != "bert" else kinds == {"lama_variants"}
    assert bool(findings.variants) == (family != "bert")


def test_recorded_variants_have_the_answers_of_single_questions(trained_model):
    """A variant is a template, or a wrong word before the template of the fact."""
    findings = LamaVariants().compute(trained_model, read(LamaVariants(), trained_model))
    plain = Plain(trained_model)
    facts = {fact.id: fact for fact in corpora.read_lama(SAMPLE_DATA["lama"])}
    for row in findings.variants:
        fact = facts[row.fact]
        template = f"{row.variant}? {fact.template}" if row.kind in PRIMES else row.variant
        best = plain.answer(template, fact.subject)
        assert (row.rank == 1) == (best == plain.piece(fact.object))
        assert row.prediction == trained_model.tokenizer.pieces([best])[0].removeprefix("▁")


def test_variants_that_cannot_be_asked_are_counted(trained_model, gpt2):
    """These are a negation equal to its template and, for a decoder, a paraphrase that does not end with the object."""
    notes = {name: read(LamaVariants(), model).summary["note"] for name, model in (("a", trained_model), ("g", gpt2))}
    assert "the negation of 1 relation" in notes["a"] and "not at the end" not in notes["a"]
    assert "whose object is not at the end" in notes["g"]


def test_unusable_folders_of_variants_are_reported(trained_model, tmp_path):
    """The folder has no variants or those of other facts, a line lacks its texts, or a pattern lacks [Y]."""
    with pytest.raises(CorpusError, match="has none of negated_templates"):
        read(LamaVariants(), trained_model, tmp_path)
    file = tmp_path / "misprimed.jsonl"
    file.write_text('{"relation": "P19", "sub_label": "Nobody", "obj_label": "Rome", "prime_high": "Paris"}\n')
    with pytest.raises(CorpusError, match="has a variant in"):
        read(LamaVariants(), trained_model, tmp_path)
    for line in ('{"relation": "P19"}', '{"relation": "P19", "sub_label": "A", "obj_label": 3}'):
        file.write_text(line + "\n")
        with pytest.raises(CorpusError, match=r"misprimed\.jsonl, line 1"):
            read(LamaVariants(), trained_model, tmp_path)
    (tmp_path / "pararel_patterns.jsonl").write_text('{"relation": "P19", "pattern": "[X] was born."}\n')
    with pytest.raises(CorpusError, match=r"one \[X\] and one \[Y\]"):
        read(LamaVariants(), trained_model, tmp_path)


def test_most_paraphrases_means_more_than_half():
    """Two right answers of three suffice, one of two does not; a wrong word loses a fact if the rank is above 1."""
    ranks = {"a": (1, 1, 5), "b": (1, 2), "c": (3,)}
    answers = [
        VariantAnswer(fact, "P19", "paraphrased", str(i), rank, "x")
        for fact, own in ranks.items()
        for i, rank in enumerate(own)
    ]
    answers += [VariantAnswer(fact, "P20", "high", "x", rank, "x") for fact, rank in (("d", 1), ("e", 2))]
    shares = {(score.metric, score.group): (score.value, score.n) for score in share_scores(answers)}
    assert shares["lama_variants_paraphrased", "P19"] == (pytest.approx(1 / 3), 3)
    assert shares["lama_variants_high", "all"] == shares["lama_variants_high", "P20"] == (0.5, 2)
