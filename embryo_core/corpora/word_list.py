"""Lists of words with the ages at which children learn them, such as the CDI's, and their occurrences in sentences.

The CDI are the MacArthur-Bates Communicative Development Inventories. Wordbank: Frank et al. (2017), "Wordbank: an open
repository for developmental vocabulary data".
"""

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from embryo_core.corpora.data_files import Lines, read_lines, without_compression
from embryo_core.corpora.treebank import read_treebank
from embryo_core.errors import CorpusError
from embryo_core.types import ListedWord

WORD_LIST_FORM = "list of words: CSV or TSV with a column word, and age, category and concreteness if known; or .txt"
TEXT_FORM = "sentences with the words: a treebank, or .txt with a sentence in each line; a file or a folder"
WORD_COLUMNS = ("word", "word_clean", "uni_lemma", "definition")  # names of columns; all but the first are Wordbank's
AGE_COLUMNS, CATEGORY_COLUMNS, CONCRETENESS_COLUMNS = (
    ("age", "aoa"),
    ("lexical_category", "category"),
    ("concreteness",),
)
SEVERAL_CATEGORIES = "several"  # category of a word that is listed in several categories
MAX_WORD_LENGTH = 60  # characters of a word
PART_PATTERN = re.compile(r"\w+")  # a part of a word or text, between spaces or punctuation

Occurrence = tuple[int, int, int]  # index of the sentence, and first and end character of the word in it


# === List ===


def read_word_list(path: Path) -> list[ListedWord]:
    """Read the words of a list in order; repeated words are merged, and their numbers averaged. Raises CorpusError."""
    if not path.is_file():
        raise CorpusError(f"{path} is not a file; give a {WORD_LIST_FORM}.")
    lines = [(location, line) for location, line in read_lines(path) if line.strip()]
    kind = Path(without_compression(path.name)).suffix
    if kind == ".txt":
        rows: Iterable[ListedWord] = (ListedWord(_normalise_word(location, line)) for location, line in lines)
    else:
        rows = _table_rows(path, lines, "\t" if kind == ".tsv" else ",")
    rows_of_word: dict[str, list[ListedWord]] = {}
    for row in rows:
        rows_of_word.setdefault(row.word, []).append(row)
    if not rows_of_word:
        raise CorpusError(f"{path} has no word; give a {WORD_LIST_FORM}.")
    return [_merge(same) for same in rows_of_word.values()]


def _table_rows(path: Path, lines: Lines, delimiter: str) -> Iterable[ListedWord]:
    """Yield the words of a table with a header. Raises CorpusError."""
    try:
        names, *rows = csv.reader((line for _, line in lines), delimiter=delimiter) if lines else [[]]
    except csv.Error as reason:
        raise CorpusError(f"{path} is not a table ({reason}); give a {WORD_LIST_FORM}.") from None
    if not names:
        raise CorpusError(f"{path} is empty; give a {WORD_LIST_FORM}.")
    if not {*WORD_COLUMNS} & {*names}:
        raise CorpusError(f"{path} needs a column {WORD_COLUMNS[0]}; its columns are {', '.join(names)[:200]}.")
    for (location, _), values in zip(lines[1:], rows, strict=False):  # not strict: a quoted line break joins two lines
        if len(values) != len(names):
            raise CorpusError(f"{location}: {len(names)} columns were expected, received {len(values)}.")
        row = dict(zip(names, values, strict=True))
        word, written = _text(row, WORD_COLUMNS), row.get("definition", "")
        if re.sub(r"['’]", "", written).lower() == word:  # Wordbank's clean form lacks capitals and apostrophes
            word = written
        category = _text(row, CATEGORY_COLUMNS).replace("_", " ")[:MAX_WORD_LENGTH] or None
        yield ListedWord(
            _normalise_word(location, word),
            category,
            _number(location, row, AGE_COLUMNS),
            _number(location, row, CONCRETENESS_COLUMNS),
        )


def _text(row: Mapping[str, str], names: tuple[str, ...]) -> str:
    """Return the text of the first filled column of `names`; "" if all are blank."""
    return next((row[name].strip() for name in names if row.get(name, "").strip()), "")


def _normalise_word(location: str, word: str) -> str:
    """Return a word with plain apostrophes and single spaces.

    Raises CorpusError if it has no letter or digit, or more than MAX_WORD_LENGTH characters.
    """
    word = " ".join(word.replace("’", "'").split())
    if not PART_PATTERN.search(word) or len(word) > MAX_WORD_LENGTH:
        raise CorpusError(
            f"{location}: a word has 1 to {MAX_WORD_LENGTH} characters, received {word[:MAX_WORD_LENGTH]!r}."
        )
    return word


def _number(location: str, row: Mapping[str, str], names: tuple[str, ...]) -> float | None:
    """Return the number in the first filled column of `names`; None for a blank or "NA". Raises CorpusError."""
    text = _text(row, names)
    if text in ("", "NA"):
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise CorpusError(f"{location}: {' or '.join(names)} must be a number, received {text[:40]!r}.")
    return number


def _merge(same: Sequence[ListedWord]) -> ListedWord:
    """Merge words with the same spelling, such as "can" the verb and the object."""
    categories = {entry.category for entry in same}
    category = categories.pop() if len(categories) == 1 else SEVERAL_CATEGORIES
    return ListedWord(
        same[0].word, category, _mean([entry.age for entry in same]), _mean([entry.concreteness for entry in same])
    )


def _mean(numbers: Iterable[float | None]) -> float | None:
    present = [number for number in numbers if number is not None]
    return sum(present) / len(present) if present else None


# === Text ===


def read_sentences(path: Path) -> list[str]:
    """Read the sentences of a treebank, or the lines of .txt files, from a file or a folder. Raises CorpusError."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    plain = [file for file in files if without_compression(file.name).endswith(".txt")]
    if plain and len(plain) == len([file for file in files if not file.name.startswith(".")]):
        sentences = [line.strip() for file in plain for _, line in read_lines(file) if line.strip()]
    else:
        sentences = []
        for example in read_treebank(path):
            blanks = example.blanks or [True] * len(example.words)
            parts = zip(example.words, blanks, strict=True)
            sentences.append("".join(word + " " * blank for word, blank in parts).strip())
    if not sentences:
        raise CorpusError(f"{path} has no sentence; give {TEXT_FORM}.")
    return sentences


def find_occurrences(words: Iterable[ListedWord], sentences: Sequence[str]) -> dict[str, list[Occurrence]]:
    """Return the occurrences of each word in the sentences, in order, spelled as in the list, between ends of parts.

    A capitalised form counts only as the first word of a sentence, since "Will" and "US" elsewhere are other words. An
    apostrophe, a hyphen and a combining accent end a part: "can't" has an occurrence of "can", "ice-cream" of "ice".
    """
    occurrences: dict[str, list[Occurrence]] = {entry.word: [] for entry in words}
    longest = max((len(PART_PATTERN.findall(word)) for word in occurrences), default=0)
    for number, sentence in enumerate(sentences):
        text = sentence.replace("’", "'")
        spans = [part.span() for part in PART_PATTERN.finditer(text)]
        for i, (start, _) in enumerate(spans):
            for _, end in spans[i : i + longest]:
                word = text[start:end]
                if word not in occurrences and i == 0:
                    word = word[0].lower() + word[1:]
                if word in occurrences:
                    occurrences[word].append((number, start, end))
    return occurrences
