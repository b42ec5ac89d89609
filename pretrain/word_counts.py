"""Counts of the words of the training text, which a run keeps as frequencies.tsv."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np

from embryo_core.runs import replacing
from pretrain import tokenizer as tokenizers
from pretrain.corpus import SENTENCES_PER_BATCH, Corpus
from pretrain.vocabularies import VOCABULARIES

MAX_FREQUENCIES = 50_000  # words in the table of frequencies


def count_words(corpus: Corpus) -> Counter[str]:
    """Count each word of the training text, as normalised by the tokenizer; unknown words are left out."""
    if tokenizers.is_byte_level(corpus.tokenizer):  # only the text shows whether a letter follows a mark
        return _count_words_of_text(corpus)
    is_start = tokenizers.is_word_start(corpus.tokenizer)
    single_piece_counts = np.zeros(len(is_start), np.int64)  # id of a word of one piece -> count
    longer: Counter[bytes] = Counter()  # ids of a word of several pieces -> count
    bounds = np.append(corpus.train.sentences[:-1:SENTENCES_PER_BATCH], len(corpus.train.tokens))
    for start, stop in pairwise(bounds):
        ids_of_batch = np.asarray(corpus.train.tokens[start:stop])
        begin = np.flatnonzero(is_start[ids_of_batch])
        end = np.append(begin[1:], len(ids_of_batch))
        is_single = end - begin == 1
        single_piece_counts += np.bincount(ids_of_batch[begin[is_single]], minlength=len(is_start))
        content, size = ids_of_batch.tobytes(), ids_of_batch.itemsize
        spans = zip((begin[~is_single] * size).tolist(), (end[~is_single] * size).tolist(), strict=True)
        longer.update(content[a:b] for a, b in spans)
    words: Counter[str] = Counter()
    words_of_ids = [([i], int(single_piece_counts[i])) for i in np.flatnonzero(single_piece_counts).tolist()]
    words_of_ids += [(np.frombuffer(ids, np.uint16).tolist(), n) for ids, n in longer.items()]
    for ids, n in words_of_ids:
        if (word := tokenizers.word_of(corpus.tokenizer, ids)) is not None:
            words[word] += n
    return words


def _count_words_of_text(corpus: Corpus) -> Counter[str]:
    """Count each word of the training text after decoding its sentences."""
    words: Counter[str] = Counter()
    for start in range(0, len(corpus.train.sentences) - 1, SENTENCES_PER_BATCH):
        bounds = corpus.train.sentences[start : start + SENTENCES_PER_BATCH + 1]
        ids_of_sentences = [corpus.train.tokens[begin:end].tolist() for begin, end in pairwise(bounds)]
        for sentence in corpus.tokenizer.decode_batch(ids_of_sentences):
            words.update(tokenizers.split_words(corpus.tokenizer, sentence))
    counts: Counter[str] = Counter()
    for word, n in words.items():
        counts[VOCABULARIES["bpe"].word([word])] += n
    return counts


def write_frequencies(counts: Counter[str], path: Path) -> None:
    """Write "word<tab>count" lines by descending count, then word, for the 50,000 most frequent words."""
    most_frequent = sorted(counts.items(), key=lambda row: (-row[1], row[0]))[:MAX_FREQUENCIES]
    with replacing(path) as temporary:
        temporary.write_text("".join(f"{word}\t{n}\n" for word, n in most_frequent), encoding="utf-8")
