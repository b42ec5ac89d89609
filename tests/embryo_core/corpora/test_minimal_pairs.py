"""Tests of reading minimal pairs in the columns of BLiMP, Zorro and BabyLM, one or several paradigms per file."""

import json
from pathlib import Path

import pytest

from embryo_core.corpora.minimal_pairs import read_pairs
from embryo_core.errors import CorpusError

BLIMP = {
    "sentence_good": "Cats sleep.",
    "sentence_bad": "Cats sleeps.",
    "UID": "verbs",
    "linguistics_term": "agreement",
}
ZORRO = {"sentence_good": "she sees me .", "sentence_bad": "her sees me .", "paradigm": "case-1", "phenomenon": "case"}


def write(path: Path, *rows: dict) -> Path:
    """Write rows as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def paradigms(path: Path) -> list[tuple[str, int]]:
    return [(pair.paradigm, pair.number) for pair in read_pairs(path)]


def test_one_file_may_hold_several_paradigms(tmp_path):
    """Pairs are numbered within their paradigm, in the order of the file."""
    path = write(tmp_path / "blimp.jsonl", BLIMP, ZORRO, BLIMP)
    assert paradigms(path) == [("blimp/agreement/verbs", 0), ("blimp/case/case-1", 0), ("blimp/agreement/verbs", 1)]
    first = read_pairs(path)[0]
    assert (first.good, first.bad) == ("Cats sleep.", "Cats sleeps.")


def test_folder_of_files_is_one_set_per_subfolder(tmp_path):
    """BLiMP and BabyLM are distributed so; if a row has only the sentences, the file name is the paradigm."""
    bare = {"sentence_good": "I am.", "sentence_bad": "I is."}
    write(tmp_path / "babylm" / "blimp_filtered" / "verbs.jsonl", BLIMP)
    write(tmp_path / "babylm" / "supplement" / "hypernym.jsonl", bare, bare)
    write(tmp_path / "babylm" / ".cache" / "other.jsonl", bare)
    assert paradigms(tmp_path / "babylm") == [
        ("blimp_filtered/agreement/verbs", 0),
        ("supplement/hypernym/hypernym", 0),
        ("supplement/hypernym/hypernym", 1),
    ]


def test_slash_in_a_name_adds_no_level(tmp_path):
    path = write(tmp_path / "pairs" / "a.jsonl", BLIMP | {"linguistics_term": "syntax/semantics"})
    assert paradigms(path.parent) == [("pairs/syntax-semantics/verbs", 0)]
    assert paradigms(path) == [("a/syntax-semantics/verbs", 0)]  # given by itself


def test_parquet_and_json_lines_give_the_same_pairs(tmp_path):
    import pandas as pd

    rows = [BLIMP, BLIMP | {"UID": "other"}]
    pd.DataFrame(rows).to_parquet(tmp_path / "blimp.parquet")
    lines = write(tmp_path / "blimp.jsonl", *rows)
    assert read_pairs(tmp_path / "blimp.parquet") == read_pairs(lines)


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"sentence_good": "Cats sleep."}, "sentence_bad"),
        (BLIMP | {"sentence_bad": 3}, "3"),
        (BLIMP | {"sentence_good": " "}, "sentence_good"),
        (BLIMP | {"UID": "x" * 500}, "100 characters"),
    ],
    ids=("no bad sentence", "a number", "an empty sentence", "a long name"),
)
def test_malformed_row_is_reported_with_its_line(tmp_path, row, named):
    path = write(tmp_path / "a.jsonl", BLIMP, row)
    with pytest.raises(CorpusError, match=named) as error:
        read_pairs(path)
    assert "line 2" in str(error.value)


def test_folder_without_pairs_names_the_required_columns(tmp_path):
    (tmp_path / "notes.txt").write_text("no pairs")
    with pytest.raises(CorpusError, match="sentence_good"):
        read_pairs(tmp_path)
