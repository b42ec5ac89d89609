"""Tests of progress: what a run had seen at a step, from its manifests, configuration and word counts."""

from collections.abc import Mapping
from dataclasses import replace
from shutil import copytree, rmtree

import numpy as np
import pytest

from embryo_core import runs
from embryo_core.comparison import UNITS, progress, training_flops
from embryo_core.types import Origin, Run, StepUnit


def recount(run: Run, counts: Mapping[int, int | None], tokens_per_sequence: int = 1) -> None:
    """Write these counts of tokens, and of sequences, to the manifests of a run's checkpoints."""
    for step, count in counts.items():
        folder = run.path / f"checkpoints/step{step}"
        (folder / "manifest.json").unlink()
        runs.write_manifest(folder, step, None if count is None else count // tokens_per_sequence, count)


def test_sequences_and_tokens_are_those_of_the_manifests(tiny_run: Run):
    """Between checkpoints and beyond the last one they grow in proportion to the steps."""
    for unit in ("sequences", "tokens"):
        known = {checkpoint.step: getattr(checkpoint, unit) for checkpoint in runs.checkpoints(tiny_run)}
        counts = progress(tiny_run, unit)
        assert counts.at(list(known)).tolist() == list(known.values())
        assert counts.at([4, 24]).tolist() == [known[8] / 2, known[16] * 1.5]


@pytest.mark.parametrize(("family", "special_tokens"), [("albert", 3), ("gpt2", 1)])
def test_words_are_text_tokens_times_words_per_token(tiny_run: Run, family: str, special_tokens: int):
    """The ratio is that of the training text, which has no special tokens: those of the sequences are no words."""
    words = sum(int(line.split("\t")[1]) for line in (tiny_run.path / "frequencies.tsv").read_text().splitlines())
    rate = words / tiny_run.corpus["train"]["tokens"]
    seen = [checkpoint.tokens - special_tokens * checkpoint.sequences for checkpoint in runs.checkpoints(tiny_run)]
    assert progress(replace(tiny_run, family=family), "words").at([0, 8, 16]) == pytest.approx(rate * np.array(seen))


def test_words_are_unknown_where_sequences_are(own_run: Run):
    """Then nothing says how many of the tokens are special."""
    folder = own_run.path / "checkpoints/step8"
    tokens = runs.checkpoint(own_run, 8).tokens
    (folder / "manifest.json").unlink()
    runs.write_manifest(folder, 8, None, tokens)
    assert progress(own_run, "words").steps == (0, 16) and progress(own_run, "tokens").steps == (0, 8, 16)


def test_words_are_counted_with_rare_ones(tiny_run: Run):
    """run.json has their number, and frequencies.tsv only the most frequent ones."""
    words = 2 * runs.counted_words(tiny_run)
    more = progress(replace(tiny_run, corpus=tiny_run.corpus | {"counted_words": words}), "words")
    assert more.at([16])[0] == pytest.approx(2 * progress(tiny_run, "words").at([16])[0])


def test_share_is_of_all_planned_steps(tiny_run: Run):
    """An unfinished run does not reach the end of the axis."""
    assert progress(tiny_run, "share").at([0, 8, 16]).tolist() == [0, 0.5, 1]
    assert progress(replace(tiny_run, planned_steps=(0, 32)), "share").at([16]).tolist() == [0.5]


def test_flops_bend_where_the_batches_change(tiny_run: Run):
    """The change of batches at step 10 is between two checkpoints."""
    run = replace(
        tiny_run, config=tiny_run.config | {"short_steps": 10, "short_batch_size": 2, "short_sequence_length": 8}
    )
    counts = progress(run, "flops")
    for step in (5, 10, 13, 16, 20):
        assert counts.at([step])[0] == pytest.approx(training_flops(run, step))


def test_flops_of_a_continued_run_bend_where_its_parents_batches_change(own_run: Run, monkeypatch):
    """Both runs have the same FLOPs at every step before the origin, also between checkpoints."""
    monkeypatch.setenv("EMBRYO_DATA", str(own_run.path.parents[1]))
    short = {"short_steps": 10, "short_batch_size": 2, "short_sequence_length": 8}
    parent = replace(own_run, config=own_run.config | short)
    runs.write_run(parent)
    child = replace(own_run, name="child", origin=Origin(parent.name, 16, 0, 0, "0" * 64))
    steps = [4, 10, 12, 16]
    assert progress(child, "flops").at(steps) == pytest.approx(progress(parent, "flops").at(steps))


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit != "step"])
def test_progress_converts_back_to_steps(tiny_run: Run, unit: str):
    counts = progress(tiny_run, unit)
    assert counts.steps_at(counts.at([0, 3, 8, 16, 20])) == pytest.approx([0, 3, 8, 16, 20])


def test_progress_is_unknown_without_counts(own_run: Run):
    """A foreign run has only the share of its planned steps, and the unit that its steps count."""
    for checkpoint in runs.checkpoints(own_run):
        (checkpoint.path / "manifest.json").unlink()
        runs.write_manifest(checkpoint.path, checkpoint.step, None, None)
    run = replace(own_run, config={}, corpus={})
    assert [unit for unit in UNITS if progress(run, unit)] == ["share"]
    assert progress(replace(run, step_unit=StepUnit.TOKENS), "tokens").at([8]).tolist() == [8]


def test_single_manifest_gives_progress_from_step_0(own_run: Run):
    """Nothing was seen before step 0, so the counts grow in proportion from there."""
    *others, last = runs.checkpoints(own_run)
    for checkpoint in others:
        (checkpoint.path / "manifest.json").unlink()
    assert progress(own_run, "tokens").at([last.step // 2, last.step]).tolist() == [last.tokens / 2, last.tokens]


def test_counts_grow_from_0_to_the_first_counted_checkpoint(own_run: Run):
    """Earlier checkpoints without counts are drawn in proportion to their steps, also on a log axis."""
    for step in (4, 6):
        copytree(own_run.path / "checkpoints/step8", own_run.path / f"checkpoints/step{step}")
    recount(own_run, {0: None, 4: None, 6: None, 8: 1_000, 16: 3_000})
    tokens, sequences = progress(own_run, "tokens"), progress(own_run, "sequences")
    assert tokens == sequences and tokens.at([0, 1, 4, 8, 12, 16]).tolist() == [0, 125, 500, 1_000, 2_000, 3_000]
    assert tokens.least == 500
    flops = progress(own_run, "flops")
    for step in (0, 4):
        rmtree(own_run.path / f"checkpoints/step{step}")
    assert flops.at([2]).tolist() == progress(own_run, "flops").at([2]).tolist() == [training_flops(own_run, 2)]
    assert progress(replace(own_run, step_unit=StepUnit.TOKENS), "tokens").at([3]).tolist() == [3]


def test_counts_of_a_continued_run_grow_from_its_origin(own_run: Run):
    """They begin at its first counted checkpoint if the origin's counts are unknown."""
    recount(own_run, {0: None, 8: 1_000, 16: 3_000})
    origin = Origin("parent", step=4, sequences=600, tokens=600, weights_sha256="0" * 64)
    run = replace(own_run, origin=origin)
    assert progress(run, "tokens").at([4, 6, 8]).tolist() == [600, 800, 1_000]
    assert progress(run, "sequences").at([4, 6, 8]).tolist() == [600, 800, 1_000]
    unknown = replace(own_run, origin=replace(origin, tokens=0))
    assert progress(unknown, "tokens").steps == (8, 16)
    recount(own_run, {8: 1_000, 16: 3_000}, tokens_per_sequence=10)
    words_per_token = runs.counted_words(run) / 100
    with_words = replace(run, origin=replace(origin, sequences=60, text_tokens=100))
    assert progress(with_words, "words").at([4, 8]) == pytest.approx([420 * words_per_token, 700 * words_per_token])


def test_log_axis_begins_at_the_first_count_above_0(tiny_run: Run):
    """A log axis begins there."""
    first = next(checkpoint.tokens for checkpoint in runs.checkpoints(tiny_run) if checkpoint.step)
    assert progress(tiny_run, "tokens").least == first
