"""The summary of facts is that of the answers, whatever became of its file."""

import numpy as np
import pandas as pd
import pytest

from embryo_core import curves, results
from embryo_core.results import histories
from embryo_core.results.histories import sum_up
from embryo_core.types import ClozeAnswer, Findings, Run
from tests.conftest import at

STEPS = (0, 1, 2, 8)
FACTS = [(relation, fact) for relation in ("P19", "P36") for fact in map(str, range(40))]


@pytest.fixture
def ranks() -> dict[tuple[str, str], list[int]]:
    """Ranks drawn at random, one for each step; facts of two relations may have one id."""
    drawn = np.random.default_rng(3).integers(1, 4, (len(FACTS), len(STEPS)))
    return dict(zip(FACTS, drawn.tolist(), strict=True))


def write(run: Run, ranks: dict[tuple[str, str], list[int]], steps: tuple[int, ...] = STEPS) -> None:
    """Store the answers of these steps, as parts."""
    for step in steps:
        answers = [
            ClozeAnswer(fact, relation, f"subject {fact}", "Rome", rank[STEPS.index(step)], 0.25, "the", 0.5)
            for (relation, fact), rank in ranks.items()
        ]
        results.write(at(run, step), "world_knowledge", Findings(cloze=answers))


def slow(ranks: dict[tuple[str, str], list[int]], steps: int = len(STEPS)) -> list[tuple]:
    """The rows of the summary, fact by fact."""
    rows = []
    for (relation, fact), drawn in sorted(ranks.items()):
        right = [rank == 1 for rank in drawn[:steps]]
        first = STEPS[right.index(True)] if any(right) else None
        rows.append((relation, fact, f"subject {fact}", "Rome", curves.classify_history(right), first))
    return rows


def shown(frame: pd.DataFrame) -> list[tuple]:
    """The rows of a frame, None where there is no value."""
    return list(frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None))


@pytest.mark.parametrize("compacted", [False, True])
def test_every_fact_has_its_history(run, ranks, compacted):
    """Against the rule applied to each fact by itself, from parts as from the summary."""
    write(run, ranks)
    if compacted:
        results.compact(run)
    assert (run.results / histories.FACTS.file).exists() == compacted
    found = results.read_histories(run)
    assert shown(found) == slow(ranks) and set(found["history"]) == set(curves.HISTORIES)


def test_answers_may_come_in_any_order(ranks):
    """The order of rows says nothing."""
    rows = [(*key, s, rank, "", "") for key, drawn in ranks.items() for s, rank in zip(STEPS, drawn, strict=True)]
    table = pd.DataFrame(rows, columns=["relation", "fact", "step", "rank", "subject", "object"])
    found = sum_up(table.sample(frac=1, random_state=1)).set_index(["relation", "fact"])["history"]
    assert found.to_dict() == {row[:2]: row[4] for row in slow(ranks)}


def test_a_later_step_is_summed_up_at_once(run, ranks):
    """Before compaction from the answers, after it in the file."""
    write(run, ranks, STEPS[:3])
    results.compact(run)
    assert shown(results.read_histories(run)) == slow(ranks, 3)
    write(run, ranks, STEPS[3:])
    assert shown(results.read_histories(run)) == slow(ranks)
    results.compact(run)
    assert shown(results.read_histories(run)) == slow(ranks)


@pytest.mark.parametrize("damage", ["gone", "cut", "of another table"])
def test_a_summary_that_cannot_be_trusted_is_computed_anew(run, ranks, damage):
    """And written again by the next compaction, which finds no parts."""
    write(run, ranks)
    results.compact(run)
    path = run.results / histories.FACTS.file
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
        path.with_name(path.name + ".sha256").unlink()
    elif damage == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    else:
        others = {key: drawn[::-1] for key, drawn in ranks.items()}
        beside = path.with_name(path.name + ".sha256")
        kept = whole, beside.read_bytes()
        write(run, others)
        results.compact(run)
        path.write_bytes(kept[0])
        beside.write_bytes(kept[1])
        ranks = others
    assert shown(results.read_histories(run)) == slow(ranks)
    results.compact(run)
    assert damage == "of another table" or path.read_bytes() == whole
    assert shown(results.read_histories(run)) == slow(ranks)


def test_without_answers_there_are_no_histories(run):
    """An empty frame with all columns, and no file."""
    assert list(results.read_histories(run)) == ["relation", "fact", "subject", "object", "history", "first"]
    assert results.read_histories(run).empty and not run.results.exists()
