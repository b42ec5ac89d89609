"""Tests of data files: data are identified by content, whatever their name and compression, and sizes are limited."""

import gzip
import lzma
from contextlib import nullcontext

import pytest

from embryo_core.corpora import data_files, open_source
from embryo_core.errors import CorpusError


def test_hash_of_a_source_depends_only_on_content(tmp_path):
    """Another folder name or a hidden file keeps the hash; one more byte or another relation's file name changes it."""
    one = tmp_path / "lama"
    (one / "TREx").mkdir(parents=True)
    (one / "relations.jsonl").write_text('{"relation": "P19", "template": "[X] was born in [Y] ."}\n')
    (one / "TREx" / "P19.jsonl").write_text('{"sub_label": "Ada", "obj_label": "Oslo"}\n')
    before = open_source(one).sha256
    (one / ".cache").mkdir()
    (one / ".cache" / "x").write_text("y")
    one = one.rename(tmp_path / "own")
    assert open_source(one).sha256 == before
    file = (one / "TREx" / "P19.jsonl").rename(one / "TREx" / "P20.jsonl")
    assert open_source(one).sha256 != before
    file = file.rename(one / "TREx" / "P19.jsonl")
    file.write_text(file.read_text() + "\n")
    assert open_source(one).sha256 != before


def test_compression_does_not_change_the_hash(sample, tmp_path):
    """Fetched data therefore count as the data that they were compressed from, as a single file and in a folder."""
    content = (sample / "treebank.conllu").read_bytes()
    packed = tmp_path / "a" / "packed.conllu.xz"
    packed.parent.mkdir()
    packed.write_bytes(lzma.compress(content))
    assert open_source(packed).sha256 == open_source(sample / "treebank.conllu").sha256
    (tmp_path / "treebank.conllu.gz").write_bytes(gzip.compress(content))
    assert open_source(tmp_path / "treebank.conllu.gz").sha256 == open_source(packed).sha256
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "packed.conllu").write_bytes(content)
    assert open_source(packed.parent).sha256 == open_source(tmp_path / "b").sha256


def test_missing_or_truncated_data_are_refused(tmp_path):
    (tmp_path / "half.conllu.xz").write_bytes(lzma.compress(b"content" * 99)[:-20])
    with pytest.raises(CorpusError, match=r"half.conllu.xz cannot be read"):
        open_source(tmp_path / "half.conllu.xz")
    with pytest.raises(CorpusError, match="does not exist"):
        open_source(tmp_path / "none")


@pytest.mark.parametrize("text", ["\n" * 9, "\r" * 9, '{"a": "' + "b" * 900 + '"}'], ids=("lines", "returns", "line"))
def test_number_and_length_of_lines_are_limited(tmp_path, monkeypatch, text):
    """In memory a blank line takes a hundred bytes, and a list within a line of JSON fifty."""
    monkeypatch.setattr(data_files, "MAX_TEXT_LINES", 8)
    monkeypatch.setattr(data_files, "MAX_LINE_LENGTH", 800)
    (tmp_path / "a.jsonl").write_text(text, newline="")
    with pytest.raises(CorpusError, match=r"8 lines|has 909 characters"):
        list(data_files.read_json_lines(tmp_path / "a.jsonl"))


def test_size_of_uncompressed_text_is_limited(tmp_path, monkeypatch):
    """A compressed file of a few bytes may expand to any number of blanks."""
    monkeypatch.setattr(data_files, "MAX_TEXT_BYTES", 2**16)
    path = tmp_path / "blank.jsonl.xz"
    for size in (2**16, 2**16 + 1):
        path.write_bytes(lzma.compress(b" " * size))
        with pytest.raises(CorpusError) if size > 2**16 else nullcontext():
            assert list(data_files.read_json_lines(path)) == []
