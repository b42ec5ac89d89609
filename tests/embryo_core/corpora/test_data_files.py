"""Data are known by their content, whatever their name and compression."""

import gzip
import lzma
from contextlib import nullcontext

import pytest

from embryo_core.corpora import data_files, open_source
from embryo_core.errors import CorpusError


def test_a_source_is_known_by_its_content(tmp_path):
    """Another name or hidden files change nothing, one byte of one file or the relation that it is of does."""
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


def test_compression_changes_nothing(sample, tmp_path):
    """Neither of one file nor of files in a folder, so that data fetched are the data they were compressed from."""
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


def test_data_that_cannot_be_read_are_no_source(tmp_path):
    """Nothing there, and half a compressed file."""
    (tmp_path / "half.conllu.xz").write_bytes(lzma.compress(b"content" * 99)[:-20])
    with pytest.raises(CorpusError, match=r"half.conllu.xz cannot be read"):
        open_source(tmp_path / "half.conllu.xz")
    with pytest.raises(CorpusError, match="does not exist"):
        open_source(tmp_path / "none")


@pytest.mark.parametrize("text", ["\n" * 9, "\r" * 9, '{"a": "' + "b" * 900 + '"}'], ids=("lines", "returns", "line"))
def test_lines_are_few_and_objects_short(tmp_path, monkeypatch, text):
    """A blank line takes a hundred bytes of memory, and a list in a line of JSON fifty."""
    monkeypatch.setattr(data_files, "MAX_LINES", 8)
    monkeypatch.setattr(data_files, "MAX_LINE", 800)
    (tmp_path / "a.jsonl").write_text(text, newline="")
    with pytest.raises(CorpusError, match=r"lines|900|908"):
        list(data_files.read_json_lines(tmp_path / "a.jsonl"))


def test_more_text_than_is_read_is_refused(tmp_path, monkeypatch):
    """A compressed file of a few bytes may hold any number of blanks."""
    monkeypatch.setattr(data_files, "MAX_BYTES", 2**16)
    path = tmp_path / "blank.jsonl.xz"
    for size in (2**16, 2**16 + 1):
        path.write_bytes(lzma.compress(b" " * size))
        with pytest.raises(CorpusError) if size > 2**16 else nullcontext():
            assert list(data_files.read_json_lines(path)) == []
