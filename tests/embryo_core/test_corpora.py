"""Annotated data in every format are read to the same Examples, and faults are reported with file and line."""

import json
import lzma
from dataclasses import replace
from pathlib import Path

import pytest

from embryo_core.corpora import RELATIONS, open_source, read_lama, read_probing, read_treebank
from embryo_core.errors import CorpusError
from embryo_core.types import Example, Fact, Target

SENTENCES = [
    [("It", "PRP"), ("did", "VBD"), ("n't", "RB"), ("(", "-LRB-"), ("really", "RB"), (")", "-RRB-"), ("work", "VB")],
    [("Nobody", "NN"), ("knows", "VBZ"), ("#", "NN"), ("9", "CD"), (".", ".")],
]
EXAMPLES = [
    Example(tuple(w for w, _ in s), tuple(Target((i, i + 1), tag) for i, (_, tag) in enumerate(s))) for s in SENTENCES
]


def conllu(path: Path) -> Path:
    """With comments, a multiword token over "did n't", and an empty node."""
    blocks = []
    for sentence in SENTENCES:
        lines = [f"{i}\t{word}\t_\tX\t{tag}\t_\t0\t_\t_\t_" for i, (word, tag) in enumerate(sentence, 1)]
        lines.insert(1, "2-3\tdidn't\t_\t_\t_\t_\t_\t_\t_\t_")
        lines.insert(4, "3.1\tit\t_\tPRON\tPRP\t_\t_\t_\t_\t_")
        blocks.append("# sent_id = a\n" + "\n".join(lines) + "\n\n")
    path.write_text("".join(blocks), encoding="utf-8")
    return path


def conll2012(path: Path) -> Path:
    """Brackets are escaped, columns divided by blanks."""
    escaped = {"(": "-LRB-", ")": "-RRB-", ".": "/."}
    blocks = []
    for sentence in SENTENCES:
        rows = [f"bc/a  0  {i}  {escaped.get(w, w)}  {t}  *  -  -  -  -  *  -" for i, (w, t) in enumerate(sentence)]
        blocks.append("\n".join(rows) + "\n\n")
    path.write_text("#begin document (bc/a); part 000\n" + "".join(blocks) + "#end document\n", encoding="utf-8")
    return path


def json_lines(path: Path) -> Path:
    """The form of edge probing."""
    with path.open("w", encoding="utf-8") as file:
        for sentence in SENTENCES:
            targets = [{"span1": [i, i + 1], "label": tag} for i, (_, tag) in enumerate(sentence)]
            file.write(json.dumps({"text": " ".join(w for w, _ in sentence), "targets": targets, "info": {}}) + "\n")
    return path


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
def test_every_format_gives_the_same_examples(tmp_path, write, name):
    """The format is known by the extension, or by the first line."""
    assert read_treebank(write(tmp_path / name)) == EXAMPLES


@pytest.mark.parametrize("write", [conllu, json_lines])
def test_compressed_files_are_read(tmp_path, write):
    """.xz is unpacked on reading."""
    plain = write(tmp_path / "a.txt")
    (tmp_path / "a.xz").write_bytes(lzma.compress(plain.read_bytes()))
    assert read_treebank(tmp_path / "a.xz") == EXAMPLES


def test_a_folder_is_read_file_by_file(tmp_path):
    """OntoNotes comes as many files in folders; others in them are passed over."""
    (tmp_path / "nw").mkdir()
    conll2012(tmp_path / "nw" / "b.gold_conll")
    conll2012(tmp_path / "a.gold_conll")
    (tmp_path / "nw" / "b.parse").write_text("(S)")
    assert read_treebank(tmp_path) == EXAMPLES * 2


def test_untagged_words_are_no_targets(tmp_path):
    """A word whose tag is "_" stays in the sentence and is not asked."""
    path = conllu(tmp_path / "a.conllu")
    path.write_text(path.read_text().replace("\tPRP\t", "\t_\t"))
    example = read_treebank(path)[0]
    assert (example.words, example.targets) == (EXAMPLES[0].words, EXAMPLES[0].targets[1:])


def test_syntactic_heads_are_indices_of_words(tmp_path):
    """Column 7 counts words from 1, with 0 at the root; a treebank without heads gives none."""
    rows = [("She", 2), ("reads", 0), ("old", 4), ("books", 2), (".", "_")]
    lines = [f"{i}\t{word}\t_\tX\tNN\t_\t{head}\t_\t_\t_" for i, (word, head) in enumerate(rows, 1)]
    (tmp_path / "a.conllu").write_text("\n".join(lines), encoding="utf-8")
    assert read_treebank(tmp_path / "a.conllu")[0].heads == (1, None, 3, 1, None)
    assert read_treebank(conllu(tmp_path / "b.conllu"))[0].heads == ()
    assert read_treebank(json_lines(tmp_path / "c.jsonl"))[0].heads == ()


FAULTS = {
    "no tags": ("a.conllu", "1\tIt\t_\tPRON\t_\t_\t_\t_\t_\t_\n\n", "no part-of-speech tag"),
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
    "cut xz": ("a.conllu.xz", lzma.compress(b"1\tIt" * 99)[:50], "cannot be read"),
}


@pytest.mark.parametrize(("name", "content", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_faults_are_reported_with_their_place(tmp_path, name, content, message):
    """One sentence with the file, and the line where there is one."""
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CorpusError, match=message):
        read_treebank(tmp_path / name)


def test_a_missing_treebank_tells_what_to_run(tmp_path):
    """Neither a path that is not there nor a folder without treebanks gives a traceback."""
    with pytest.raises(CorpusError, match="python -m embryo_core fetch treebank"):
        read_treebank(tmp_path / "none")
    with pytest.raises(CorpusError, match="no treebank file"):
        read_treebank(tmp_path)


def test_the_real_treebank_and_its_edge_probing_form_agree(shared_data):
    """CoNLL-U and JSON lines of the same sentences give the same examples, all words counted."""
    examples = read_treebank(shared_data / "treebank" / "en_ewt-ud-test.conllu.xz")
    probing = read_treebank(shared_data / "probing" / "pos" / "test.jsonl.xz")
    assert [replace(example, heads=()) for example in examples] == probing
    assert (len(examples), sum(len(example.words) for example in examples)) == (2077, 25094)


# === Edge probing ===

GOOD = {"text": "A dog", "targets": [{"span1": [1, 2], "label": "NN"}], "info": {}}


def probing(folder: Path, *lines: object, split: str = "train") -> Path:
    """A folder with one split, of these lines: text, or objects to be written as JSON."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_targets_have_one_span_or_two(tmp_path):
    """Labels are text, numbers are made so; an empty list of targets is an example without any."""
    pair = {"text": "A dog", "targets": [{"span1": [1, 2], "span2": [0, 1], "label": 1}]}
    assert read_probing(probing(tmp_path, pair, "", {"text": "Oh", "targets": []}), "train") == [
        Example(("A", "dog"), (Target((1, 2), "1", (0, 1)),)),
        Example(("Oh",), ()),
    ]
    assert read_probing(probing(tmp_path, GOOD, split="dev"), "dev")[0].targets == (Target((1, 2), "NN"),)


def test_a_compressed_split_is_read(tmp_path):
    """The same examples."""
    with lzma.open(tmp_path / "test.jsonl.xz", "wt", encoding="utf-8") as file:
        file.write(json.dumps(GOOD) + "\n")
    assert len(read_probing(tmp_path, "test")) == 1


def target(**changed: object) -> dict:
    return {"text": "A dog", "targets": [{**GOOD["targets"][0], **changed}]}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "expected a JSON object"),
        ({"targets": []}, "KeyError"),
        ({"text": "A dog", "targets": [{"span1": [0, 1]}]}, "'label'"),
        (target(label=["NN", "NP"]), ", not one text"),
        (target(label=None), ", not one text"),
        (target(span1=[1, 3]), r"\[1, 3\] is not within the sentence's 2 words"),
        (target(span1=[1, 1]), r"\[1, 1\] is not within"),
        (target(span1=[-1, 1]), r"\[-1, 1\] is not within"),
        (target(span1=[0.0, 1.0]), "float"),
        (target(span1=[0, 1, 2]), "too many values"),
        (target(span2=[0, 9]), "some targets have one span and some have two|not within"),
        (target(span2=[0, 1]), "some targets have one span and some have two"),
    ],
)
def test_a_malformed_line_gives_file_and_number(tmp_path, line, message):
    """In one sentence, whatever is wrong with it."""
    folder = probing(tmp_path, GOOD, "", line, GOOD)
    with pytest.raises(CorpusError, match=rf"train\.jsonl, line 3.*({message})"):
        read_probing(folder, "train")


def test_a_missing_split_tells_what_there_is(tmp_path):
    """Or that there is no such folder."""
    with pytest.raises(CorpusError, match=r"dev\.jsonl \(or \.xz\) does not exist, there is train\.jsonl"):
        read_probing(probing(tmp_path, GOOD), "dev")
    with pytest.raises(CorpusError, match="there is no folder of that name"):
        read_probing(tmp_path / "none", "dev")


def test_the_real_tasks_have_their_targets(shared_data):
    """Those that the data's own description counts."""
    counts = {"pos": 25_094, "constituent": 23_309, "coref": 6_060, "srl": 9_321}
    for task, count in counts.items():
        examples = read_probing(shared_data / "probing" / task, "test")
        assert sum(len(example.targets) for example in examples) == count


# === LAMA ===


def lama(folder: Path, rows: list[dict], template: str = "[X] was born in [Y] .") -> Path:
    (folder / "TREx").mkdir(parents=True, exist_ok=True)
    (folder / "relations.jsonl").write_text(json.dumps({"relation": "P19", "template": template, "type": "N-1"}) + "\n")
    (folder / "TREx" / "P19.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_facts_have_their_relations_template_and_a_unique_id(tmp_path):
    """The id is the uuid, or relation, subject and object where there is none; a repeated fact counts once."""
    rows = [
        {"uuid": "u1", "sub_label": "Ada", "obj_label": "London"},
        {"uuid": None, "sub_label": "Bo", "obj_label": "Oslo"},
        {"uuid": None, "sub_label": "Bo", "obj_label": "Oslo"},
    ]
    assert read_lama(lama(tmp_path, rows)) == [
        Fact("u1", "P19", "[X] was born in [Y] .", "Ada", "London"),
        Fact("P19/Bo/Oslo", "P19", "[X] was born in [Y] .", "Bo", "Oslo"),
    ]


@pytest.mark.parametrize(
    ("rows", "template", "message"),
    [
        ([{"uuid": "a", "sub_label": "Ada"}], "[X] [Y]", r"P19\.jsonl, line 1: .*lacks 'obj_label'"),
        ([{"sub_label": "Ada", "obj_label": "Oslo"}], "[X] .", r"relations\.jsonl, line 1: .*one \[X\] and one \[Y\]"),
        ([], "[X] [Y]", r"holds no fact; add TREx/RELATION\.jsonl"),
        (
            [{"uuid": "a", "sub_label": s, "obj_label": "Oslo"} for s in "XY"],
            "[X] [Y]",
            "line 2: the uuid a belongs to another fact",
        ),
    ],
)
def test_faults_of_facts_are_reported(tmp_path, rows, template, message):
    """One sentence with file and line."""
    with pytest.raises(CorpusError, match=message):
        read_lama(lama(tmp_path, rows, template))


def test_a_missing_lama_tells_what_to_run(tmp_path):
    """The folder has to hold relations.jsonl; files alone get a message that says what is missing."""
    with pytest.raises(CorpusError, match="python -m embryo_core fetch lama"):
        read_lama(tmp_path)
    (lama(tmp_path, [{"sub_label": "Ada", "obj_label": "Oslo"}]) / "relations.jsonl").unlink()
    with pytest.raises(CorpusError, match=r'add it with a line for each relation, such as {"relation": "P19", "templ'):
        read_lama(tmp_path)


def test_any_relation_with_a_template_is_read(tmp_path):
    """P27, which is none of the paper's 25, alone or after one of them, whatever the order of the templates."""
    templates = {"P27": "[X] is [Y] citizen .", "P19": "[X] was born in [Y] .", "P20": "[X] died in [Y] ."}
    rows = [{"relation": relation, "template": template} for relation, template in templates.items()]
    (tmp_path / "TREx").mkdir()
    (tmp_path / "relations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for relation, expected in (("P27", ["P27"]), ("P19", ["P19", "P27"])):
        (tmp_path / "TREx" / f"{relation}.jsonl").write_text('{"sub_label": "Ada", "obj_label": "Oslo"}\n')
        assert [fact.relation for fact in read_lama(tmp_path)] == expected


def test_a_relation_without_a_template_is_reported(tmp_path):
    """It does not vanish beside others; the message has the line to add."""
    folder = lama(tmp_path, [{"sub_label": "Ada", "obj_label": "Oslo"}])
    (folder / "TREx" / "P27.jsonl").write_text('{"sub_label": "Ada", "obj_label": "Norway"}\n')
    with pytest.raises(CorpusError, match=r'P27\.jsonl has no template; add a line .*{"relation": "P27", "template"'):
        read_lama(folder)


def test_the_real_facts_are_those_of_table_8(shared_data):
    """25 relations; every fact has an id of its own."""
    facts = read_lama(shared_data / "lama")
    assert len(facts) == len({fact.id for fact in facts}) == 20496
    assert list(dict.fromkeys(fact.relation for fact in facts)) == list(RELATIONS)


# === Identity ===


def test_a_source_is_known_by_its_content(tmp_path):
    """Another name or hidden files change nothing, one byte of one file or the relation that it is of does."""
    one = lama(tmp_path / "lama", [{"sub_label": "Ada", "obj_label": "Oslo"}])
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
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "packed.conllu").write_bytes(content)
    assert open_source(packed.parent).sha256 == open_source(tmp_path / "b").sha256


def test_data_that_cannot_be_read_are_no_source(tmp_path):
    """Nothing there, and half a compressed file."""
    (tmp_path / "half.conllu.xz").write_bytes(lzma.compress(b"content" * 99)[:-20])
    with pytest.raises(CorpusError, match="half.conllu.xz cannot be read"):
        open_source(tmp_path / "half.conllu.xz")
    with pytest.raises(CorpusError, match="does not exist"):
        open_source(tmp_path / "none")
