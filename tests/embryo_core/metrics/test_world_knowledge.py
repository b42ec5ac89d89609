"""World knowledge asks what the paper's procedure asks, one question at a time, and finds the same."""

import json
from pathlib import Path

import numpy as np
import pytest

from embryo_core import corpora, query
from embryo_core.errors import CorpusError
from embryo_core.metric import Limits
from embryo_core.metrics.world_knowledge import WorldKnowledge
from tests.embryo_core.metrics.conftest import read


@pytest.fixture(scope="module")
def findings(trained):
    """Compute the metric on the sample's facts."""
    metric = WorldKnowledge()
    return metric.compute(trained, read(metric, trained))


def write_lama(folder: Path, *objects: str) -> Path:
    """Write a LAMA folder with a fact for each object, of one relation."""
    (folder / "TREx").mkdir()
    (folder / "relations.jsonl").write_text('{"relation": "P19", "template": "[X] was born in [Y] ."}\n')
    facts = [json.dumps({"sub_label": f"Ada {i}", "obj_label": name}) + "\n" for i, name in enumerate(objects)]
    (folder / "TREx" / "P19.jsonl").write_text("".join(facts))
    return folder


def test_answers_equal_those_of_one_question_at_a_time(trained, paper, sample, findings):
    """The same facts are asked; rank and probability of the object and the best piece are the same."""
    expected = paper.world_knowledge(corpora.read_lama(sample / "lama"))
    assert {answer.fact for answer in findings.cloze} == expected.keys()
    names = query.readable(trained.tokenizer, range(trained.tokenizer.vocabulary_size))
    for answer in findings.cloze:
        rank, probability, best = expected[answer.fact]
        assert (answer.rank, answer.prediction) == (rank, names[best])
        assert answer.probability == pytest.approx(probability, rel=1e-4)
    assert len({answer.rank == 1 for answer in findings.cloze}) == 2  # some are known, some not


def test_precision_at_1_is_the_share_of_facts_with_rank_1(findings):
    """By relation, and over all facts ("all")."""
    scores = {score.group: score for score in findings.scores if score.metric == "world_knowledge"}
    for group, score in scores.items():
        ranks = [answer.rank for answer in findings.cloze if group in (answer.relation, "all")]
        assert (score.n, score.value) == (len(ranks), pytest.approx(ranks.count(1) / len(ranks)))
    assert scores["all"].n == len(findings.cloze)


def test_coverage_is_the_share_of_objects_that_are_one_piece(trained, sample, findings):
    """n counts all facts of the relation."""
    facts = corpora.read_lama(sample / "lama")
    for score in findings.scores:
        if score.metric == "world_knowledge_coverage":
            own = [fact for fact in facts if score.group in (fact.relation, "all")]
            single = [fact for fact in own if trained.tokenizer.single_piece(fact.object) is not None]
            assert (score.n, score.value) == (len(own), pytest.approx(len(single) / len(own)))


def test_the_templates_are_noted(trained, sample):
    """The summary of the data holds the template of every relation, so that a question can be shown without LAMA."""
    noted = read(WorldKnowledge(), trained).summary["templates"]
    assert noted == {fact.relation: fact.template for fact in corpora.read_lama(sample / "lama")}


def test_a_limit_takes_the_first_facts_of_each_relation(trained):
    """So that every relation stays in."""
    data = read(WorldKnowledge(), trained, limit=2)
    assert set(data.total.values()) == {2}


def test_equal_logits_rank_in_the_order_of_the_vocabulary(trained, monkeypatch):
    """Where no piece is better than another, an object's rank is its place in the vocabulary, and the first is best."""
    data = read(WorldKnowledge(), trained)
    vocabulary = len(data.vocabulary)
    monkeypatch.setattr(trained, "mlm_logits", lambda ids, mask, rows, columns: np.zeros((len(rows), vocabulary)))
    answers = WorldKnowledge().compute(trained, data).cloze
    assert [answer.rank for answer in answers] == [piece + 1 for piece in data.questions.objects]
    assert {answer.prediction for answer in answers} == {data.vocabulary[0]}
    assert {answer.probability for answer in answers} == {1 / vocabulary}


def test_an_unknown_object_is_not_asked(trained, tmp_path):
    """The piece for what the vocabulary lacks is no answer, although it is a single piece."""
    objects = ("<unk>", "the")
    assert all(len(trained.tokenizer.encode_words([word]).ids) == 1 for word in objects)
    data = read(WorldKnowledge(), trained, write_lama(tmp_path, *objects))
    assert [fact.object for fact in data.questions.asked] == ["the"]


def test_a_question_may_be_as_long_as_the_models_positions(trained, sample):
    """[CLS] and [SEP] counted; a longer one is not asked, and counts among all facts."""
    data = read(WorldKnowledge(), trained)
    lengths = [len(ids) for ids in data.questions.ids]
    longest = max(lengths)
    source = corpora.open_source(sample / "lama")
    whole, fewer = (
        WorldKnowledge().read(trained.tokenizer, Limits(positions), source) for positions in (longest, longest - 1)
    )
    assert len(whole.questions.asked) == len(lengths)
    assert len(fewer.questions.asked) == len(lengths) - lengths.count(longest)
    assert fewer.questions.too_long == lengths.count(longest)
    assert fewer.total == whole.total == data.total


def test_a_fact_whose_subject_is_a_mask_is_not_asked(trained, tmp_path):
    """Its question has two; the others have their own answers."""
    path = write_lama(tmp_path, "the", "the")
    facts = [{"sub_label": name, "obj_label": "the"} for name in ("[MASK]", "Ada")]
    (path / "TREx" / "P19.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    data = read(WorldKnowledge(), trained, path)
    assert [fact.subject for fact in data.questions.asked] == ["Ada"] and data.total == {"P19": 2}


def test_facts_that_cannot_be_asked_at_all_are_reported(trained, tmp_path):
    """A vocabulary without any of the objects gives one sentence, not an empty result."""
    with pytest.raises(CorpusError, match="No object of the 1 facts"):
        read(WorldKnowledge(), trained, write_lama(tmp_path, "Llanfairpwllgwyngyll"))
