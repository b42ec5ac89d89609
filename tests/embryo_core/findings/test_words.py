"""Tests of findings about words: runs made to show or to contradict a finding get that verdict."""

import pandas as pd
import pytest

from embryo_core import results, runs
from embryo_core.findings import words
from embryo_core.findings.evidence import Evidence
from embryo_core.findings.finding import verdict_of
from embryo_core.groups import BANDS
from embryo_core.measurements import Findings, Score, WordCount
from tests.conftest import checkpoint_at
from tests.embryo_core.findings.conftest import evidence, risen

ORDER = (*words.FUNCTION_CATEGORIES, *words.CONTENT_CATEGORIES)
ONSETS = dict(zip(ORDER, (1, 1, 2, 2, 4, 8, 16, 32, 64), strict=True))


def rows(task: str, onsets: dict[str, int]) -> list[tuple]:
    """Return a curve for each group."""
    return [(task, group, None, risen(step)) for group, step in onsets.items()]


def reversed_order() -> dict[str, int]:
    """Return the groups with their onsets reversed."""
    return dict(zip(ORDER, reversed(ONSETS.values()), strict=True))


@pytest.mark.parametrize("task", words.WORD_METRICS)
def test_paper_order_is_reproduced_and_its_reverse_contradicted(run, task):
    """Content words are also compared among themselves; the rank agreement is above 0.9 or below -0.9."""
    for onsets, verdict, rho in ((ONSETS, "reproduced", " 0.9"), (reversed_order(), "contradicted", " -0.9")):
        scored_evidence = evidence(run, *rows(task, onsets))
        assert verdict_of(words.function_words_first(scored_evidence, task).comparisons) == verdict
        content = words.order_of_content_words(scored_evidence, task)
        assert verdict_of(content.comparisons) == verdict and len(content.comparisons) == 10
        assert rho in content.statistic and "n = 9" in content.statistic


def test_function_words_precede_verbs_in_the_paper_order():
    """Function words share the first rank, and verbs have the next."""
    ranks = words.paper_ranks(["noun", "verb", "pronoun", "determiner", "VBZ"])
    assert ranks == {"noun": 4, "verb": 1, "pronoun": 0, "determiner": 0}


def test_reconstruction_before_prediction_is_judged_by_category(run):
    """All nine categories are reconstructed earlier; with the tasks exchanged the finding is contradicted."""
    later = {group: step * 2 for group, step in ONSETS.items()}
    for first, second, verdict in (
        (*words.WORD_METRICS, "reproduced"),
        (*reversed(words.WORD_METRICS), "contradicted"),
    ):
        scored_evidence = evidence(run, *rows(first, ONSETS), *rows(second, later))
        tested = words.reconstruction_first(scored_evidence)
        assert verdict_of(tested.comparisons) == verdict and len(tested.comparisons) == 9


def test_frequent_bands_are_compared_in_both_tasks(run):
    """Three bands in two tasks give six comparisons."""
    onsets = dict(zip(BANDS, (2, 8, 32), strict=True))
    scored_evidence = evidence(run, *(row for task in words.WORD_METRICS for row in rows(task, onsets)))
    tested = words.frequent_bands_first(scored_evidence, words.WORD_METRICS)
    assert verdict_of(tested.comparisons) == "reproduced" and len(tested.comparisons) == 6


def test_bands_cannot_be_compared_without_word_counts(run):
    """No command is suggested: evaluating the treebank again would give no bands either."""
    found = evidence(run, *(row for task in words.WORD_METRICS for row in rows(task, ONSETS)))
    tested = words.frequent_bands_first(found, words.WORD_METRICS)
    assert not tested.comparisons and tested.final and "frequencies.tsv" in tested.statistic


def test_verb_forms_are_ordered_by_mean_word_frequency(run, monkeypatch):
    """Each occurrence in the treebank counts; a word that the corpus lacks is looked up in lower case."""
    counted = {"VBZ": [("Is", 3), ("does", 1)], "VBD": [("went", 2)]}

    def read(run, metric, group, step) -> pd.DataFrame:
        return pd.DataFrame(counted.get(group, []), columns=["word", "n"])

    monkeypatch.setattr(results, "read_words", read)
    run.path.mkdir(parents=True)
    (run.path / "frequencies.tsv").write_text("is\t100\nwent\t90\n")
    task = words.RECONSTRUCTION
    scored_evidence = evidence(run, *rows(task, {"VBZ": 4, "VBD": 2}))
    assert words.mean_frequencies(scored_evidence, task) == {"VBZ": 75, "VBD": 90}
    tested = words.frequent_verb_forms_first(scored_evidence, task)
    assert [comparison.what for comparison in tested.comparisons] == ["VBD before VBZ"]
    assert tested.comparisons[0].holds and "VBD 90, VBZ 75" in tested.statistic


def test_word_counted_as_written_has_that_count(run, monkeypatch):
    """A cased vocabulary distinguishes "Is" and "is"."""
    counted = pd.DataFrame([("Is", 1), ("is", 1), ("Does", 2)], columns=["word", "n"])
    monkeypatch.setattr(results, "read_words", lambda run, metric, group, step: counted[: 3 * (group == "VBZ")])
    run.path.mkdir(parents=True)
    (run.path / "frequencies.tsv").write_text("is\t100\nIs\t20\ndoes\t40\n")
    scored_evidence = evidence(run, *rows(words.PREDICTION, {"VBZ": 4}))
    assert words.mean_frequencies(scored_evidence, words.PREDICTION) == {"VBZ": (20 + 100 + 2 * 40) / 4}


def test_word_counts_are_read_once(run, monkeypatch):
    """All tasks share the counts, since the whole file is read."""
    read = []
    monkeypatch.setattr(runs, "read_counts", lambda path: read.append(path) or {"is": 1})
    scored_evidence = evidence(run, *(row for task in words.WORD_METRICS for row in rows(task, {"VBZ": 4, "VBD": 2})))
    for task in words.WORD_METRICS:
        words.frequent_verb_forms_first(scored_evidence, task)
    assert read == [run.frequencies]


def test_verb_forms_need_word_counts(run):
    """The run has no frequencies.tsv."""
    scored_evidence = evidence(run, *rows(words.PREDICTION, {"VBZ": 4, "VBD": 2}))
    assert not words.frequent_verb_forms_first(scored_evidence, words.PREDICTION).comparisons


def test_words_are_those_of_the_metrics_last_step(run):
    """Another metric may have been computed at later steps."""
    for step, word in ((0, "is"), (8, "went")):
        counted = [WordCount(words.RECONSTRUCTION, "VBZ", word, 3, 1)]
        scores = [Score(words.RECONSTRUCTION, 0.5, 3, "VBZ")]
        results.write(checkpoint_at(run, step), words.RECONSTRUCTION, Findings(scores=scores, words=counted))
    results.write(checkpoint_at(run, 9), words.PREDICTION, Findings(scores=[Score(words.PREDICTION, 0.5, 3, "VBZ")]))
    run.path.mkdir(parents=True)
    (run.path / "frequencies.tsv").write_text("is\t100\nwent\t90\n")
    assert words.mean_frequencies(Evidence(run), words.RECONSTRUCTION) == {"VBZ": 90}
    assert words.mean_frequencies(Evidence(run), words.PREDICTION) == {}
