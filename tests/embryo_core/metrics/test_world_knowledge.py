"""Tests of world knowledge: answers equal those of the paper's procedure, one question at a time."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embryo_core import corpora
from embryo_core.errors import CorpusError
from embryo_core.metric import Limits
from embryo_core.metrics.world_knowledge import WorldKnowledge, encode
from embryo_core.tokenizers.conversion import convert_tokenizer
from embryo_core.tokenizers.tokenizer import Tokenizer
from embryo_core.types import Fact
from tests.embryo_core.metrics.conftest import read
from tests.embryo_core.sources.conftest import write_byte_level


@pytest.fixture(scope="module")
def findings(trained_model):
    """Compute the metric on the sample's facts."""
    metric = WorldKnowledge()
    return metric.compute(trained_model, read(metric, trained_model))


def write_lama(folder: Path, *objects: str) -> Path:
    """Write a LAMA folder with a fact for each object, all of one relation."""
    (folder / "TREx").mkdir()
    (folder / "relations.jsonl").write_text('{"relation": "P19", "template": "[X] was born in [Y] ."}\n')
    facts = [json.dumps({"sub_label": f"Ada {i}", "obj_label": name}) + "\n" for i, name in enumerate(objects)]
    (folder / "TREx" / "P19.jsonl").write_text("".join(facts))
    return folder


def test_answers_equal_the_papers_procedure(trained_model, paper, sample, findings):
    """The same facts are asked; rank and probability of the object and the best piece are equal."""
    expected = paper.world_knowledge(corpora.read_lama(sample / "lama"))
    assert {answer.fact for answer in findings.cloze} == expected.keys()
    names = trained_model.tokenizer.readable(range(trained_model.tokenizer.vocabulary_size))
    for answer in findings.cloze:
        rank, probability, best = expected[answer.fact]
        assert (answer.rank, answer.prediction) == (rank, names[best])
        assert answer.probability == pytest.approx(probability, rel=1e-4)
    assert len({answer.rank == 1 for answer in findings.cloze}) == 2  # some are known, some not


def test_precision_at_1_is_the_share_of_rank_1(findings):
    """Scores are by relation and over all facts ("all")."""
    scores = {score.group: score for score in findings.scores if score.metric == "world_knowledge"}
    for group, score in scores.items():
        ranks = [answer.rank for answer in findings.cloze if group in (answer.relation, "all")]
        assert (score.n, score.value) == (len(ranks), pytest.approx(ranks.count(1) / len(ranks)))
    assert scores["all"].n == len(findings.cloze)


def test_object_at_the_start_is_sought_as_it_is_written(tmp_path):
    """A byte-level tokenizer has "The" for it there, and "ĠThe" after a space."""
    text, special, _ = convert_tokenizer(write_byte_level(tmp_path))
    (tmp_path / "kept.json").write_text(text, encoding="utf-8")
    tokenizer = Tokenizer(tmp_path / "kept.json", special)
    templates = ("[Y] is near [X] .", "[X] is near [Y] .")
    facts = [Fact("1", "P1", template, "the river", "The") for template in templates]
    facts.append(Fact("2", "P1", templates[0], "the town", "river"))  # "ri" and "ver" at the start
    questions = encode(facts, tokenizer, Limits(64))
    assert tokenizer.pieces(questions.objects) == ["The", "ĠThe"] and questions.places == [0, 1]


def test_decoder_is_asked_for_the_object_without_a_space_after_a_hyphen(tmp_path):
    """The piece is that of the written text; an object that is several pieces there is not asked."""
    text, special, _ = convert_tokenizer(write_byte_level(tmp_path))
    (tmp_path / "kept.json").write_text(text, encoding="utf-8")
    tokenizer = Tokenizer(tmp_path / "kept.json", replace(special, mask=None))
    facts = [Fact(name, "P1", "[X] is in old-[Y] .", "the river", name) for name in ("s", "the")]
    questions = encode(facts, tokenizer, Limits(64, decoder=True))
    assert tokenizer.single_piece("the") is not None
    assert tokenizer.pieces(questions.objects) == ["s"] and questions.places == [0]


def test_coverage_is_the_share_of_single_piece_objects(trained_model, sample, findings):
    """n counts all facts of the relation."""
    facts = corpora.read_lama(sample / "lama")
    for score in findings.scores:
        if score.metric == "world_knowledge_coverage":
            own = [fact for fact in facts if score.group in (fact.relation, "all")]
            single = [fact for fact in own if trained_model.tokenizer.single_piece(fact.object) is not None]
            assert (score.n, score.value) == (len(own), pytest.approx(len(single) / len(own)))


def test_summary_has_the_template_of_every_relation(trained_model, sample):
    """With it, a question can be shown without LAMA."""
    noted = read(WorldKnowledge(), trained_model).summary["templates"]
    assert noted == {fact.relation: fact.template for fact in corpora.read_lama(sample / "lama")}


def test_limit_takes_first_facts_of_each_relation(trained_model):
    data = read(WorldKnowledge(), trained_model, limit=2)
    assert set(data.total.values()) == {2}


def test_ties_are_ranked_in_vocabulary_order(trained_model, monkeypatch):
    """With equal logits, an object's rank is its place in the vocabulary, and the first piece is the prediction."""
    data = read(WorldKnowledge(), trained_model)
    vocabulary = len(data.vocabulary)
    monkeypatch.setattr(trained_model, "mlm_logits", lambda ids, rows, columns: np.zeros((len(rows), vocabulary)))
    answers = WorldKnowledge().compute(trained_model, data).cloze
    assert [answer.rank for answer in answers] == [piece + 1 for piece in data.questions.objects]
    assert {answer.prediction for answer in answers} == {data.vocabulary[0]}
    assert {answer.probability for answer in answers} == {1 / vocabulary}


def test_unknown_object_is_not_asked(trained_model, tmp_path):
    """The unknown piece is not an answer, although it is a single piece."""
    objects = ("<unk>", "the")
    assert all(len(trained_model.tokenizer.encode_words([word]).ids) == 1 for word in objects)
    data = read(WorldKnowledge(), trained_model, write_lama(tmp_path, *objects))
    assert [fact.object for fact in data.questions.asked] == ["the"]


def test_question_may_fill_the_models_positions(trained_model, sample):
    """[CLS] and [SEP] are included; a longer question is not asked, but its fact is counted in the total."""
    data = read(WorldKnowledge(), trained_model)
    lengths = [len(ids) for ids in data.questions.ids]
    longest = max(lengths)
    source = corpora.open_source(sample / "lama")
    whole, fewer = (
        WorldKnowledge().read(trained_model.tokenizer, Limits(positions), source)
        for positions in (longest, longest - 1)
    )
    assert len(whole.questions.asked) == len(lengths)
    assert len(fewer.questions.asked) == len(lengths) - lengths.count(longest)
    assert fewer.questions.too_long == lengths.count(longest)
    assert fewer.total == whole.total == data.total


def test_fact_with_a_mask_as_subject_is_not_asked(trained_model, tmp_path):
    """Its question would have two masks; the other fact is asked."""
    path = write_lama(tmp_path, "the", "the")
    facts = [{"sub_label": name, "obj_label": "the"} for name in ("[MASK]", "Ada")]
    (path / "TREx" / "P19.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    data = read(WorldKnowledge(), trained_model, path)
    assert [fact.subject for fact in data.questions.asked] == ["Ada"] and data.total == {"P19": 2}


def test_facts_without_single_piece_objects_are_reported(trained_model, tmp_path):
    """An error is raised instead of an empty result."""
    with pytest.raises(CorpusError, match="No object of the 1 facts"):
        read(WorldKnowledge(), trained_model, write_lama(tmp_path, "Llanfairpwllgwyngyll"))
