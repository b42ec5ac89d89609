"""Tests of the Grammar page: with results, with the sentences of the pairs, and without them."""

import re
import shutil
from pathlib import Path

import pytest

from embryo_core import results, runs
from embryo_core.figures.grammar import METRIC
from embryo_core.measurements import Findings, PairScore
from embryo_core.metrics.minimal_pairs import accuracies
from embryo_core.types import Run
from tests.app.conftest import captions_of, unescaped
from tests.conftest import SAMPLE_DATA, checkpoint_at


@pytest.fixture
def evaluated_run(tiny_results: Run, own_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a run with results, the sentences of which are in no folder that the page searches."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    shutil.copytree(tiny_results.results, own_run.results)
    return own_run


def test_page_shows_paradigms_and_pairs_of_one_set(open_view, evaluated_run):
    """Without their data the pairs of a paradigm have numbers but no sentences, and a caption names the folder."""
    test = open_view(evaluated_run, set="nouns", paradigm="nouns/case/pronoun")
    assert not test.exception and not test.error
    assert any("10 pairs of nouns" in line.value and "3 paradigms" in line.value for line in test.markdown)
    paradigms, pairs = (frame.value for frame in test.dataframe)
    assert sorted(paradigms["paradigm"]) == ["determiner noun", "pronoun", "subject verb"]
    assert len(pairs) == 3 and "good" not in pairs
    right = int((pairs["difference"] > 0).sum())
    assert any(f"{right} of 3 pairs right" in caption for caption in captions_of(test))
    assert any("corpora/pairs" in caption for caption in captions_of(test))


def test_sentences_are_shown_if_data_match_results(open_view, evaluated_run):
    """The data are in corpora/pairs; the pair's words are shown with their scores. Changed data hide the sentences."""
    folder = evaluated_run.path.parents[1] / "corpora" / "pairs"
    shutil.copytree(SAMPLE_DATA["pairs"], folder)
    test = open_view(evaluated_run, set="nouns", paradigm="nouns/case/pronoun", pair="0", step="16", open="words")
    assert not test.exception and not test.error
    pairs = test.dataframe[1].value
    assert "Him lives in Paris." in set(pairs["bad"])
    assert any("He lives in Paris." in text.value for text in test.text)
    assert any(len(re.findall(r"[+-]\d+\.\d\d", caption)) == 2 for caption in captions_of(test))
    (folder / "more.jsonl").write_text('{"good": "a", "bad": "b"}\n')
    assert "good" not in open_view(evaluated_run, set="nouns").dataframe[1].value


def test_click_on_point_opens_its_paradigm(open_view, evaluated_run):
    """A point of the whole set changes the step, not the paradigm."""
    from app.views import grammar

    chosen: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grammar.permalink, "choose", chosen.__setitem__)
        grammar._open_point("nouns/case/pronoun", 8)
        assert chosen == {"step": 8, "paradigm": "nouns/case/pronoun"}
        grammar._open_point("nouns", 16)
        assert chosen == {"step": 16, "paradigm": "nouns/case/pronoun"}


def plant(run: Run, right: dict[str, tuple[int, ...]]) -> None:
    """Write results of 20 pairs of each paradigm; `right` has the numbers of correct pairs at the three steps."""
    for index, step in enumerate((0, 8, 16)):
        outcomes = [(name, i, i < counts[index]) for name, counts in right.items() for i in range(20)]
        pairs = [PairScore(f"zorro/{name}", i, -1.0, -1.5 if good else -0.5) for name, i, good in outcomes]
        results.write(checkpoint_at(run, step), METRIC, Findings(scores=list(accuracies(METRIC, pairs)), pairs=pairs))


START, EARLY, LATE, NEVER = (20, 20, 20), (10, 20, 20), (10, 10, 20), (10, 10, 10)


@pytest.mark.parametrize(
    ("orders", "said"),
    [
        (((START, EARLY, LATE, LATE, NEVER), (START, EARLY, EARLY, LATE, LATE)), ("rho = 0.83", "4 paradigms")),
        (((EARLY, EARLY, LATE, LATE, NEVER), (EARLY, EARLY, LATE, EARLY, LATE)), ("cannot", "than half", "same two")),
        (((EARLY, LATE, LATE, NEVER, NEVER), (EARLY, EARLY, LATE, EARLY, LATE)), ("cannot", "only 3 paradigms")),
    ],
)
def test_agreement_of_two_orders_is_stated(orders, said, open_view, own_run):
    """The agreement uses paradigms that rise in both runs; it is refused for three, or if most rise at one step."""
    other = own_run.path.with_name("other")
    shutil.copytree(own_run.path, other)
    for run, order in zip((own_run, runs.read_run(other)), orders, strict=True):
        plant(run, dict(zip(("a/one", "a/two", "a/three", "b/four", "b/five"), order, strict=True)))
    test = open_view(own_run, run="tiny", beside="other")
    assert not test.exception and not test.error
    (sentence,) = [unescaped(line.value) for line in test.markdown if "The orders of" in line.value]
    assert all(part in sentence for part in ("tiny", "other", *said))


def test_results_contain_no_sentences(tiny_results):
    """No file of the results has a word of the sentences; a pair is stored as numbers."""
    stored = b"".join(Path(file).read_bytes() for file in tiny_results.results.rglob("*") if file.is_file())
    assert b"lives" not in stored and results.read_pair_scores(tiny_results, "nouns/case/pronoun").shape == (9, 5)
