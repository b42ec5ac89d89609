"""Tests of differences between designs: differences of shares at the last step that both have, with intervals."""

import json
from dataclasses import replace
from math import sqrt

import numpy as np
import pandas as pd
import pytest

from embryo_core import results
from embryo_core.comparison import differences
from embryo_core.figures.figure import describe_datasets
from embryo_core.measurements import ClozeAnswer, Findings, PairScore, Score
from embryo_core.types import Origin, Run, StepUnit
from tests.conftest import checkpoint_at, copy_run

Z = 1.959963984540054


def wilson(share: float, n: int) -> tuple[float, float]:
    """Compute Wilson's interval from its formula."""
    middle, reach = share + Z**2 / (2 * n), Z * sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return (middle - reach) / (1 + Z**2 / n), (middle + reach) / (1 + Z**2 / n)


@pytest.fixture
def two_runs(tiny_run: Run, tmp_path) -> list[Run]:
    """Return a run with scores up to step 16, and a better one, scored on other cases, up to step 8."""
    copies = [copy_run(tiny_run, tmp_path / name) for name in "ab"]
    for run, n, steps, gain in ((copies[0], 100, (0, 8, 16), 0.0), (copies[1], 50, (0, 8), 0.3)):
        for step in steps:
            score = Score("mask_prediction", step / 40 + gain, n, "all")
            results.write(checkpoint_at(run, step), "mask_prediction", Findings(scores=[score]))
    return copies


def test_interval_of_two_runs_is_newcombes(two_runs: list[Run]):
    """Each share has its own number of cases."""
    row = differences(two_runs[:1], two_runs[1:]).set_index("measure").loc["mask prediction"]
    assert (row["step_first"], row["step_second"], row["n_first"], row["n_second"]) == (8, 8, 100, 50)
    assert row["difference"] == pytest.approx(0.3)
    (a_low, a_high), (b_low, b_high) = wilson(0.2, 100), wilson(0.5, 50)
    assert row["low"] == pytest.approx(0.3 - sqrt((0.5 - b_low) ** 2 + (a_high - 0.2) ** 2))
    assert row["high"] == pytest.approx(0.3 + sqrt((b_high - 0.5) ** 2 + (0.2 - a_low) ** 2))


def test_measure_of_one_run_has_no_difference(two_runs: list[Run]):
    """The row has only the name of the measure."""
    for score in (Score("world_knowledge", 0.5, 10, "all"),):
        results.write(checkpoint_at(two_runs[0], 16), "world_knowledge", Findings(scores=[score]))
    row = differences(two_runs[:1], two_runs[1:]).set_index("measure").loc["world knowledge"]
    assert pd.isna(row[["step_first", "step_second", "difference", "low", "high"]]).all()


def write_logs(compared_runs: list[Run]) -> None:
    """Log accuracies of 0.2 and 0.5 on held-out text at step 8, and rows that do not count."""
    for run, right, n in zip(compared_runs, (0.2, 0.5), (100, 50), strict=True):
        measured = [("heldout", 8, right, n), ("train", 8, 0.9, 9), ("heldout", 16, 0.0, 0), ("train", 16, 0.9, 9)]
        rows = [
            {"split": split, "step": step, "loss": 1.0, "masked_lm_accuracy": accuracy, "n_masked": masked}
            for split, step, accuracy, masked in measured
        ]
        (run.path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_masked_accuracy_is_that_of_the_held_out_text(two_runs: list[Run]):
    """Rows of the training split are ignored, and so are rows without masked tokens."""
    write_logs(two_runs)
    row = differences(two_runs[:1], two_runs[1:]).set_index("measure").loc["masked accuracy"]
    assert row["difference"] == pytest.approx(0.3) and row["low"] < 0.3 < row["high"]
    assert (row["step_first"], row["step_second"], row["n_first"], row["n_second"]) == (8, 8, 100, 50)


def test_masked_accuracies_on_different_texts_are_not_compared(two_runs: list[Run]):
    """A text is known by its SHA-256; one that is not recorded is not known to differ."""
    write_logs(two_runs)
    text, renamed, other = ([{"name": name, "sha256": sha256}] for name, sha256 in (("a", "1"), ("b", "1"), ("a", "2")))
    first = replace(two_runs[0], corpus={"heldout_sources": text})
    for sources, compared in (([], True), (renamed, True), (other, False)):
        second = replace(two_runs[1], corpus={"heldout_sources": sources})
        row = differences([first], [second]).set_index("measure").loc["masked accuracy"]
        assert pd.notna(row["difference"]) == compared


def test_probing_is_compared_in_each_runs_best_layer(two_runs: list[Run]):
    """The best layer is that at the compared step, whichever was best before."""
    by_run = [{0: (0.6, 0.3), 8: (0.5, 0.7)}, {0: (0.1, 0.2), 8: (0.9, 0.8)}]
    for run, by_step in zip(two_runs, by_run, strict=True):
        for step, values in by_step.items():
            scores = [Score("edge_probing_f1", value, 40, "pos", layer) for layer, value in enumerate(values)]
            results.write(checkpoint_at(run, step), "edge_probing", Findings(scores=scores))
    row = differences(two_runs[:1], two_runs[1:]).set_index("measure").loc["probing: parts of speech"]
    assert (row["step_first"], row["first"], row["second"], row["n_first"]) == (8, 0.7, 0.9, 40)


def test_only_scores_over_all_cases_are_compared(two_runs: list[Run]):
    """Scores of single groups, such as nouns, are ignored."""
    for run in two_runs:
        groups = (("noun", 0.1, 9), ("all", 0.4, 20))
        scores = [Score("token_reconstruction", value, n, group) for group, value, n in groups]
        results.write(checkpoint_at(run, 8), "token_reconstruction", Findings(scores=scores))
    row = differences(two_runs[:1], two_runs[1:]).set_index("measure").loc["token reconstruction"]
    assert (row["first"], row["second"], row["n_first"]) == (0.4, 0.4, 20)


def test_continued_run_is_compared_at_its_last_step(two_runs: list[Run]):
    """At common steps both runs have the same weights; with the runs swapped the difference changes its sign."""
    first, second = two_runs
    on = replace(second, origin=Origin(first.name, 8, 0, 0, "0" * 64))
    results.write(
        checkpoint_at(second, 16), "mask_prediction", Findings(scores=[Score("mask_prediction", 0.9, 50, "all")])
    )
    row = differences([first], [on]).set_index("measure").loc["mask prediction"]
    assert (row["step_first"], row["step_second"]) == (8, 16) and row["difference"] == pytest.approx(0.9 - 0.2)
    turned = differences([on], [first]).set_index("measure").loc["mask prediction"]
    assert (turned["step_first"], turned["step_second"]) == (16, 8)
    assert turned["difference"] == pytest.approx(0.2 - 0.9)


def test_steps_in_different_units_are_not_compared(two_runs: list[Run]):
    """8 tokens are not 8 updates."""
    words = replace(two_runs[1], step_unit=StepUnit.TOKENS)
    assert differences(two_runs[:1], [words]).set_index("measure").loc["mask prediction"].isna().all()


def test_results_of_different_data_are_not_compared(two_runs: list[Run]):
    """Another treebank, limit or PLL has other cases; data that are not recorded are not known to differ."""
    for sha256, limit, compared in (("a", None, True), ("a", 50, False), ("b", None, False)):
        for run, data in ((two_runs[0], ("a", None)), (two_runs[1], (sha256, limit))):
            record = {"sha256": data[0], "limit": data[1], "note": f"words of {data}"}
            (run.results / "sources.json").write_text(json.dumps({"mask_prediction": record}))
        row = differences(two_runs[:1], two_runs[1:]).set_index("measure").loc["mask prediction"]
        assert pd.notna(row["difference"]) == compared
        note = describe_datasets(two_runs, "mask_prediction")
        assert (note == "") == compared and ("words of ('b', None)" in note) == (sha256 == "b")


def test_own_task_is_compared_if_its_own_data_are_equal(two_runs: list[Run]):
    """The data of the four tasks do not matter for it."""
    for run, value in zip(two_runs, (0.5, 0.7), strict=True):
        scores = [Score("edge_probing_f1", value, 50, "mine", layer=1)]
        results.write(checkpoint_at(run, 8), "edge_probing:mine", Findings(scores=scores))
    for own, four, compared in (("a", "b", True), ("b", "a", False)):
        for run, own_sha, four_sha in ((two_runs[0], "a", "a"), (two_runs[1], own, four)):
            records = {"edge_probing:mine": {"sha256": own_sha}, "edge_probing": {"sha256": four_sha}}
            (run.results / "sources.json").write_text(json.dumps(records))
        row = differences(two_runs[:1], two_runs[1:]).set_index("measure").loc["probing: mine"]
        assert pd.notna(row["difference"]) == compared


def store_answers(run: Run, step: int, right: dict[str, bool]) -> None:
    """Store the answers to facts at a step, and the precision over all of them."""
    facts = [ClozeAnswer(fact, "P1", fact, "x", 1 if hit else 2, 0.1, "x", 0.1) for fact, hit in right.items()]
    share = sum(right.values()) / len(right)
    findings = Findings(scores=[Score("world_knowledge", share, len(right), "all")], cloze=facts)
    results.write(checkpoint_at(run, step), "world_knowledge", findings)


def test_world_knowledge_is_compared_on_common_facts(two_runs: list[Run]):
    """Facts that only one run was asked do not count, nor does a step that the other run lacks."""
    store_answers(two_runs[0], 8, {"a": True, "b": False, "c": False})
    store_answers(two_runs[1], 8, {"a": False, "b": False, "d": True, "e": True})
    store_answers(two_runs[0], 16, {"a": False, "b": False, "c": True})
    row = differences(two_runs[:1], two_runs[1:]).set_index("measure").loc["world knowledge"]
    assert (row["step_second"], row["n_first"], row["n_second"]) == (8, 2, 2)
    assert (row["first"], row["second"], row["difference"]) == (0.5, 0, -0.5)


def test_world_knowledge_needs_common_facts(two_runs: list[Run]):
    """Without a common fact the row has no difference."""
    for run, fact in zip(two_runs, "ab", strict=True):
        store_answers(run, 8, {fact: True})
    assert differences(two_runs[:1], two_runs[1:]).set_index("measure").loc["world knowledge"].isna().all()


# === Several seeds ===


def seeds_of(run: Run, tmp_path, name: str, count: int) -> list[Run]:
    return [copy_run(run, tmp_path / f"{name}{i}") for i in range(count)]


def test_interval_of_several_seeds_resamples_seeds_and_facts(tiny_run: Run, tmp_path):
    """The reference is a loop over draws of seeds and of the 60 facts that all runs were asked."""
    random = np.random.default_rng(3)
    one, other = seeds_of(tiny_run, tmp_path, "one", 3), seeds_of(tiny_run, tmp_path, "other", 2)
    shares = dict(zip((*one, *other), (0.4, 0.45, 0.5, 0.6, 0.65), strict=True))
    right = {run: random.random(60) < share for run, share in shares.items()}
    for number, (run, hits) in enumerate(right.items()):
        store_answers(run, 8, {**{f"f{i}": bool(hit) for i, hit in enumerate(hits)}, f"only asked in {number}": True})
    row = differences(one, other).set_index("measure").loc["world knowledge"]
    answers = [np.array([right[run] for run in design], float) for design in (one, other)]
    assert (row["n_first"], row["n_second"], row["first"]) == (60, 60, pytest.approx(answers[0].mean()))
    drawn = []
    for _ in range(3000):
        facts = random.integers(60, size=60)
        means = [np.mean([part[random.integers(len(part)), facts].mean() for _ in part]) for part in answers]
        drawn.append(means[1] - means[0])
    assert [row["low"], row["high"]] == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=0.03)


def test_minimal_pairs_of_seeds_are_compared_pair_by_pair(tiny_run: Run, tmp_path):
    """A tie counts as half right."""
    one, other = seeds_of(tiny_run, tmp_path, "one", 1), seeds_of(tiny_run, tmp_path, "other", 2)
    gains = {one[0]: (1, -1, 0, -1), other[0]: (1, 1, -1, 0), other[1]: (1, 1, 1, -1)}
    for run, by_pair in gains.items():
        pairs = [PairScore("set/agreement/number", i, -5.0 + gain, -5.0) for i, gain in enumerate(by_pair)]
        share = sum(0.5 + gain / 2 for gain in by_pair) / 4
        results.write(
            checkpoint_at(run, 8),
            "minimal_pairs",
            Findings(scores=[Score("minimal_pairs", share, 4, "set")], pairs=pairs),
        )
    row = differences(one, other).set_index("measure").loc["minimal pairs: set"]
    assert (row["first"], row["second"], row["n_second"]) == (0.375, pytest.approx((0.625 + 0.75) / 2), 4)
    assert row["low"] < row["difference"] < row["high"]


def test_counts_of_seeds_vary_with_seeds_and_cases(tiny_run: Run, tmp_path):
    """A measure that one seed lacks is computed from the others."""
    one, other = seeds_of(tiny_run, tmp_path, "one", 1), seeds_of(tiny_run, tmp_path, "other", 2)
    for run, share in zip((*one, *other), (0.5, 0.3, 0.9), strict=True):
        results.write(
            checkpoint_at(run, 8), "mask_prediction", Findings(scores=[Score("mask_prediction", share, 1000, "all")])
        )
    store_answers(one[0], 8, {"a": True, "b": False})
    store_answers(other[0], 8, {"a": True, "b": True})
    table = differences(one, other).set_index("measure")
    row = table.loc["mask prediction"]
    assert (row["first"], row["second"], row["n_second"]) == (0.5, pytest.approx(0.6), 1000)
    assert row["low"] == pytest.approx(-0.2, abs=0.06) and row["high"] == pytest.approx(0.4, abs=0.06)
    assert row[["seeds_first", "seeds_second"]].tolist() == [1, 2]
    facts = table.loc["world knowledge"]
    assert facts[["first", "second", "seeds_first", "seeds_second"]].tolist() == [0.5, 1.0, 1, 1]
