"""N-gram divergence: the distance of a model's predictions from the unigram and bigram distributions of a text.

A model first learns which pieces are frequent, then which piece follows which, and then more than both (Chang and
Bergen, 2022, "Word Acquisition in Neural Language Models").
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embryo_core.corpora import read_text
from embryo_core.errors import CorpusError
from embryo_core.measurements import Findings, Score
from embryo_core.metric import Limits, Metric, Source
from embryo_core.metrics import batches

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer

MASK_DISTANCE = 7  # every seventh position is masked (14 %), so the piece before a mask is never masked
MAX_LENGTH = 128  # pieces of a line, including [CLS] and [SEP]
UNIGRAM, BIGRAM = "unigram", "bigram"


@dataclass(frozen=True, eq=False)
class Bigrams:
    """Smoothed unigram and bigram distributions over V pieces, from the counts of a text."""

    unigram: np.ndarray  # [V] probabilities
    starts: np.ndarray  # [V + 1] start of each piece's followers in the two arrays below
    followers: np.ndarray  # [P] ids of the followers of each piece, ascending
    counts: np.ndarray  # [P] how often each of them follows

    def after(self, piece: int) -> np.ndarray:
        """Return the distribution [V] of the next piece after `piece`; the unigram distribution if nothing follows it.

        Smoothing follows Witten and Bell (1991): after a piece with c occurrences and t different followers, the
        followers share c / (c + t) of the probability by their counts; the rest follows the unigram distribution.
        """
        followers = slice(self.starts[piece], self.starts[piece + 1])
        different, total = followers.stop - followers.start, self.counts[followers].sum()
        if not different:
            return self.unigram
        counts = self.unigram * different
        counts[self.followers[followers]] += self.counts[followers]
        return counts / (total + different)


@dataclass(frozen=True, eq=False)
class HeldoutText:
    """Held-out lines with n predicted positions, and the distributions of the training lines."""

    lines: list[np.ndarray]  # ids of each held-out line, [CLS] and [SEP] included
    line: np.ndarray  # [n] index of each predicted position's line
    position: np.ndarray  # [n] position in that line, ascending
    bigrams: Bigrams
    summary: dict[str, Any]


class NgramDivergence(Metric):
    """Mean KL divergence (nats) of the model's predictions at masks from the unigram and from the bigram distribution.

    For a decoder, which has no masks, next pieces are predicted at the same positions. `ngram_divergence_error` is the
    standard error of each mean; a single position has none.
    """

    name = "ngram_divergence"
    page = "overview"
    source = "ngrams"
    form = "folder with train and heldout as .txt, .txt.xz or .txt.gz"
    needs = frozenset({"words"})

    def read(self, tokenizer: "Tokenizer", limits: Limits, source: Source) -> HeldoutText:
        begin, end = tokenizer.begin.astype(np.int32), tokenizer.end
        splits = (batches.encode_texts(tokenizer, read_text(source.path, split)) for split in ("train", "heldout"))
        train_lines, heldout_lines = ([np.concatenate([begin, one.ids]) for one in encodings] for encodings in splits)
        room = min(limits.positions, MAX_LENGTH) - len(end)
        lines = [np.concatenate([ids[:room], end]) for ids in heldout_lines if len(ids) > 1][: source.limit]
        if not lines:
            raise CorpusError(f"{source.path} has no line of text in heldout; add one.")
        positions = [predicted_positions(len(ids) - len(end), number) for number, ids in enumerate(lines)]
        line, position = np.repeat(np.arange(len(lines)), [*map(len, positions)]), np.concatenate(positions)
        bigrams = count(train_lines, tokenizer.vocabulary_size, len(begin))
        pieces = sum(len(ids) - len(begin) for ids in train_lines)
        adjective = "next" if limits.decoder else "masked"
        note = f"{len(position):,} {adjective} pieces in {len(lines):,} held-out lines, {pieces:,} pieces counted"
        summary = {adjective: len(position), "lines": len(lines), "counted": pieces, "note": note}
        return HeldoutText(lines, line, position, bigrams, summary)

    def compute(self, model: "Model", data: HeldoutText) -> Findings:
        offsets = np.searchsorted(data.line, np.arange(len(data.lines) + 1))  # first of each line's predicted positions
        divergences_of = np.zeros((len(data.line), 2))

        def measure(batch: np.ndarray, ids: np.ndarray) -> None:
            indices = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in batch])
            rows = np.repeat(np.arange(len(batch)), offsets[batch + 1] - offsets[batch])
            columns = data.position[indices]
            previous = ids[rows, columns - 1]
            if "next_words" in model.capabilities:
                logits = model.next_logits(ids, rows, columns - 1)
            else:
                ids[rows, columns] = model.tokenizer.mask_id
                logits = model.mlm_logits(ids, rows, columns)
            for i, logits_of_line, piece in zip(indices, logits, previous.tolist(), strict=True):
                divergences_of[i] = divergences(logits_of_line, data.bigrams, piece)

        batches.map_batches(model, data.lines, measure)
        return Findings(scores=_scores(self.name, divergences_of))


def predicted_positions(length: int, number: int) -> range:
    """Return the predicted positions of a line, below its `length` without [SEP]: every MASK_DISTANCE-th one.

    The first is random, seeded by the line's `number`, but never 0, which is [CLS] or a piece without context.
    """
    offset = np.random.default_rng(number).integers(min(MASK_DISTANCE, length - 1))
    return range(1 + int(offset), length, MASK_DISTANCE)


def count(lines: list[np.ndarray], pieces: int, first: int) -> Bigrams:
    """Return the distributions of lines of ids over V = `pieces`; `first` ids of each line, [CLS] or none, precede it.

    The unigram distribution adds one to the count of every piece (Laplace). [CLS] never counts as a follower.
    """
    singles, previous, next_pieces = (
        np.concatenate([ids[part] for ids in lines] or [np.array([], np.int64)])
        for part in (slice(first, None), slice(None, -1), slice(1, None))
    )
    unigram = np.bincount(singles, minlength=pieces) + 1.0
    pairs, counts = np.unique(previous.astype(np.int64) * pieces + next_pieces, return_counts=True)
    offsets = np.searchsorted(pairs, np.arange(pieces + 1) * pieces)
    return Bigrams(unigram / unigram.sum(), offsets, pairs % pieces, counts)


def divergences(logits: np.ndarray, bigrams: Bigrams, previous: int) -> tuple[float, float]:
    """Return the KL divergence (nats) of softmax(logits [V]) from the unigram and from the bigram distribution.

    Each is the sum over pieces of p (log p - log q), where q is the unigram distribution, or the bigram distribution
    after the piece `previous`.
    """
    centred = logits.astype(np.float64) - logits.max()
    logarithms = centred - np.log(np.exp(centred).sum())
    p = np.exp(logarithms)
    unigram, bigram = (float(p @ (logarithms - np.log(q))) for q in (bigrams.unigram, bigrams.after(previous)))
    return unigram, bigram


def _scores(name: str, divergences: np.ndarray) -> list[Score]:
    """Return the mean of both divergences, and its standard error if there are two values or more."""
    n = len(divergences)
    scores = []
    for group, values in zip((UNIGRAM, BIGRAM), divergences.T, strict=True):
        scores.append(Score(name, float(values.mean()), n, group))
        if n > 1:
            scores.append(Score(f"{name}_error", float(values.std(ddof=1) / np.sqrt(n)), n, group))
    return scores
