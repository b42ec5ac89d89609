"""A tokenizer's file is bounded before the tokenizers library, which may abort the process, reads it."""

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
    """Put a normaliser, cutter or decoder into the run's tokenizer.json."""
    path = run.tokenizer / "tokenizer.json"
    runs.write_json(path, json.loads(path.read_text()) | {name: part})


def replace(pattern: str, content: str) -> dict[str, Any]:
    """Return a step that replaces matches."""
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    """Return a sequence of steps."""
    return {"type": "Sequence", "normalizers": list(steps)}


def charsmap(replacement: str) -> dict[str, Any]:
    """Return a step with a table of characters: the bytes of its trie, none here, and texts that replace characters."""
    return {
        "type": "Precompiled",
        "precompiled_charsmap": b64encode(b"\0\0\0\0" + replacement.encode() + b"\0b\0").decode(),
    }


@pytest.mark.parametrize("vocab", [dict.fromkeys(map(str, range(300_001)), 1), [[str(i), 0.5] for i in range(300_001)]])
def test_pieces_are_counted_before_the_library_reads_them(own_run: Run, vocab: Any, monkeypatch):
    """In either form; a vocabulary of 64 MB takes gigabytes and minutes."""
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
def test_models_are_bounded(own_run: Run, model: Any, message: str):
    """By the bytes of their pieces, and their merges."""
    write_part(own_run, "model", model)
    with pytest.raises(BrokenRun, match=message):
        check(own_run)


def test_the_longest_replacement_of_public_tables_is_that_of_nfkc(tmp_path):
    """SentencePiece's own tables, by which most public tokenizers normalise, are read."""
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


def test_what_encoding_raises_is_one_sentence(own_run: Run):
    """A panic of the library's Rust code names the file."""
    found = tokenizer.Tokenizer(own_run.tokenizer / "tokenizer.json", own_run.special_tokens)
    found._tokenizer = Mock()
    found._tokenizer.encode.side_effect = BaseException("a\nb")
    with pytest.raises(BrokenRun, match=r"tokenizer\.json cannot be read as a tokenizer: a"):
        found.encode_text("The river")


def test_parts_may_be_absent(own_run: Run):
    """Not every tokenizer normalises, cuts or decodes; one that pretraining writes is within all bounds."""
    check(own_run)
    for name in ("normalizer", "pre_tokenizer", "decoder", "post_processor"):
        write_part(own_run, name, None)
    check(own_run)


@pytest.mark.parametrize(("name", "characters"), [("normalizer", "20,000,000,000"), ("decoder", "10,000,000,000")])
def test_nested_replacements_are_refused(own_run: Run, name: str, characters: str):
    """Ten characters for each, ten times over, would be ten billion of one: the library aborts the process."""
    write_part(own_run, name, sequence(*[replace("a", "a" * 10)] * 10))
    with pytest.raises(BrokenRun, match=f"turn one character into {characters}"):
        check(own_run)


def test_a_text_grows_by_what_both_parts_insert(own_run: Run):
    """What the normaliser inserts, the cutter may replace again."""
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
def test_what_could_take_all_memory_is_refused(own_run: Run, part: Any, message: str | None):
    """Steps are known and few, and what they insert is bounded, in tables of characters too."""
    write_part(own_run, "normalizer", part)
    if message is None:
        check(own_run)
        return
    with pytest.raises(BrokenRun, match=message):
        check(own_run)


def test_deep_parts_are_refused(own_run: Run):
    """The library would read them by recursion."""
    path = own_run.tokenizer / "tokenizer.json"
    content = json.dumps(json.loads(path.read_text()) | {"normalizer": "deep"})
    path.write_text(content.replace('"deep"', '{"normalizers":[' * 5000 + "]}" * 5000))
    with pytest.raises(BrokenRun, match="is not valid"):
        check(own_run)


def test_patterns_of_public_tokenizers_pass(own_run: Run):
    """Classes of characters, code points and small repeats are no counted repeats of a large number."""
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
def test_kinds_that_the_library_does_not_know_are_refused(own_run: Run, name: str, part: Any):
    """By the library itself, in a sentence that names the file."""
    write_part(own_run, name, part)
    with pytest.raises(BrokenRun, match=r"tokenizer\.json cannot be read as a tokenizer"):
        own = runs.sha256(own_run.tokenizer / "tokenizer.json")
        tokenizer.load_tokenizer(dataclasses.replace(own_run, tokenizer_sha256=own))


@pytest.mark.parametrize("content", ["", "[]", "{", "{}"])
def test_what_is_no_tokenizer_is_reported(own_run: Run, content: str):
    """One sentence with the file."""
    (own_run.tokenizer / "tokenizer.json").write_text(content)
    with pytest.raises(BrokenRun, match=r"tokenizer\.json is not valid"):
        check(own_run)
