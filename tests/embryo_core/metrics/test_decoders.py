"""Tests of the metrics of decoders, each compared with plain transformers, which read one prefix at a time."""

import shutil
from collections import Counter
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

from embryo_core import corpora
from embryo_core.engine.model import Model
from embryo_core.groups import PARTS_OF_SPEECH, TAGS
from embryo_core.metrics.attention import Attention
from embryo_core.metrics.head_behaviour import HeadBehaviour
from embryo_core.metrics.ngram_divergence import NgramDivergence
from embryo_core.metrics.positions import Positions
from embryo_core.metrics.word_prediction import NextWordPrediction
from embryo_core.metrics.world_knowledge import WorldKnowledge
from embryo_core.types import Example
from tests.conftest import SAMPLE_DATA
from tests.embryo_core.metrics.conftest import read


@pytest.fixture(params=["gpt2", "neox"])
def decoder(request: pytest.FixtureRequest) -> Model:
    """Return each decoder: without and with a token before a text."""
    return request.getfixturevalue(request.param)


class Plain:
    """Hold a checkpoint's model and tokenizer in transformers."""

    def __init__(self, model: Model):
        path = model.checkpoint.pointer.file
        folder = path.rpartition("/")[0]
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
        self.begin = self.tokenizer("").input_ids

    @torch.inference_mode()
    def after(self, ids: list[int], **outputs: bool):
        """Return the model's outputs for these ids alone."""
        return self.model(input_ids=torch.tensor([ids]), **outputs)

    def next(self, ids: list[int]) -> np.ndarray:
        """Return the logits of the next piece."""
        return self.after(ids).logits[0, -1, : len(self.tokenizer)].numpy()

    def pieces(self, example: Example) -> list[list[int]]:
        """Return the pieces of each word in the running text."""
        return pieces_of(self.tokenizer, example)


def pieces_of(tokenizer: PreTrainedTokenizerBase, example: Example) -> list[list[int]]:
    """Return the pieces of each word in the running text; no piece spans two words, and a blank begins a word."""
    blanks = example.blanks or [True] * len(example.words)
    text = "".join(word + " " * blank for word, blank in zip(example.words, blanks)).rstrip()
    encoding = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    cut: list[list[int]] = [[] for _ in example.words]
    ends = np.cumsum([len(word) + blank for word, blank in zip(example.words, blanks)])
    for piece, (start, end) in zip(encoding.input_ids, encoding.offset_mapping):
        cut[int(np.searchsorted(ends, end - 1, side="right")) + (not text[start:end].strip())].append(piece)
    return cut


def test_next_word_prediction_equals_plain_transformers(decoder: Model):
    """A word is right if each of its pieces has the highest logit after the true pieces before it."""
    plain, asked = Plain(decoder), []
    for example in corpora.read_treebank(SAMPLE_DATA["treebank"]):
        cut = plain.pieces(example)
        for target in example.targets:
            (at, _) = target.span1
            before = [*plain.begin, *chain(*cut[:at])]
            if not before:
                continue
            right = all(plain.next(before + cut[at][:i]).argmax() == piece for i, piece in enumerate(cut[at]))
            asked.append((target.label, example.words[at], right))
    findings = NextWordPrediction().compute(decoder, read(NextWordPrediction(), decoder))
    assert Counter((word.tag, word.word) for word in findings.words for _ in range(word.n)) == Counter(
        (tag, word) for tag, word, _ in asked
    )
    assert {(word.tag, word.word): word.correct for word in findings.words if word.correct} == Counter(
        (tag, word) for tag, word, right in asked if right
    )
    scores = {score.group: (score.value, score.n) for score in findings.scores}
    for group in (*PARTS_OF_SPEECH, "VBD"):
        own = [right for tag, _, right in asked if tag in TAGS[group]]
        assert scores[group] == (pytest.approx(np.mean(own)), len(own)) if own else group not in scores
    hits = sum(right for *_, right in asked)
    assert 0 < hits < len(asked)


def test_first_words_without_context_are_left_out_and_counted(gpt2: Model, neox: Model):
    """A decoder with a token before the text predicts them too."""
    without, with_token = (read(NextWordPrediction(), model) for model in (gpt2, neox))
    left_out = len(with_token.words) - len(without.words)
    assert left_out == sum(with_token.start == 1) > 0
    assert f"{left_out} words without a context were left out" in without.summary["note"]
    assert "without a context" not in with_token.summary["note"]
    for metric in (NextWordPrediction(), Attention(), HeadBehaviour(), Positions()):
        assert "read as running text" in read(metric, neox).summary["note"]


def test_world_knowledge_equals_plain_transformers(decoder: Model, tmp_path: Path):
    """Facts whose template continues after the object are left out and counted."""
    folder = shutil.copytree(SAMPLE_DATA["lama"], tmp_path / "lama")
    relations = (folder / "relations.jsonl").read_text()
    (folder / "relations.jsonl").write_text(relations.replace("[X] was born in [Y] .", "[Y] saw [X] born in it ."))
    plain, facts = Plain(decoder), corpora.read_lama(folder)
    expected = {}
    for fact in facts:
        before, _, after = fact.template.partition("[Y]")
        piece = plain.tokenizer(f" {fact.object}", add_special_tokens=False).input_ids
        if after.strip() not in ("", ".") or "[X]" not in before or len(piece) > 1:
            continue
        logits = plain.next(plain.tokenizer(before.replace("[X]", fact.subject).strip()).input_ids).astype(float)
        odds = np.exp(logits - logits.max())
        expected[fact.relation, fact.id] = 1 + (logits > logits[piece[0]]).sum(), odds[piece[0]] / odds.sum()
    data = read(WorldKnowledge(), decoder, folder)
    findings = WorldKnowledge().compute(decoder, data)
    assert {(answer.relation, answer.fact) for answer in findings.cloze} == expected.keys()
    for answer in findings.cloze:
        rank, probability = expected[answer.relation, answer.fact]
        assert answer.rank == rank and answer.probability == pytest.approx(probability, rel=1e-4)
    going_on = sum(fact.prompt is None for fact in facts)
    assert 0 < len(expected) < len(facts) and going_on
    assert f"left out: {going_on} " in data.summary["note"]
    coverage = {score.group: score.value for score in findings.scores if score.metric == "world_knowledge_coverage"}
    assert coverage["all"] == pytest.approx(len(expected) / len(facts))
    assert any(answer.rank == 1 for answer in findings.cloze)


def test_ngram_divergence_equals_slow_counts(decoder: Model):
    """The next piece's distribution after each context is compared with counts of pieces and of pairs."""
    plain = Plain(decoder)
    lines = [
        [plain.begin + plain.tokenizer(line, add_special_tokens=False).input_ids for line in text]
        for text in (corpora.read_text(SAMPLE_DATA["ngrams"], split) for split in ("train", "heldout"))
    ]
    singles = Counter(piece for line in lines[0] for piece in line[len(plain.begin) :])
    pairs = Counter(pair for line in lines[0] for pair in pairwise(line))
    size = len(plain.tokenizer)
    unigram = np.array([singles[piece] + 1.0 for piece in range(size)])
    unigram /= unigram.sum()
    data = read(NgramDivergence(), decoder)
    scores = {
        score.group: score for score in NgramDivergence().compute(decoder, data).scores if "error" not in score.metric
    }
    expected = []
    for number, position in zip(data.line, data.position):
        line = lines[1][number][:64]
        np.testing.assert_array_equal(data.lines[number], line)
        logits = plain.next(line[:position]).astype(float)
        p = np.exp(logits - logits.max())
        p /= p.sum()
        own = np.array([pairs[line[position - 1], piece] for piece in range(size)], float)
        different = (own > 0).sum()
        bigram = (own + different * unigram) / (own.sum() + different) if different else unigram
        expected.append([(p * np.log(p / q)).sum() for q in (unigram, bigram)])
    means = np.mean(expected, axis=0)
    assert [scores["unigram"].value, scores["bigram"].value] == pytest.approx(means.tolist(), rel=1e-4)
    assert scores["unigram"].n == len(expected) and "next pieces" in data.summary["note"]
    assert data.summary["counted"] == singles.total()


def test_head_behaviour_and_positions_equal_plain_transformers(decoder: Model):
    """A token before the text shifts the positions of its pieces, but is not one of them.

    Without one, the first piece has no previous piece and does not count; nor has the last one a next piece.
    """
    plain, sums, cosines = Plain(decoder), Counter(), []
    counts = Counter()
    for example in corpora.read_treebank(SAMPLE_DATA["treebank"]):
        inner = [*chain(*plain.pieces(example))]
        ids, first = plain.begin + inner, len(plain.begin)
        out = plain.after(ids, output_attentions=True, output_hidden_states=True)
        weights = out.attentions[1][0, 1].numpy()
        counts["same"] += len(inner)
        counts["previous"] += len(ids) - max(first, 1)
        counts["next"] += len(inner) - 1
        sums["same"] += sum(weights[i, i] for i in range(first, len(ids)))
        sums["previous"] += sum(weights[i, i - 1] for i in range(max(first, 1), len(ids)))
        sums["next"] += sum(weights[i, i + 1] for i in range(first, len(ids) - 1))
        sums["cls"] += weights[first:, 0].sum() if first else 0
        states = out.hidden_states[1][0, first:].numpy().astype(float)
        units = states / np.linalg.norm(states, axis=1, keepdims=True)
        if len(inner) > 1:
            cosines.append((units @ units.T)[np.triu_indices(len(inner), 1)].mean())
    metric_scores = {
        score.metric: (score.value, score.n)
        for score in HeadBehaviour().compute(decoder, read(HeadBehaviour(), decoder)).scores
        if (score.layer, score.group) == (2, "2")
    }
    for name in ("same", "previous", "next"):
        expected = pytest.approx(sums[name] / counts[name], rel=1e-4)
        assert metric_scores[f"head_behaviour_{name}"] == (expected, counts[name])
    assert metric_scores["head_behaviour_next"][0] == 0 and "head_behaviour_sep" not in metric_scores
    cls = (pytest.approx(sums["cls"] / counts["same"], rel=1e-4), counts["same"]) if plain.begin else None
    assert metric_scores.get("head_behaviour_cls") == cls
    scores = Positions().compute(decoder, read(Positions(), decoder)).scores
    assert next(score.value for score in scores if score.layer == 1) == pytest.approx(np.mean(cosines), rel=1e-4)


def test_first_word_of_decoder_has_no_link(decoder: Model):
    """It attends to no other word, and no other word precedes it; the last word is attended to by none.

    Without this, the first of equal weights of 0 would count: the second word is often the head of the first.
    """
    plain = Plain(decoder)
    hits = dict.fromkeys(("dependent_to_head", "head_to_dependent"), 0)
    asked = 0
    for example in corpora.read_treebank(SAMPLE_DATA["treebank"]):
        pieces = plain.pieces(example)
        word_of = [w for w, own in enumerate(pieces) for _ in own]
        ids = [*plain.begin, *chain(*pieces)]
        weights = (
            plain.after(ids, output_attentions=True).attentions[0][0, 0].numpy()[len(plain.begin) :, len(plain.begin) :]
        )
        between = np.zeros((len(pieces), len(pieces)))
        for i, j in np.ndindex(*weights.shape):
            between[word_of[i], word_of[j]] += weights[i, j] / len(pieces[word_of[i]])
        for word, head in enumerate(example.heads):
            if head is None:
                continue
            asked += 1
            before, after = between[word, :word], between[word + 1 :, word]
            hits["dependent_to_head"] += bool(word) and before.argmax() == head
            hits["head_to_dependent"] += bool(len(after)) and word + 1 + after.argmax() == head
    scores = {
        score.metric.removeprefix("head_behaviour_"): score
        for score in HeadBehaviour().compute(decoder, read(HeadBehaviour(), decoder)).scores
        if (score.layer, score.group) == (1, "1")
    }
    for name, count in hits.items():
        assert scores[name].n == asked
        assert scores[name].value * asked == pytest.approx(count, abs=1e-3)
