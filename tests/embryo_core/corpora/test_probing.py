"""Tests of reading edge-probing tasks to Examples; faults are reported with file and line."""

import json
import lzma
from pathlib import Path

import pytest

from embryo_core.corpora import read_probing
from embryo_core.errors import CorpusError
from embryo_core.types import Example, Target

GOOD = {"text": "A dog", "targets": [{"span1": [1, 2], "label": "NN"}], "info": {}}


def probing(folder: Path, *lines: object, split: str = "train") -> Path:
    """Write one split of these lines, text or objects as JSON; return the folder."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_targets_have_one_or_two_spans(tmp_path):
    """A numeric label becomes text; an empty list of targets gives an example without targets."""
    pair = {"text": "A dog", "targets": [{"span1": [1, 2], "span2": [0, 1], "label": 1}]}
    assert read_probing(probing(tmp_path, pair, "", {"text": "Oh", "targets": []}), "train") == [
        Example(("A", "dog"), (Target((1, 2), "1", (0, 1)),)),
        Example(("Oh",), ()),
    ]
    assert read_probing(probing(tmp_path, GOOD, split="dev"), "dev")[0].targets == (Target((1, 2), "NN"),)


def test_compressed_split_is_read(tmp_path):
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
        (target(label=["NN", "NP"]), ", not a string"),
        (target(label=None), ", not a string"),
        (target(span1=[1, 3]), r"\[1, 3\] is not within the sentence's 2 words"),
        (target(span1=[1, 1]), r"\[1, 1\] is not within"),
        (target(span1=[-1, 1]), r"\[-1, 1\] is not within"),
        (target(span1=[0.0, 1.0]), "float"),
        (target(span1=[0, 1, 2]), "too many values"),
        (target(span2=[0, 9]), "some targets have one span and some have two|not within"),
        (target(span2=[0, 1]), "some targets have one span and some have two"),
    ],
)
def test_malformed_line_is_reported_with_its_number(tmp_path, line, message):
    folder = probing(tmp_path, GOOD, "", line, GOOD)
    with pytest.raises(CorpusError, match=rf"train\.jsonl, line 3.*({message})"):
        read_probing(folder, "train")


def test_missing_split_lists_the_existing_ones(tmp_path):
    """If the folder is missing too, the message says so."""
    with pytest.raises(CorpusError, match=r"dev\.jsonl \(or \.xz, \.gz\) does not exist.* train\.jsonl"):
        read_probing(probing(tmp_path, GOOD), "dev")
    with pytest.raises(CorpusError, match="nor does its folder"):
        read_probing(tmp_path / "none", "dev")


def test_real_tasks_have_all_targets(shared_data):
    """The numbers are those of the data's own description."""
    counts = {"pos": 25_094, "constituent": 23_309, "coref": 6_060, "srl": 9_321}
    for task, count in counts.items():
        examples = read_probing(shared_data / "probing" / task, "test")
        assert sum(len(example.targets) for example in examples) == count
