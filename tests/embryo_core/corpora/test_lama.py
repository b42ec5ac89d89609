"""Tests of reading LAMA: facts get their relation's template, and faults are reported with file and line."""

import gzip
import json
from pathlib import Path

import pytest

from embryo_core.corpora import read_lama
from embryo_core.corpora.lama import RELATIONS
from embryo_core.errors import CorpusError
from embryo_core.types import Fact


def lama(folder: Path, rows: list[dict], template: str = "[X] was born in [Y] .") -> Path:
    (folder / "TREx").mkdir(parents=True, exist_ok=True)
    (folder / "relations.jsonl").write_text(json.dumps({"relation": "P19", "template": template, "type": "N-1"}) + "\n")
    (folder / "TREx" / "P19.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_facts_have_a_template_and_a_unique_id(tmp_path):
    """The id is the uuid or, without one, relation, subject and object; a repeated fact counts once."""
    rows = [
        {"uuid": "u1", "sub_label": "Ada", "obj_label": "London"},
        {"uuid": None, "sub_label": "Bo", "obj_label": "Oslo"},
        {"uuid": None, "sub_label": "Bo", "obj_label": "Oslo"},
    ]
    assert read_lama(lama(tmp_path, rows)) == [
        Fact("u1", "P19", "[X] was born in [Y] .", "Ada", "London"),
        Fact("P19/Bo/Oslo", "P19", "[X] was born in [Y] .", "Bo", "Oslo"),
    ]


def test_compressed_files_with_a_byte_order_mark_are_read(tmp_path):
    """Both templates and facts may be stored in this way."""
    folder = lama(tmp_path, [{"uuid": "u1", "sub_label": "Ada", "obj_label": "London"}])
    before = read_lama(folder)
    for file in (folder / "relations.jsonl", folder / "TREx" / "P19.jsonl"):
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + file.read_bytes()))
        file.unlink()
    assert read_lama(folder) == before


@pytest.mark.parametrize(
    ("rows", "template", "message"),
    [
        ([{"uuid": "a", "sub_label": "Ada"}], "[X] [Y]", r"P19\.jsonl, line 1: .*lacks 'obj_label'"),
        ([{"sub_label": "Ada", "obj_label": "Oslo"}], "[X] .", r"relations\.jsonl, line 1: .*one \[X\] and one \[Y\]"),
        ([], "[X] [Y]", r"has no facts; add TREx/RELATION\.jsonl"),
        (
            [{"uuid": "a", "sub_label": s, "obj_label": "Oslo"} for s in "XY"],
            "[X] [Y]",
            "line 2: the uuid a belongs to another fact",
        ),
    ],
)
def test_faulty_facts_are_reported(tmp_path, rows, template, message):
    """The faults are a missing object, a template with one slot, no facts, and a uuid that two facts share."""
    with pytest.raises(CorpusError, match=message):
        read_lama(lama(tmp_path, rows, template))


def test_missing_lama_names_the_fetch_command(tmp_path):
    """For a folder with facts but without relations.jsonl the message shows how to write that file."""
    with pytest.raises(CorpusError, match="python -m embryo_core fetch lama"):
        read_lama(tmp_path)
    (lama(tmp_path, [{"sub_label": "Ada", "obj_label": "Oslo"}]) / "relations.jsonl").unlink()
    with pytest.raises(CorpusError, match=r'add it with a line for each relation, such as {"relation": "P19", "templ'):
        read_lama(tmp_path)


def test_any_relation_with_a_template_is_read(tmp_path):
    """P27 is not among the paper's 25; it is read alone or after one of them, whatever the order of the templates."""
    templates = {"P27": "[X] is [Y] citizen .", "P19": "[X] was born in [Y] .", "P20": "[X] died in [Y] ."}
    rows = [{"relation": relation, "template": template} for relation, template in templates.items()]
    (tmp_path / "TREx").mkdir()
    (tmp_path / "relations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for relation, expected in (("P27", ["P27"]), ("P19", ["P19", "P27"])):
        (tmp_path / "TREx" / f"{relation}.jsonl").write_text('{"sub_label": "Ada", "obj_label": "Oslo"}\n')
        assert [fact.relation for fact in read_lama(tmp_path)] == expected


def test_relation_without_a_template_is_reported(tmp_path):
    """The relation is not silently dropped; the message gives the line to add."""
    folder = lama(tmp_path, [{"sub_label": "Ada", "obj_label": "Oslo"}])
    (folder / "TREx" / "P27.jsonl").write_text('{"sub_label": "Ada", "obj_label": "Norway"}\n')
    with pytest.raises(CorpusError, match=r'P27\.jsonl has no template; add a line .*{"relation": "P27", "template"'):
        read_lama(folder)


def test_real_facts_match_table_8(shared_data):
    """The 25 relations have 20,496 facts, each with a unique id."""
    facts = read_lama(shared_data / "lama")
    assert len(facts) == len({fact.id for fact in facts}) == 20496
    assert list(dict.fromkeys(fact.relation for fact in facts)) == list(RELATIONS)
