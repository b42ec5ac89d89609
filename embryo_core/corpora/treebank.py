"""Read annotated sentences: treebanks (CoNLL-U, CoNLL-2012, JSON lines) and edge-probing tasks (JSON lines)."""

import operator
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from embryo_core.corpora.data_files import Lines, read_json_lines, read_lines, split_file
from embryo_core.errors import CorpusError
from embryo_core.types import Example, Target, spans_of_words

TREEBANK = "CoNLL-U, CoNLL-2012 or JSON lines; also .xz"  # what read_treebank reads
Row = tuple[str, str, int]  # word, tag, and the number of its syntactic head, from 1; 0 for none
# How CoNLL-2012 escapes the characters that its format uses.
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
UNESCAPED = BRACKETS | {"/" + mark: mark for mark in ".?!,-"}


def read_treebank(path: Path) -> list[Example]:
    """Read sentences with one target per tagged word, whose label is its Penn tag, from a file or a folder of files.

    Formats: CoNLL-U (syntactic words, tag in column 5, syntactic head in column 7), CoNLL-2012 (OntoNotes: word in
    column 4, tag in column 5) and the JSON lines of edge probing; each also compressed (.xz). The extension decides on
    the format, else the first line. Raises CorpusError, with file and line if one is wrong.
    """
    examples = [example for file in _treebank_files(path) for example in _read_file(file)]
    if not examples:
        raise CorpusError(f"{path} holds no sentence; give a CoNLL-U, CoNLL-2012 or JSON-lines treebank.")
    if not any(example.targets for example in examples):
        raise CorpusError(
            f"{path} has no part-of-speech tag (column 5 is '_' throughout); give a treebank with Penn tags."
        )
    return examples


def _treebank_files(path: Path) -> list[Path]:
    """Return the files of a treebank, in the order of their names."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise CorpusError(f"{path} does not exist; name a treebank, or run: python -m embryo_core fetch treebank")
    endings = (".conllu", "_conll", ".conll", ".jsonl", ".json")
    files = sorted(p for p in path.rglob("*") if p.is_file() and p.name.removesuffix(".xz").endswith(endings))
    if not files:
        raise CorpusError(
            f"{path} has no treebank file in it; known endings: {', '.join(endings)}, each also with .xz."
        )
    return files


def _read_file(path: Path) -> Iterator[Example]:
    """Read one file in the format of its extension or first line."""
    name = path.name.removesuffix(".xz")
    lines = read_lines(path)
    first = next((line for _, line in lines if line), "")
    if name.endswith((".json", ".jsonl")) or first.startswith("{"):
        return (parse_probing_row(location, row) for location, row in read_json_lines(path))
    if name.endswith("conll") or first.startswith("#begin document"):
        return _sentences(lines, _conll2012_word)
    return _sentences(lines, _conllu_word)


def _sentences(lines: Lines, parse: Callable[[str, str], Row | None]) -> Iterator[Example]:
    """Read a column format: one word per line, a blank line after each sentence, comments begin with "#"."""
    rows: list[Row] = []
    for location, line in [*lines, *((last, "") for last, _ in lines[-1:])]:
        if line.startswith("#"):
            continue
        if line and (row := parse(location, line)):
            rows.append(row)
        elif not line and rows:
            words, tags, heads = zip(*rows, strict=True)
            if max(heads) > len(words):
                raise CorpusError(
                    f"{location}: the sentence that ends here has {len(words)} words, but a head is {max(heads)}."
                )
            targets = tuple(target for target in spans_of_words(words, tags).targets if target.label != "_")
            yield Example(words, targets, tuple(head - 1 if head else None for head in heads) if any(heads) else ())
            rows = []


def _conllu_word(location: str, line: str) -> Row | None:
    """Parse word, tag and head; return None for multiword tokens (3-4) and empty nodes (5.1)."""
    columns = line.split("\t")
    if len(columns) != 10:
        raise CorpusError(
            f"{location}: CoNLL-U has 10 columns divided by tabs, this line has {len(columns)}: {line[:60]!r}."
        )
    if columns[0].isdecimal():
        if not ((columns[6].isdecimal() and len(columns[6]) < 10) or columns[6] == "_"):
            raise CorpusError(
                f"{location}: column 7 of CoNLL-U is the number of a head or '_', received {columns[6]!r}."
            )
        return columns[1], columns[4], int(columns[6].replace("_", "0"))
    if re.fullmatch(r"\d+[-.]\d+", columns[0]):
        return None
    raise CorpusError(f"{location}: the first column of CoNLL-U is a number (3, 3-4 or 3.1), received {columns[0]!r}.")


def _conll2012_word(location: str, line: str) -> Row:
    """Parse word and tag."""
    columns = line.split()
    if len(columns) < 5 or not columns[2].isdecimal():
        raise CorpusError(f"{location}: CoNLL-2012 has document, part, number, word, tag, ...; received {line[:60]!r}.")
    return UNESCAPED.get(columns[3], columns[3]), columns[4], 0


# === Edge probing ===


def read_probing(folder: Path, split: str) -> list[Example]:
    """Read one split (train, dev, test) of an edge-probing task: `<split>.jsonl`, or with .xz, in its folder.

    All targets have one span, or all have two. Raises CorpusError, with file and line if one is wrong.
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
    """Parse one row of a probing file. Raises CorpusError with the location."""
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
