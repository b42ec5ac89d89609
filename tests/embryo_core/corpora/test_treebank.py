"""Tests of reading treebanks: every format gives the same Examples, and faults are reported with file and line."""

import gzip
import json
import lzma
from dataclasses import replace
from pathlib import Path

import pytest

from embryo_core.corpora import read_treebank
from embryo_core.errors import CorpusError
from embryo_core.types import Example, Target

SENTENCES = [
    [("It", "PRP"), ("did", "VBD"), ("n't", "RB"), ("(", "-LRB-"), ("really", "RB"), (")", "-RRB-"), ("work", "VB")],
    [("Nobody", "NN"), ("knows", "VBZ"), ("#", "NN"), ("9", "CD"), (".", ".")],
]
EXAMPLES = [
    Example(tuple(w for w, _ in s), tuple(Target((i, i + 1), tag) for i, (_, tag) in enumerate(s))) for s in SENTENCES
]


def conllu(path: Path) -> Path:
    """Write CoNLL-U with comments, a multiword token over "did n't", and an empty node."""
    blocks = []
    for sentence in SENTENCES:
        lines = [f"{i}\t{word}\t_\tX\t{tag}\t_\t0\t_\t_\t_" for i, (word, tag) in enumerate(sentence, 1)]
        lines.insert(1, "2-3\tdidn't\t_\t_\t_\t_\t_\t_\t_\t_")
        lines.insert(4, "3.1\tit\t_\tPRON\tPRP\t_\t_\t_\t_\t_")
        blocks.append("# sent_id = a\n" + "\n".join(lines) + "\n\n")
    path.write_text("".join(blocks), encoding="utf-8")
    return path


def conll2012(path: Path) -> Path:
    """Write CoNLL-2012, in which brackets are escaped and columns are separated by blanks."""
    escaped = {"(": "-LRB-", ")": "-RRB-", ".": "/."}
    blocks = []
    for sentence in SENTENCES:
        rows = [f"bc/a  0  {i}  {escaped.get(w, w)}  {t}  *  -  -  -  -  *  -" for i, (w, t) in enumerate(sentence)]
        blocks.append("\n".join(rows) + "\n\n")
    path.write_text("#begin document (bc/a); part 000\n" + "".join(blocks) + "#end document\n", encoding="utf-8")
    return path


def json_lines(path: Path) -> Path:
    """Write the JSON lines of edge probing."""
    with path.open("w", encoding="utf-8") as file:
        for sentence in SENTENCES:
            targets = [{"span1": [i, i + 1], "label": tag} for i, (_, tag) in enumerate(sentence)]
            file.write(json.dumps({"text": " ".join(w for w, _ in sentence), "targets": targets, "info": {}}) + "\n")
    return path


def read_words(path: Path) -> list[Example]:
    """Read a treebank without its blanks, which only CoNLL-U has."""
    return [replace(example, blanks=()) for example in read_treebank(path)]


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (conllu, "a.conllu"),
        (conllu, "treebank.txt"),
        (conll2012, "a.v4_gold_conll"),
        (conll2012, "treebank.txt"),
        (json_lines, "a.jsonl"),
        (json_lines, "conll-2012-test.json"),
        (json_lines, "treebank.txt"),
    ],
)
def test_all_formats_give_the_same_examples(tmp_path, write, name):
    """The format is recognized by the extension or by the first line."""
    assert read_words(write(tmp_path / name)) == EXAMPLES


@pytest.mark.parametrize("write", [conllu, json_lines])
def test_compressed_files_are_read(tmp_path, write):
    plain = write(tmp_path / "a.txt")
    (tmp_path / "a.xz").write_bytes(lzma.compress(plain.read_bytes()))
    (tmp_path / "a.gz").write_bytes(gzip.compress(plain.read_bytes()))
    assert read_words(tmp_path / "a.xz") == read_words(tmp_path / "a.gz") == EXAMPLES


@pytest.mark.parametrize("write", [conllu, conll2012, json_lines])
def test_byte_order_mark_is_ignored(tmp_path, write):
    """Some Windows editors begin a file with one."""
    path = write(tmp_path / "a.txt")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_words(path) == EXAMPLES


def test_all_treebank_files_of_a_folder_are_read(tmp_path):
    """OntoNotes comes as many files in folders, among them files of other formats, which are skipped."""
    (tmp_path / "nw").mkdir()
    conll2012(tmp_path / "nw" / "b.gold_conll")
    conll2012(tmp_path / "a.gold_conll")
    (tmp_path / "nw" / "b.parse").write_text("(S)")
    assert read_treebank(tmp_path) == EXAMPLES * 2


def test_untagged_words_are_not_targets(tmp_path):
    """A word with the tag "_" stays in the sentence."""
    path = conllu(tmp_path / "a.conllu")
    path.write_text(path.read_text().replace("\tPRP\t", "\t_\t"))
    example = read_treebank(path)[0]
    assert (example.words, example.targets) == (EXAMPLES[0].words, EXAMPLES[0].targets[1:])


def test_syntactic_heads_are_word_indices(tmp_path):
    """Column 7 counts words from 1, with 0 for the root; a treebank without heads gives none."""
    rows = [("She", 2), ("reads", 0), ("old", 4), ("books", 2), (".", "_")]
    lines = [f"{i}\t{word}\t_\tX\tNN\t_\t{head}\t_\t_\t_" for i, (word, head) in enumerate(rows, 1)]
    (tmp_path / "a.conllu").write_text("\n".join(lines), encoding="utf-8")
    assert read_treebank(tmp_path / "a.conllu")[0].heads == (1, None, 3, 1, None)
    assert read_treebank(conllu(tmp_path / "b.conllu"))[0].heads == ()
    assert read_treebank(json_lines(tmp_path / "c.jsonl"))[0].heads == ()


GERMAN = [  # word, universal tag, tag of the Stuttgart-Tübingen set, whether a blank follows
    ("Das", "PRON", "PDS", True),
    ("Haus", "NOUN", "NN", True),
    ("zu", "ADP", "APPR", True),
    ("dem", "DET", "ART", True),
    ("See", "NOUN", "NN", False),
    (",", "PUNCT", "$,", True),
    ("FM", "X", "FM", False),
    (".", "PUNCT", "$.", True),
]


def columns(path: Path, rows: list[tuple[str, str, str, bool]], *more: str) -> Path:
    """Write one sentence with its blanks; `more` lines go before the first word."""
    lines = [
        f"{i}\t{word}\t_\t{universal}\t{tag}\t_\t_\t_\t_\t{'_' if blank else 'SpaceAfter=No'}"
        for i, (word, universal, tag, blank) in enumerate(rows, 1)
    ]
    path.write_text("\n".join([*more, *lines]) + "\n\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("with_tags", [True, False])
def test_labels_are_universal_without_penn_tags(tmp_path, with_tags):
    """German NN is not Penn's NN, and an empty column 5 is no tag."""
    rows = [(word, universal, tag if with_tags else "_", blank) for word, universal, tag, blank in GERMAN]
    targets = read_treebank(columns(tmp_path / "a.conllu", rows))[0].targets
    assert [target.label for target in targets] == [universal for _, universal, _, _ in GERMAN]


def test_penn_tags_are_read_beside_a_few_others(tmp_path):
    """English treebanks use HYPH and ADD as well as Penn's tags."""
    rows = [("dog", "NOUN", "NN", True)] * 19 + [("-", "PUNCT", "HYPH", True)]
    assert {target.label for target in read_treebank(columns(tmp_path / "a.conllu", rows))[0].targets} == {"NN", "HYPH"}


def test_sentences_without_tags_are_read(tmp_path):
    """Attention needs no tags; only tagged words are targets."""
    path = columns(tmp_path / "a.conllu", [("It", "_", "_", True), ("rains", "_", "_", True)])
    assert read_treebank(path) == [Example(("It", "rains"), ())]


def test_blanks_follow_the_text(tmp_path):
    """SpaceAfter=No leaves one out, and so do multiword tokens that spell their words, unlike "zum" for "zu dem"."""
    zum, das_haus = "3-4\tzum" + "\t_" * 7 + "\tSpaceAfter=No", "1-2\tDasHaus" + "\t_" * 8
    (example,) = read_treebank(columns(tmp_path / "a.conllu", GERMAN, zum, das_haus))
    assert example.blanks == (False, True, True, False, False, True, False, True)
    assert read_treebank(columns(tmp_path / "b.conllu", GERMAN[:4]))[0].blanks == ()


FAULTS = {
    "no tag column": ("a.conllu", "1\tIt\t_\n\n", r"a\.conllu, line 1: CoNLL-U has 10 columns .* has 3"),
    "text": ("a.txt", "This is no treebank.\n", r"a\.txt, line 1: CoNLL-U has 10 columns"),
    "number": ("a.conllu", "one" + "\tX" * 9 + "\n\n", r"line 1: the first column .* received 'one'"),
    "head": ("a.conllu", "1\tIt" + "\tX" * 8 + "\n\n", r"line 1: column 7 of CoNLL-U .* received 'X'"),
    "far head": ("a.conllu", "1\tIt" + "\t3" * 8, r"a\.conllu, line 1: the sentence .* has 1 words, but a head is 3"),
    "short row": ("a_conll", "bc/a 0 0 It PRP *\nbc/a 0 1\n\n", r"line 2: CoNLL-2012 has"),
    "empty": ("a.conllu", "\n\n", "holds no sentence"),
    "cut json": ("a.jsonl", '{"text": "It"\n', r"a\.jsonl, line 1 is not JSON"),
    "other json": ("a.jsonl", '{"text": "It"}\n', r"line 1: expected .*targets"),
    "json list": ("a.jsonl", "[1]\n", r"line 1: expected a JSON object"),
    "span": ("a.jsonl", '{"text": "It", "targets": [{"span1": [0, 2], "label": "X"}]}', "not within .* 1 words"),
    "encoding": ("a.conllu", "1\tÉté".encode("latin-1"), "cannot be read .*UTF-8"),
    "cut gz": ("a.conllu.gz", gzip.compress(b"1\tIt" * 99)[:20], "cannot be read"),
    "no gz": ("a.conllu.gz", b"1\tIt", "cannot be read"),
    "cut xz": ("a.conllu.xz", lzma.compress(b"1\tIt" * 99)[:50], "cannot be read"),
}


@pytest.mark.parametrize(("name", "content", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_faults_are_reported_with_file_and_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CorpusError, match=message):
        read_treebank(tmp_path / name)


def test_missing_treebank_names_the_fetch_command(tmp_path):
    """A folder without treebank files gets a message that says so."""
    with pytest.raises(CorpusError, match="python -m embryo_core fetch treebank"):
        read_treebank(tmp_path / "none")
    with pytest.raises(CorpusError, match="no treebank file"):
        read_treebank(tmp_path)


def test_real_treebank_agrees_with_its_edge_probing_form(shared_data):
    """CoNLL-U and JSON lines of the same 2,077 sentences give the same examples of 25,094 words."""
    examples = read_treebank(shared_data / "treebank" / "en_ewt-ud-test.conllu.xz")
    probing = read_treebank(shared_data / "probing" / "pos" / "test.jsonl.xz")
    assert [replace(example, heads=(), blanks=()) for example in examples] == probing
    assert (len(examples), sum(len(example.words) for example in examples)) == (2077, 25094)
