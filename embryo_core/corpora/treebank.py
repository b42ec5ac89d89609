"""Readers of annotated sentences: treebanks (CoNLL-U, CoNLL-2012, JSON lines) and edge-probing tasks (JSON lines)."""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from embryo_core.corpora.data_files import Lines, read_json_lines, read_lines, split_file, without_compression
from embryo_core.errors import CorpusError
from embryo_core.groups import are_penn
from embryo_core.types import Example, Target

TREEBANK_FORM = "CoNLL-U, CoNLL-2012 or JSON lines; also .xz or .gz"  # formats that read_treebank reads
# Escapes of CoNLL-2012 for characters that its format reserves.
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
UNESCAPED = BRACKETS | {"/" + mark: mark for mark in ".?!,-"}


class Word(NamedTuple):
    """A word of a column format."""

    form: str
    tag: str  # language-specific: Penn's in English
    universal: str = "_"  # part of speech of Universal Dependencies
    head: int = 0  # the number of its syntactic head, from 1; 0: none
    blank: bool = True  # whether a space follows in the text


class Contraction(NamedTuple):
    """Words `first` to `last` of a sentence, counted from 1, that the text writes as one form, such as "didn't"."""

    first: int
    last: int
    form: str
    blank: bool


def read_treebank(path: Path) -> list[Example]:
    """Read sentences with one target per tagged word, whose label is its tag, from a file or a folder of files.

    Formats: CoNLL-U (syntactic words, tag in column 5, syntactic head in column 7), CoNLL-2012 (OntoNotes: word in
    column 4, tag in column 5) and the JSON lines of edge probing; each also compressed (.xz, .gz). The format follows
    from the extension or the first line. If column 5 of CoNLL-U is empty or does not have Penn tags, labels are the
    universal tags of column 4. Raises CorpusError, which names the file and line at fault.
    """
    sentences = [sentence for file in _treebank_files(path) for sentence in _read_file(file)]
    if not sentences:
        raise CorpusError(f"{path} holds no sentence; give a CoNLL-U, CoNLL-2012 or JSON-lines treebank.")
    words = [word for sentence in sentences if not isinstance(sentence, Example) for word in sentence]
    universal = any(word.universal != "_" for word in words) and not are_penn([word.tag for word in words])
    return [one if isinstance(one, Example) else _example(one, universal) for one in sentences]


def _example(sentence: Sequence[Word], universal: bool) -> Example:
    """Return a sentence as an example, labelled with universal or language-specific tags; "_" means no tag."""
    words, tags, universal_tags, heads, blanks = zip(*sentence, strict=True)
    targets = tuple(Target((i, i + 1), tag) for i, tag in enumerate(universal_tags if universal else tags))
    return Example(
        words,
        tuple(target for target in targets if target.label != "_"),
        tuple(head - 1 if head else None for head in heads) if any(heads) else (),
        () if all(blanks) else blanks,
    )


def _treebank_files(path: Path) -> list[Path]:
    """Return the files of a treebank in the order of their names. Raises CorpusError if it has none."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise CorpusError(f"{path} does not exist; name a treebank, or run: python -m embryo_core fetch treebank")
    endings = (".conllu", "_conll", ".conll", ".jsonl", ".json")
    files = sorted(p for p in path.rglob("*") if p.is_file() and without_compression(p.name).endswith(endings))
    if not files:
        raise CorpusError(
            f"{path} has no treebank file in it; known endings: {', '.join(endings)}, each also with .xz or .gz."
        )
    return files


def _read_file(path: Path) -> Iterator[Example] | Iterator[list[Word]]:
    """Read one file in the format of its extension or first line."""
    name = without_compression(path.name)
    lines = read_lines(path)
    first = next((line for _, line in lines if line), "")
    if name.endswith((".json", ".jsonl")) or first.startswith("{"):
        return (parse_probing_row(location, row) for location, row in read_json_lines(path))
    if name.endswith("conll") or first.startswith("#begin document"):
        return _sentences(lines, _conll2012_word)
    return _sentences(lines, _conllu_word)


def _sentences(lines: Lines, parse: Callable[[str, str], Word | Contraction | None]) -> Iterator[list[Word]]:
    """Yield the sentences of a column format: a word per line, a blank line after a sentence, comments after "#"."""
    words: list[Word] = []
    contractions: list[Contraction] = []
    for location, line in [*lines, *((last, "") for last, _ in lines[-1:])]:
        if line.startswith("#"):
            continue
        row = parse(location, line) if line else None
        if isinstance(row, Word):
            words.append(row)
        elif isinstance(row, Contraction):
            contractions.append(row)
        elif not line and words:
            if (head := max(word.head for word in words)) > len(words):
                raise CorpusError(
                    f"{location}: the sentence that ends here has {len(words)} words, but a head is {head}."
                )
            yield _contracted(words, contractions)
            words, contractions = [], []


def _contracted(words: list[Word], contractions: list[Contraction]) -> list[Word]:
    """Return the words with the spaces of the text: none within a contraction, unless its parts do not spell it."""
    for first, last, form, blank in contractions:
        parts = words[first - 1 : last]
        together = "".join(word.form for word in parts) == form
        for i, word in enumerate(parts, first - 1):
            words[i] = word._replace(blank=blank if i == last - 1 else not together)
    return words


def _conllu_word(location: str, line: str) -> Word | Contraction | None:
    """Parse a line as a word or a multiword token (3-4); return None for an empty node (5.1)."""
    columns = line.split("\t")
    if len(columns) != 10:
        raise CorpusError(
            f"{location}: CoNLL-U has 10 columns divided by tabs; this line has {len(columns)}: {line[:60]!r}."
        )
    number, form, _, universal, tag, _, head, _, _, misc = columns
    blank = "SpaceAfter=No" not in misc.split("|")
    if number.isdecimal():
        if not ((head.isdecimal() and len(head) < 10) or head == "_"):
            raise CorpusError(f"{location}: column 7 of CoNLL-U is the number of a head or '_', received {head!r}.")
        return Word(form, tag, universal, int(head.replace("_", "0")), blank)
    if span := re.fullmatch(r"([1-9]\d{0,8})-(\d{1,9})", number):
        return Contraction(int(span[1]), int(span[2]), form, blank)
    if re.fullmatch(r"\d+[-.]\d+", number):
        return None
    raise CorpusError(f"{location}: the first column of CoNLL-U is a number (3, 3-4 or 3.1), received {number!r}.")


def _conll2012_word(location: str, line: str) -> Word:
    """Parse the word and tag of a line."""
    columns = line.split()
    if len(columns) < 5 or not columns[2].isdecimal():
        raise CorpusError(f"{location}: CoNLL-2012 has document, part, number, word, tag, ...; received {line[:60]!r}.")
    return Word(UNESCAPED.get(columns[3], columns[3]), columns[4])


# === Edge probing ===


def read_probing(folder: Path, split: str) -> list[Example]:
    """Read one split (train, dev, test) of an edge-probing task: `<split>.jsonl`, also compressed, in its folder.

    All targets have one span, or all have two. Raises CorpusError, which names the file and line at fault.
    """
    path = split_file(folder, f"{split}.jsonl")
    examples: list[Example] = []
    spans: set[int] = set()
    for location, row in read_json_lines(path):
        examples.append(parse_probing_row(location, row))
        spans.update(1 if target.span2 is None else 2 for target in examples[-1].targets)
        if len(spans) > 1:
            raise CorpusError(
                f"{location}: some targets have one span and some have two; all targets of a task need the same number."
            )
    return examples


def parse_probing_row(location: str, row: dict[str, Any]) -> Example:
    """Parse one row of a probing file as an example. Raises CorpusError with the location."""
    try:
        words = tuple(row["text"].split(" "))
        targets = tuple(_probing_target(target) for target in row["targets"])
    except (KeyError, TypeError, ValueError, AttributeError) as reason:
        raise CorpusError(
            f'{location}: expected {{"text": ..., "targets": [{{"span1", "label"}}]}} ({reason!r}).'
        ) from None
    for target in targets:
        for start, end in (target.span1, target.span2 or target.span1):
            if not 0 <= start < end <= len(words):
                raise CorpusError(
                    f"{location}: the span {[start, end]} is not within the sentence's {len(words)} words."
                )
    return Example(words, targets)


def _probing_target(row: dict[str, Any]) -> Target:
    """Parse one target of a row."""
    span2, label = row.get("span2"), row["label"]
    if not isinstance(label, str | int):
        raise TypeError(f"the label is {label!r}, not a string")
    return Target(_span(row["span1"]), str(label), None if span2 is None else _span(span2))


def _span(pair: list[int]) -> tuple[int, int]:
    start, end = map(operator.index, pair)  # raises TypeError for anything but integers
    return start, end
