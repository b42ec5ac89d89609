"""The sentences behind minimal pairs: found in local data, and scored word by word at every step.

Results store no sentences. As for fine-tuning, their data are searched for only in the user's folders and settings.
"""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from embryo_core import corpora, results
from embryo_core.corpora.minimal_pairs import read_pairs
from embryo_core.errors import QueryError
from embryo_core.metrics.minimal_pairs import WORD_L2R, MinimalPairs
from embryo_core.metrics.piece_scores import EncodedSentence, score_sentences
from embryo_core.query.sweep import between_chunks, sweep_run
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import MinimalPair, Run

if TYPE_CHECKING:
    from embryo_core.engine.model import Model
    from embryo_core.tokenizers.tokenizer import Tokenizer

NAME, SOURCE = MinimalPairs.name, MinimalPairs.source


# === Finding the data of results ===


def find_pairs(run: Run, roots: Iterable[Path]) -> Path | None:
    """Return the file or folder with exactly the pairs of a run's results, or None. Raises ResultsError.

    The search covers `corpora/pairs` and its entries in each root, and the path that this user last evaluated on.
    """
    sha256 = results.read_sources(run).get(NAME, {}).get("sha256")
    folders = [root / "corpora" / SOURCE for root in roots]
    candidates = [path for folder in folders for path in (folder, *sorted(folder.glob("*")))]
    return corpora.find_data([str(sha256)] if sha256 else [], candidates)


def read_pair_sentences(run: Run, path: Path) -> dict[str, list[MinimalPair]]:
    """Return the pairs of each paradigm, in order, from the data at `path` on which a run was evaluated.

    Sets are named as in the run's results, even if the folder was renamed. Raises CorpusError and ResultsError.
    """
    pairs: dict[str, list[MinimalPair]] = {}
    for pair in read_pairs(path, str(results.read_sources(run).get(NAME, {}).get("data", ""))):
        pairs.setdefault(pair.paradigm, []).append(pair)
    return pairs


# === Words ===


def score_words(run: Run, good: str, bad: str, steps: Iterable[int]) -> pd.DataFrame:
    """Score the words of two aligned sentences at `steps`, by the method of the run's results.

    Returns a table with a row for each step and each place of the alignment. Columns: step, place (from 0), good and
    bad (the words there; empty where a sentence has none), good_score and bad_score (the sums of their log
    probabilities in nats). Raises QueryError for a sentence longer than the model reads, and as `query.ask` does.
    """
    tokenizer = load_tokenizer(run)
    whole_words = results.read_sources(run).get(NAME, {}).get("pll", WORD_L2R) == WORD_L2R
    alignment = _align(*(_words(tokenizer, text) for text in (good, bad)))
    sentences = [
        EncodedSentence(tokenizer.surround(encoding.ids), encoding.word_of_piece)
        for encoding in tokenizer.encode_sentences([good, bad])
    ]

    def score(model: "Model") -> list[np.ndarray]:
        between_chunks()
        longest = max(len(sentence.ids) for sentence in sentences)
        if longest > model.max_positions:
            raise QueryError(f"A sentence has {longest} pieces; the model reads {model.max_positions}.")
        return score_sentences(model, sentences, whole_words)

    by_step, _ = sweep_run(run, lambda models: [score(model) for model in models], steps)
    rows = []
    for step, pieces in by_step.items():
        sums = [
            np.bincount(sentence.words, scores, len(sentence.words))
            for sentence, scores in zip(sentences, pieces, strict=True)
        ]
        for index, (texts, spans) in enumerate(alignment):
            word_scores = [float(total[first:last].sum()) for total, (first, last) in zip(sums, spans, strict=True)]
            rows.append((step, index, *texts, *word_scores))
    names = ["step", "place", "good", "bad", "good_score", "bad_score"]
    return pd.DataFrame(rows, columns=names)


def _words(tokenizer: "Tokenizer", text: str) -> list[str]:
    """Return the words into which the tokenizer splits a text, spelled as in the text."""
    (pieces,), (encoding,) = tokenizer.encode_texts([text]), tokenizer.encode_sentences([text])
    words = []
    for word in np.unique(encoding.word_of_piece):
        pieces_of_word = pieces.characters[encoding.word_of_piece == word]
        words.append(text[pieces_of_word[0, 0] : pieces_of_word[-1, 1]].strip())
    return words


# the words of both sentences at a place, and their spans
AlignedWords = tuple[tuple[str, str], tuple[tuple[int, int], tuple[int, int]]]


def _align(good: Sequence[str], bad: Sequence[str]) -> list[AlignedWords]:
    """Return the words and their spans at each place of two aligned sentences.

    A place is a pair of equal words, or two stretches of words that differ.
    """
    alignment: list[AlignedWords] = []
    for operation, a, b, c, d in SequenceMatcher(None, good, bad, autojunk=False).get_opcodes():
        if operation == "equal":
            alignment += [((good[a + i], bad[c + i]), ((a + i, a + i + 1), (c + i, c + i + 1))) for i in range(b - a)]
        else:
            alignment.append(((" ".join(good[a:b]), " ".join(bad[c:d])), ((a, b), (c, d))))
    return alignment
