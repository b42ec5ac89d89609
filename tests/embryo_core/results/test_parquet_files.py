"""Tests that a table is read only if it matches the checksum next to it, and that each refusal is one line."""

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embryo_core import results
from embryo_core.errors import ResultsError
from embryo_core.measurements import Findings, Score
from embryo_core.results import checks, parquet_files
from embryo_core.results.parquet_files import open_table, write_checksum
from embryo_core.results.tables import ATTENTION, SCORES, Table
from embryo_core.runs import trust
from embryo_core.runs.trust import write_checksums
from embryo_core.types import Run
from tests.conftest import checkpoint_at
from tests.embryo_core.results.conftest import STEPS, find, put, tree

SCORE = {"evaluation": "m", "step": 8, "metric": "m", "layer": None, "group": None, "value": 0.5, "n": 3}
HALVES, INFINITE = np.full(4, 0.5, "<f2").tobytes(), np.full(4, np.inf, "<f2").tobytes()
MAP = {"evaluation": "attention", "step": 8, "layer": 1, "head": 1, "sentences": 7, "length": 2, "weights": HALVES}


def give_way(run: Run, metric: str) -> None:
    """Discard the results of a metric by announcing other data for it."""
    results.note_dataset(run, metric, {"sha256": "another"}, {}, overwrite=True)


@pytest.fixture(params=["part", "compacted"])
def path(run: Run, request: pytest.FixtureRequest) -> Path:
    """Return the file with the scores of one step, in a pending part or in the compacted table."""
    results.write(checkpoint_at(run, 8), "mask_prediction", find("mask_prediction", 8))
    if request.param == "compacted":
        results.compact(run)
    return next(run.results.rglob("scores.parquet"))


def refusal_of(run: Run) -> str:
    """Return the one-line message with which the scores of a run are refused."""
    with pytest.raises(ResultsError) as error:
        results.read_scores(run)
    assert "\n" not in str(error.value)
    return str(error.value)


def store(run: Run, table: Table, *rows: dict) -> None:
    """Write rows to a compacted table with the correct checksum, as an attacker might."""
    put(run.results / f"{table.name}.parquet", pa.Table.from_pylist(list(rows), table.schema))


# === Checksums ===


def test_checksum_is_stored_next_to_file(path: Path):
    """It has the format of sha256sum, so that anyone can verify it."""
    expected = f"{hashlib.sha256(path.read_bytes()).hexdigest()}  scores.parquet\n"
    assert path.with_name("scores.parquet.sha256").read_text() == expected


def test_damaged_file_is_refused_before_pyarrow_reads_it(run: Run, path: Path, monkeypatch: pytest.MonkeyPatch):
    """One changed bit, wherever it is, or a missing last byte is enough."""
    monkeypatch.setattr(pa, "PythonFile", lambda *_: pytest.fail("read"))
    whole = path.read_bytes()
    for place in [*np.random.default_rng(1).integers(0, len(whole), 30).tolist(), 0, len(whole) - 1]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert f"{path} cannot be read" in refusal_of(run)
    path.write_bytes(whole[:-1])
    assert "not the file of its checksum" in refusal_of(run)


def test_missing_file_is_reported(run: Run, path: Path):
    """The checksum shows that a file existed, so its rows are not lost silently."""
    path.unlink()
    assert f"{path} cannot be read (it is missing)" in refusal_of(run)


def test_file_without_checksum_can_be_accepted(run: Run, path: Path):
    """Earlier versions wrote no checksum: the message gives commands that add one, which works, or recompute."""
    scores = results.read_scores(run)
    path.with_name("scores.parquet.sha256").unlink()
    message = refusal_of(run)
    assert "python -m embryo_core evaluate egg --overwrite" in message
    command = message.partition("run in its folder: ")[2].partition(", else")[0]
    subprocess.run(command, shell=True, cwd=path.parent, check=True)
    assert results.read_scores(run).equals(scores)


@pytest.mark.parametrize("content", [b"", b"x", b"\xff" * 80, b"0" * 64 + b" *scores.parquet\n"])
def test_damaged_checksum_is_reported(run: Run, path: Path, content: bytes):
    """The message names the file of the checksum or its table."""
    path.with_name("scores.parquet.sha256").write_bytes(content)
    assert "scores.parquet" in refusal_of(run)


def test_file_is_hashed_once_until_rewritten(run: Run, path: Path, monkeypatch: pytest.MonkeyPatch):
    """A rewritten file is hashed again, even if its size is the same."""
    hashed = []
    sha256 = trust.sha256
    monkeypatch.setattr(trust, "sha256", lambda path: hashed.append(path) or sha256(path))
    for _ in range(3):
        results.read_scores(run)
    once = len(hashed)
    path.write_bytes(path.read_bytes())
    results.read_scores(run)
    assert (once, len(hashed)) == (1, 2)


def test_oversized_file_is_not_hashed(run: Run, path: Path, monkeypatch: pytest.MonkeyPatch):
    """A sparse file of 20 GB is refused without being read."""
    monkeypatch.setattr(trust, "digest", lambda *_: pytest.fail("hashed"))
    os.truncate(path, 20 * 10**9)
    assert "the maximum is 2,147,483,648" in refusal_of(run)


# === Links and irregular files ===


def _link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


REPLACEMENTS: dict[str, Callable[[Path], None]] = {
    "a link out of the run": _link,
    "a link to itself": lambda path: path.symlink_to(path),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
}


@pytest.mark.parametrize("name", ["scores.parquet", "scores.parquet.sha256"])
@pytest.mark.parametrize("replace", REPLACEMENTS.values(), ids=REPLACEMENTS.keys())
def test_irregular_file_is_refused(run: Run, path: Path, name: str, replace: Callable[[Path], None]):
    """It is not opened, and the message names it."""
    path.with_name(name).unlink()
    replace(path.with_name(name))
    assert f"{path.with_name(name)} " in refusal_of(run)


@pytest.mark.parametrize("linked", ["parts", "parts/mask_prediction", "parts/mask_prediction/step8"])
def test_linked_part_is_refused_and_never_removed(run: Run, tmp_path: Path, linked: str):
    """Compaction removes merged parts; through a link it would remove folders outside the results."""
    results.write(checkpoint_at(run, 8), "mask_prediction", find("mask_prediction", 8))
    (run.results / linked).rename(tmp_path / "elsewhere")
    (run.results / linked).symlink_to(tmp_path / "elsewhere")
    before = tree(tmp_path / "elsewhere")
    assert f"{run.results / linked} is a link" in refusal_of(run)
    for change in (lambda: results.compact(run), lambda: give_way(run, "mask_prediction")):
        with pytest.raises(ResultsError, match="is a link"):
            change()
    assert tree(tmp_path / "elsewhere") == before != {}


@pytest.mark.parametrize("name", ["step08", "step9223372036854775808", "step-1", "step" + "9" * 200, "step٣"])
def test_folder_with_invalid_step_is_ignored(run: Run, name: str):
    """A step is a 64-bit integer without leading zeros, in ASCII digits."""
    results.write(checkpoint_at(run, 8), "mask_prediction", find("mask_prediction", 8))
    part = next(run.results.glob("parts/*/step8"))
    part.rename(part.with_name(name))
    assert results.steps_by_metric(run)["mask_prediction"] == set() and results.read_scores(run).empty


# === Invalid rows with a correct checksum ===


@pytest.mark.parametrize(
    "change",
    [
        {"layer": 2**31 - 1},
        {"layer": -1},
        {"step": -1},
        {"step": None},
        {"n": 0},
        {"value": float("nan")},
        {"value": None},
        {"group": "x" * 5000},
    ],
    ids=str,
)
def test_rows_out_of_bounds_are_refused(run: Run, change: dict):
    """A page would otherwise draw two billion layers, or a step before the first."""
    store(run, SCORES, SCORE)
    assert len(results.read_scores(run)) == 1
    store(run, SCORES, SCORE, SCORE | change)
    message = refusal_of(run)
    assert f"{next(iter(change))} " in message or "step" in change
    assert "out of bounds" in message or "no value" in message or "step" in change


@pytest.mark.parametrize(
    "change",
    [{"length": 3}, {"length": 2**20}, {"weights": HALVES[:-1]}, {"head": 2**30}, {"weights": INFINITE}],
    ids=str,
)
def test_invalid_attention_maps_are_refused(run: Run, change: dict):
    """Maps must be square, with finite weights, and belong to a possible head."""
    store(run, ATTENTION, MAP)
    assert results.read_attention(run, 1, 1).weights.shape == (1, 2, 2)
    store(run, ATTENTION, MAP | change)
    with pytest.raises(ResultsError, match=r"attention\.parquet cannot be read|not finite"):
        results.read_attention_steps(run)


def test_too_many_rows_are_refused(run: Run, monkeypatch: pytest.MonkeyPatch):
    """The number is taken from the footer, before any row is read."""
    monkeypatch.setattr(checks, "MAX_ROWS", 1)
    store(run, SCORES, SCORE, SCORE | {"step": 9})
    assert "it has 2 rows" in refusal_of(run)


# === Concurrent writers ===


def test_file_replaced_during_read_is_read_again(run: Run, monkeypatch: pytest.MonkeyPatch):
    """Between two steps of a writer, a reader gets the rows before or after, never an error."""
    write_checksums, seen = trust.write_checksums, []

    def read_and_write(*arguments) -> None:
        seen.append(len(results.read_scores(run)))
        write_checksums(*arguments)
        seen.append(len(results.read_scores(run)))

    results.write(checkpoint_at(run, 0), "m", Findings(scores=[Score("m", 0.5, 3)]))
    results.compact(run)
    results.write(checkpoint_at(run, 8), "m", Findings(scores=[Score("m", 0.5, 3)]))
    monkeypatch.setattr(trust, "write_checksums", read_and_write)
    results.compact(run)
    give_way(run, "m")
    assert seen == [2] * 4 + [2, 2] and results.read_scores(run).empty
    assert not list(run.results.rglob("scores*"))


def test_file_replaced_after_size_check_is_read_again(run: Run, monkeypatch: pytest.MonkeyPatch):
    """Both checksums are listed at that time, and the new file is longer than the old one."""
    path, locate = run.results / "scores.parquet", trust.locate
    for step in (0, 8):
        results.write(checkpoint_at(run, step), "m", Findings(scores=[Score("m", 0.5, 3)]))
        results.compact(run)
        path.with_suffix(f".{step}").write_bytes(path.read_bytes())
    before, after = path.with_suffix(".0"), path.with_suffix(".8")
    write_checksums(
        path.with_name(f"{path.name}.sha256"), {(parquet_files.sha256(file), path.name) for file in (before, after)}
    )
    before.rename(path)

    def locate_and_replace(*arguments) -> tuple:
        """Call `locate`, then replace the table by a longer one, as a writer might; return what `locate` found."""
        location = locate(*arguments)
        if after.exists() and arguments[0] == path:
            after.rename(path)
        return location

    monkeypatch.setattr(trust, "locate", locate_and_replace)
    assert len(results.read_scores(run)) == 2


def test_interrupted_removal_causes_no_error(run: Run, monkeypatch: pytest.MonkeyPatch):
    """The list of checksums allows the file to be absent before it is removed; the next writer cleans up."""
    results.write(checkpoint_at(run, 8), "m", Findings(scores=[Score("m", 0.5, 3)]))
    results.compact(run)
    path, unlink = run.results / "scores.parquet", Path.unlink

    def unlink_but_the_table(one: Path, missing_ok: bool = False) -> None:
        if one == path:
            raise KeyboardInterrupt
        unlink(one, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink_but_the_table)
        with pytest.raises(KeyboardInterrupt):
            parquet_files.remove_table(path)
    assert len(results.read_scores(run)) == 1
    path.unlink()
    assert results.read_scores(run).empty and results.steps_by_metric(run)["m"] == set()
    results.write(checkpoint_at(run, 0), "m", Findings(scores=[Score("m", 0.5, 3)]))
    give_way(run, "m")
    assert not parquet_files.is_stored(path)


# === Footers and row groups ===


def write(run: Run, *steps: int) -> None:
    """Write averaged maps of all heads at these steps, and compact them."""
    for step in steps:
        results.write(checkpoint_at(run, step), "attention", find("attention", step))
    results.compact(run)


def footer(run: Run) -> pq.FileMetaData:
    """Return the footer of the attention maps."""
    with open_table(run, run.results / f"{ATTENTION.name}.parquet", ATTENTION) as stored:
        return stored.footer


def test_footer_is_cached_until_file_is_replaced(run: Run, monkeypatch: pytest.MonkeyPatch):
    write(run, 0, 8)
    path = run.results / f"{ATTENTION.name}.parquet"
    rows, read, check_size = pq.read_table(path), [], checks.check_size
    monkeypatch.setattr(checks, "check_size", lambda *args: read.append(1) or check_size(*args))
    parquet_files._examine.cache_clear()
    assert footer(run).num_rows == footer(run).num_rows == len(rows) and len(read) == 1
    put(path, rows.slice(1))
    assert footer(run).num_rows == len(rows) - 1 and len(read) == 2


def test_steps_beyond_64_bits_are_refused(run: Run):
    """The column of steps has unsigned integers above the largest int64."""
    write(run, *STEPS)
    path = run.results / f"{ATTENTION.name}.parquet"
    rows = pq.read_table(path)
    column = pa.field("step", pa.uint64()), pa.array([2**64 - 1] * len(rows), pa.uint64())
    pq.write_table(rows.set_column(rows.column_names.index("step"), *column), path)
    write_checksum(path)
    with pytest.raises(ResultsError, match=r"attention\.parquet cannot be read"):
        results.read_attention_step(run, STEPS[0])


@pytest.mark.parametrize("rows", [1, 2, 4, 100])
def test_maps_do_not_depend_on_row_groups(run: Run, rows: int):
    """One step and several steps are found for any number of rows in a group."""
    write(run, *STEPS)
    path = run.results / f"{ATTENTION.name}.parquet"
    expected = results.read_attention_steps(run)[1]
    stored_table = pq.read_table(path)
    pq.write_table(stored_table, path, row_group_size=rows)
    write_checksum(path)
    for step, maps in zip(STEPS, expected, strict=True):
        np.testing.assert_array_equal(results.read_attention_step(run, step)[0], maps)
    np.testing.assert_array_equal(results.read_attention_steps(run, [STEPS[0], STEPS[-1]])[1], expected[[0, -1]])
