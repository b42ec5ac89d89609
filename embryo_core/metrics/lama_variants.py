"""Variants of LAMA's facts: whether a right answer survives other wordings of its question.

    lama_variants              share of facts answered right when asked as in world_knowledge
    lama_variants_paraphrased  of the right facts with paraphrases, the share with right answers to most of these
    lama_variants_negated      of the right facts with a negation, the share with the same answer to the negation
    lama_variants_high         of the right facts with a wrong word similar to the object, the share answered wrong
                               after this word: "Kabul? Sirindhorn was born in [MASK] ."
    lama_variants_low          the same for wrong words dissimilar to the object
    lama_variants_random       the same for random wrong words

Groups are the relations and `all`. Only variants of right facts are asked; their answers are recorded. Elazar et al.
(2021) define consistency over pairs of paraphrases, right or wrong; here only right answers count.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from embryo_core.corpora import read_lama
from embryo_core.corpora.lama import PRIMES, VARIANTS_FORM, Variants, read_variants
from embryo_core.errors import CorpusError
from embryo_core.groups import ALL
from embryo_core.measurements import Findings, Score, VariantAnswer
from embryo_core.metric import Limits, Metric, Source
from embryo_core.metrics.world_knowledge import Questions, WorldKnowledge, ask, encode, first_of_each_relation
from embryo_core.types import Fact
from embryo_core.words import quantity

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer

PARAPHRASED, NEGATED = "paraphrased", "negated"


@dataclass(frozen=True, eq=False)
class FactVariants:
    """The facts, and the questions of their m variants; lists and arrays are over the variants."""

    facts: Questions
    variants: Questions
    fact_of_variant: np.ndarray  # [m] index of each variant's fact
    kinds: list[str]
    texts: list[str]  # the template, or the wrong word
    vocabulary: list[str]  # readable form of every piece
    summary: dict[str, Any]


class LamaVariants(Metric):
    """Shares of right facts whose answers survive, or change with, other wordings."""

    name = "lama_variants"
    page = "knowledge"
    source = "lama-variants"
    form = VARIANTS_FORM
    second = WorldKnowledge.source
    second_form = WorldKnowledge.form
    needs = frozenset({"words"})

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> FactVariants:
        assert source.second
        variants = read_variants(source.path)
        facts = encode(first_of_each_relation(read_lama(source.second.path), source.limit), tokenizer, limits)
        rows = [(i, *row) for i, fact in enumerate(facts.asked) for row in _variants(fact, variants)]
        questions = encode([fact for *_, fact in rows], tokenizer, limits)
        if not questions.asked:
            raise CorpusError(
                f"None of {quantity(len(facts.asked), 'fact')} in {source.second.path} has a variant in {source.path} "
                "that can be asked; give variants of the same facts."
            )
        fact_indices, variant_kinds, texts, _ = zip(*(rows[i] for i in questions.places), strict=True)
        vocabulary = tokenizer.readable(range(tokenizer.vocabulary_size))
        summary = _summarise(facts, questions, variant_kinds, variants)
        return FactVariants(facts, questions, np.array(fact_indices), [*variant_kinds], [*texts], vocabulary, summary)

    def compute(self, model: "Model", data: FactVariants) -> Findings:
        are_right = np.array([rank == 1 for rank, *_ in ask(model, data.facts, np.arange(len(data.facts.asked)))])
        variant_indices = np.flatnonzero(are_right[data.fact_of_variant])
        answers = [
            VariantAnswer(fact.id, fact.relation, data.kinds[i], data.texts[i], rank, data.vocabulary[best])
            for i, (rank, _, best, _) in zip(variant_indices, ask(model, data.variants, variant_indices), strict=True)
            for fact in [data.variants.asked[i]]
        ]
        groups = [fact.relation for fact in data.facts.asked]
        outcomes: dict[tuple[str, str], list[bool]] = {("", group): [] for group in (*dict.fromkeys(groups), ALL)}
        for group, is_right in zip(groups, are_right.tolist(), strict=True):
            outcomes["", group].append(is_right)
            outcomes["", ALL].append(is_right)
        return Findings(scores=[*_scores(outcomes), *share_scores(answers)], variants=answers)


def _variants(fact: Fact, variant_list: Variants) -> list[tuple[str, str, Fact]]:
    """Return kind, text (template or wrong word) and question of each variant of a fact.

    Templates that equal the fact's and wrong words that equal its object are omitted.
    """
    templates = [(PARAPHRASED, template) for template in variant_list.paraphrases.get(fact.relation, ())]
    if fact.relation in variant_list.negated:
        templates.append((NEGATED, variant_list.negated[fact.relation]))
    variants = [(kind, text, replace(fact, template=text)) for kind, text in templates if text != fact.template]
    for kind, word in variant_list.primes.get((fact.relation, fact.subject, fact.object), {}).items():
        if word != fact.object:
            variants.append((kind, word, replace(fact, template=f"{word}? {fact.template}")))
    return variants


def _summarise(facts: Questions, questions: Questions, kinds: tuple[str, ...], variants: Variants) -> dict[str, Any]:
    """Return the numbers of facts and of variants of each kind, and the note for captions."""
    kind_counts = Counter(kinds)
    numbers = f"{kind_counts[PARAPHRASED]:,} paraphrased questions, {kind_counts[NEGATED]:,} negated ones, "
    numbers += f"{sum(kind_counts[kind] for kind in PRIMES):,} after a wrong word"
    note = f"{quantity(len(facts.asked), 'fact')} of LAMA's T-REx; {numbers}"
    left_out = {
        "whose object is not at the end": questions.going_on,
        "that are too long": questions.too_long,
    }
    reasons = [f"{quantity(count, 'question')} {why}" for why, count in left_out.items() if count]
    templates = {fact.relation: fact.template for fact in facts.asked}
    if unchanged_count := sum(variants.negated.get(relation) == template for relation, template in templates.items()):
        reasons.append(f"the negation of {quantity(unchanged_count, 'relation')}, which equals the template")
    note += f"; left out: {', '.join(reasons)}" if reasons else ""
    return {"facts": len(facts.asked), "variants": dict(kind_counts), "note": note}


def share_scores(answers: list[VariantAnswer]) -> list[Score]:
    """Return a score for each kind and group of `answers` to variants of facts that were answered right.

    It is the share of facts with right answers to most of their paraphrases, or to the negation; for wrong words, it is
    the share of facts that are then answered wrong.
    """
    by_fact: dict[tuple[str, str, str], list[bool]] = {}
    for answer in answers:
        by_fact.setdefault((answer.kind, answer.relation, answer.fact), []).append(answer.rank == 1)
    outcomes: dict[tuple[str, str], list[bool]] = {}
    for (kind, relation, _), right in by_fact.items():
        is_true = 2 * sum(right) > len(right) if kind in (PARAPHRASED, NEGATED) else not right[0]
        for group in (relation, ALL):
            outcomes.setdefault((kind, group), []).append(is_true)
    return _scores(outcomes)


def _scores(outcomes: dict[tuple[str, str], list[bool]]) -> list[Score]:
    """Return the share of true outcomes of each kind and group; the kind "" is the facts themselves."""
    return [
        Score(f"lama_variants_{kind}".rstrip("_"), float(np.mean(outcomes_of_group)), len(outcomes_of_group), group)
        for (kind, group), outcomes_of_group in outcomes.items()
    ]
