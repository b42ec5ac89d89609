"""The summary of facts is that of the answers, whatever became of its file."""

import numpy as np
import pandas as pd
import pytest

from embryo_core import curves, results
from embryo_core.results import fact_histories
from embryo_core.types import ClozeAnswer, Findings, Run
from tests.conftest import at
from tests.embryo_core.results.conftest import lose

STEPS = (0, 1, 2, 8)
FACTS = [(relation, fact) for relation in ("P19", "P36") for fact in map(str, range(40))]


@pytest.fixture
def ranks() -> dict[tuple[str, str], list[int]]:
    """Ranks drawn at random, one for each step; facts of two relations may have one id."""
    drawn = np.random.default_rng(3).integers(1, 4, (len(FACTS), len(STEPS)))
    return dict(zip(FACTS, drawn.tolist(), strict=True))


def write(run: Run, ranks: dict[tuple[str, str], list[int]], steps: tuple[int, ...] = STEPS) -> None:
    """Store the answers of these steps, pending."""
    for step in steps:
        answers = [
            ClozeAnswer(fact, relation, f"subject {fact}", "Rome", rank[STEPS.index(step)], 0.25, "the", 0.5)
            for (relation, fact), rank in ranks.items()
        ]
        results.write(at(run, step), "world_knowledge", Findings(cloze=answers))


def slow(ranks: dict[tuple[str, str], list[int]], steps: int = len(STEPS)) -> list[tuple]:
    """Return the rows of the summary, fact by fact."""
    rows = []
    for (relation, fact), drawn in sorted(ranks.items()):
        right = [rank == 1 for rank in drawn[:steps]]
        first = STEPS[right.index(True)] if any(right) else None
        rows.append((relation, fact, f"subject {fact}", "Rome", curves.classify_histories([right])[0], first))
    return rows


def shown(frame: pd.DataFrame) -> list[tuple]:
    """Return the rows of a frame, None where there is no value."""
    return list(frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None))


@pytest.mark.parametrize("compacted", [False, True])
def test_every_fact_has_its_history(run, ranks, compacted):
    """Against the rule applied to each fact by itself, from pending evaluations and from the summary."""
    write(run, ranks)
    if compacted:
        results.compact(run)
    assert (run.results / fact_histories.FACTS.file).exists() == compacted
    found = results.read_histories(run)
    assert shown(found) == slow(ranks) and set(found["history"]) == set(curves.HISTORIES)


def test_a_later_step_is_summed_up_at_once(run, ranks):
    """Before compaction from the answers, after it in the file."""
    write(run, ranks, STEPS[:3])
    results.compact(run)
    assert shown(results.read_histories(run)) == slow(ranks, 3)
    write(run, ranks, STEPS[3:])
    assert shown(results.read_histories(run)) == slow(ranks)
    results.compact(run)
    assert shown(results.read_histories(run)) == slow(ranks)


def test_a_step_that_is_evaluated_again_forgets_what_was_right(run, ranks):
    """All facts were known at every step; of the third step others are by now."""
    known = {fact: [1] * len(STEPS) for fact in ranks}
    write(run, known)
    results.compact(run)
    again = {fact: [1, 1, rank[2], 1] for fact, rank in ranks.items()}
    write(run, again, STEPS[2:3])
    assert fact_histories.takes_pending(run) and shown(results.read_histories(run)) == slow(again)


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if the answers themselves are read."""
    monkeypatch.setattr(fact_histories, "_relation_ranks", lambda *_: pytest.fail("the answers of all steps were read"))


@pytest.mark.parametrize("compacted", [STEPS[:3], STEPS[1:], (1, 8), STEPS])
def test_answers_of_a_part_are_added_to_the_summary(run, ranks, compacted, request):
    """Later and earlier steps, those between, and one that is evaluated again; no answer of another step is read."""
    write(run, {key: [3 - (rank == 1)] * len(STEPS) for key, (rank, *_) in ranks.items()}, compacted)
    results.compact(run)
    assert fact_histories.takes_pending(run)
    again = tuple(step for step in STEPS if step not in compacted) or STEPS[2:3]
    write(run, ranks, again)
    expected = {
        key: [rank if step in again else 3 - (drawn[0] == 1) for step, rank in zip(STEPS, drawn, strict=True)]
        for key, drawn in ranks.items()
    }
    request.getfixturevalue("unread")
    assert shown(results.read_histories(run)) == slow(expected)
    right = results.read_right_answers(run)
    assert right.steps.tolist() == sorted({*compacted, *again})
    drawn = np.array([expected[key] for key in sorted(expected)]) == 1
    assert (right.correct == drawn[:, [step in right.steps for step in STEPS]]).all()


def test_as_many_facts_are_not_the_same(run, ranks):
    """Where a later step was asked others in place of some, each fact keeps its own answers."""
    kept = list(ranks.items())
    write(run, dict(kept[1:]), STEPS[:3])
    results.compact(run)
    write(run, dict(kept[:-1]), STEPS[3:])
    (first, drawn), (last, of_last) = kept[0], kept[-1]
    expected = ranks | {first: [2, 2, 2, drawn[3]], last: [*of_last[:3], 2]}
    assert shown(results.read_histories(run)) == slow(expected)


@pytest.mark.parametrize("change", ["fewer", "more", "two metrics"])
def test_other_facts_are_summed_up_from_the_answers(run, ranks, change):
    """Where not every fact was asked at every step, or two evaluations asked them."""
    fewer = dict(list(ranks.items())[:-7])
    write(run, fewer if change == "more" else ranks, STEPS[:3])
    results.compact(run)
    write(run, fewer if change == "fewer" else ranks, STEPS[3:])
    if change == "two metrics":
        answer = ClozeAnswer("99", "P99", "subject 99", "Rome", 1, 0.25, "the", 0.5)
        results.write(at(run, 8), "other", Findings(cloze=[answer]))
    last = {key: drawn if key in fewer else [*drawn[:3], 2] for key, drawn in ranks.items()}
    first = {key: drawn if key in fewer else [2, 2, 2, drawn[3]] for key, drawn in ranks.items()}
    expected = slow({"fewer": last, "more": first, "two metrics": ranks}[change])
    found = shown(results.read_histories(run))
    assert found[: len(expected)] == expected and len(found) - len(expected) == (change == "two metrics")
    results.compact(run)
    assert shown(results.read_histories(run)) == found and not fact_histories.takes_pending(run)


@pytest.mark.parametrize("damage", ["gone", "cut", "of another table"])
def test_a_summary_that_cannot_be_trusted_is_computed_anew(run, ranks, damage):
    """And written again by the next compaction, which finds nothing pending."""
    write(run, ranks)
    results.compact(run)
    path = run.results / fact_histories.FACTS.file
    whole = path.read_bytes()
    if damage != "of another table":
        lose(path, damage)
    else:
        others = {key: drawn[::-1] for key, drawn in ranks.items()}
        checksum = path.with_name(path.name + ".sha256")
        kept = whole, checksum.read_bytes()
        write(run, others)
        results.compact(run)
        path.write_bytes(kept[0])
        checksum.write_bytes(kept[1])
        ranks = others
    assert shown(results.read_histories(run)) == slow(ranks)
    results.compact(run)
    assert damage == "of another table" or path.read_bytes() == whole
    assert shown(results.read_histories(run)) == slow(ranks)


def test_without_answers_there_are_no_histories(run):
    """An empty frame with all columns, and no file."""
    assert list(results.read_histories(run)) == ["relation", "fact", "subject", "object", "history", "first"]
    assert results.read_histories(run).empty and not run.results.exists()
