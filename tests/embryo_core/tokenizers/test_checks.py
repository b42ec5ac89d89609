"""Tests of the bounds on a tokenizer.json, checked before the tokenizers library reads it and may abort the process."""

import dataclasses
import json
from base64 import b64encode
from typing import Any
from unittest.mock import Mock

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from embryo_core import runs
from embryo_core.errors import BrokenRun
from embryo_core.tokenizers import tokenizer
from embryo_core.tokenizers.checks import check_tokenizer
from embryo_core.types import Run


def check(run: Run) -> None:
    """Check the tokenizer of a run."""
    check_tokenizer(run.tokenizer / "tokenizer.json", run.path, BrokenRun)


def write_part(run: Run, name: str, part: Any) -> None:
    """Write a normaliser, pre-tokenizer, decoder or model into the run's tokenizer.json."""
    path = run.tokenizer / "tokenizer.json"
    runs.write_json(path, json.loads(path.read_text()) | {name: part})


def replace(pattern: str, content: str) -> dict[str, Any]:
    """Return a step that replaces the matches of a pattern."""
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    """Return a sequence of steps."""
    return {"type": "Sequence", "normalizers": list(steps)}


def charsmap(replacement: str) -> dict[str, Any]:
    """Return a step with a table of characters: the bytes of its trie (here empty) and the replacing texts."""
    return {
        "type": "Precompiled",
        "precompiled_charsmap": b64encode(b"\0\0\0\0" + replacement.encode() + b"\0b\0").decode(),
    }


@pytest.mark.parametrize("vocab", [dict.fromkeys(map(str, range(300_001)), 1), [[str(i), 0.5] for i in range(300_001)]])
def test_pieces_are_counted_before_the_library_reads_them(own_run: Run, vocab: Any, monkeypatch):
    """The vocabulary is a dictionary or a list; one of 64 MB would take gigabytes and minutes."""
    monkeypatch.setattr(tokenizer.tokenizers, "Tokenizer", lambda: pytest.fail("read"))
    write_part(own_run, "model", {"type": "Unigram", "vocab": vocab})
    with pytest.raises(BrokenRun, match="300,001 pieces"):
        check(own_run)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"type": "BPE", "vocab": {"a" * 2**24 + "b": 0}}, "1 pieces"),
        ({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"] * 2_000_001}, "merges"),
    ],
)
def test_size_of_the_model_is_limited(own_run: Run, model: Any, message: str):
    """The bytes of the pieces and the number of merges have limits."""
    write_part(own_run, "model", model)
    with pytest.raises(BrokenRun, match=message):
        check(own_run)


def test_normalisation_tables_of_sentencepiece_pass(tmp_path):
    """Most public tokenizers normalise with one of these four tables."""
    (tmp_path / "text").write_text("a b c d e f g h\n" * 100)
    for rule in ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf"):
        sentencepiece.SentencePieceTrainer.train(
            input=str(tmp_path / "text"), model_prefix=str(tmp_path / rule), vocab_size=12, normalization_rule_name=rule
        )
        model = sentencepiece_model_pb2.ModelProto.FromString((tmp_path / f"{rule}.model").read_bytes())
        table = b64encode(model.normalizer_spec.precompiled_charsmap).decode()
        step = {"type": "Precompiled", "precompiled_charsmap": table}
        content = {"model": {"type": "BPE", "vocab": {}}, "normalizer": step}
        (tmp_path / "tokenizer.json").write_text(json.dumps(content))
        check_tokenizer(tmp_path / "tokenizer.json", tmp_path, BrokenRun)


def test_panic_while_encoding_is_reported(own_run: Run):
    """The error names the file and has the first line of the panic in the library's Rust code."""
    broken_tokenizer = tokenizer.Tokenizer(own_run.tokenizer / "tokenizer.json", own_run.special_tokens)
    broken_tokenizer._tokenizer = Mock()
    broken_tokenizer._tokenizer.encode.side_effect = BaseException("a\nb")
    with pytest.raises(BrokenRun, match=r"tokenizer\.json cannot be read as a tokenizer: a"):
        broken_tokenizer.encode_text("The river")


def test_missing_parts_pass(own_run: Run):
    """Not every tokenizer has a normaliser, pre-tokenizer or decoder; the one that pretraining writes passes too."""
    check(own_run)
    for name in ("normalizer", "pre_tokenizer", "decoder", "post_processor"):
        write_part(own_run, name, None)
    check(own_run)


@pytest.mark.parametrize(("name", "characters"), [("normalizer", "20,000,000,000"), ("decoder", "10,000,000,000")])
def test_nested_replacements_are_refused(own_run: Run, name: str, characters: str):
    """Ten steps with ten characters for each turn one into ten billion, at which the library aborts the process."""
    write_part(own_run, name, sequence(*[replace("a", "a" * 10)] * 10))
    with pytest.raises(BrokenRun, match=f"turn one character into {characters}"):
        check(own_run)


def test_growth_of_normaliser_and_pre_tokenizer_is_multiplied(own_run: Run):
    """The pre-tokenizer may replace again what the normaliser inserted."""
    for name in ("normalizer", "pre_tokenizer"):
        write_part(own_run, name, replace(r"a|\p{N}+", "a" * 9))
    with pytest.raises(BrokenRun, match="into 81"):
        check(own_run)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (sequence(*[{"type": "Lowercase"}] * 65), "66 steps are more than the 64"),
        (charsmap("a" * 37), "into 74, more than 72"),
        (sequence(charsmap("a" * 9), charsmap("b" * 9)), "into 162"),
        (sequence({"type": "NFKC"}, replace("a|[bc]", "aaaaa")), "into 180"),
        (charsmap(""), None),
        (sequence({"type": "NFKD"}, charsmap("a" * 18), replace(" {2,}", "▁")), None),
        (sequence(*[replace("a*", "b")] * 7), "into 256"),
        (sequence(*[replace("a|", "b")] * 7), "into 256"),
        ({"type": "Prepend", "prepend": "▁" * 5000}, "into 10,002"),
        (sequence(*[{}] * 2**23), "bytes is more than"),
    ],
    ids=(
        "steps",
        "long table",
        "two tables",
        "forms",
        "no table",
        "table",
        "empty",
        "nothing",
        "prefix",
        "large",
    ),
)
def test_normalisers_that_could_take_all_memory_are_refused(own_run: Run, part: Any, message: str | None):
    """Steps are few and known, and the length of what they insert is bounded, also in tables of characters."""
    write_part(own_run, "normalizer", part)
    if message is None:
        check(own_run)
        return
    with pytest.raises(BrokenRun, match=message):
        check(own_run)


def test_deeply_nested_parts_are_refused(own_run: Run):
    """The library would read them by recursion."""
    path = own_run.tokenizer / "tokenizer.json"
    content = json.dumps(json.loads(path.read_text()) | {"normalizer": "deep"})
    path.write_text(content.replace('"deep"', '{"normalizers":[' * 5000 + "]}" * 5000))
    with pytest.raises(BrokenRun, match="is not valid"):
        check(own_run)


def test_patterns_of_public_tokenizers_pass(own_run: Run):
    """Character classes, code points and small repeats are allowed."""
    write_part(own_run, "pre_tokenizer", {"type": "Split", "pattern": {"Regex": r"\p{N}{1,3}|\x{10FFFF}| ?\p{L}+|\s+"}})
    check(own_run)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("normalizer", {"type": "Expand"}),
        ("normalizer", "Lowercase"),
        ("model", {"type": "Lookup", "vocab": {"a": 0}}),
        ("added_tokens", 5),
        ("added_tokens", [{"content": 5}]),
    ],
)
def test_unknown_kinds_of_parts_are_refused(own_run: Run, name: str, part: Any):
    """The library itself refuses them, and the error names the file."""
    write_part(own_run, name, part)
    with pytest.raises(BrokenRun, match=r"tokenizer\.json cannot be read as a tokenizer"):
        own = runs.sha256(own_run.tokenizer / "tokenizer.json")
        tokenizer.load_tokenizer(dataclasses.replace(own_run, tokenizer_sha256=own))


@pytest.mark.parametrize("content", ["", "[]", "{", "{}"])
def test_file_that_is_no_tokenizer_is_reported(own_run: Run, content: str):
    """The error names the file."""
    (own_run.tokenizer / "tokenizer.json").write_text(content)
    with pytest.raises(BrokenRun, match=r"tokenizer\.json is not valid"):
        check(own_run)
