"""Tests of reading trainer_state.json, as a Trainer writes it and in damaged forms."""

import gzip
import json
import math
import shutil
import tracemalloc

import numpy as np
import pytest

from embryo_core import runs
from embryo_core.errors import BrokenTrainerState
from embryo_core.runs.schema import LIMITS
from embryo_core.sources import add, trainer
from embryo_core.sources.trainer import LogEntry, log_rows, odd_numbers, read_log, read_state


def test_non_finite_loss_becomes_a_gap(tmp_path):
    """Python writes NaN and Infinity to JSON; numbers in quotes are read, and a warning counts both kinds."""
    rows = [{"step": 5, "loss": float("nan"), "learning_rate": "1e-3"}, {"step": 10, "loss": float("inf")}]
    rows += [{"step": 15, "loss": "2.5"}, {"step": 20, "loss": True}, {"step": 20, "eval_loss": "nan"}]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"global_step": "20", "log_history": rows}))
    assert read_state(tmp_path).global_step == 20
    log = read_log(tmp_path)
    assert list(log_rows(log, "masked_lm", False)) == [
        {"split": "train", "step": 5, "loss": None, "learning_rate": 0.001},
        {"split": "train", "step": 10, "loss": None},
        {"split": "train", "step": 15, "loss": 2.5},
        {"split": "train", "step": 20, "loss": None},
        {"split": "heldout", "step": 20, "loss": None},
    ]
    warning = odd_numbers(log)
    assert "4 numbers that are not finite" in warning and "2 numbers that are text" in warning
    assert odd_numbers([LogEntry(step=5, loss=2.5)]) == ""


def test_log_of_added_run_keeps_gaps(root, trainer_folder, tmp_path, capsys):
    """The NaN loss gives a remark and no trouble."""
    source = shutil.copytree(trainer_folder, tmp_path / "source")
    path = source / "checkpoint-20" / "trainer_state.json"
    state = json.loads(path.read_text())
    state["log_history"][1]["loss"] = float("nan")
    path.write_text(json.dumps(state))
    added = add([str(source)], "mine")
    assert added.troubles == [] and "1 number that is not finite" in added.remarks[-1]
    assert [row["loss"] for row in runs.read_log(added.run) if row["split"] == "train"] == [5.5, None, 4.5, 4.0]


def test_log_of_second_phase_follows_the_first(root, trainer_folder, tmp_path):
    """A phase's Trainer counts updates and tokens from 0, so its log is shifted, and its tokens are unknown."""
    source = tmp_path / "source"
    for phase in (1, 2):
        for step in (10, 20):
            folder = shutil.copytree(
                trainer_folder / f"checkpoint-{step}", source / f"phase{phase}" / f"checkpoint-{step}"
            )
            state = json.loads((folder / "trainer_state.json").read_text())
            state["log_history"] = [{"step": s, "loss": 10.0 * phase + s} for s in range(5, step + 1, 5)]
            (folder / "trainer_state.json").write_text(json.dumps(state))
    patterns = ["phase1/checkpoint-{step}", "phase2/checkpoint-{step+20}"]
    run = add([str(source)], "mine", patterns=patterns).run
    losses = [(5, 15), (10, 20), (15, 25), (20, 30), (25, 25), (30, 30), (35, 35), (40, 40)]
    assert [(row["step"], row["loss"]) for row in runs.read_log(run)] == losses
    assert [checkpoint.tokens for checkpoint in runs.checkpoints(run)] == [5120, 10240, None, None]
    shutil.rmtree(source / "phase1")
    run = add([str(source)], "mine", patterns=patterns).run
    assert [(row["step"], row["loss"]) for row in runs.read_log(run)] == losses


def test_initial_checkpoint_of_second_phase_keeps_the_first_phases_log(root, trainer_folder, tmp_path):
    """The second phase's checkpoint-0 is step 15 of the run; its evaluation is of this step, not of step 0."""
    source = tmp_path / "source"
    shutil.copytree(trainer_folder / "checkpoint-10", source / "phase1" / "checkpoint-10")
    for step in (0, 20):
        shutil.copytree(trainer_folder / f"checkpoint-{step}", source / "phase2" / f"checkpoint-{step}")
    (source / "phase2" / "checkpoint-20" / "trainer_state.json").unlink()
    patterns = ["phase1/checkpoint-{step}", "phase2/checkpoint-{step+15}"]
    added = add([str(source)], "mine", patterns=patterns)
    rows = [(row["split"], row["step"]) for row in runs.read_log(added.run)]
    assert added.steps == (10, 15, 35)
    assert rows == [("heldout", 0), ("train", 5), ("heldout", 10), ("train", 10), ("heldout", 15)]


def test_warning_counts_odd_numbers_of_all_phases(root, trainer_folder, tmp_path):
    for phase, losses in ((1, ["nan", "inf"]), (2, ["nan"])):
        folder = shutil.copytree(trainer_folder / "checkpoint-20", tmp_path / f"source/phase{phase}/checkpoint-20")
        entries = [{"step": 5 + index, "loss": loss} for index, loss in enumerate(losses)]
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": 20, "log_history": entries}))
    patterns = ["phase1/checkpoint-{step}", "phase2/checkpoint-{step+20}"]
    added = add([str(tmp_path / "source")], "mine", patterns=patterns)
    assert "3 numbers that are not finite" in added.remarks[-1]


def test_one_log_of_a_phase_is_read(root, trainer_folder, tmp_path, monkeypatch):
    """The last checkpoint's log includes those of the phase's other checkpoints."""
    source = shutil.copytree(trainer_folder, tmp_path / "source", ignore=shutil.ignore_patterns("checkpoint-0"))
    folders = []
    monkeypatch.setattr(trainer, "read_log", lambda folder: folders.append(folder.name) or read_log(folder))
    added = add([str(source)], "mine", patterns=["checkpoint-{step+5000}"])
    assert added.steps == (5010, 5020) and folders == ["checkpoint-20"]


@pytest.mark.parametrize("name", ["trainer_state.json", "trainer_state.json.gz"])
@pytest.mark.parametrize("pack", [gzip.compress, lambda content: b"\xef\xbb\xbf" + content])
def test_compressed_state_or_byte_order_mark_is_read(tmp_path, name, pack):
    """Windows editors write the byte order mark."""
    (tmp_path / name).write_bytes(pack(b'{"global_step": 7}'))
    assert read_state(tmp_path).global_step == 7


def test_state_too_large_after_decompression_is_refused(tmp_path):
    """A small gzip file may expand to any size."""
    (tmp_path / "trainer_state.json").write_bytes(gzip.compress(b" " * (LIMITS["trainer_state.json"] + 1)))
    with pytest.raises(BrokenTrainerState, match="bytes, the maximum"):
        read_state(tmp_path)


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff", b'{"log_history": 5}', b"[" * 100_000])
def test_damaged_state_loses_only_log_and_counts(root, trainer_folder, tmp_path, content):
    """The damage is reported in one message; all checkpoints are added, and the log comes from the state before."""
    source = shutil.copytree(trainer_folder, tmp_path / "source")
    (source / "checkpoint-20" / "trainer_state.json").write_bytes(content)
    with pytest.raises(BrokenTrainerState, match="what cannot be read of it is left out"):
        read_log(source / "checkpoint-20")
    added = add([str(source)], "mine")
    assert added.steps == (0, 10, 20) and len(added.troubles) == 1 and "trainer_state.json" in added.troubles[0]
    assert {row["step"] for row in runs.read_log(added.run)} == {0, 5, 10}
    assert [checkpoint.tokens for checkpoint in runs.checkpoints(added.run)] == [None, 5120, None]


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff", b"[" * 100_000, b'{"global_step": -1}'])
def test_damaged_counts_are_refused(tmp_path, content):
    (tmp_path / "trainer_state.json").write_bytes(content)
    with pytest.raises(BrokenTrainerState, match="what cannot be read of it is left out"):
        read_state(tmp_path)


def test_counts_beside_a_damaged_log_are_kept(root, trainer_folder, tmp_path):
    source = shutil.copytree(trainer_folder, tmp_path / "source")
    state = {"log_history": 5, "global_step": 20, "num_input_tokens_seen": 7000}
    (source / "checkpoint-20" / "trainer_state.json").write_text(json.dumps(state))
    added = add([str(source)], "mine")
    assert len(added.troubles) == 1 and "what cannot be read of it is left out" in added.troubles[0]
    assert [checkpoint.tokens for checkpoint in runs.checkpoints(added.run)] == [None, 5120, 7000]


def test_folder_without_state_gives_none(tmp_path):
    assert read_state(tmp_path) is None and read_log(tmp_path) is None


def test_words_like_numbers_that_are_not_finite_are_kept(tmp_path):
    """Only the number is a gap, not the same letters in a text, with a quotation mark before them or without."""
    state = {"best_model_checkpoint": 'out/NaN "-Infinity', "log_history": [{"step": 5, "loss": -math.inf}]}
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    assert read_state(tmp_path).best_model_checkpoint == 'out/NaN "-Infinity'
    assert [row["loss"] for row in log_rows(read_log(tmp_path), "masked_lm", False)] == [None]


def test_long_text_beside_nan_takes_little_memory(tmp_path):
    """The largest file has 256 MB, so a text takes no more than a few bytes per character."""
    text = r"a\"" * 700_000
    (tmp_path / "trainer_state.json").write_text(f'{{"note": "{text}", "log_history": [{{"step": 5, "loss": NaN}}]}}')
    tracemalloc.start()
    log = read_log(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert log == [LogEntry(step=5, loss="")] and peak < 16_000_000


def test_text_without_end_beside_nan_is_refused_in_linear_time(tmp_path):
    """In quadratic time, this test would take hours."""
    (tmp_path / "trainer_state.json").write_text('NaN "' + r"\"" * 500_000)
    with pytest.raises(BrokenTrainerState, match="is not valid"):
        read_state(tmp_path)


def test_thinned_log_of_two_phases_has_even_spacing_and_the_last_step(root, trainer_folder, tmp_path):
    for phase, count in ((1, 6_001), (2, 12_000)):
        name = f"checkpoint-{count}"
        folder = shutil.copytree(trainer_folder / "checkpoint-20", tmp_path / "source" / f"phase{phase}" / name)
        entries = [{"step": step, "loss": 5.0} for step in range(1, count + 1)]
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": count, "log_history": entries}))
    patterns = ["phase1/checkpoint-{step}", "phase2/checkpoint-{step+6001}"]
    rows = runs.read_log(add([str(tmp_path / "source")], "mine", patterns=patterns).run)
    steps = [row["step"] for row in rows if row["split"] == "train"]
    assert steps[-1] == 18_001 and {*np.diff(steps)} == {2}


def test_log_of_a_long_training_can_be_read(root, trainer_folder, tmp_path):
    """A Trainer that logs each of 600,000 updates has more rows than a run's log may have; evenly spaced ones stay."""
    source = shutil.copytree(trainer_folder, tmp_path / "source")
    entries = [{"step": step, "loss": 5.0} for step in range(600_000)] + [{"step": 20, "eval_loss": 4.0}]
    state = {"global_step": 20, "log_history": entries}
    (source / "checkpoint-20" / "trainer_state.json").write_text(json.dumps(state))
    rows = runs.read_log(add([str(source)], "mine").run)
    steps = [row["step"] for row in rows if row["split"] == "train"]
    assert 5_000 < len(steps) <= 10_000 and steps[-1] == 599_999 and len({*np.diff(steps)}) == 1
    assert [row["step"] for row in rows if row["split"] == "heldout"] == [20]
