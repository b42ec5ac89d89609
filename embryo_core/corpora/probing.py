"""Edge-probing tasks to Examples: words, and labelled spans of them."""

import operator
from pathlib import Path
from typing import Any

from embryo_core.corpora.files import read_json_lines, split_file
from embryo_core.errors import CorpusError
from embryo_core.types import Example, Target


def read_probing(folder: Path, split: str) -> list[Example]:
    """Examples of one split (train, dev, test) of an edge-probing task: `<split>.jsonl`, or with .xz, in its folder.

    Every target has one span, or every target has two. Raises CorpusError, with file and line where one is at fault.
    """
    path = split_file(folder, f"{split}.jsonl")
    examples: list[Example] = []
    spans = set()
    for location, row in read_json_lines(path):
        examples.append(probing_example(location, row))
        spans.update(1 if target.span2 is None else 2 for target in examples[-1].targets)
        if len(spans) > 1:
            raise CorpusError(
                f"{location}: some targets have one span and some have two; a task has either, throughout."
            )
    return examples


def probing_example(location: str, row: dict[str, Any]) -> Example:
    """The example in one row of a probing file. Raises CorpusError, which names the location."""
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
    span2, label = row.get("span2"), row["label"]
    if not isinstance(label, str | int):
        raise TypeError(f"the label is {label!r}, not one text")
    return Target(_span(row["span1"]), str(label), None if span2 is None else _span(span2))


def _span(pair: list[int]) -> tuple[int, int]:
    start, end = map(operator.index, pair)  # of integers, nothing else
    return start, end
