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

from embryo_core.corpora.minimal_pairs import PAIRS_FORM, read_pairs
from embryo_core.errors import CorpusError
from embryo_core.measurements import Findings, PairScore, Score
from embryo_core.metric import Limits, Metric, Option, Source
from embryo_core.metrics.piece_scores import EncodedSentence, score_sentences
from embryo_core.types import MinimalPair
from embryo_core.words import quantity

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.encodings import Encoding
    from embryo_core.tokenizers.tokenizer import Tokenizer

WORD_L2R, PLAIN = "word-l2r", "plain"
MIN_PAIRS = 10  # the note counts paradigms with fewer pairs


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
    form = PAIRS_FORM
    needs = frozenset({"words"})
    options = (
        Option(
            "pll",
            WORD_L2R,
            "pieces that an encoder masks with the scored one: the rest of its word, or none",
            (WORD_L2R, PLAIN),
            identifies=True,
        ),
    )

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> EncodedPairs:
        pairs = [pair for pair in read_pairs(source.path) if source.limit is None or pair.number < source.limit]
        encodings = tokenizer.encode_sentences([text for pair in pairs for text in (pair.good, pair.bad)])
        numbers: dict[tuple[bytes, bytes], int] = {}
        sentences: list[EncodedSentence] = []
        scored_pairs, sentence_indices, reasons = [], [], Counter[str]()
        for pair, pair_encodings in zip(pairs, zip(encodings[::2], encodings[1::2], strict=True), strict=True):
            if why := _find_problem(pair, pair_encodings, tokenizer, limits.positions):
                reasons[why] += 1
                continue
            scored_pairs.append(pair)
            for encoding in pair_encodings:
                key = encoding.ids.tobytes(), encoding.word_of_piece.tobytes()
                if key not in numbers:
                    numbers[key] = len(sentences)
                    sentences.append(EncodedSentence(tokenizer.surround(encoding.ids), encoding.word_of_piece))
                sentence_indices.append(numbers[key])
        if not scored_pairs:
            raise CorpusError(
                f"No pair in {source.path} can be scored ({_describe_left_out(reasons)}); give other pairs."
            )
        good, bad = np.array(sentence_indices).reshape(-1, 2).T
        whole_words = source.options.get("pll", WORD_L2R) == WORD_L2R
        summary = _summarise(pairs, scored_pairs, reasons)
        return EncodedPairs(scored_pairs, sentences, good, bad, whole_words, summary)

    def compute(self, model: "Model", data: EncodedPairs) -> Findings:
        pieces = score_sentences(model, data.sentences, data.whole_words)
        # rounded as in the stored table, so that both have the same ties
        scores = np.array([scores_of_pieces.sum() for scores_of_pieces in pieces]).astype(np.float32)
        good, bad = scores[data.good], scores[data.bad]
        pair_scores = [
            PairScore(pair.paradigm, pair.number, *pair_of_scores)
            for pair, *pair_of_scores in zip(data.pairs, good.tolist(), bad.tolist(), strict=True)
        ]
        return Findings(scores=list(accuracies(self.name, pair_scores)), pairs=pair_scores)


def _find_problem(
    pair: MinimalPair, encodings: "tuple[Encoding, Encoding]", tokenizer: "Tokenizer", positions: int
) -> str:
    """Return why a pair cannot be scored, as a phrase that follows a number of pairs; "" if it can be scored."""
    if pair.good == pair.bad:
        return "of equal sentences"
    if any(not len(encoding.ids) or (encoding.ids == tokenizer.unk_id).any() for encoding in encodings):
        return "with a word that the tokenizer cannot encode"
    is_too_long = any(len(tokenizer.surround(encoding.ids)) > positions for encoding in encodings)
    return f"longer than {positions} pieces" if is_too_long else ""


def _summarise(
    pairs: Sequence[MinimalPair], scored_pairs: Sequence[MinimalPair], reasons: Counter[str]
) -> dict[str, Any]:
    """Return the numbers of pairs, and the note for captions."""
    paradigm_sizes = Counter(pair.paradigm for pair in scored_pairs)
    sets = list(dict.fromkeys(name.split("/")[0] for name in paradigm_sizes))
    note = f"{quantity(len(scored_pairs), 'pair')} of {quantity(len(paradigm_sizes), 'paradigm')} of {', '.join(sets)}"
    if reasons:
        note += f"; left out: {_describe_left_out(reasons)}"
    if lost_count := len({pair.paradigm for pair in pairs}) - len(paradigm_sizes):
        note += f"; {quantity(lost_count, 'paradigm')} without any pair left"
    if few_count := sum(count < MIN_PAIRS for count in paradigm_sizes.values()):
        note += f"; {quantity(few_count, 'paradigm')} with fewer than {MIN_PAIRS} pairs"
    return {"pairs": len(scored_pairs), "paradigms": len(paradigm_sizes), "left_out": dict(reasons), "note": note}


def _describe_left_out(reasons: Counter[str]) -> str:
    """Return the numbers of pairs left out and the reasons, as a phrase."""
    return ", ".join(f"{quantity(count, 'pair')} {why}" for why, count in sorted(reasons.items()))


def accuracies(name: str, pair_scores: Iterable[PairScore]) -> Iterator[Score]:
    """Yield the accuracy of each paradigm, phenomenon and set, and the share of ties if there are any."""
    outcomes: dict[str, list[float]] = {}
    for pair in pair_scores:
        right = 0.5 if pair.good == pair.bad else float(pair.good > pair.bad)
        path = pair.paradigm.split("/")
        for depth in range(1, len(path) + 1):
            outcomes.setdefault("/".join(path[:depth]), []).append(right)
    for group, outcomes_of_group in outcomes.items():
        yield Score(name, float(np.mean(outcomes_of_group)), len(outcomes_of_group), group)
        if ties := outcomes_of_group.count(0.5):
            yield Score(f"{name}_ties", ties / len(outcomes_of_group), len(outcomes_of_group), group)
