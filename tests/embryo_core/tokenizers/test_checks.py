"""A tokenizer's file is bounded before the tokenizers library, which may abort the process, reads it."""

import json
from typing import Any

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenRun
from embryo_core.tokenizers.checks import check_tokenizer
from embryo_core.types import Run


def write_part(run: Run, name: str, part: Any) -> None:
    """Put a normaliser, cutter or decoder into the run's tokenizer.json."""
    path = run.tokenizer / "tokenizer.json"
    runs.write_json(path, json.loads(path.read_text()) | {name: part})


def replace(pattern: str, content: str) -> dict[str, Any]:
    """Return a step that replaces matches."""
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    """Return a sequence of steps."""
    return {"type": "Sequence", "normalizers": list(steps)}


def test_the_hash_is_that_of_the_file(own_run: Run):
    """A tokenizer as pretraining writes it is within all bounds."""
    assert check_tokenizer(own_run) == own_run.tokenizer_sha256


def test_parts_may_be_absent(own_run: Run):
    """Not every tokenizer normalises, cuts or decodes."""
    for name in ("normalizer", "pre_tokenizer", "decoder", "post_processor"):
        write_part(own_run, name, None)
    check_tokenizer(own_run)


def test_nested_replacements_are_refused(own_run: Run):
    """Ten characters for each, ten times over, would be ten billion of one: the library aborts the process."""
    write_part(own_run, "normalizer", sequence(*[replace("a", "a" * 10)] * 10))
    with pytest.raises(BrokenRun, match="turn one character into up to 25,937,424,601"):
        check_tokenizer(own_run)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (sequence(*[{"type": "Lowercase"}] * 65), "66 steps are more than the 64"),
        (replace("a" * 5000, ""), "is too long"),
        (replace("((a{100}){100}){100}", ""), "repeats more than 1,000 times"),
        (replace("a{1,100000}", ""), "repeats more than 1,000 times"),
        ({"type": "Prepend", "prepend": "▁" * 5000}, "into up to 5,001"),
        (sequence(*[{}] * 2**21), "bytes is more than"),
        ("Lowercase", "is not valid"),
    ],
    ids=("steps", "long pattern", "nested repeats", "long repeat", "prefix", "large", "text"),
)
def test_what_could_take_all_memory_is_refused(own_run: Run, part: Any, message: str):
    """Steps, patterns, their repeats and what they insert are bounded."""
    write_part(own_run, "normalizer", part)
    with pytest.raises(BrokenRun, match=message):
        check_tokenizer(own_run)


def test_deep_parts_are_refused(own_run: Run):
    """The library would read them by recursion."""
    part: dict[str, Any] = {"type": "Lowercase"}
    for _ in range(7):
        part = sequence(part)
    write_part(own_run, "normalizer", part)
    with pytest.raises(BrokenRun, match="nested more than 12 deep"):
        check_tokenizer(own_run)


def test_patterns_of_public_tokenizers_pass(own_run: Run):
    """Classes of characters, code points and small repeats are no counted repeats of a large number."""
    write_part(own_run, "pre_tokenizer", {"type": "Split", "pattern": {"Regex": r"\p{N}{1,3}|\x{10FFFF}| ?\p{L}+|\s+"}})
    check_tokenizer(own_run)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"added_tokens": 5}', '{"added_tokens": [{"content": 5}]}'])
def test_what_is_no_tokenizer_is_reported(own_run: Run, content: str):
    """One sentence with the file."""
    (own_run.tokenizer / "tokenizer.json").write_text(content)
    with pytest.raises(BrokenRun, match=r"tokenizer\.json is not valid"):
        check_tokenizer(own_run)
