"""World knowledge: LAMA's T-REx facts as cloze questions, precision at 1 by relation (Section 6, Figures 6 and 14)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embryo_core.corpora import read_lama
from embryo_core.errors import CorpusError
from embryo_core.groups import ALL
from embryo_core.measurements import ClozeAnswer, Findings, Score
from embryo_core.metric import Limits, Metric, Source
from embryo_core.metrics import batches
from embryo_core.types import Fact

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer


FactReply = tuple[int, float, int, float]  # rank and probability of the object, best piece and its probability


@dataclass(frozen=True, eq=False)
class Questions:
    """Facts as questions; lists and arrays are over the n facts that can be asked."""

    asked: list[Fact]
    ids: list[np.ndarray]  # with [CLS] and [SEP]; for a decoder the pieces before the object
    at: np.ndarray  # [n] position of [MASK], or of the last piece before the object
    objects: np.ndarray  # [n] id of the object's one piece
    places: list[int]  # index of each asked fact among all facts
    going_on: int  # facts that a decoder is not asked, because the template continues after the object
    too_long: int  # facts that are not asked, because the question exceeds the model's positions


@dataclass(frozen=True, eq=False)
class Cloze:
    """LAMA's questions, and the data from which their answers are reported."""

    questions: Questions
    total: dict[str, int]  # facts of each relation, including those that cannot be asked
    vocabulary: list[str]  # readable form of every piece
    summary: dict[str, Any]


class WorldKnowledge(Metric):
    """Precision at 1 over the whole vocabulary, with the answer to every fact.

    A fact can be asked if its object is a single piece of the run's vocabulary, as in LAMA, and its question fits the
    model's positions. The piece is the one that replaces the mask when the object is written in the question, so it
    may be another at the start of the sentence, or after a hyphen, than after a space. For a decoder the template must
    also end with the object, which is then the next piece. The score `world_knowledge_coverage` is the share of facts
    that can be asked.
    """

    name = "world_knowledge"
    page = "knowledge"
    source = "lama"
    form = "folder with relations.jsonl and TREx/"
    needs = frozenset({"words"})

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> Cloze:
        facts = first_of_each_relation(read_lama(source.path), source.limit)
        questions = encode(facts, tokenizer, limits)
        if not questions.asked:
            raise CorpusError(
                f"No object of the {len(facts)} facts in {source.path} is a single piece of the run's "
                "vocabulary; world knowledge cannot be measured."
            )
        total = Counter(fact.relation for fact in facts)
        note = f"{len(questions.asked):,} of {len(facts):,} facts of {len(total)} relations of LAMA's T-REx, "
        note += "those whose object is one piece"
        if questions.going_on:
            note += f"; left out: {questions.going_on:,} whose object is not at the end of the template"
        summary = {
            "facts": len(questions.asked),
            "facts_in_all": len(facts),
            "templates": {fact.relation: fact.template for fact in facts},
            "note": note,
        }
        return Cloze(questions, dict(total), tokenizer.readable(range(tokenizer.vocabulary_size)), summary)

    def compute(self, model: "Model", data: Cloze) -> Findings:
        facts = data.questions.asked
        replies = ask(model, data.questions, np.arange(len(facts)))
        cloze = [
            ClozeAnswer(fact.id, fact.relation, fact.subject, fact.object, rank, chance, data.vocabulary[best], top)
            for fact, (rank, chance, best, top) in zip(facts, replies, strict=True)
        ]
        return Findings(scores=_scores(cloze, data.total), cloze=cloze)


def encode(facts: Sequence[Fact], tokenizer: "Tokenizer", limits: Limits) -> Questions:
    """Return the questions of the facts that can be asked (see `WorldKnowledge`)."""
    rows: list[tuple[Any, ...]] = []
    going_on = too_long = 0
    for index, fact in enumerate(facts):
        prompt = fact.prompt or ""
        if limits.decoder and not prompt:
            going_on += 1
            continue
        ids = tokenizer.encode_start(prompt) if limits.decoder else tokenizer.encode_text(fact.question)
        piece = tokenizer.single_piece(fact.object, fact.question)
        positions = np.array([len(ids) - 1]) if limits.decoder else np.flatnonzero(ids == tokenizer.mask_id)
        too_long += piece is not None and len(ids) > limits.positions
        if piece is not None and len(ids) <= limits.positions and len(positions) == 1:
            rows.append((fact, ids, positions[0], piece, index))
    facts_asked, questions, positions_asked, objects, indices = ([row[i] for row in rows] for i in range(5))
    return Questions(facts_asked, questions, np.array(positions_asked), np.array(objects), indices, going_on, too_long)


def ask(model: "Model", questions: Questions, indices: np.ndarray) -> list[FactReply]:
    """Return the replies to the questions `indices` [c], in their order."""
    predict = model.next_logits if "next_words" in model.capabilities else model.mlm_logits
    replies: dict[int, FactReply] = {}

    def ask_batch(batch: np.ndarray, ids: np.ndarray) -> None:
        numbers = indices[batch]
        logits = predict(ids, np.arange(len(numbers)), questions.at[numbers])  # [b, V]
        replies.update(zip(batch.tolist(), _replies(logits, questions.objects[numbers]), strict=True))

    batches.map_batches(model, questions.ids, ask_batch, indices)
    return [replies[i] for i in range(len(indices))]


def first_of_each_relation(facts: list[Fact], limit: int | None) -> list[Fact]:
    """Return the first `limit` facts of each relation."""
    by_relation: dict[str, list[Fact]] = {}
    for fact in facts:
        by_relation.setdefault(fact.relation, []).append(fact)
    return [fact for group in by_relation.values() for fact in group[:limit]]


def _replies(logits: np.ndarray, objects: np.ndarray) -> Iterator[FactReply]:
    """Yield a reply for each row of logits [b, V], given the piece of each object [b].

    Rank 1 is the best piece; ties go to the piece that comes first in the vocabulary.
    """
    object_logits = np.take_along_axis(logits, objects[:, None], axis=1)  # [b, 1]
    equals_before = (logits == object_logits) & (np.arange(logits.shape[1]) < objects[:, None])
    ranks = 1 + (logits > object_logits).sum(axis=1) + equals_before.sum(axis=1)
    best = logits.argmax(axis=1)
    top = np.take_along_axis(logits, best[:, None], axis=1)
    total = np.exp(logits - top).sum(axis=1, dtype=np.float64)  # probability of the best piece is 1 / total
    probabilities = np.exp((object_logits - top)[:, 0].astype(np.float64)) / total
    return zip(ranks.tolist(), probabilities.tolist(), best.tolist(), (1 / total).tolist(), strict=True)


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
