"""Tests that only regular files inside a run are read, and that commands change only files of their run."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from embryo_core import results, runs
from embryo_core.cli import main
from embryo_core.errors import BrokenRun, CorpusError, EmbryoError, ResultsError
from embryo_core.finetune import workers
from embryo_core.measurements import Findings, Score
from embryo_core.runs import read_checksums, trust, write_checksums
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.types import Run
from tests.conftest import SAMPLE_DATA, checkpoint_at

# === Reading ===


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_file_without_permission_is_reported(tmp_path: Path):
    """A file with mode 000 gives one of our errors, with the system's reason."""
    (tmp_path / "run.json").touch(mode=0)
    with pytest.raises(BrokenRun, match=r"run\.json cannot be read: Permission denied"):
        trust.read_bytes(tmp_path / "run.json", tmp_path, BrokenRun)


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/tty", ".", "pipe"])
def test_irregular_file_is_never_opened(tmp_path: Path, monkeypatch, target: str):
    """Devices, folders and pipes are recognised without opening them."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "run.json").symlink_to(target)
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opened"))
    with pytest.raises(BrokenRun):
        trust.read_bytes(tmp_path / "run.json", tmp_path, BrokenRun)


def test_file_above_size_limit_is_not_read(tmp_path: Path):
    """The limit depends on the file's name."""
    (tmp_path / "run.json").touch()
    os.truncate(tmp_path / "run.json", trust.LIMITS["run.json"] + 1)
    with pytest.raises(BrokenRun, match="the maximum is 4,194,304"):
        trust.read_bytes(tmp_path / "run.json", tmp_path, BrokenRun)


def test_path_out_of_run_is_refused(tmp_path: Path):
    """A path that climbs out is refused, even to a sibling whose name starts with the folder's name."""
    (tmp_path / "run").mkdir()
    (tmp_path / "runner.json").write_text("{}")
    with pytest.raises(BrokenRun, match="leads out of"):
        trust.read_bytes(tmp_path / "run" / ".." / "runner.json", tmp_path / "run", BrokenRun)


# === Checksum files ===


def test_checksums_are_compatible_with_sha256sum(tmp_path: Path):
    """sha256sum accepts a written file, and a file written by sha256sum is read."""
    (tmp_path / "part").mkdir()
    for name in ("a.bin", "part/b.bin"):
        (tmp_path / name).write_bytes(name.encode())
    lines = {(hashlib.sha256(name.encode()).hexdigest(), name) for name in ("a.bin", "part/b.bin")}
    write_checksums(tmp_path / "sums", lines)
    subprocess.run(["sha256sum", "--check", "--strict", "sums"], cwd=tmp_path, check=True, capture_output=True)
    assert read_checksums(tmp_path / "sums", tmp_path, CorpusError) == lines
    done = subprocess.run(["sha256sum", "a.bin", "part/b.bin"], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "sums").write_bytes(done.stdout)
    assert read_checksums(tmp_path / "sums", tmp_path, CorpusError) == lines


def test_checksums_created_during_read_are_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """If a writer creates the file between two looks of the reader, the reader does not wait and returns None."""
    path = tmp_path / "sums"

    def too_late(*arguments: object) -> bytes:
        write_checksums(path, [("0" * 64, "a")])
        raise CorpusError("does not exist")

    monkeypatch.setattr(trust, "read_bytes", too_late)
    assert read_checksums(path, tmp_path, CorpusError) is None


def test_missing_checksums_give_none(tmp_path: Path):
    """The result is None, not an empty list."""
    assert read_checksums(tmp_path / "sums", tmp_path, CorpusError) is None


@pytest.mark.parametrize("content", [b"\xff\n", b"0" * 64 + b"\n", b"0" * 64 + b"  -rf\n", b"{}"])
def test_invalid_checksums_are_refused(tmp_path: Path, content: bytes):
    """The message names the file."""
    (tmp_path / "sums").write_bytes(content)
    with pytest.raises(CorpusError, match="sums is not a list of checksums"):
        read_checksums(tmp_path / "sums", tmp_path, CorpusError)


# === Writing ===


EVALUATE = ["--metrics", "mask_prediction", "--steps", "8", "--treebank", str(SAMPLE_DATA["treebank"])]


def everything(folder: Path) -> dict[str, bytes]:
    """Return the content of each file below a folder, by path."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def other_folder(tmp_path: Path) -> Path:
    """Return a folder outside of the run with files that must not change, some named like results."""
    folder = tmp_path / "other"
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "precious.txt").write_text("precious")
    (folder / "sources.json").write_text("{}")
    return folder


@pytest.fixture
def linked_run(own_run: Run, other_folder: Path) -> Run:
    """Return a run whose results folder is a link to `other_folder`."""
    shutil.rmtree(own_run.results, ignore_errors=True)
    own_run.results.parent.mkdir(exist_ok=True)
    own_run.results.symlink_to(other_folder)
    return own_run


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
def test_evaluate_refuses_linked_results_folder(linked_run, other_folder, capsys, options):
    """Nothing changes in the folder behind the link."""
    before = everything(other_folder)
    assert main(["evaluate", str(linked_run.path), *EVALUATE, *options]) == 2
    assert "is a link" in capsys.readouterr().err
    assert everything(other_folder) == before


def test_evaluate_keeps_unknown_files(own_run):
    """A file in the results folder is kept, and the evaluation is still compacted."""
    shutil.rmtree(own_run.results, ignore_errors=True)
    precious = own_run.results / "parts" / "precious.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("precious")
    assert main(["evaluate", str(own_run.path), *EVALUATE]) == 0
    assert precious.read_text() == "precious" and (own_run.results / "scores.parquet").exists()
    assert [path.name for path in precious.parent.iterdir()] == ["precious.txt"]


def write(run: Run, step: int = 0) -> None:
    """Write one score."""
    results.write(
        checkpoint_at(run, step), "mask_prediction", Findings(scores=[Score("mask_prediction", 0.5, 1, "all")])
    )


@pytest.mark.parametrize("inside", ["notes.txt", "more/notes.txt"])
@pytest.mark.parametrize("change", [lambda run: results.compact(run), lambda run: write(run)], ids=["compact", "write"])
def test_part_with_unknown_files_is_not_removed(own_run, inside, change):
    """Compacting and rewriting the part both name the file and remove nothing."""
    write(own_run)
    part = own_run.results / "parts" / "mask_prediction" / "step0"
    (part / inside).parent.mkdir(exist_ok=True)
    (part / inside).write_text("precious")
    before = everything(own_run.results)
    with pytest.raises(ResultsError, match=inside.split("/")[0]):
        change(own_run)
    assert everything(own_run.results) == before


@pytest.mark.parametrize("link", ["scores.parquet", "parts", "parts/mask_prediction", "parts/mask_prediction/step0"])
def test_writers_follow_no_link_inside_results(own_run, other_folder, link):
    """A linked table, folder of parts or part is refused by every writer."""
    write(own_run)
    path = own_run.results / link
    shutil.rmtree(path, ignore_errors=True)
    path.symlink_to(other_folder)
    before = everything(other_folder)
    for change in (write, results.compact):
        with pytest.raises(ResultsError, match="is a link"):
            change(own_run)
    assert everything(other_folder) == before


def test_examples_are_not_written_through_link(linked_run, other_folder):
    """The linked results folder is refused, and nothing changes behind the link."""
    before = everything(other_folder)
    with pytest.raises(ResultsError, match="is a link"):
        results.write_examples(linked_run, [ExampleQuestion("The [MASK] runs .", "river")])
    assert everything(other_folder) == before


def test_audit_does_not_write_through_link(own_run, other_folder):
    """A linked audit.json is refused, and the link stays."""
    (own_run.path / "audit.json").symlink_to(other_folder / "sources.json")
    with pytest.raises(BrokenRun, match="is a link"):
        runs.write_audit(own_run, runs.Audit((), 3))
    assert (own_run.path / "audit.json").is_symlink()


def _link_all(run: Run, copy: Path) -> None:
    (run.path / "checkpoints").rename(copy)
    (run.path / "checkpoints").symlink_to(copy)


def _link_one(run: Run, copy: Path) -> None:
    (run.path / "checkpoints" / "step0").rename(copy)
    (run.path / "checkpoints" / "step0").symlink_to(copy)


@pytest.mark.parametrize("link", [_link_all, _link_one])
def test_pruning_removes_no_weights_behind_link(own_run: Run, link: Callable[[Run, Path], None]):
    """Linked checkpoints are refused even if they are inside the run's folder."""
    checkpoint = checkpoint_at(own_run, 0)
    link(own_run, own_run.path / "copied")
    before = everything(own_run.path / "copied")
    with pytest.raises(EmbryoError, match="is a link"):
        runs.remove_weights(checkpoint)
    assert everything(own_run.path / "copied") == before


def test_linked_finetuning_cache_is_refused(own_run, other_folder):
    """`finetune` would otherwise remove weights in the folder behind the link."""
    folder = workers.cache_folder(own_run)
    folder.parent.mkdir(parents=True)
    (other_folder / "step8-seed1-0123456789ab.safetensors").write_bytes(b"precious")
    folder.symlink_to(other_folder)
    with pytest.raises(ResultsError, match="is a link"):
        workers.mnli_files(own_run)


def test_windows_junction_counts_as_link(tmp_path, monkeypatch):
    """os.path.islink does not recognise junctions; their reparse tag does."""

    class Junction:
        st_mode, st_reparse_tag = 0o040777, 0xA0000003

    lstat = os.lstat
    monkeypatch.setattr(os, "lstat", lambda path: Junction() if str(path) == str(tmp_path) else lstat(path))
    with pytest.raises(ResultsError, match="is a link"):
        runs.own_folder(tmp_path, tmp_path, ResultsError)


WINDOWS = """import os, sys
sys.modules["fcntl"] = None
for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "uname"):
    delattr(os, name)
from pathlib import Path
from embryo_core import runs
import embryo_core.cli
run = runs.read_run(Path(sys.argv[1]))
checkpoints = runs.checkpoints(run)
runs.verify(checkpoints[0])
print(len(checkpoints), len(runs.read_log(run)) > 0)
"""


def test_run_is_read_without_posix_features(tiny_run: Run):
    """With the modules and flags removed that Windows lacks, the run, its log and its weights can be read."""
    command = [sys.executable, "-c", WINDOWS, str(tiny_run.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "3 True\n", done.stderr
