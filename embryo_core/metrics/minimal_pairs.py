"""Minimal pairs: does the model give the good sentence of a pair a higher score than the bad one?

A masked language model's score of a sentence is its pseudo-log-likelihood: each piece is masked in turn, and the log
probabilities of the masked pieces are summed. By default the later pieces of the same word are masked too, since they
would reveal the piece (PLL-word-l2r: Kauf and Ivanova, 2023, "A Better Way to Do Masked Language Model Scoring"); the
plain form masks only the piece (Salazar et al., 2020, "Masked Language Model Scoring"). A decoder's score is the sum of
the log probabilities of the pieces, each given the pieces before it. Scores are never divided by a sentence's length.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embryo_core.corpora.minimal_pairs import PAIRS, read_pairs
from embryo_core.errors import CorpusError
from embryo_core.metric import Limits, Metric, Option, Source
from embryo_core.metrics.piece_scores import EncodedSentence, score_sentences
from embryo_core.results import read_foreign
from embryo_core.types import Findings, MinimalPair, PairScore, Score
from embryo_core.words import quantity

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Encoding, Tokenizer

WORD_L2R, PLAIN = "word-l2r", "plain"
FEW_PAIRS = 10  # the note counts paradigms with fewer pairs


@dataclass(frozen=True, eq=False)
class EncodedPairs:
    """The n pairs that can be scored; each distinct sequence of pieces is stored once."""

    pairs: list[MinimalPair]
    sentences: list[EncodedSentence]
    good: np.ndarray  # [n] index of the good sentence of each pair
    bad: np.ndarray  # [n] index of the bad sentence of each pair
    whole_words: bool  # whether later pieces of the masked piece's word are masked too
    summary: dict[str, Any]


class MinimalPairs(Metric):
    """Accuracy by paradigm, phenomenon and set, with the scores of every pair.

    A tie counts as half a right answer; `minimal_pairs_ties` is the share of ties, if there are any. A pair is left out
    if its sentences are equal, if one is longer than the model's positions, or if the tokenizer cannot encode a word.
    """

    name = "minimal_pairs"
    page = "grammar"
    source = "pairs"
    form = PAIRS
    needs = frozenset({"words"})
    options = (
        Option(
            "pll",
            WORD_L2R,
            "how an encoder scores: the rest of the masked piece's word is hidden too, or not",
            (WORD_L2R, PLAIN),
            identifies=True,
        ),
    )

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> EncodedPairs:
        pairs = [
            pair for pair in read_pairs(source.path, read_foreign) if source.limit is None or pair.number < source.limit
        ]
        encoded = tokenizer.encode_sentences([text for pair in pairs for text in (pair.good, pair.bad)])
        numbers: dict[tuple[bytes, bytes], int] = {}
        sentences: list[EncodedSentence] = []
        kept, places, reasons = [], [], Counter[str]()
        for pair, both in zip(pairs, zip(encoded[::2], encoded[1::2], strict=True), strict=True):
            if why := _unusable(pair, both, tokenizer, limits.positions):
                reasons[why] += 1
                continue
            kept.append(pair)
            for one in both:
                key = one.ids.tobytes(), one.word_of_piece.tobytes()
                if key not in numbers:
                    numbers[key] = len(sentences)
                    sentences.append(EncodedSentence(tokenizer.surround(one.ids), one.word_of_piece))
                places.append(numbers[key])
        if not kept:
            raise CorpusError(
                f"No pair in {source.path} can be scored ({_describe_left_out(reasons)}); give other pairs."
            )
        method = source.options.get("pll", WORD_L2R)
        summary = _summarize(pairs, kept, reasons)
        return EncodedPairs(kept, sentences, np.array(places[::2]), np.array(places[1::2]), method == WORD_L2R, summary)

    def compute(self, model: "Model", data: EncodedPairs) -> Findings:
        pieces = score_sentences(model, data.sentences, data.whole_words)
        # rounded as in the stored table, so that both have the same ties
        scores = np.array([scores_of_pieces.sum() for scores_of_pieces in pieces]).astype(np.float32)
        good, bad = scores[data.good], scores[data.bad]
        pair_scores = [
            PairScore(pair.paradigm, pair.number, *both)
            for pair, *both in zip(data.pairs, good.tolist(), bad.tolist(), strict=True)
        ]
        return Findings(scores=list(accuracies(self.name, pair_scores)), pairs=pair_scores)


def _unusable(pair: MinimalPair, both: "tuple[Encoding, Encoding]", tokenizer: "Tokenizer", positions: int) -> str:
    """Return why a pair cannot be scored, as a phrase that follows a number of pairs; "" if it can be scored."""
    if pair.good == pair.bad:
        return "of equal sentences"
    if any(not len(one.ids) or (one.ids == tokenizer.unk_id).any() for one in both):
        return "with a word that the tokenizer cannot encode"
    return (
        f"longer than {positions} pieces" if any(len(tokenizer.surround(one.ids)) > positions for one in both) else ""
    )


def _summarize(pairs: Sequence[MinimalPair], kept: Sequence[MinimalPair], reasons: Counter[str]) -> dict[str, Any]:
    """Return the numbers of pairs, and the note for captions."""
    sizes = Counter(pair.paradigm for pair in kept)
    sets = list(dict.fromkeys(name.split("/")[0] for name in sizes))
    note = f"{quantity(len(kept), 'pair')} of {quantity(len(sizes), 'paradigm')} of {', '.join(sets)}"
    if reasons:
        note += f"; left out: {_describe_left_out(reasons)}"
    if lost := len({pair.paradigm for pair in pairs}) - len(sizes):
        note += f"; {quantity(lost, 'paradigm')} without any pair left"
    if few := sum(count < FEW_PAIRS for count in sizes.values()):
        note += f"; {quantity(few, 'paradigm')} with fewer than {FEW_PAIRS} pairs"
    return {"pairs": len(kept), "paradigms": len(sizes), "left_out": dict(reasons), "note": note}


def _describe_left_out(reasons: Counter[str]) -> str:
    """Return the numbers of pairs left out and the reasons, as a phrase."""
    return ", ".join(f"{quantity(count, 'pair')} {why}" for why, count in sorted(reasons.items()))


def accuracies(name: str, scored: Iterable[PairScore]) -> Iterator[Score]:
    """Yield the accuracy of each paradigm, phenomenon and set, and the share of ties if there are any."""
    outcomes: dict[str, list[float]] = {}
    for one in scored:
        right = 0.5 if one.good == one.bad else float(one.good > one.bad)
        parts = one.paradigm.split("/")
        for depth in range(1, len(parts) + 1):
            outcomes.setdefault("/".join(parts[:depth]), []).append(right)
    for group, outcomes_of_group in outcomes.items():
        yield Score(name, float(np.mean(outcomes_of_group)), len(outcomes_of_group), group)
        if ties := outcomes_of_group.count(0.5):
            yield Score(f"{name}_ties", ties / len(outcomes_of_group), len(outcomes_of_group), group)
