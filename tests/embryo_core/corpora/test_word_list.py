"""Tests of reading word lists, plain or in Wordbank's columns, and of finding their words in sentences."""

from pathlib import Path

import pytest

from embryo_core.corpora.word_list import SEVERAL_CATEGORIES, find_occurrences, read_sentences, read_word_list
from embryo_core.errors import CorpusError
from embryo_core.types import ListedWord
from tests.conftest import SAMPLE_DATA


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_wordbank_columns_are_read(tmp_path):
    """The definition restores capitals and apostrophes; homographs are merged into one word with mean values."""
    rows = "definition,word_clean,lexical_category,category,aoa,concreteness\n"
    rows += "I,i,function_words,pronouns,24,3.9\ndon't,dont,function_words,x,25,NA\n"
    rows += "can (auxiliary),can,function_words,x,28,4\ncan (object),can,nouns,y,26,\n"
    word_list = read_word_list(write(tmp_path / "cdi.csv", rows))
    assert word_list == [
        ListedWord("I", "function words", 24.0, 3.9),
        ListedWord("don't", "function words", 25.0, None),
        ListedWord("can", SEVERAL_CATEGORIES, 27.0, 4.0),
    ]


def test_plain_list_needs_only_words(tmp_path):
    assert read_word_list(write(tmp_path / "list.txt", "dog\n\nice  cream\ndog\n")) == [
        ListedWord("dog"),
        ListedWord("ice cream"),
    ]
    tabs = read_word_list(write(tmp_path / "list.tsv", "word\tage\ndog\t14.5\n"))
    assert tabs == [ListedWord("dog", None, 14.5)]


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("a.csv", "name,age\ndog,3\n", "name, age"),
        ("a.csv", "word,age\ndog,old\n", "'old'"),
        ("a.csv", "word,age\ndog\n", "received 1"),
        ("a.csv", "word\n!\n", "'!'"),
        ("a.txt", "\n", "no word"),
        ("a.csv", "word,age\ndog,inf\n", "'inf'"),
        ("a.csv", f"word,{'x' * 200_000}\n", "not a table"),
    ],
)
def test_faulty_list_is_reported(tmp_path, name, text, named):
    with pytest.raises(CorpusError, match=named):
        read_word_list(write(tmp_path / name, text))


def test_occurrences_are_whole_words_as_listed():
    """A capital counts only at the start of a sentence, a hyphen is no blank, and apostrophes of both forms match."""
    sentences = ["Can the cat eat ice cream? Will can", "don’t US us catalogue, cat's Cat", "ice-cream"]
    words = [ListedWord(word) for word in ("can", "cat", "ice cream", "don't", "us", "will")]
    occurrences = find_occurrences(words, sentences)
    text = {word: [sentences[i][a:b] for i, a, b in places] for word, places in occurrences.items()}
    assert text == {
        "can": ["Can", "can"],
        "cat": ["cat", "cat"],
        "ice cream": ["ice cream"],
        "don't": ["don’t"],
        "us": ["us"],
        "will": [],
    }


def test_sentences_come_from_a_treebank_or_lines(tmp_path):
    assert read_sentences(SAMPLE_DATA["text"])[0] == "The old baker opened the door."
    write(tmp_path / "b.txt", "Two.\n\n")
    write(tmp_path / "a.txt", "One.\n")
    assert read_sentences(tmp_path) == ["One.", "Two."]
    with pytest.raises(CorpusError, match="no sentence"):
        read_sentences(write(tmp_path / "b.txt", "\n"))
