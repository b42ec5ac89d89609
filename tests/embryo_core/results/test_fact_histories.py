"""Tests that the summary of facts agrees with the answers, even if its file is damaged or missing."""

import numpy as np
import pandas as pd
import pytest

from embryo_core import curves, results
from embryo_core.measurements import ClozeAnswer, Findings
from embryo_core.results import fact_histories
from embryo_core.types import Run
from tests.conftest import checkpoint_at
from tests.embryo_core.results.conftest import lose

STEPS = (0, 1, 2, 8)
FACTS = [(relation, fact) for relation in ("P19", "P36") for fact in map(str, range(40))]


@pytest.fixture
def ranks() -> dict[tuple[str, str], list[int]]:
    """Return ranks by (relation, fact), drawn at random for each step; facts of two relations may have the same id."""
    drawn = np.random.default_rng(3).integers(1, 4, (len(FACTS), len(STEPS)))
    return dict(zip(FACTS, drawn.tolist(), strict=True))


def write(run: Run, ranks: dict[tuple[str, str], list[int]], steps: tuple[int, ...] = STEPS) -> None:
    """Store the answers of these steps as pending parts."""
    for step in steps:
        answers = [
            ClozeAnswer(fact, relation, f"subject {fact}", "Rome", rank[STEPS.index(step)], 0.25, "the", 0.5)
            for (relation, fact), rank in ranks.items()
        ]
        results.write(checkpoint_at(run, step), "world_knowledge", Findings(cloze=answers))


def slow_histories(ranks: dict[tuple[str, str], list[int]], steps: int = len(STEPS)) -> list[tuple]:
    """Return the rows of the summary, computed fact by fact."""
    rows = []
    for (relation, fact), drawn in sorted(ranks.items()):
        right = [rank == 1 for rank in drawn[:steps]]
        first = STEPS[right.index(True)] if any(right) else None
        rows.append((relation, fact, f"subject {fact}", "Rome", curves.classify_histories([right])[0], first))
    return rows


def rows_of(frame: pd.DataFrame) -> list[tuple]:
    """Return the rows of a frame, with None for missing values."""
    return list(frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None))


@pytest.mark.parametrize("compacted", [False, True])
def test_histories_equal_per_fact_computation(run, ranks, compacted):
    """Histories come from pending evaluations or the summary; the reference applies the rule to each fact alone."""
    write(run, ranks)
    if compacted:
        results.compact(run)
    assert (run.results / fact_histories.FACTS_SUMMARY.file).exists() == compacted
    histories = results.read_histories(run)
    assert rows_of(histories) == slow_histories(ranks) and set(histories["history"]) == set(curves.HISTORIES)


def test_later_step_updates_histories_immediately(run, ranks):
    """Histories are the same before compaction, when they come from the answers, and after it."""
    write(run, ranks, STEPS[:3])
    results.compact(run)
    assert rows_of(results.read_histories(run)) == slow_histories(ranks, 3)
    write(run, ranks, STEPS[3:])
    assert rows_of(results.read_histories(run)) == slow_histories(ranks)
    results.compact(run)
    assert rows_of(results.read_histories(run)) == slow_histories(ranks)


def test_reevaluated_step_replaces_its_answers(run, ranks):
    """All facts were correct at every step; the third step is evaluated again with other answers."""
    known = {fact: [1] * len(STEPS) for fact in ranks}
    write(run, known)
    results.compact(run)
    again = {fact: [1, 1, rank[2], 1] for fact, rank in ranks.items()}
    write(run, again, STEPS[2:3])
    assert rows_of(results.read_histories(run)) == slow_histories(again)


@pytest.fixture
def forbid_reading_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if the answers themselves are read."""
    monkeypatch.setattr(fact_histories, "_relation_ranks", lambda *_: pytest.fail("the answers of all steps were read"))


@pytest.mark.parametrize("compacted", [STEPS[:3], STEPS[1:], (1, 8), STEPS])
def test_pending_answers_are_merged_into_summary(run, ranks, compacted, request):
    """The pending step may be later, earlier, in between, or evaluated again; answers of other steps are not read."""
    write(run, {key: [3 - (rank == 1)] * len(STEPS) for key, (rank, *_) in ranks.items()}, compacted)
    results.compact(run)
    again = tuple(step for step in STEPS if step not in compacted) or STEPS[2:3]
    write(run, ranks, again)
    expected = {
        key: [rank if step in again else 3 - (drawn[0] == 1) for step, rank in zip(STEPS, drawn, strict=True)]
        for key, drawn in ranks.items()
    }
    request.getfixturevalue("forbid_reading_answers")
    assert rows_of(results.read_histories(run)) == slow_histories(expected)
    right = results.read_right_answers(run)
    assert right.steps.tolist() == sorted({*compacted, *again})
    drawn = np.array([expected[key] for key in sorted(expected)]) == 1
    assert (right.correct == drawn[:, [step in right.steps for step in STEPS]]).all()


def test_equal_number_of_facts_may_be_different_facts(run, ranks):
    """If a later step asked the same number of other facts, each fact still has its own answers."""
    kept = list(ranks.items())
    write(run, dict(kept[1:]), STEPS[:3])
    results.compact(run)
    write(run, dict(kept[:-1]), STEPS[3:])
    (first, drawn), (last, of_last) = kept[0], kept[-1]
    expected = ranks | {first: [2, 2, 2, drawn[3]], last: [*of_last[:3], 2]}
    assert rows_of(results.read_histories(run)) == slow_histories(expected)


@pytest.mark.parametrize("change", ["fewer", "more", "two metrics"])
def test_differing_facts_are_summarised_from_answers(run, ranks, change):
    """The summary cannot be extended by a step that asked other facts."""
    fewer = dict(list(ranks.items())[:-7])
    write(run, fewer if change == "more" else ranks, STEPS[:3])
    results.compact(run)
    write(run, fewer if change == "fewer" else ranks, STEPS[3:])
    if change == "two metrics":
        answer = ClozeAnswer("99", "P99", "subject 99", "Rome", 1, 0.25, "the", 0.5)
        results.write(checkpoint_at(run, 8), "other", Findings(cloze=[answer]))
    last = {key: drawn if key in fewer else [*drawn[:3], 2] for key, drawn in ranks.items()}
    first = {key: drawn if key in fewer else [2, 2, 2, drawn[3]] for key, drawn in ranks.items()}
    expected = slow_histories({"fewer": last, "more": first, "two metrics": ranks}[change])
    rows = rows_of(results.read_histories(run))
    assert rows[: len(expected)] == expected and len(rows) - len(expected) == (change == "two metrics")
    results.compact(run)
    assert rows_of(results.read_histories(run)) == rows


@pytest.mark.parametrize("damage", ["gone", "cut", "of another table"])
def test_untrusted_summary_is_recomputed(run, ranks, damage):
    """The next compaction writes it again, even if nothing is pending."""
    write(run, ranks)
    results.compact(run)
    path = run.results / fact_histories.FACTS_SUMMARY.file
    whole = path.read_bytes()
    if damage != "of another table":
        lose(path, damage)
    else:
        others = {key: drawn[::-1] for key, drawn in ranks.items()}
        checksum = path.with_name(path.name + ".sha256")
        contents = whole, checksum.read_bytes()
        write(run, others)
        results.compact(run)
        path.write_bytes(contents[0])
        checksum.write_bytes(contents[1])
        ranks = others
    assert rows_of(results.read_histories(run)) == slow_histories(ranks)
    results.compact(run)
    assert damage == "of another table" or path.read_bytes() == whole
    assert rows_of(results.read_histories(run)) == slow_histories(ranks)


def test_empty_run_has_empty_histories(run):
    """The frame has all columns, and no file is created."""
    assert list(results.read_histories(run)) == ["relation", "fact", "subject", "object", "history", "first"]
    assert results.read_histories(run).empty and not run.results.exists()
