"""Measuring a run again: on its own text the log gets more measures, on other text it stays."""

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
def started(texts: tuple[Path, Path], cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of one update that was measured on few sequences."""
    folder = tmp_path_factory.mktemp("runs") / "own"
    text = ("--corpus", str(texts[0]), "--heldout", str(texts[1]), "--cache", str(cache))
    assert main(["tiny", *text, "--run", str(folder), "--steps", "1", "--set", *SETTINGS]) == 0
    return folder


@pytest.fixture
def own(started: Path, tmp_path: Path) -> Path:
    """Return a copy of that run."""
    return Path(shutil.copytree(started, tmp_path / "own"))


def heldout(folder: Path) -> list[dict[str, Any]]:
    """Return the held-out rows of a run's log."""
    return [row for row in runs.read_log(runs.read_run(folder)) if row["split"] == "heldout"]


def flat(value: Any, name: str = "row") -> dict[str, Any]:
    """Every number and text of a row by its way there."""
    inner = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else None
    if inner is None:
        return {name: value}
    return {deeper: each for key, part in inner for deeper, each in flat(part, f"{name}.{key}").items()}


def said(folder: Path, *texts: Path, **options: Any) -> list[str]:
    """Return what is said while a run is measured on these texts."""
    reported: list[str] = []
    measure_run(runs.read_run(folder), map(str, texts), progress=reported.append, **options)
    return reported


def test_measured_again_it_is_what_training_measured(own: Path, texts: tuple[Path, Path]):
    """Rows that were lost come back with the numbers that they had."""
    before, path = heldout(own), own / "log.jsonl"
    rows = [line for line in runs.read_lines(path) if json.loads(line)["split"] == "train"]
    path.write_bytes(b"".join(line + b"\n" for line in rows))
    said(own, texts[1])
    after = heldout(own)
    assert len(after) == 2 and [list(row) for row in after] == [list(row) for row in before]
    for row, other in zip(after, before, strict=True):
        assert flat(row) == pytest.approx(flat(other))
    assert [line for line in runs.read_lines(path) if json.loads(line)["split"] == "train"] == rows


def test_more_sequences_are_noted_beside_fewer(own: Path, texts: tuple[Path, Path]):
    """At the step that was asked for, once; the means of the row stay those of training, as at the other steps."""
    command = ["measure", "--run", str(own), "--heldout", str(texts[1]), "--steps", "1"]
    command += ["--heldout-sequences", "8", "--measured-sequences", "16"]
    first, second = heldout(own)
    order = [(row["split"], row["step"]) for row in map(json.loads, runs.read_lines(own / "log.jsonl"))]
    assert main(command) == 0
    kept, changed = heldout(own)
    assert [(row["split"], row["step"]) for row in map(json.loads, runs.read_lines(own / "log.jsonl"))] == order
    count = len(second["measures"])
    assert kept == first and changed == second | {"measures": changed["measures"]}
    assert changed["measures"][:count] == second["measures"] and len(changed["measures"]) == 2 * count
    for fewer, more in zip(second["measures"], changed["measures"][count:], strict=True):
        assert (more["length"], more["masking"]) == (fewer["length"], fewer["masking"]) and more["n"] > fewer["n"]
    assert changed["masked_lm_accuracy"] == second["measures"][0]["accuracy"] and changed["n_sequences"] == 4
    content = (own / "log.jsonl").read_bytes()
    assert said(own, texts[1], steps=[1], heldout_sequences=8, measured_sequences=16) == ["step 1: measured before"]
    assert (own / "log.jsonl").read_bytes() == content
    said(own, texts[1], steps=[0], heldout_sequences=8, measured_sequences=16)
    rows = map(json.loads, (own / "log.jsonl").read_text().splitlines())
    assert [row["step"] for row in rows if row["split"] == "heldout"] == [0, 1]


def test_a_row_keeps_its_means_and_of_two_rows_of_a_step_the_later_stays(own: Path, texts: tuple[Path, Path]):
    """Also where it had no measures yet; none of them is noted twice."""
    _, second = heldout(own)
    bare = {name: value for name, value in second.items() if name != "measures"}
    path = own / "log.jsonl"
    path.write_bytes(path.read_bytes() + json.dumps(bare | {"loss": 7.5}).encode() + b"\n")
    said(own, texts[1], steps=[1], heldout_sequences=8, measured_sequences=16)
    _, changed = heldout(own)
    assert {name: value for name, value in changed.items() if name != "measures"} == bare | {"loss": 7.5}
    assert len(changed["measures"]) == len(second["measures"])


def test_on_other_text_the_log_stays(own: Path, texts: tuple[Path, Path]):
    """The measures are said, and that they are not of the run's own text."""
    content = (own / "log.jsonl").read_bytes()
    first, *measures = said(own, texts[0], steps=[1], heldout_sequences=4, measured_sequences=0)
    assert "not the text that 'own' was measured on" in first and len(measures) == 1
    assert (own / "log.jsonl").read_bytes() == content


def test_a_measure_in_words_has_intervals_and_n():
    """Wilson's interval of each accuracy: of all, by position, and of the other objective."""
    measure = {"length": 64, "masking": "training", "loss": 5.0, "accuracy": 0.5, "n": 100}
    measure |= {"positions": [{"first": 0, "last": 63, "accuracy": 0.5, "n": 100}]}
    measure |= {"sentence_order_loss": 0.7, "sentence_order_accuracy": 0.25, "sentence_order_n": 1000}
    (line,) = lines({"step": 2000, "measures": [measure]})
    assert line == (
        "step 2,000, 64 tokens, training: accuracy 0.500 (0.404 to 0.596, n = 100); "
        "positions 0 to 63 0.500 (0.404 to 0.596, n = 100); sentence order 0.250 (0.224 to 0.278, n = 1,000)"
    )


@pytest.mark.parametrize("right", [29, 57, 58])
def test_an_interval_is_of_whole_predictions(right: int):
    """A hundred times 0.29, 0.57 or 0.58 is a rounding less than a whole number: Wilson's formula, by hand."""
    share, n, z = right / 100, 100, 1.959964
    middle, half = share + z**2 / 2 / n, z * math.sqrt(share * (1 - share) / n + (z / 2 / n) ** 2)
    low, high = ((middle + sign * half) / (1 + z**2 / n) for sign in (-1, 1))
    measure = {"length": 64, "masking": "training", "loss": 5.0, "accuracy": share, "n": n}
    (line,) = lines({"step": 0, "measures": [measure]})
    assert line.endswith(f"accuracy {share:.3f} ({low:.3f} to {high:.3f}, n = 100)")


def test_what_cannot_be_measured_is_one_sentence(own: Path, texts: tuple[Path, Path], tmp_path: Path):
    """A run of elsewhere, a short text, a busy run, a changed tokenizer; the log stays as it was."""
    content, run = (own / "log.jsonl").read_bytes(), runs.read_run(own)
    with pytest.raises(ConfigError, match="of the family gpt, which was not pretrained here"):
        measure_run(replace(run, family="gpt"), [str(texts[1])])
    with pytest.raises(ConfigError, match="has no settings of pretrain"):
        measure_run(replace(run, config=run.config | {"breadth": 1}), [str(texts[1])])
    with pytest.raises(ConfigError, match="--heldout-sequences, received 0"):
        measure_run(run, [str(texts[1])], heldout_sequences=0)
    (tmp_path / "short.txt").write_text("a word\n")
    with pytest.raises(CorpusError, match=r"No document of 8 words is in short\.txt"):
        measure_run(run, [str(tmp_path / "short.txt")])
    with runs.locked(own), pytest.raises(BusyRun, match="by another process"):
        measure_run(run, [str(texts[1])])
    (own / "tokenizer" / "tokenizer.json").unlink()
    with pytest.raises(BrokenRun):
        measure_run(run, [str(texts[1])])
    assert (own / "log.jsonl").read_bytes() == content
