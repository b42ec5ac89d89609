"""A fact asked live gives the answer that was computed for it."""

import pytest

from embryo_core import query, results, runs
from embryo_core.engine.cache import MODELS
from embryo_core.errors import ResultsError
from embryo_core.query.facts import knowledge_query, templates
from embryo_core.query.track import track
from embryo_core.types import Run


def test_live_answers_equal_the_stored_ones(tiny_results: Run) -> None:
    """At every step: the prediction and its probability, and the true object's probability and rank."""
    stored = results.read_cloze(tiny_results)
    some = stored.groupby(["step", "relation"]).head(2)
    assert len(some) >= 3 * 6
    for row in some.itertuples():
        text = knowledge_query(tiny_results, row.relation, row.subject)
        (listed,) = query.fill_mask(MODELS.get(runs.checkpoint(tiny_results, row.step)), text, k=1)
        assert listed[0].token == row.prediction
        assert listed[0].probability == pytest.approx(row.prediction_probability, abs=1e-6)
        tracked = track(tiny_results, text, row.object, steps=[row.step])
        assert tracked.ranks == (row.rank,)
        assert tracked.probabilities[0] == pytest.approx(row.probability, abs=1e-6)


def test_a_question_is_the_filled_template(tiny_results: Run) -> None:
    """Subject and [MASK] take the places of [X] and [Y]."""
    assert knowledge_query(tiny_results, "P19", "Albert Einstein") == "Albert Einstein was born in [MASK] ."
    assert set(templates(tiny_results)) == set(results.read_cloze(tiny_results)["relation"])


def test_a_relation_that_was_not_asked(tiny_results: Run, tiny_run: Run) -> None:
    """It is told which were; a run without results has none."""
    with pytest.raises(ResultsError, match="Unknown relation 'P1'.* Known: P19"):
        knowledge_query(tiny_results, "P1", "Japan")
    assert templates(tiny_run) == {}
