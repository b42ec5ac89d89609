"""Tests of text sources: finding and reading files and data sets, cleaning text, and splitting it into sentences."""

import gzip
import lzma
import sys
from pathlib import Path

import pytest

from embryo_core.errors import CorpusError
from pretrain.text_sources import Cleaner, TextSource, find_sources, read_documents, split_sentences

LONG = "This paragraph has at least eight words in it."


def read(path: Path) -> list[list[str]]:
    """Return the documents of one file, with stripped lines."""
    return [[line.strip() for line in document] for document in read_documents(TextSource(path.name, path))]


def test_blank_lines_separate_documents(tmp_path: Path) -> None:
    """The number of blank lines does not matter, nor whether the file is compressed."""
    text = "\none a\none b\n\n \ntwo\n\n"
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "a.txt.xz").write_bytes(lzma.compress(text.encode()))
    assert read(tmp_path / "a.txt") == read(tmp_path / "a.txt.xz") == [["one a", "one b"], ["two"]]


def test_folder_gives_its_text_files_except_heldout_ones(tmp_path: Path) -> None:
    """Files in subfolders are included; all are sorted, and none is found twice. Files of other kinds are ignored."""
    (tmp_path / "b").mkdir()
    for name in ("b/two.txt", "one.txt.xz", "three.txt", "index.tsv.xz", "notes.md"):
        (tmp_path / name).write_text("")
    both = find_sources([str(tmp_path), str(tmp_path / "three.txt"), "hf:a/b:c"])
    assert [source.name for source in both] == ["two.txt", "one.txt.xz", "three.txt", "hf:a/b:c"]
    heldout = find_sources([str(tmp_path / "b" / ".." / "three.txt")])
    assert [s.name for s in find_sources([str(tmp_path)], excluded=heldout)] == ["two.txt", "one.txt.xz"]


def test_identity_has_the_file_name_but_no_path(tmp_path: Path) -> None:
    """The same text in another folder has the same identity; different text with the same name does not."""
    identities = []
    for folder, content in (("x", "one"), ("y", "one"), ("z", "two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(content)
        identities.append(find_sources([str(tmp_path / folder)])[0].identity())
    assert identities[0] == identities[1] != identities[2]
    assert identities[0]["name"] == "a.txt" and identities[0]["bytes"] == 3 and str(tmp_path) not in str(identities)


def test_gzip_with_byte_order_mark_is_read(tmp_path: Path) -> None:
    """The mark is not part of the text."""
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfone\ntwo\n\nthree\n"))
    (source,) = find_sources([str(tmp_path)])
    assert list(read_documents(source)) == [["one\n", "two\n"], ["three\n"]]


def test_bad_sources_are_refused(tmp_path: Path) -> None:
    """Bad sources are a missing path, a folder without text, text that is not UTF-8, and damaged archives."""
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


def test_hugging_face_data_set_is_read(tmp_path: Path) -> None:
    """hf:NAME reads the column "text": each row is a document, and each of its lines a paragraph."""
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


def test_missing_datasets_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message gives the command that installs it."""
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(CorpusError, match="pip install datasets"):
        list(read_documents(TextSource("hf:a/b", None)))


def test_cleaning_normalises_and_counts_what_it_drops() -> None:
    """White space is normalised; control characters, repeated paragraphs and short documents are dropped."""
    cleaner = Cleaner()
    documents = [[f"  {LONG}\x00 \t\n", "short"], ["short"], ["too", "few"], [], [LONG, LONG.upper()]]
    assert list(cleaner.clean(documents)) == [[LONG, "short"], [LONG.upper()]]
    assert cleaner.report == {
        "documents_read": 5, "short_documents": 3, "paragraphs_read": 7, "repeated_paragraphs": 2,
    }  # fmt: skip


def test_cleaner_drops_paragraphs_it_has_cleaned_before() -> None:
    """Held-out text is cleaned first, so that its paragraphs are dropped from the training text."""
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
    """A paragraph is split into exactly the sentences from which it was joined."""
    assert split_sentences(" ".join(sentences)) == sentences


def test_data_set_without_a_name_is_refused():
    """The message shows how to write a name; no data set is looked up."""
    with pytest.raises(CorpusError, match="'hf:' names no data set; write hf:NAME"):
        next(read_documents(TextSource("hf:", None)))
