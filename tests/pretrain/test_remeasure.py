"""Tests of measuring a run again: its own text adds measures to the log, other text leaves the log unchanged."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from embryo_core import runs
from embryo_core.errors import BrokenRun, BusyRun, ConfigError, CorpusError
from pretrain.__main__ import main
from pretrain.remeasure import lines, measure_run

pytestmark = pytest.mark.usefixtures("eager")
SETTINGS = ("heldout_sequences=4", "measured_sequences=4")


@pytest.fixture(scope="module")
def started_run(texts: tuple[Path, Path], cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a run of one update, measured on few sequences, and return its folder."""
    folder = tmp_path_factory.mktemp("runs") / "own"
    text = ("--corpus", str(texts[0]), "--heldout", str(texts[1]), "--cache", str(cache))
    assert main(["tiny", *text, "--run", str(folder), "--steps", "1", "--set", *SETTINGS]) == 0
    return folder


@pytest.fixture
def own_copy(started_run: Path, tmp_path: Path) -> Path:
    """Return the folder of a copy of that run, which the test may change."""
    return Path(shutil.copytree(started_run, tmp_path / "own"))


def heldout(folder: Path) -> list[dict[str, Any]]:
    """Return the held-out rows of a run's log."""
    return [row for row in runs.read_log(runs.read_run(folder)) if row["split"] == "heldout"]


def flat(value: Any, name: str = "row") -> dict[str, Any]:
    """Return every number and text of a nested row by its path."""
    inner = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else None
    if inner is None:
        return {name: value}
    return {deeper: each for key, part in inner for deeper, each in flat(part, f"{name}.{key}").items()}


def progress_lines(folder: Path, *texts: Path, **options: Any) -> list[str]:
    """Measure a run on these texts and return the lines of its progress."""
    reported: list[str] = []
    measure_run(runs.read_run(folder), map(str, texts), progress=reported.append, **options)
    return reported


def test_lost_rows_are_measured_again(own_copy: Path, texts: tuple[Path, Path]):
    """New rows have the columns and numbers that training wrote; the rows of training losses stay unchanged."""
    before, path = heldout(own_copy), own_copy / "log.jsonl"
    rows = [line for line in runs.read_lines(path) if json.loads(line)["split"] == "train"]
    path.write_bytes(b"".join(line + b"\n" for line in rows))
    progress_lines(own_copy, texts[1])
    after = heldout(own_copy)
    assert len(after) == 2 and [list(row) for row in after] == [list(row) for row in before]
    for row, other in zip(after, before, strict=True):
        assert flat(row) == pytest.approx(flat(other))
    assert [line for line in runs.read_lines(path) if json.loads(line)["split"] == "train"] == rows


def test_measures_of_more_sequences_are_added_to_a_row(own_copy: Path, texts: tuple[Path, Path]):
    """Each is added once, and only at the requested steps; the means of the row remain those of training."""
    command = ["measure", "--run", str(own_copy), "--heldout", str(texts[1]), "--steps", "1"]
    command += ["--heldout-sequences", "8", "--measured-sequences", "16"]
    first, second = heldout(own_copy)
    order = [(row["split"], row["step"]) for row in map(json.loads, runs.read_lines(own_copy / "log.jsonl"))]
    assert main(command) == 0
    kept, changed = heldout(own_copy)
    assert [(row["split"], row["step"]) for row in map(json.loads, runs.read_lines(own_copy / "log.jsonl"))] == order
    count = len(second["measures"])
    assert kept == first and changed == second | {"measures": changed["measures"]}
    assert changed["measures"][:count] == second["measures"] and len(changed["measures"]) == 2 * count
    for fewer, more in zip(second["measures"], changed["measures"][count:], strict=True):
        assert (more["length"], more["masking"]) == (fewer["length"], fewer["masking"]) and more["n"] > fewer["n"]
    assert changed["masked_lm_accuracy"] == second["measures"][0]["accuracy"] and changed["n_sequences"] == 4
    content = (own_copy / "log.jsonl").read_bytes()
    assert progress_lines(own_copy, texts[1], steps=[1], heldout_sequences=8, measured_sequences=16) == [
        "step 1: measured before"
    ]
    assert (own_copy / "log.jsonl").read_bytes() == content
    progress_lines(own_copy, texts[1], steps=[0], heldout_sequences=8, measured_sequences=16)
    rows = map(json.loads, (own_copy / "log.jsonl").read_text().splitlines())
    assert [row["step"] for row in rows if row["split"] == "heldout"] == [0, 1]


def test_later_of_two_rows_of_a_step_stays_and_keeps_its_means(own_copy: Path, texts: tuple[Path, Path]):
    """The later row has no measures here; each new measure is added to it once."""
    _, second = heldout(own_copy)
    bare = {name: value for name, value in second.items() if name != "measures"}
    path = own_copy / "log.jsonl"
    path.write_bytes(path.read_bytes() + json.dumps(bare | {"loss": 7.5}).encode() + b"\n")
    progress_lines(own_copy, texts[1], steps=[1], heldout_sequences=8, measured_sequences=16)
    _, changed = heldout(own_copy)
    assert {name: value for name, value in changed.items() if name != "measures"} == bare | {"loss": 7.5}
    assert len(changed["measures"]) == len(second["measures"])


def test_other_text_leaves_the_log_unchanged(own_copy: Path, texts: tuple[Path, Path]):
    """The measures are reported with a note that the text is not the run's own."""
    content = (own_copy / "log.jsonl").read_bytes()
    first, *measures = progress_lines(own_copy, texts[0], steps=[1], heldout_sequences=4, measured_sequences=0)
    assert "not the text that 'own' was measured on" in first and len(measures) == 1
    assert (own_copy / "log.jsonl").read_bytes() == content


def test_reported_accuracies_have_intervals_and_n():
    """Wilson's interval is given for the accuracy over all positions, by position, and of the other objective."""
    measure = {"length": 64, "masking": "training", "loss": 5.0, "accuracy": 0.5, "n": 100}
    measure |= {"positions": [{"first": 0, "last": 63, "accuracy": 0.5, "n": 100}]}
    measure |= {"sentence_order_loss": 0.7, "sentence_order_accuracy": 0.25, "sentence_order_n": 1000}
    (line,) = lines({"step": 2000, "measures": [measure]})
    assert line == (
        "step 2,000, 64 tokens, training: accuracy 0.500 (0.404 to 0.596, n = 100); "
        "positions 0 to 63 0.500 (0.404 to 0.596, n = 100); sentence order 0.250 (0.224 to 0.278, n = 1,000)"
    )


@pytest.mark.parametrize("right", [29, 57, 58])
def test_interval_rounds_to_whole_predictions(right: int):
    """In floating point, 100 x 0.29, 0.57 or 0.58 is just below an integer; the reference is Wilson's formula."""
    share, n, z = right / 100, 100, 1.959964
    middle, half = share + z**2 / 2 / n, z * math.sqrt(share * (1 - share) / n + (z / 2 / n) ** 2)
    low, high = ((middle + sign * half) / (1 + z**2 / n) for sign in (-1, 1))
    measure = {"length": 64, "masking": "training", "loss": 5.0, "accuracy": share, "n": n}
    (line,) = lines({"step": 0, "measures": [measure]})
    assert line.endswith(f"accuracy {share:.3f} ({low:.3f} to {high:.3f}, n = 100)")


def test_runs_and_texts_that_cannot_be_measured_are_refused(own_copy: Path, texts: tuple[Path, Path], tmp_path: Path):
    """The log stays unchanged after a foreign or busy run, invalid settings, a short text, or a missing tokenizer."""
    content, run = (own_copy / "log.jsonl").read_bytes(), runs.read_run(own_copy)
    with pytest.raises(ConfigError, match="of the family gpt, which was not pretrained here"):
        measure_run(replace(run, family="gpt"), [str(texts[1])])
    with pytest.raises(ConfigError, match="has no settings of pretrain"):
        measure_run(replace(run, config=run.config | {"breadth": 1}), [str(texts[1])])
    with pytest.raises(ConfigError, match="--heldout-sequences, received 0"):
        measure_run(run, [str(texts[1])], heldout_sequences=0)
    (tmp_path / "short.txt").write_text("a word\n")
    with pytest.raises(CorpusError, match=r"short\.txt has no document of at least 8 words"):
        measure_run(run, [str(tmp_path / "short.txt")])
    with runs.locked(own_copy), pytest.raises(BusyRun, match="by another process"):
        measure_run(run, [str(texts[1])])
    (own_copy / "tokenizer" / "tokenizer.json").unlink()
    with pytest.raises(BrokenRun):
        measure_run(run, [str(texts[1])])
    assert (own_copy / "log.jsonl").read_bytes() == content
