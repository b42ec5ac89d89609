"""World knowledge: LAMA's T-REx facts as cloze questions, precision at 1 by relation (Section 6, Figures 6 and 14)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embryo_core.corpora import read_lama
from embryo_core.corpora.groups import ALL
from embryo_core.errors import CorpusError
from embryo_core.metric import Limits, Metric, Source
from embryo_core.metrics import batches
from embryo_core.query.question import readable
from embryo_core.types import ClozeAnswer, Fact, Findings, Score

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class Cloze:
    """Facts as questions; lists and arrays are over the n facts that can be asked."""

    asked: list[Fact]
    questions: list[np.ndarray]  # ids with [CLS] and [SEP]; of a decoder the pieces before the object
    at: np.ndarray  # [n] position of [MASK], or of the last piece before the object
    objects: np.ndarray  # [n] id of the object's one piece
    total: dict[str, int]  # facts of each relation, including those that cannot be asked
    vocabulary: list[str]  # every piece in readable form
    summary: dict[str, Any]


class WorldKnowledge(Metric):
    """Measures precision at 1 over the whole vocabulary, and records the answer to every fact.

    A fact can be asked if its object is a single piece of the run's vocabulary, as in LAMA, and its question fits the
    model's positions; of a decoder, if its template also ends with the object, which is then the next piece. The score
    `world_knowledge_coverage` is the share of such facts.
    """

    name = "world_knowledge"
    page = "knowledge"
    source = "lama"
    form = "folder with relations.jsonl and TREx/"
    needs = frozenset({"words"})

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> Cloze:
        facts = _first_of_each_relation(read_lama(source.path), source.limit)
        total: dict[str, int] = {}
        asked, questions, places, objects, going_on = [], [], [], [], 0
        for fact in facts:
            total[fact.relation] = total.get(fact.relation, 0) + 1
            prompt = fact.prompt or ""
            if limits.decoder and not prompt:
                going_on += 1
                continue
            ids = tokenizer.encode_start(prompt) if limits.decoder else tokenizer.encode_text(fact.question)
            at = np.array([len(ids) - 1]) if limits.decoder else np.flatnonzero(ids == tokenizer.mask_id)
            piece = tokenizer.single_piece(fact.object)
            if piece is not None and len(ids) <= limits.positions and len(at) == 1:
                asked.append(fact)
                questions.append(ids)
                places.append(at[0])
                objects.append(piece)
        if not asked:
            raise CorpusError(
                f"No object of the {len(facts)} facts in {source.path} is a single piece of the run's "
                "vocabulary; world knowledge cannot be measured."
            )
        note = f"{len(asked):,} of {len(facts):,} facts of {len(total)} relations of LAMA's T-REx"
        summary = {
            "facts": len(asked),
            "facts_in_all": len(facts),
            "templates": {fact.relation: fact.template for fact in facts},
            "note": f"{note}, those whose object is one piece{_describe_left_out(going_on)}",
        }
        vocabulary = readable(tokenizer, range(tokenizer.vocabulary_size))
        return Cloze(asked, questions, np.array(places), np.array(objects), total, vocabulary, summary)

    def compute(self, model: "Model", data: Cloze) -> Findings:
        predict = model.next_logits if "next_words" in model.gives else model.mlm_logits
        answers: dict[int, ClozeAnswer] = {}

        def ask(batch: np.ndarray) -> None:
            ids = np.stack([data.questions[i] for i in batch])  # [b, L]
            logits = predict(ids, np.ones_like(ids), np.arange(len(batch)), data.at[batch])  # [b, V]
            for i, reply in zip(batch, _replies(logits, data.objects[batch]), strict=True):
                answers[i] = _answer(data.asked[i], reply, data.vocabulary)

        batches.compute(np.array([len(ids) for ids in data.questions]), model.passes_at_once, ask, model.tokens_at_once)
        cloze = [answers[i] for i in range(len(answers))]
        return Findings(scores=_scores(cloze, data.total), cloze=cloze)


def _describe_left_out(going_on: int) -> str:
    """Return what a decoder was not asked, as the end of a note."""
    return f"; left out: {going_on:,} whose template goes on after the object, which is read last" if going_on else ""


def _first_of_each_relation(facts: list[Fact], limit: int | None) -> list[Fact]:
    """Return the first `limit` facts of each relation."""
    kept: dict[str, list[Fact]] = {}
    for fact in facts:
        kept.setdefault(fact.relation, []).append(fact)
    return [fact for group in kept.values() for fact in group[:limit]]


def _replies(logits: np.ndarray, objects: np.ndarray) -> Iterator[tuple[int, float, int, float]]:
    """Yield, for each row of logits [b, V], rank and probability of the object's piece, best piece and its probability.

    Rank 1 is the best piece; ties go to the piece that comes first in the vocabulary.
    """
    own = np.take_along_axis(logits, objects[:, None], axis=1)  # [b, 1]
    equals_before = (logits == own) & (np.arange(logits.shape[1]) < objects[:, None])
    ranks = 1 + (logits > own).sum(axis=1) + equals_before.sum(axis=1)
    best = logits.argmax(axis=1)
    top = np.take_along_axis(logits, best[:, None], axis=1)
    total = np.exp(logits - top).sum(axis=1, dtype=np.float64)  # probability of the best piece is 1 / total
    probabilities = np.exp((own - top)[:, 0].astype(np.float64)) / total
    return zip(ranks.tolist(), probabilities.tolist(), best.tolist(), (1 / total).tolist(), strict=True)


def _answer(fact: Fact, reply: tuple[int, float, int, float], vocabulary: list[str]) -> ClozeAnswer:
    """Return the row of an answered fact."""
    rank, probability, best, best_probability = reply
    return ClozeAnswer(
        fact=fact.id,
        relation=fact.relation,
        subject=fact.subject,
        object=fact.object,
        rank=rank,
        probability=probability,
        prediction=vocabulary[best],
        prediction_probability=best_probability,
    )


def _scores(answers: list[ClozeAnswer], total: dict[str, int]) -> list[Score]:
    """Return coverage and precision of each relation and of all facts."""
    scores = []
    for group in (*total, ALL):
        hits = [answer.rank == 1 for answer in answers if group in (answer.relation, ALL)]
        n = sum(total.values()) if group == ALL else total[group]
        scores.append(Score("world_knowledge_coverage", len(hits) / n, n, group))
        if hits:
            scores.append(Score("world_knowledge", float(np.mean(hits)), len(hits), group))
    return scores
