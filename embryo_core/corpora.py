"""Annotated data on disk to Examples and Facts: treebanks in three formats, edge-probing tasks, and LAMA's T-REx."""

import hashlib
import io
import json
import lzma
import operator
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from embryo_core import runs
from embryo_core.errors import CorpusError
from embryo_core.metric import Source
from embryo_core.types import Example, Fact, Target, spans_of_words

TREEBANK = "CoNLL-U, CoNLL-2012 or JSON lines; also .xz"  # what read_treebank reads
FETCHED = ("treebank", "lama", "glue", "squad")  # data that `python -m embryo_core fetch` brings
Lines = list[tuple[str, str]]  # place ("ewt.conllu, line 7") and text of each line
Row = tuple[str, str, int]  # word, tag, and the number of its syntactic head: from 1, 0 where it has none

# The 25 relations of the paper's Table 8.
NUMBERS = (17, 19, 20, 30, 36, 37, 103, 127, 131, 136, 138, 140, 159, 176, 264, 276, 279, 361, 364, 407, 413, 449, 495)
RELATIONS = tuple(f"P{number}" for number in (*NUMBERS, 740, 1376))

# What CoNLL-2012 writes for characters that its own format needs; the text had the plain character.
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
UNESCAPED = BRACKETS | {"/" + mark: mark for mark in ".?!,-"}


def read_treebank(path: Path) -> list[Example]:
    """Sentences with one target per tagged word, label = Penn tag; a file, or a folder whose files are read in order.

    Formats: CoNLL-U (syntactic words, tag in column 5, syntactic head in column 7), CoNLL-2012 (OntoNotes: word in
    column 4, tag in column 5) and the JSON lines of edge probing; each also compressed (.xz). The extension tells the
    format, else the first line.
    Raises CorpusError, with file and line where one is at fault.
    """
    examples = [example for file in _treebank_files(path) for example in _read_file(file)]
    if not examples:
        raise CorpusError(f"{path} holds no sentence; give a CoNLL-U, CoNLL-2012 or JSON-lines treebank.")
    if not any(example.targets for example in examples):
        raise CorpusError(
            f"{path} has no part-of-speech tag (column 5 is '_' throughout); give a treebank with Penn tags."
        )
    return examples


def read_probing(folder: Path, split: str) -> list[Example]:
    """Examples of one split (train, dev, test) of an edge-probing task: `<split>.jsonl`, or with .xz, in its folder.

    Every target has one span, or every target has two. Raises CorpusError, with file and line where one is at fault.
    """
    path = _split_file(folder, f"{split}.jsonl")
    examples: list[Example] = []
    spans = set()
    for place, row in _json_lines(path):
        examples.append(_probing_example(place, row))
        spans.update(1 if target.span2 is None else 2 for target in examples[-1].targets)
        if len(spans) > 1:
            raise CorpusError(f"{place}: some targets have one span and some have two; a task has either, throughout.")
    return examples


def read_text(folder: Path, split: str) -> list[str]:
    """Lines of one split (train, heldout) of a text, without blank ones: `<split>.txt`, or with .xz, in its folder.

    Raises CorpusError.
    """
    return [line for _, line in _lines(_split_file(folder, f"{split}.txt")) if line.strip()]


def _split_file(folder: Path, name: str) -> Path:
    """The file of this name, or with .xz, in a folder. Raises CorpusError where there is neither."""
    files = [folder / name, folder / f"{name}.xz"]
    path = next((file for file in files if file.is_file()), None)
    if path is None:
        found = ", ".join(sorted(p.name for p in folder.iterdir())) if folder.is_dir() else "no folder of that name"
        raise CorpusError(f"{files[0]} (or .xz) does not exist, there is {found or 'nothing'}; add that split.")
    return path


def read_lama(path: Path) -> list[Fact]:
    """Facts of each relation that has a template in relations.jsonl and a file (TREx/P19.jsonl) in a LAMA folder.

    The paper's relations come first, in Table 8's order, then others in that of their templates. A fact that repeats
    another word for word counts once. Raises CorpusError; also for a file whose relation has no template.
    """
    templates = _read_templates(path / "relations.jsonl")
    files = {file.stem: file for file in sorted((path / "TREx").glob("*.jsonl"))}
    for relation in files.keys() - templates.keys():
        raise CorpusError(
            f"{files[relation]} has no template; add a line to {path / 'relations.jsonl'}, such as: "
            f'{{"relation": "{relation}", "template": "[X] was born in [Y] ."}}'
        )
    facts: dict[str, Fact] = {}
    for relation in sorted(files.keys(), key=_order(templates).index):
        for place, row in _json_lines(files[relation]):
            fact = _fact(place, row, relation, templates[relation])
            if facts.setdefault(fact.id, fact) != fact:
                raise CorpusError(
                    f"{place}: the uuid {fact.id} belongs to another fact already; ids have to be unique."
                )
    if not facts:
        raise CorpusError(
            f"{path} holds no fact; add TREx/RELATION.jsonl for a relation of relations.jsonl, or fetch the paper's "
            "25: python -m embryo_core fetch lama"
        )
    return list(facts.values())


def open_source(path: Path, limit: int | None = None, **options: Any) -> Source:
    """The data at a path as a metric is given them. Raises CorpusError where there are none, or they cannot be read."""
    if not path.exists():
        raise CorpusError(
            f"{path} does not exist; name a file or folder that does, or fetch: python -m embryo_core fetch -h"
        )
    return Source(path, _content_sha256(path), limit, options)


# === Treebanks ===


def _treebank_files(path: Path) -> list[Path]:
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
    name = path.name.removesuffix(".xz")
    lines = _lines(path)
    first = next((line for _, line in lines if line), "")
    if name.endswith((".json", ".jsonl")) or first.startswith("{"):
        return (_probing_example(place, row) for place, row in _json_lines(path))
    if name.endswith("conll") or first.startswith("#begin document"):
        return _sentences(lines, _conll2012_word)
    return _sentences(lines, _conllu_word)


def _sentences(lines: Lines, parse: Callable[[str, str], Row | None]) -> Iterator[Example]:
    """Sentences of a column format: one word a line, a blank line after each sentence, comments start with "#"."""
    rows: list[Row] = []
    for place, line in [*lines, *((last, "") for last, _ in lines[-1:])]:
        if line.startswith("#"):
            continue
        if line and (row := parse(place, line)):
            rows.append(row)
        elif not line and rows:
            words, tags, heads = zip(*rows, strict=True)
            if max(heads) > len(words):
                raise CorpusError(
                    f"{place}: the sentence that ends here has {len(words)} words, but a head is {max(heads)}."
                )
            targets = tuple(target for target in spans_of_words(words, tags).targets if target.label != "_")
            yield Example(words, targets, tuple(head - 1 if head else None for head in heads) if any(heads) else ())
            rows = []


def _conllu_word(place: str, line: str) -> Row | None:
    """Word, tag and head; None for the lines of multiword tokens (3-4) and empty nodes (5.1), which are no words."""
    columns = line.split("\t")
    if len(columns) != 10:
        raise CorpusError(
            f"{place}: CoNLL-U has 10 columns divided by tabs, this line has {len(columns)}: {line[:60]!r}."
        )
    if columns[0].isdecimal():
        if not (columns[6].isdecimal() and len(columns[6]) < 10 or columns[6] == "_"):
            raise CorpusError(f"{place}: column 7 of CoNLL-U is the number of a head or '_', received {columns[6]!r}.")
        return columns[1], columns[4], int(columns[6].replace("_", "0"))
    if re.fullmatch(r"\d+[-.]\d+", columns[0]):
        return None
    raise CorpusError(f"{place}: the first column of CoNLL-U is a number (3, 3-4 or 3.1), received {columns[0]!r}.")


def _conll2012_word(place: str, line: str) -> Row:
    columns = line.split()
    if len(columns) < 5 or not columns[2].isdecimal():
        raise CorpusError(f"{place}: CoNLL-2012 has document, part, number, word, tag, ...; received {line[:60]!r}.")
    return UNESCAPED.get(columns[3], columns[3]), columns[4], 0


def _probing_example(place: str, row: dict[str, Any]) -> Example:
    try:
        words = tuple(row["text"].split(" "))
        targets = tuple(_probing_target(target) for target in row["targets"])
    except (KeyError, TypeError, ValueError, AttributeError) as reason:
        raise CorpusError(
            f'{place}: expected {{"text": ..., "targets": [{{"span1", "label"}}]}} ({reason!r}).'
        ) from None
    for target in targets:
        for start, end in (target.span1, target.span2 or target.span1):
            if not 0 <= start < end <= len(words):
                raise CorpusError(
                    f"{place}: the span {[start, end]} is not within the sentence's {len(words)} words."
                )
    return Example(words, targets)


def _probing_target(row: dict[str, Any]) -> Target:
    span2, label = row.get("span2"), row["label"]
    if not isinstance(label, str | int):
        raise TypeError(f"the label is {label!r}, not one text")
    return Target(_span(row["span1"]), str(label), None if span2 is None else _span(span2))


def _span(pair: list[int]) -> tuple[int, int]:
    start, end = map(operator.index, pair)  # of integers, nothing else
    return start, end


# === LAMA ===


def _read_templates(path: Path) -> dict[str, str]:
    if not path.is_file():
        raise CorpusError(
            f"{path} does not exist; add it with a line for each relation, such as "
            '{"relation": "P19", "template": "[X] was born in [Y] ."}, or run: python -m embryo_core fetch lama'
        )
    templates = {}
    for place, row in _json_lines(path):
        try:
            templates[row["relation"]] = row["template"]
            well_formed = row["template"].count("[X]") == row["template"].count("[Y]") == 1
        except (KeyError, TypeError, AttributeError) as reason:
            raise CorpusError(f'{place}: expected {{"relation": ..., "template": ...}} ({reason!r}).') from None
        if not well_formed:
            raise CorpusError(f"{place}: a template has one [X] and one [Y], received {row['template']!r}.")
    return templates


def _order(templates: dict[str, str]) -> list[str]:
    """Relations with templates: the paper's in Table 8's order, then the others in their own."""
    return [*(r for r in RELATIONS if r in templates), *(r for r in templates if r not in RELATIONS)]


def _fact(place: str, row: dict[str, Any], relation: str, template: str) -> Fact:
    try:
        subject, object = row["sub_label"], row["obj_label"]
    except KeyError as missing:
        raise CorpusError(f"{place}: a fact has sub_label and obj_label, this one lacks {missing}.") from None
    fact_id = row.get("uuid") or f"{relation}/{subject}/{object}"
    if not all(isinstance(text, str) for text in (fact_id, subject, object)):
        raise CorpusError(f"{place}: sub_label, obj_label and uuid of a fact are texts, received {str(row)[:60]}.")
    return Fact(fact_id, relation, template, subject, object)


# === Files ===


def _content_sha256(path: Path) -> str:
    """SHA-256 of what a file or folder holds: its name, compression (.xz) and hidden files change nothing."""
    if path.is_file():
        with _opened(path) as file:
            return runs.sha256(file)
    inside = sorted(file.relative_to(path) for file in path.rglob("*") if file.is_file())
    names = {str(name).removesuffix(".xz"): name for name in inside if not any(p.startswith(".") for p in name.parts)}
    listing = "".join(f"{_content_sha256(path / names[name])}  {name}\n" for name in names)
    return hashlib.sha256(listing.encode()).hexdigest()


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed. Raises CorpusError where they cannot be read."""
    if not path.is_file():  # a pipe would wait for ever
        raise CorpusError(f"{path} is not a regular file; name one that is.")
    try:
        with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
            yield file
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as reason:
        raise CorpusError(f"{path} cannot be read ({reason}); fetch it again, or convert it to UTF-8 text.") from None


def _lines(path: Path) -> Lines:
    """Lines of a text file, stripped at the right, each with its place for error messages."""
    with _opened(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8")
        return [(f"{path}, line {number}", line.rstrip()) for number, line in enumerate(text, 1)]


def _json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for place, line in _lines(path):
        if not line:
            continue
        try:
            row = json.loads(line)
            if "\\u" in line:
                json.dumps(row, ensure_ascii=False).encode()  # half a character is no text
        except (ValueError, RecursionError) as reason:
            raise CorpusError(f"{place} is not JSON ({reason}); one object a line is expected.") from None
        if not isinstance(row, dict):
            raise CorpusError(f"{place}: expected a JSON object, received {line[:60]!r}.")
        yield place, row
