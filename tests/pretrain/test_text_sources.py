"""Tests of pretrain.sources."""

import gzip
import lzma
import sys
from pathlib import Path

import pytest

from embryo_core.errors import CorpusError
from pretrain.text_sources import Cleaner, TextSource, find_sources, read_documents, split_sentences

LONG = "This paragraph has at least eight words in it."


def read(path: Path) -> list[list[str]]:
    """Documents of one file, lines stripped."""
    return [[line.strip() for line in document] for document in read_documents(TextSource(path.name, path))]


def test_blank_lines_part_documents(tmp_path: Path) -> None:
    """A text file gives its documents, compressed or not, however many blank lines stand between them."""
    text = "\none a\none b\n\n \ntwo\n\n"
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "a.txt.xz").write_bytes(lzma.compress(text.encode()))
    assert read(tmp_path / "a.txt") == read(tmp_path / "a.txt.xz") == [["one a", "one b"], ["two"]]


def test_a_folder_stands_for_its_text_files_without_those_held_out(tmp_path: Path) -> None:
    """Files below a folder are found sorted and once; other files, and those held out, are left out."""
    (tmp_path / "b").mkdir()
    for name in ("b/two.txt", "one.txt.xz", "three.txt", "index.tsv.xz", "notes.md"):
        (tmp_path / name).write_text("")
    both = find_sources([str(tmp_path), str(tmp_path / "three.txt"), "hf:a/b:c"])
    assert [source.name for source in both] == ["two.txt", "one.txt.xz", "three.txt", "hf:a/b:c"]
    heldout = find_sources([str(tmp_path / "b" / ".." / "three.txt")])
    assert [s.name for s in find_sources([str(tmp_path)], without=heldout)] == ["two.txt", "one.txt.xz"]


def test_the_identity_holds_the_name_and_no_path(tmp_path: Path) -> None:
    """The same text elsewhere has the same identity; other text of the same name has not."""
    identities = []
    for folder, content in (("x", "one"), ("y", "one"), ("z", "two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(content)
        identities.append(find_sources([str(tmp_path / folder)])[0].identity())
    assert identities[0] == identities[1] != identities[2]
    assert identities[0]["name"] == "a.txt" and identities[0]["bytes"] == 3 and str(tmp_path) not in str(identities)


def test_gzip_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    """As .xz and plain text are."""
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfone\ntwo\n\nthree\n"))
    (source,) = find_sources([str(tmp_path)])
    assert list(read_documents(source)) == [["one\n", "two\n"], ["three\n"]]


def test_bad_sources_are_said(tmp_path: Path) -> None:
    """A missing path, an empty folder, text that is not UTF-8 and a damaged archive are one sentence each."""
    with pytest.raises(CorpusError, match="nowhere does not exist"):
        find_sources([str(tmp_path / "nowhere")])
    with pytest.raises(CorpusError, match="holds no text files"):
        find_sources([str(tmp_path)])
    (tmp_path / "latin.txt").write_bytes("naïve".encode("latin-1"))
    with pytest.raises(CorpusError, match=r"latin.txt is not UTF-8"):
        read(tmp_path / "latin.txt")
    whole = lzma.compress(LONG.encode() * 1000)
    other = b"no archive at all"
    for name, content in (("cut.txt.xz", whole[:-30]), ("other.txt.xz", other), ("other.txt.gz", other)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CorpusError, match=f"{name} is a damaged archive"):
            read(tmp_path / name)


def test_a_hugging_face_data_set_is_streamed(tmp_path: Path) -> None:
    """hf:NAME reads the column "text" of a data set, a row a document, its lines paragraphs."""
    from datasets import Dataset

    (tmp_path / "set").mkdir()
    (tmp_path / "other").mkdir()
    Dataset.from_dict({"id": [1, 2], "text": ["a\n\nb", "c"]}).to_parquet(tmp_path / "set" / "train.parquet")
    Dataset.from_dict({"words": ["a"]}).to_parquet(tmp_path / "other" / "test.parquet")
    assert next(iter(read_documents(TextSource(f"hf:{tmp_path / 'set'}", None)))) == ["a", "", "b"]
    with pytest.raises(CorpusError, match="no column 'text'; its columns are words"):
        list(read_documents(TextSource(f"hf:{tmp_path / 'other'}:default:test", None)))
    with pytest.raises(CorpusError, match="cannot be read as a Hugging Face data set"):
        list(read_documents(TextSource(f"hf:{tmp_path / 'nothing'}", None)))


def test_a_data_set_without_the_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without datasets installed the message says what to install."""
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(CorpusError, match="pip install datasets"):
        list(read_documents(TextSource("hf:a/b", None)))


def test_cleaning_normalises_and_counts_what_it_drops() -> None:
    """White space is normalised, control characters go, repeated paragraphs and short documents are counted."""
    cleaner = Cleaner()
    documents = [[f"  {LONG}\x00 \t\n", "short"], ["short"], ["too", "few"], [], [LONG, LONG.upper()]]
    assert list(cleaner.clean(documents)) == [[LONG, "short"], [LONG.upper()]]
    assert cleaner.report == {
        "documents_read": 5, "short_documents": 3, "paragraphs_read": 7, "repeated_paragraphs": 2,
    }  # fmt: skip


def test_a_cleaner_remembers_the_text_it_cleaned_before() -> None:
    """What was held out is dropped from the training text."""
    cleaner = Cleaner()
    assert list(cleaner.clean([[LONG]])) == [[LONG]]
    assert list(cleaner.clean([[LONG], [LONG + " More."]])) == [[LONG + " More."]]
    assert cleaner.report["repeated_paragraphs"] == 1


@pytest.mark.parametrize(
    "sentences",
    [
        ["One is here.", "Two is there!", "Three?", "Four"],
        ["He said “Stop.”", "She did.", "(And so on.)", "“Why?”", "Émile asked."],
        ["Mr. Smith met Dr. J. R. Brown of St. Louis, U.S. Army.", "They ate."],
        ["It cost 3.50 dollars in No. 5 etc. and so on... but who knows?"],
        ["She said no.", "It was over."],
        [""],
    ],
)
def test_sentences_end_before_a_capital_but_not_after_abbreviations(sentences: list[str]) -> None:
    """A paragraph is cut into these sentences, and nothing of it is lost."""
    assert split_sentences(" ".join(sentences)) == sentences


def test_a_data_set_without_a_name_is_one_sentence():
    """It is not looked up."""
    with pytest.raises(CorpusError, match="'hf:' names no data set; write hf:NAME"):
        next(read_documents(TextSource("hf:", None)))
