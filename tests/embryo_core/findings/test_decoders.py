"""Tests that decoders are judged by next-word prediction, with the verdicts of encoders on the same numbers."""

from dataclasses import replace
from pathlib import Path

import pytest

from embryo_core import results
from embryo_core.findings import judge
from embryo_core.measurements import Findings, Score, WordCount
from tests import decoders
from tests.conftest import checkpoint_at
from tests.embryo_core.findings import planted
from tests.embryo_core.findings.planted import CATEGORIES, FORM_WORDS

STEPS = (1, 2, 4, 8, 16)
FREQUENT = "".join(f"{word}\t{times}\n" for word, times in planted.FREQUENCIES.items())


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Return the verdicts on the same scores of a decoder and of an encoder, by metric."""
    root = tmp_path_factory.mktemp("both")
    decoder = decoders.add_series(root, "gpt2", STEPS)
    encoder = replace(decoder, name="egg", path=root / "runs" / "egg", family="albert")
    Path(encoder.path).mkdir()
    verdicts_of = {}
    for run, metric in ((decoder, "next_word_prediction"), (encoder, "mask_prediction")):
        run.frequencies.write_text(FREQUENT)
        for step in STEPS:
            groups = (*CATEGORIES, *planted.FORMS, *planted.BANDS)
            scores = [Score(metric, 0.8 if step >= 1 + i % 9 else 0.0, 10_000, name) for i, name in enumerate(groups)]
            words = [WordCount(metric, form, word, 3, 1) for form, word in FORM_WORDS.items()]
            results.write(checkpoint_at(run, step), metric, Findings(scores=scores, words=words))
        verdicts_of[metric] = {judgement.finding.name: judgement for judgement in judge(run)}
    return verdicts_of


def test_equal_numbers_give_equal_verdicts(verdicts):
    """This holds for function words, content words and verb forms; the claim names the measure."""
    decoder, encoder = verdicts["next_word_prediction"], verdicts["mask_prediction"]
    for name in ("function_words_prediction", "content_words_prediction", "verb_forms_prediction"):
        assert decoder[name].verdict == encoder[name].verdict
        assert decoder[name].comparisons == encoder[name].comparisons != ()
        assert "(next-word prediction)" in decoder[name].finding.claim
        assert "(prediction)" in encoder[name].finding.claim
    assert decoder["frequent_words"].finding.metrics == ("next_word_prediction",)
    assert decoder["frequent_words"].comparisons


def test_decoders_have_no_findings_on_reconstruction(verdicts):
    """All other findings are judged."""
    decoder, encoder = verdicts["next_word_prediction"], verdicts["mask_prediction"]
    assert {name for name in encoder.keys() - decoder.keys()} == {
        "reconstruction_before_prediction",
        "function_words_reconstruction",
        "content_words_reconstruction",
        "verb_forms_reconstruction",
    }
    assert decoder.keys() <= encoder.keys()
