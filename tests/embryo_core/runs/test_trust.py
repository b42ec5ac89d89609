"""Only regular files inside a run are read, and commands change only what belongs to their run."""

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
from embryo_core.runs import read_checksums, trust, write_checksums
from embryo_core.runs.schema import ExampleQuestion
from embryo_core.types import Findings, Run, Score
from tests.conftest import SAMPLE_DATA, at

# === Reading ===


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_reported(tmp_path: Path):
    """Mode 000 is an error of ours with the system's reason."""
    (tmp_path / "run.json").touch(mode=0)
    with pytest.raises(BrokenRun, match=r"run\.json cannot be read: Permission denied"):
        trust.read_bytes(tmp_path / "run.json", tmp_path, BrokenRun)


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/tty", ".", "pipe"])
def test_what_is_no_regular_file_is_never_opened(tmp_path: Path, monkeypatch, target: str):
    """Devices, folders and pipes are recognised without opening them."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "run.json").symlink_to(target)
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opened"))
    with pytest.raises(BrokenRun):
        trust.read_bytes(tmp_path / "run.json", tmp_path, BrokenRun)


def test_a_file_above_its_limit_is_not_read(tmp_path: Path):
    """The limit is that of the file's name."""
    (tmp_path / "run.json").touch()
    os.truncate(tmp_path / "run.json", trust.LIMITS["run.json"] + 1)
    with pytest.raises(BrokenRun, match="and at most 4,194,304 are read"):
        trust.read_bytes(tmp_path / "run.json", tmp_path, BrokenRun)


def test_a_folder_above_is_no_part_of_the_run(tmp_path: Path):
    """A path that climbs out of the folder is refused, even to a folder whose name has the same beginning."""
    (tmp_path / "run").mkdir()
    (tmp_path / "runner.json").write_text("{}")
    with pytest.raises(BrokenRun, match="leads out of"):
        trust.read_bytes(tmp_path / "run" / ".." / "runner.json", tmp_path / "run", BrokenRun)


# === Checksum files ===


def test_sha256sum_understands_what_is_written(tmp_path: Path):
    """And what sha256sum writes is read."""
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


def test_a_file_that_is_written_meanwhile_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without one nothing is listed; a writer that puts the first one there between two looks is not waited for."""
    path = tmp_path / "sums"

    def too_late(*arguments: object) -> bytes:
        write_checksums(path, [("0" * 64, "a")])
        raise CorpusError("does not exist")

    monkeypatch.setattr(trust, "read_bytes", too_late)
    assert read_checksums(path, tmp_path, CorpusError) is None


def test_no_file_lists_nothing(tmp_path: Path):
    """None is not an empty list."""
    assert read_checksums(tmp_path / "sums", tmp_path, CorpusError) is None


@pytest.mark.parametrize("content", [b"\xff\n", b"0" * 64 + b"\n", b"0" * 64 + b"  -rf\n", b"{}"])
def test_what_is_no_list_is_refused(tmp_path: Path, content: bytes):
    """With the name of the file."""
    (tmp_path / "sums").write_bytes(content)
    with pytest.raises(CorpusError, match="sums is no list of checksums"):
        read_checksums(tmp_path / "sums", tmp_path, CorpusError)


# === Writing ===


EVALUATE = ["--metrics", "mask_prediction", "--steps", "8", "--treebank", str(SAMPLE_DATA["treebank"])]


def everything(folder: Path) -> dict[str, bytes]:
    """Return the content of each file below a folder, by path."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Return a folder outside the run that is precious to somebody, with a run's results and notes among its parts."""
    folder = tmp_path / "other"
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "precious.txt").write_text("precious")
    (folder / "sources.json").write_text("{}")
    return folder


@pytest.fixture
def linked(own_run: Run, other: Path) -> Run:
    """Return a run whose results are a link to that folder."""
    shutil.rmtree(own_run.results, ignore_errors=True)
    own_run.results.parent.mkdir(exist_ok=True)
    own_run.results.symlink_to(other)
    return own_run


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
def test_evaluate_refuses_a_linked_results_folder(linked, other, capsys, options):
    """Nothing is written to, or removed from, the folder that the link leads to."""
    before = everything(other)
    assert main(["evaluate", str(linked.path), *EVALUATE, *options]) == 2
    assert "is a link" in capsys.readouterr().err
    assert everything(other) == before


def test_evaluate_leaves_files_of_others_in_place(own_run):
    """A results folder that held something before keeps it, and the evaluation is compacted all the same."""
    shutil.rmtree(own_run.results, ignore_errors=True)
    precious = own_run.results / "parts" / "precious.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("precious")
    assert main(["evaluate", str(own_run.path), *EVALUATE]) == 0
    assert precious.read_text() == "precious" and (own_run.results / "scores.parquet").exists()
    assert [path.name for path in precious.parent.iterdir()] == ["precious.txt"]


def write(run: Run, step: int = 0) -> None:
    """Write one score."""
    results.write(at(run, step), "mask_prediction", Findings(scores=[Score("mask_prediction", 0.5, 1, "all")]))


@pytest.mark.parametrize("inside", ["notes.txt", "more/notes.txt"])
@pytest.mark.parametrize("change", [lambda run: results.compact(run), lambda run: write(run)], ids=["compact", "write"])
def test_a_part_with_files_of_others_is_not_removed(own_run, inside, change):
    """Whatever removes or replaces the part says which file is in the way, and removes nothing."""
    write(own_run)
    part = own_run.results / "parts" / "mask_prediction" / "step0"
    (part / inside).parent.mkdir(exist_ok=True)
    (part / inside).write_text("precious")
    before = everything(own_run.results)
    with pytest.raises(ResultsError, match=inside.split("/")[0]):
        change(own_run)
    assert everything(own_run.results) == before


@pytest.mark.parametrize("link", ["scores.parquet", "parts", "parts/mask_prediction", "parts/mask_prediction/step0"])
def test_no_writer_follows_a_link_inside_the_results(own_run, other, link):
    """A linked table, folder of parts, or part: every writer refuses it."""
    write(own_run)
    path = own_run.results / link
    shutil.rmtree(path, ignore_errors=True)
    path.symlink_to(other)
    before = everything(other)
    for change in (write, results.compact):
        with pytest.raises(ResultsError, match="is a link"):
            change(own_run)
    assert everything(other) == before


def test_example_questions_are_not_written_through_a_link(linked, other):
    """`examples` refuses a linked results folder too."""
    before = everything(other)
    with pytest.raises(ResultsError, match="is a link"):
        results.write_examples(linked, [ExampleQuestion("The [MASK] runs .", "river")])
    assert everything(other) == before


def test_an_audit_does_not_replace_a_link(own_run, other):
    """`audit` writes audit.json itself, not what a link of that name leads to."""
    (own_run.path / "audit.json").symlink_to(other / "sources.json")
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
def test_thinning_removes_no_weights_behind_a_link(own_run: Run, link: Callable[[Run, Path], None]):
    """Linked checkpoints are refused, even where they are inside the run's own folder."""
    checkpoint = at(own_run, 0)
    link(own_run, own_run.path / "copied")
    before = everything(own_run.path / "copied")
    with pytest.raises(EmbryoError, match="is a link"):
        runs.remove_weights(checkpoint)
    assert everything(own_run.path / "copied") == before


def test_weights_kept_by_finetuning_are_not_removed_behind_a_link(own_run, other):
    """`finetune` looks for its leftovers in its own folder only."""
    folder = workers.cache_folder(own_run)
    folder.parent.mkdir(parents=True)
    (other / "step8-seed1-0123456789ab.safetensors").write_bytes(b"precious")
    folder.symlink_to(other)
    with pytest.raises(ResultsError, match="is a link"):
        workers.mnli_files(own_run)


def test_a_junction_is_a_link(tmp_path, monkeypatch):
    """Windows has junctions, which os.path.islink does not know; their reparse tag says so."""

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


def test_a_run_is_read_without_what_windows_lacks(tiny_run: Run):
    """Modules and flags of POSIX alone are missing: run, log and weights are read all the same."""
    command = [sys.executable, "-c", WINDOWS, str(tiny_run.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "3 True\n", done.stderr
